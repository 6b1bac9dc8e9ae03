//! Notes about erases, because an erase that was cut can look complete.
//!
//! After a cut erase a sector may read as blank although its cells are only just over the
//! threshold: what is written there later can change by itself. So before an erase a note goes to
//! flash that names the sector, and after it one that takes it back. A boot that finds the first
//! without the second erases that sector again, whatever it reads as.
//!
//! ```text
//!  ┌────────┬────────┬──────┬───────┐
//!  │ region │ sector │ busy │ wiped │   region 0 or 1; sector 255: all of the region
//!  └────────┴────────┴──────┴───────┘
//! ```
//!
//! `wiped` is the last change of the keys after which no sector with former ones was left; see
//! `secret`.
//!
//! The note is a cell like any other, in both regions; only a region that is itself being copied
//! anew, or is not yet in order during a boot, gets it later.

use super::error::{Error, Reason, Which};
use super::guard::{Flash, word_bytes};
use super::record::{self, padded_bytes};
use super::region::Sizes;
use super::store::Store;
use super::typed::keys;

/// Bytes of a note.
pub(super) const NOTE_VALUE_BYTES: u32 = 4;

/// The sector that stands for a whole region.
const WHOLE_REGION: u8 = 255;

const FORMAT: u8 = 1;

/// An erase that was begun and not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pending {
    /// Of one sector.
    Sector(Which, u8),
    /// Of a whole region.
    Region(Which),
}

impl Pending {
    fn encode(self, busy: bool, wiped: u8) -> [u8; NOTE_VALUE_BYTES as usize] {
        let (which, sector) = match self {
            Pending::Sector(which, sector) => (which, sector),
            Pending::Region(which) => (which, WHOLE_REGION),
        };
        [which.index() as u8, sector, u8::from(busy), wiped]
    }

    /// The erase that a note says is running.
    fn decode(value: &[u8]) -> Option<Self> {
        let (which, sector) = match *value {
            [0, sector, 1, _] => (Which::A, sector),
            [1, sector, 1, _] => (Which::B, sector),
            _ => return None,
        };
        Some(match sector {
            WHOLE_REGION => Pending::Region(which),
            _ => Pending::Sector(which, sector),
        })
    }
}

impl<F: Flash, const PAGES: usize, const BUFFER: usize> Store<F, PAGES, BUFFER> {
    /// Bytes of the record of a note.
    pub(super) fn note_bytes() -> u32 {
        padded_bytes(NOTE_VALUE_BYTES as usize, word_bytes::<F>()) as u32
    }

    /// The erase that was running when the power was cut. Also learns what was wiped.
    pub(super) fn pending_erase(&mut self) -> Option<Pending> {
        match self.load(keys::ERASING) {
            Ok(Some(loaded)) => {
                let pending = Pending::decode(loaded.value);
                self.wiped = loaded.value.last().copied().unwrap_or(0);
                pending
            }
            _ => None,
        }
    }

    /// Writes a note into those of the given regions that can take it now.
    pub(super) async fn note(
        &mut self,
        regions: &[Which],
        erase: Pending,
        busy: bool,
    ) -> Result<(), Error> {
        let generation = self.generation.checked_add(1).ok_or(Error::new(Reason::Exhausted))?;
        self.generation = generation;
        let value = erase.encode(busy, self.wiped);
        let length = Self::note_bytes();
        for which in regions {
            let region = self.region(*which);
            let fits = Self::item_bytes(length) <= region.head_room(Sizes::of::<F>())
                || region.open_pages() >= 2;
            if region.suspect || !fits || !self.in_use().contains(which) {
                continue;
            }
            record::seal(
                &mut self.buffer.0,
                keys::ERASING,
                FORMAT,
                generation,
                &[&value],
                word_bytes::<F>(),
            )
            .ok_or(Error::new(Reason::TooLong))?;
            self.append(*which, keys::ERASING, length as usize, true)
                .await
                .map_err(|error| error.within(*which))?;
        }
        Ok(())
    }

    /// Erases one sector, between its two notes.
    pub(super) async fn erase_noted(&mut self, which: Which, sector: u8) -> Result<(), Error> {
        let erase = Pending::Sector(which, sector);
        let mut busy = true;
        loop {
            let noted = self.note(&Which::BOTH, erase, busy).await;
            if !busy && noted.is_err() {
                // Until the note is taken back the sector may not be used.
                self.parts(which).0.suspect = true;
            }
            if !busy || noted.is_err() {
                return noted;
            }
            busy = false;
            let (region, flash, buffer) = self.parts(which);
            region.erase(flash, sector, buffer).await?;
            self.account_wipe(which, false);
            self.counters.erases = self.counters.erases.saturating_add(1);
        }
    }
}
