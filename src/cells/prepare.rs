//! Room: how much there is, and how idle time makes more.
//!
//! Every save is accounted for before it starts. The account is exact, because the cursor of the
//! head and the place of every record are known. Two things are kept free: an open sector after
//! the head (the map needs it), and, while there is only that one, room in the head for what the
//! oldest sector still holds. So it is always possible to empty the oldest sector and erase it.

use super::error::{Error, Reason, Which};
use super::guard::Flash;
use super::part::Geometry;
use super::record::{KEYS, padded_bytes};
use super::region::Sizes;
use super::secret::WIPE_HEAD;
use super::store::Store;
use super::typed::{ELECTION_PREFIX_BYTES, HISTORY_RECORDS, keys};

/// What one step of preparing did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// A record was moved, a sector erased, or a region surveyed; there may be more to do.
    More,
    /// The region is ready.
    Done,
}

impl<F: Flash, const PAGES: usize, const BUFFER: usize> Store<F, PAGES, BUFFER> {
    /// How many open sectors idle time provides for: at least two, at most all but one of the
    /// smaller region. More of them let more saves pass between two idle moments.
    pub fn set_spare_pages(&mut self, spare_pages: u8) {
        let [a, b] = &self.regions;
        let most = a.pages().min(b.pages()).saturating_sub(1);
        self.spare_pages = spare_pages.clamp(2, most.max(2));
    }

    pub(super) fn item_bytes(length: u32) -> u32 {
        Sizes::of::<F>().item_overhead() + length
    }

    fn live_keys(&self) -> impl Iterator<Item = u8> + '_ {
        (0..KEYS as u8).filter(|key| self.is_live(*key))
    }

    /// Whether the cell still matters: its sector may not be erased before it is copied.
    pub(super) fn is_live(&self, key: u8) -> bool {
        Which::BOTH.iter().any(|which| self.index.address(*which, key).is_some())
            && self.active.needs(key)
    }

    /// Bytes of all records that must be kept, with their overhead.
    #[must_use]
    pub fn live_bytes(&self) -> u32 {
        self.live_keys().map(|key| Self::item_bytes(self.index.length(key))).sum()
    }

    /// Whether the region can hold this record beside all others, and still be compacted.
    pub(super) fn leaves_room(&self, key: u8, length: usize) -> bool {
        let sizes = Sizes::of::<F>();
        let item = Self::item_bytes(length as u32);
        let others = self.live_keys().filter(|other| *other != key);
        let (total, largest) = others.fold((item, item), |(total, largest), other| {
            let bytes = Self::item_bytes(self.index.length(other));
            (total + bytes, largest.max(bytes))
        });
        self.in_use().iter().all(|which| {
            let full_pages = u32::from(self.region(*which).pages()) - 2;
            total + largest <= full_pages * sizes.payload().saturating_sub(largest)
        })
    }

    /// Bytes that must be moved out of a sector before it can be erased, with a margin for one
    /// record torn on the way and for the notes of two erases.
    fn to_move(&self, which: Which, page: u8, except: u8) -> u32 {
        let sizes = Sizes::of::<F>();
        let region = self.region(which);
        let (total, largest) = self
            .live_keys()
            .filter(|key| *key != except)
            .filter(|key| {
                self.index
                    .address(which, *key)
                    .is_some_and(|address| region.page_of(sizes, address) == page)
            })
            .map(|key| Self::item_bytes(self.index.length(key)))
            .fold((0, 0), |(total, largest): (u32, u32), bytes| {
                (total + bytes, largest.max(bytes))
            });
        total + largest + 4 * Self::item_bytes(Self::note_bytes())
    }

    /// Whether a record can be appended to a region now, without an erase, such that the oldest
    /// sector can still be emptied afterwards.
    pub(super) fn fits(&self, which: Which, key: u8, length: usize) -> bool {
        let region = self.region(which);
        let state = Room {
            head_room: region.head_room(Sizes::of::<F>()),
            open: region.open_pages(),
            switched: false,
        };
        !region.suspect && self.after(which, key, state, Self::item_bytes(length as u32)).is_some()
    }

    /// The room after one more record, or `None` if it may not be written.
    fn after(&self, which: Which, key: u8, room: Room, item: u32) -> Option<Room> {
        let sizes = Sizes::of::<F>();
        let region = self.region(which);
        let next = if item <= room.head_room {
            Room { head_room: room.head_room - item, ..room }
        } else if room.open >= 2 && item <= sizes.payload() {
            Room { head_room: sizes.payload() - item, open: room.open - 1, switched: true }
        } else {
            return None;
        };
        if next.open >= 2 {
            return Some(next);
        }
        let oldest = match region.oldest() {
            Some(page) => page,
            // The head becomes the oldest closed sector when it is left.
            None if next.switched => region.head()?,
            None => return (next.open >= 1).then_some(next),
        };
        (next.open >= 1 && next.head_room >= self.to_move(which, oldest, key)).then_some(next)
    }

    /// How many more values of this length fit, in both regions, before an erase is needed.
    #[must_use]
    pub fn writes_before_erase(&self, value_bytes: usize) -> u32 {
        let length = padded_bytes(value_bytes, Sizes::of::<F>().word as usize);
        let item = Self::item_bytes(length as u32);
        self.in_use()
            .iter()
            .map(|which| {
                let region = self.region(*which);
                if region.suspect {
                    return 0;
                }
                let mut room = Room {
                    head_room: region.head_room(Sizes::of::<F>()),
                    open: region.open_pages(),
                    switched: false,
                };
                let mut count = 0;
                while let Some(next) = self.after(*which, u8::MAX, room, item) {
                    room = next;
                    count += 1;
                }
                count
            })
            .min()
            .unwrap_or(0)
    }

    /// Refuses a configuration whose worst election would need an erase: `saves_max` values of
    /// `value_bytes` bytes (see [`Store::save_election`] for its prefix) between two idle moments,
    /// once the whole election ring is filled with such values. Nothing is written.
    pub fn check_election(&self, value_bytes: usize, saves_max: u32) -> Result<(), Error> {
        let stored = (value_bytes + ELECTION_PREFIX_BYTES) as u32;
        let sizes = Sizes::of::<F>();
        let ring = HISTORY_RECORDS
            * Self::item_bytes(padded_bytes(stored as usize, sizes.word as usize) as u32);
        let others: u32 = self
            .live_keys()
            .filter(|key| !(keys::ELECTIONS..keys::CHUNKS).contains(key))
            .map(|key| Self::item_bytes(self.index.length(key)))
            .sum();
        for which in self.in_use() {
            let geometry = Geometry {
                word_bytes: sizes.word,
                sector_bytes: sizes.sector,
                sectors: self.region(*which).pages().into(),
            };
            let live = ring + others;
            if live > geometry.live_bytes_max(stored) {
                return Err(Error::new(Reason::Full).within(*which));
            }
            if !geometry.election_fits(self.spare_pages.into(), live, stored, saves_max) {
                return Err(Error::new(Reason::NotPrepared).within(*which));
            }
        }
        Ok(())
    }

    /// Whether a region has work for an idle moment.
    #[must_use]
    pub fn needs_preparing(&self, which: Which) -> bool {
        let region = self.region(which);
        region.suspect
            || region.wipe > 0
            || (region.oldest().is_some() && region.open_pages() < self.spare_pages)
    }

    /// One step towards a region that has its spare sectors: at most one record moved, or one
    /// sector erased. Call it only when the node is idle; the caller staggers the nodes.
    ///
    /// Cancel safety: not cancel safe, like [`Store::save`].
    pub async fn prepare_step(&mut self, which: Which) -> Result<Progress, Error> {
        if !self.in_use().contains(&which) {
            return Ok(Progress::Done);
        }
        if self.region(which).suspect {
            self.restore(which).await?;
            return Ok(Progress::More);
        }
        if !self.needs_preparing(which) {
            return Ok(Progress::Done);
        }
        match self.recycle_step(which).await {
            Err(error) if error.reason == Reason::Full => {
                self.rebuild(which).await?;
                Ok(Progress::More)
            }
            other => other.map_err(|error| error.within(which)),
        }
    }

    /// All steps of both regions, one region after the other.
    ///
    /// Cancel safety: not cancel safe, like [`Store::save`].
    pub async fn prepare(&mut self) -> Result<(), Error> {
        for which in self.in_use() {
            while self.prepare_step(*which).await? == Progress::More {}
        }
        Ok(())
    }

    /// Moves one record out of the oldest sector, or erases it when none is left there. Where former
    /// keys are to be wiped, the head is closed first.
    pub(super) async fn recycle_step(&mut self, which: Which) -> Result<Progress, Error> {
        let sizes = Sizes::of::<F>();
        let region = self.region(which);
        if region.wipe == WIPE_HEAD && region.open_pages() >= 2 {
            let (region, flash, _) = self.parts(which);
            region.close_head(flash).await?;
            region.wipe = region.closed();
            return Ok(Progress::More);
        }
        let Some(oldest) = region.oldest() else {
            self.account_wipe(which, true);
            return Ok(Progress::Done);
        };
        let next = self.live_keys().find(|key| {
            self.index
                .address(which, *key)
                .is_some_and(|address| region.page_of(sizes, address) == oldest)
        });
        let Some(key) = next else {
            self.erase_noted(which, oldest).await?;
            self.parts(which).0.oldest_is_open();
            return Ok(Progress::More);
        };
        let header = match self.read_copy(which, key) {
            Some(header) => header,
            // The copy decayed since the boot: the other region has it.
            None => {
                self.read_copy(which.other(), key).ok_or(Error::new(Reason::Unreadable { key }))?
            }
        };
        let length = header.padded(sizes.word as usize);
        let region = self.region(which);
        let item = Self::item_bytes(length as u32);
        if item > region.head_room(sizes) && region.open_pages() < 2 {
            return Err(Error::new(Reason::Full));
        }
        self.append(which, key, length, true).await?;
        self.counters.moves = self.counters.moves.saturating_add(1);
        Ok(Progress::More)
    }

    /// Erases until a record fits; a region that cannot be emptied is copied anew.
    pub(super) async fn make_room(
        &mut self,
        which: Which,
        key: u8,
        length: usize,
    ) -> Result<(), Error> {
        if self.region(which).suspect {
            self.restore(which).await?;
        }
        match self.recycle_until_fits(which, key, length).await {
            Err(error) if error.reason == Reason::Full => {
                self.rebuild(which).await?;
                if self.fits(which, key, length) { Ok(()) } else { Err(error) }
            }
            other => other,
        }
    }

    /// Erases until a record fits.
    pub(super) async fn recycle_until_fits(
        &mut self,
        which: Which,
        key: u8,
        length: usize,
    ) -> Result<(), Error> {
        // Each lap empties every sector once; two laps without success never succeed.
        let steps_max = 2 * usize::from(self.region(which).pages()) * (KEYS + 2);
        for _ in 0..steps_max {
            if self.fits(which, key, length) {
                return Ok(());
            }
            if self.recycle_step(which).await? == Progress::Done {
                break;
            }
        }
        Err(Error::new(Reason::Full))
    }
}

/// Room in a region, now or after some more records.
#[derive(Debug, Clone, Copy)]
struct Room {
    head_room: u32,
    open: u8,
    /// The head was left since.
    switched: bool,
}
