//! The cells of a node, and their layouts. All numbers are little endian.
//!
//! ```text
//!  key      cell           format  value
//!  0        mark           1       incarnation u32: values exist; written last by provisioning
//!  1        boot epoch     1       epoch u32
//!  2        configuration  1       head, see `configuration`
//!  3        transaction    -       opaque: vote or decision of the commit protocol
//!  4..12    election       core's  index u32 │ state bytes u16 │ 0 u16 │ state │ history entry
//!  12..28   chunks         caller's, two banks of eight, see `configuration`
//!  28       erasing        1       region u8 │ sector u8 │ busy u8 │ wiped u8: see `erasing`
//!  29       secret         1       the keys of the flock, see `secret`
//! ```
//!
//! One election is one record per copy. Record `index` goes to slot `index % 8`: the newest one is
//! the state vector, and the eight together are the group history, so that history costs no
//! record of its own. The core encodes state and history entry and owns their format version.
//!
//! The group counter has no record: it is `boot epoch << 32 | sequence`, so that the one write of
//! a boot leases all its numbers.

use super::error::{Error, Reason, Which};
use super::guard::Flash;
use super::record;
use super::report::Provisioning;
use super::store::{Path, Save, Store};

/// The keys of the cells.
pub mod keys {
    /// Values exist.
    pub const MARK: u8 = 0;
    /// The boot epoch.
    pub const EPOCH: u8 = 1;
    /// The head of the configuration.
    pub const CONFIGURATION: u8 = 2;
    /// The record of the commit protocol.
    pub const TRANSACTION: u8 = 3;
    /// The first slot of the election ring.
    pub const ELECTIONS: u8 = 4;
    /// The first chunk of the configuration.
    pub const CHUNKS: u8 = 12;
    /// The erase that is running, if any.
    pub const ERASING: u8 = 28;
    /// The keys of the flock.
    pub const SECRET: u8 = 29;
}

/// How many elections are remembered, the current one included.
pub const HISTORY_RECORDS: u32 = 8;

/// State vector and history entry of one election, together.
pub const ELECTION_BYTES_MAX: usize = 640;

/// Bytes that the store puts before them.
pub(super) const ELECTION_PREFIX_BYTES: usize = 8;
const SMALL_CELL_BYTES_MAX: usize = 64;

const _: () = {
    assert!(keys::ELECTIONS as u32 + HISTORY_RECORDS == keys::CHUNKS as u32);
    assert!(keys::CHUNKS + 2 * super::CHUNKS_MAX == keys::ERASING);
    assert!(keys::SECRET as usize + 1 == record::KEYS);
};

/// A small value with a layout of its own.
pub trait Cell: Sized {
    /// Where it is kept.
    const KEY: u8;
    /// The format that [`Cell::encode`] writes.
    const FORMAT: u8;
    /// Writes the value and returns its bytes; `None` when `out` (64 bytes) is too short.
    fn encode(&self, out: &mut [u8]) -> Option<usize>;
    /// Reads a value of this format or an older one.
    fn decode(format: u8, bytes: &[u8]) -> Option<Self>;
}

/// How often this node has booted, in steps of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootEpoch(pub u32);

impl Cell for BootEpoch {
    const KEY: u8 = keys::EPOCH;
    const FORMAT: u8 = 1;

    fn encode(&self, out: &mut [u8]) -> Option<usize> {
        *out.first_chunk_mut()? = self.0.to_le_bytes();
        Some(4)
    }

    fn decode(_format: u8, bytes: &[u8]) -> Option<Self> {
        Some(Self(u32::from_le_bytes(bytes.try_into().ok()?)))
    }
}

/// Each incarnation of an id has a block of epochs of its own, so that a board that is replaced or
/// provisioned again starts above every epoch that its predecessor can have used.
const INCARNATION_SHIFT: u32 = 22;

impl BootEpoch {
    /// How often one incarnation can boot.
    pub const BOOTS_MAX: u32 = (1 << INCARNATION_SHIFT) / 2 - 1;
    /// The last incarnation that has a block.
    pub const INCARNATION_MAX: u32 = u32::MAX >> INCARNATION_SHIFT;

    /// The epoch under which an incarnation is provisioned; its first boot takes the next one.
    /// `None`: there are no blocks left.
    #[must_use]
    pub const fn first_of(incarnation: u32) -> Option<Self> {
        if incarnation > Self::INCARNATION_MAX {
            return None;
        }
        Some(Self(incarnation << INCARNATION_SHIFT))
    }

    /// Refuses an epoch that belongs to a later incarnation.
    fn within(self, incarnation: u32) -> Result<Self, Error> {
        if self.0 >> INCARNATION_SHIFT > incarnation {
            return Err(Error::new(Reason::Exhausted));
        }
        Ok(self)
    }
}

/// Values exist: a node that has this mark and cannot read them stays mute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The incarnation under which the board was provisioned.
    pub incarnation: u32,
}

impl Cell for Mark {
    const KEY: u8 = keys::MARK;
    const FORMAT: u8 = 1;

    fn encode(&self, out: &mut [u8]) -> Option<usize> {
        *out.first_chunk_mut()? = self.incarnation.to_le_bytes();
        Some(4)
    }

    fn decode(_format: u8, bytes: &[u8]) -> Option<Self> {
        let incarnation = u32::from_le_bytes(bytes.try_into().ok()?);
        Some(Self { incarnation })
    }
}

/// Group numbers: increasing, never reused, leased by the boot epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupCounter {
    epoch: u32,
    sequence: u32,
}

impl GroupCounter {
    /// The numbers of one boot. Only for an epoch that was committed and read back.
    #[must_use]
    pub const fn leased_by(epoch: BootEpoch) -> Self {
        Self { epoch: epoch.0, sequence: 0 }
    }

    /// The boot epoch.
    #[must_use]
    pub const fn epoch(&self) -> BootEpoch {
        BootEpoch(self.epoch)
    }

    /// The next number, or `None` when the lease is used up: the node must fail and boot again.
    #[must_use = "a number that is not used is lost"]
    pub fn next_number(&mut self) -> Option<u64> {
        self.sequence = self.sequence.checked_add(1)?;
        Some(u64::from(self.epoch) << 32 | u64::from(self.sequence))
    }
}

/// What one election left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Election<'s> {
    /// Counts the elections of this node.
    pub index: u32,
    /// The core's format version of both parts.
    pub format: u8,
    /// The state vector.
    pub state: &'s [u8],
    /// The entry of the group history.
    pub history: &'s [u8],
}

fn election_prefix(bytes: &[u8]) -> Option<(u32, usize, &[u8])> {
    let ([i0, i1, i2, i3, l0, l1, _, _], rest) =
        bytes.split_first_chunk::<ELECTION_PREFIX_BYTES>()?;
    let index = u32::from_le_bytes([*i0, *i1, *i2, *i3]);
    let state_bytes = usize::from(u16::from_le_bytes([*l0, *l1]));
    Some((index, state_bytes, rest))
}

fn slot_of(index: u32) -> u8 {
    keys::ELECTIONS + (index % HISTORY_RECORDS) as u8
}

impl<F: Flash, const PAGES: usize, const BUFFER: usize> Store<F, PAGES, BUFFER> {
    /// Reads a small cell. A newer format than this firmware's is an error.
    pub fn load_cell<C: Cell>(&mut self) -> Result<Option<C>, Error> {
        let Some(loaded) = self.load(C::KEY)? else {
            return Ok(None);
        };
        if loaded.format > C::FORMAT {
            return Err(Error::new(Reason::NewerFormat { stored: loaded.format }));
        }
        match C::decode(loaded.format, loaded.value) {
            Some(cell) => Ok(Some(cell)),
            None => Err(Error::new(Reason::Malformed)),
        }
    }

    /// Writes a small cell.
    ///
    /// Cancel safety: not cancel safe, like [`Store::save`].
    pub async fn save_cell<C: Cell>(
        &mut self,
        cell: &C,
        path: Path,
        verify: bool,
    ) -> Result<(), Error> {
        let mut bytes = [0; SMALL_CELL_BYTES_MAX];
        let length = cell.encode(&mut bytes).ok_or(Error::new(Reason::TooLong))?;
        let value = bytes.get(..length).ok_or(Error::new(Reason::TooLong))?;
        let parts = [value];
        self.save_parts(&Save { key: C::KEY, format: C::FORMAT, parts: &parts, path, verify }).await
    }

    /// Rewrites a small cell that an older firmware wrote. Says whether it had to.
    ///
    /// Cancel safety: not cancel safe, like [`Store::save`].
    pub async fn migrate<C: Cell>(&mut self) -> Result<bool, Error> {
        let stored = self.load(C::KEY)?.map(|loaded| loaded.format);
        match stored {
            Some(format) if format < C::FORMAT => {}
            Some(format) if format > C::FORMAT => {
                return Err(Error::new(Reason::NewerFormat { stored: format }));
            }
            _ => return Ok(false),
        }
        if let Some(cell) = self.load_cell::<C>()? {
            self.save_cell(&cell, Path::Idle, true).await?;
        }
        Ok(true)
    }

    /// The largest epoch that any good copy names: a copy that is behind counts as well.
    fn largest_epoch(&mut self) -> Result<Option<u32>, Error> {
        let mut largest = None;
        for which in Which::BOTH {
            let Some(header) = self.read_copy(which, keys::EPOCH) else {
                continue;
            };
            if header.format > BootEpoch::FORMAT {
                return Err(Error::new(Reason::NewerFormat { stored: header.format }));
            }
            let found = record::value_of(&self.buffer.0, header.length)
                .and_then(|value| BootEpoch::decode(header.format, value));
            largest = largest.max(found.map(|epoch| epoch.0));
        }
        Ok(largest)
    }

    /// Commits the epoch of this boot, reads it back, and leases its group numbers.
    ///
    /// Nothing may leave the node before this returned `Ok`. Any error means: stay mute. The epochs
    /// of an incarnation can be used up ([`BootEpoch::BOOTS_MAX`]).
    ///
    /// Cancel safety: not cancel safe, like [`Store::save`].
    pub async fn begin_epoch(&mut self) -> Result<GroupCounter, Error> {
        match self.provisioning() {
            Provisioning::Complete => {}
            Provisioning::Unreadable { key } => {
                return Err(Error::new(Reason::Unreadable { key }));
            }
            _ => return Err(Error::new(Reason::Unprovisioned)),
        }
        let epoch = self
            .largest_epoch()?
            .ok_or(Error::new(Reason::Unreadable { key: keys::EPOCH }))?
            .checked_add(2)
            .ok_or(Error::new(Reason::Exhausted))?;
        let epoch = BootEpoch(epoch).within(self.incarnation)?;
        self.save_cell(&epoch, Path::Idle, true).await?;
        Ok(GroupCounter::leased_by(epoch))
    }

    /// Ends a provisioning: the epoch, above all that this id can have used, and then the mark.
    ///
    /// Cancel safety: not cancel safe, like [`Store::save`].
    pub async fn complete_provisioning(
        &mut self,
        incarnation: u32,
        first_epoch: BootEpoch,
    ) -> Result<(), Error> {
        if self.configuration().is_none() {
            return Err(Error::new(Reason::Unprovisioned));
        }
        let own = self.largest_epoch()?;
        let epoch =
            own.map_or(first_epoch, |own| first_epoch.max(BootEpoch(own.saturating_add(2))));
        let epoch = epoch.within(incarnation)?;
        self.save_cell(&epoch, Path::Idle, true).await?;
        self.save_cell(&Mark { incarnation }, Path::Idle, true).await
    }

    /// Whether this node may speak.
    pub fn provisioning(&mut self) -> Provisioning {
        match self.load(keys::MARK) {
            Ok(Some(loaded)) => {
                let incarnation = loaded.value.first_chunk().copied().unwrap_or_default();
                self.incarnation = u32::from_le_bytes(incarnation);
            }
            Ok(None) => return Provisioning::Partial,
            Err(_) => return Provisioning::Unreadable { key: keys::MARK },
        }
        for key in [keys::EPOCH, keys::CONFIGURATION] {
            if !matches!(self.load(key), Ok(Some(_))) {
                return Provisioning::Unreadable { key };
            }
        }
        let Some(head) = self.configuration() else {
            return Provisioning::Unreadable { key: keys::CONFIGURATION };
        };
        for chunk in 0..head.chunks {
            if let Err(error) = self.load_chunk(head, chunk) {
                return match error.reason {
                    Reason::Unreadable { key } => Provisioning::Unreadable { key },
                    _ => Provisioning::Unreadable { key: keys::CONFIGURATION },
                };
            }
        }
        Provisioning::Complete
    }

    /// Saves what an election decided: one record per copy.
    ///
    /// Cancel safety: not cancel safe, like [`Store::save`].
    pub async fn save_election(
        &mut self,
        format: u8,
        state: &[u8],
        history: &[u8],
        path: Path,
        verify: bool,
    ) -> Result<(), Error> {
        let state_bytes = u16::try_from(state.len()).map_err(|_| Error::new(Reason::TooLong))?;
        if state.len() + history.len() > ELECTION_BYTES_MAX {
            return Err(Error::new(Reason::TooLong));
        }
        let index = self.elections;
        let next = index.checked_add(1).ok_or(Error::new(Reason::Exhausted))?;
        if let Some(newest) = index.checked_sub(1) {
            self.refuse_newer(slot_of(newest), format)?;
        }
        let [i0, i1, i2, i3] = index.to_le_bytes();
        let [l0, l1] = state_bytes.to_le_bytes();
        let prefix = [i0, i1, i2, i3, l0, l1, 0, 0];
        let parts = [&prefix, state, history];
        let key = slot_of(index);
        self.save_parts(&Save { key, format, parts: &parts, path, verify }).await?;
        self.elections = next;
        Ok(())
    }

    /// An election that is remembered: 0 is the newest, the state vector.
    pub fn election(&mut self, back: u32) -> Result<Option<Election<'_>>, Error> {
        let Some(index) = self
            .elections
            .checked_sub(1)
            .and_then(|newest| newest.checked_sub(back))
            .filter(|_| back < HISTORY_RECORDS)
        else {
            return Ok(None);
        };
        let key = slot_of(index);
        let Some(loaded) = self.load(key)? else {
            return Ok(None);
        };
        let malformed = Error::new(Reason::Malformed);
        let (found, state_bytes, rest) = election_prefix(loaded.value).ok_or(malformed)?;
        if found != index {
            return Ok(None);
        }
        let (state, history) = rest.split_at_checked(state_bytes).ok_or(malformed)?;
        Ok(Some(Election { index, format: loaded.format, state, history }))
    }

    pub(super) fn load_elections(&mut self) {
        let mut next = 0;
        for slot in 0..HISTORY_RECORDS as u8 {
            if let Ok(Some(loaded)) = self.load(keys::ELECTIONS + slot)
                && let Some((index, _, _)) = election_prefix(loaded.value)
            {
                next = next.max(index.saturating_add(1));
            }
        }
        self.elections = next;
    }

    /// Erases both regions. Only for provisioning a board whose values are gone or not wanted.
    ///
    /// Cancel safety: not cancel safe; call it again.
    pub async fn format(&mut self) -> Result<(), Error> {
        for which in Which::BOTH {
            self.clear(which).await.map_err(|error| error.within(which))?;
        }
        Ok(())
    }
}
