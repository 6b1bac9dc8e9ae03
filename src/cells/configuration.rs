//! The configuration: in chunks, because the member table is larger than a record, and all or
//! nothing, because half a member table is none.
//!
//! ```text
//!  chunk (key: bank and number)              head (written last; it commits)
//!  ┌──────────┬────────────────────┐         ┌──────┬────────┬──────────┬──────────┐
//!  │ revision │ bytes, up to 512   │         │ bank │ chunks │ 0     0  │ revision │
//!  └──────────┴────────────────────┘         └──────┴────────┴──────────┴──────────┘
//!  0          4                              0      1        2          4          8
//! ```
//!
//! There are two banks of chunks. A new configuration goes into the bank that the head does not
//! name; when all of it is there, a new head names it. Until then the old one is in force, and
//! after a cut the staged chunks are just not needed any more: they vanish with their sectors.

use super::error::{Error, Reason};
use super::guard::Flash;
use super::store::{Loaded, Path, Save, Store};
use super::typed::keys;

/// Bytes of a chunk.
pub const CHUNK_BYTES_MAX: usize = 512;

/// Chunks of a configuration.
pub const CHUNKS_MAX: u8 = 8;

const REVISION_BYTES: usize = 4;
const HEAD_FORMAT: u8 = 1;

/// Which configuration is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigurationHead {
    /// Grows with every configuration.
    pub revision: u32,
    /// How many chunks it has.
    pub chunks: u8,
    bank: u8,
}

impl ConfigurationHead {
    fn encode(self) -> [u8; 8] {
        let [r0, r1, r2, r3] = self.revision.to_le_bytes();
        [self.bank, self.chunks, 0, 0, r0, r1, r2, r3]
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        match *bytes {
            [bank @ 0..=1, chunks @ 0..=CHUNKS_MAX, _, _, r0, r1, r2, r3] => {
                Some(Self { revision: u32::from_le_bytes([r0, r1, r2, r3]), chunks, bank })
            }
            _ => None,
        }
    }
}

/// The head in RAM, and whether a new configuration is being staged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Active {
    head: Option<ConfigurationHead>,
    staging: bool,
}

impl Active {
    pub const NONE: Active = Active { head: None, staging: false };

    /// Whether a cell is part of the state. Chunks of another bank than the head's are not.
    pub fn needs(&self, key: u8) -> bool {
        let Some(chunk) = key.checked_sub(keys::CHUNKS).filter(|_| key < keys::ERASING) else {
            return true;
        };
        self.staging
            || self.head.is_some_and(|head| {
                chunk / CHUNKS_MAX == head.bank && chunk % CHUNKS_MAX < head.chunks
            })
    }

    fn staging_bank(&self) -> u8 {
        self.head.map_or(0, |head| 1 - head.bank)
    }

    fn next_revision(&self) -> Option<u32> {
        self.head.map_or(Some(1), |head| head.revision.checked_add(1))
    }
}

fn chunk_key(bank: u8, chunk: u8) -> u8 {
    keys::CHUNKS + bank * CHUNKS_MAX + chunk
}

impl<F: Flash, const PAGES: usize, const BUFFER: usize> Store<F, PAGES, BUFFER> {
    /// The configuration in force.
    #[must_use]
    pub fn configuration(&self) -> Option<ConfigurationHead> {
        self.active.head
    }

    pub(super) fn load_active(&mut self) {
        self.active = Active::NONE;
        if let Ok(Some(loaded)) = self.load(keys::CONFIGURATION)
            && loaded.format <= HEAD_FORMAT
        {
            self.active.head = ConfigurationHead::decode(loaded.value);
        }
        if self.active.head.is_none() {
            // A provisioning that was cut short, or a head that this firmware cannot read: keep
            // every chunk.
            self.active.staging = true;
        }
    }

    /// Writes one chunk of the next configuration. The one in force stays as it is.
    ///
    /// Cancel safety: not cancel safe, like [`Store::save`].
    pub async fn stage_chunk(&mut self, chunk: u8, format: u8, bytes: &[u8]) -> Result<(), Error> {
        if chunk >= CHUNKS_MAX || bytes.len() > CHUNK_BYTES_MAX {
            return Err(Error::new(Reason::TooLong));
        }
        let revision = self.active.next_revision().ok_or(Error::new(Reason::Exhausted))?;
        let key = chunk_key(self.active.staging_bank(), chunk);
        self.active.staging = true;
        let parts = [&revision.to_le_bytes(), bytes];
        self.save_parts(&Save { key, format, parts: &parts, path: Path::Idle, verify: true }).await
    }

    /// Puts the staged configuration into force: all of its chunks, or an error and nothing.
    ///
    /// Cancel safety: not cancel safe, like [`Store::save`].
    pub async fn commit_configuration(&mut self, chunks: u8) -> Result<(), Error> {
        let head = ConfigurationHead {
            revision: self.active.next_revision().ok_or(Error::new(Reason::Exhausted))?,
            chunks,
            bank: self.active.staging_bank(),
        };
        if chunks > CHUNKS_MAX {
            return Err(Error::new(Reason::TooLong));
        }
        for chunk in 0..chunks {
            self.load_chunk(head, chunk)?;
        }
        let key = keys::CONFIGURATION;
        self.save(key, HEAD_FORMAT, &head.encode(), Path::Idle, true).await?;
        self.active = Active { head: Some(head), staging: false };
        Ok(())
    }

    /// One chunk of the configuration in force.
    pub fn configuration_chunk(&mut self, chunk: u8) -> Result<Option<Loaded<'_>>, Error> {
        match self.active.head {
            Some(head) if chunk < head.chunks => self.load_chunk(head, chunk).map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn load_chunk(
        &mut self,
        head: ConfigurationHead,
        chunk: u8,
    ) -> Result<Loaded<'_>, Error> {
        let key = chunk_key(head.bank, chunk);
        let unreadable = Error::new(Reason::Unreadable { key });
        let loaded = self.load(key)?.ok_or(unreadable)?;
        let (revision, value) =
            loaded.value.split_first_chunk::<REVISION_BYTES>().ok_or(unreadable)?;
        if u32::from_le_bytes(*revision) != head.revision {
            return Err(unreadable);
        }
        Ok(Loaded { format: loaded.format, value })
    }
}
