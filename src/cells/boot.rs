//! Boot: read both regions, let the newest good record of every cell win, repair the other copy.
//!
//! Reading comes first and changes nothing. Then one region is put in order, from the other one
//! where needed, and only then the other. A sector that holds the only newest copy of a cell is
//! never erased.

use super::erasing::Pending;
use super::error::{Error, Reason, Which};
use super::guard::Flash;
use super::plan::{Kind, Plan};
use super::record::KEYS;
use super::region::Sizes;
use super::report::{Provisioning, RegionReport, Report};
use super::store::{Layout, Store};

/// What the walk over one region found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<const PAGES: usize> {
    pub kinds: [Kind; PAGES],
    pub plan: Plan,
    pub cursor: u32,
    pub records: u32,
    pub blank: bool,
    /// The newest generation of each key here; zero where there is none.
    pub generation: [u32; KEYS],
}

impl<const PAGES: usize> Found<PAGES> {
    /// An empty region.
    pub const NOTHING: Self = Self {
        kinds: [Kind::Blank; PAGES],
        plan: Plan::EMPTY,
        cursor: 0,
        records: 0,
        blank: true,
        generation: [0; KEYS],
    };

    fn of(&self, key: u8) -> u32 {
        self.generation.get(usize::from(key)).copied().unwrap_or(0)
    }

    fn set(&mut self, key: u8, generation: u32) {
        if let Some(slot) = self.generation.get_mut(usize::from(key)) {
            *slot = generation;
        }
    }
}

impl<F: Flash, const PAGES: usize, const BUFFER: usize> Store<F, PAGES, BUFFER> {
    /// Reads both regions, repairs what a cut or a decayed bit left, and says what was found.
    ///
    /// It fails only for a layout that cannot hold a store. A region that cannot be repaired is
    /// in the report, and its cells are read from the other one.
    ///
    /// Cancel safety: not cancel safe; open the store again.
    pub async fn open(flash: F, layout: &Layout) -> Result<(Self, Report), Error> {
        let mut store = Self::new(flash, layout)?;
        let report = store.boot().await;
        Ok((store, report))
    }

    /// [`Store::open`] with errors put in on purpose.
    #[cfg(feature = "sabotage")]
    pub async fn open_sabotaged(
        flash: F,
        layout: &Layout,
        sabotage: super::store::Sabotage,
    ) -> Result<(Self, Report), Error> {
        let mut store = Self::new(flash, layout)?;
        store.sabotage = sabotage;
        let report = store.boot().await;
        Ok((store, report))
    }

    /// [`Store::open`] of a [`Store::new`] that is in its place already: it is large.
    ///
    /// Cancel safety: not cancel safe; begin with a new store.
    pub async fn boot(&mut self) -> Report {
        let mut found = [Found::NOTHING; 2];
        for (which, seen) in self.in_use().iter().zip(&mut found) {
            self.examine(*which, seen).await;
            self.generation =
                seen.generation.iter().fold(self.generation, |newest, seen| newest.max(*seen));
        }
        // A torn record may read as good at a later boot: its generation is never used again.
        self.generation = self.generation.saturating_add(2);
        let mut report = Report { provisioning: Provisioning::Blank, regions: Default::default() };
        for (region, seen) in report.regions.iter_mut().zip(&found) {
            region.records = seen.records;
        }
        if found.iter().all(|seen| seen.records == 0) {
            // Nothing to lose and nothing to repair: provisioning formats what is not blank.
            if found.iter().all(|seen| seen.blank) {
                for which in self.in_use() {
                    let sizes = Sizes::of::<F>();
                    self.parts(*which).0.adopt(sizes, &Plan::EMPTY, 0);
                }
            } else {
                report.provisioning = Provisioning::Debris;
            }
            return report;
        }
        self.load_active();
        let pending = self.heed_pending_erase(&mut found);
        for which in self.order_of_repair(&found) {
            if let Err(error) = self.put_in_order(which, &mut found, &mut report).await {
                let error = error.within(which);
                if let Some(region) = report.regions.get_mut(which.index()) {
                    region.failure = Some(error);
                }
            }
        }
        if let Some(erase) = pending
            && self.in_use().iter().all(|which| !self.region(*which).suspect)
        {
            // It was done again. If this note fails, the next boot does it once more.
            let _ = self.note(&Which::BOTH, erase, false).await;
        }
        self.load_elections();
        self.load_change();
        report.provisioning = self.provisioning();
        report
    }

    /// Changes the plan of a region whose erase was cut.
    pub(super) fn heed_pending_erase(&mut self, found: &mut [Found<PAGES>; 2]) -> Option<Pending> {
        let pending = self.pending_erase()?;
        let (which, sector) = match pending {
            Pending::Sector(which, sector) => (which, Some(sector)),
            Pending::Region(which) => (which, None),
        };
        let seen = found.get_mut(which.index())?;
        match sector {
            Some(sector) => {
                *seen.kinds.get_mut(usize::from(sector))? = Kind::Torn;
                if !seen.plan.rebuild {
                    seen.plan = Plan::find(self.region(which).kinds(&seen.kinds));
                }
                seen.plan.erase |= 1 << sector;
            }
            None => seen.plan = Plan::erase_all(self.region(which).kinds(&seen.kinds)),
        }
        Some(pending)
    }

    /// Reads one region without changing it. `seen` is empty before. Its part of the index is filled.
    pub(super) async fn examine(&mut self, which: Which, seen: &mut Found<PAGES>) {
        let sizes = Sizes::of::<F>();
        let by_generation = self.generation_counts();
        let (region, flash, buffer) = self.parts(which);
        let pages = region.pages();
        seen.kinds = region.survey(flash, buffer).await;
        let kinds = region.kinds(&seen.kinds);
        seen.plan = Plan::find(kinds);
        seen.blank = kinds.iter().all(|kind| *kind == Kind::Blank);
        // Oldest first: of two equal copies the one that was written later is kept.
        let first = match seen.plan.head {
            Some(head) if by_generation => region.ahead(head, 1),
            _ => 0,
        };
        for step in 0..pages {
            let region = self.region(which);
            let page = region.ahead(first, step);
            if seen.kinds.get(usize::from(page)) == Some(&Kind::Blank) {
                continue;
            }
            let mut walk = region.walk(sizes, page);
            loop {
                let (_, flash, buffer) = self.parts(which);
                let Some((header, address)) = walk.next(flash, buffer).await else {
                    break;
                };
                seen.records += 1;
                if header.generation >= seen.of(header.key) || !by_generation {
                    seen.set(header.key, header.generation);
                    self.index.set(which, header.key, address);
                    self.index.set_length(header.key, header.padded(sizes.word as usize));
                }
            }
            if seen.plan.head == Some(page) && !seen.plan.mark_head {
                seen.cursor = walk.at;
                if walk.gap {
                    // Something lies behind the place where the map would put the next record.
                    seen.plan = Plan::rebuild(self.region(which).kinds(&seen.kinds));
                }
            }
        }
    }

    /// The region that can be put in order without losing anything comes first.
    fn order_of_repair(&self, found: &[Found<PAGES>; 2]) -> [Which; 2] {
        let [a, b] = found;
        let a_is_risky = self.would_lose(Which::A, found);
        let b_is_easier = b.plan.is_sound() && !a.plan.is_sound();
        if (a_is_risky || b_is_easier) && !self.would_lose(Which::B, found) {
            [Which::B, Which::A]
        } else {
            Which::BOTH
        }
    }

    /// Whether the erases that a region needs would destroy the only newest copy of a cell.
    fn would_lose(&self, which: Which, found: &[Found<PAGES>; 2]) -> bool {
        let sizes = Sizes::of::<F>();
        let [a, b] = found;
        let (here, there) = match which {
            Which::A => (a, b),
            Which::B => (b, a),
        };
        let region = self.region(which);
        (0..KEYS as u8).any(|key| {
            self.active.needs(key)
                && here.of(key) > there.of(key)
                && self.index.address(which, key).is_some_and(|address| {
                    let page = u32::from(region.page_of(sizes, address));
                    here.plan.erase.checked_shr(page).unwrap_or(0) & 1 == 1
                })
        })
    }

    /// Does what the plan of a region asks for, then copies what the other region has newer.
    pub(super) async fn put_in_order(
        &mut self,
        which: Which,
        found: &mut [Found<PAGES>; 2],
        report: &mut Report,
    ) -> Result<(), Error> {
        if !self.in_use().contains(&which) {
            return Ok(());
        }
        if self.would_lose(which, found) {
            return Err(Error::new(Reason::Structure));
        }
        let [a, b] = found;
        let (here, there) = match which {
            Which::A => (a, &*b),
            Which::B => (b, &*a),
        };
        let mut first = true;
        loop {
            let cleared = self.apply(which, here).await?;
            if let Some(region) = report.regions.get_mut(which.index()) {
                region.rebuilt = here.plan.rebuild;
                if first {
                    region.sectors_cleared = cleared;
                    self.compare(here, there, region);
                }
            }
            let copied = self.catch_up(which, here, there).await;
            if copied.is_ok() || here.plan.rebuild || !self.can_replace(which) {
                return copied;
            }
            // Something in the region is in the way: start it anew, once.
            first = false;
            let (region, flash, buffer) = self.parts(which);
            let kinds = region.survey(flash, buffer).await;
            here.plan = Plan::rebuild(region.kinds(&kinds));
        }
    }

    /// Counts the cells that the other region has newer.
    fn compare(&self, here: &Found<PAGES>, there: &Found<PAGES>, report: &mut RegionReport) {
        for key in 0..KEYS as u8 {
            if self.active.needs(key) && here.of(key) < there.of(key) {
                let count = match here.of(key) {
                    0 => &mut report.missing,
                    _ => &mut report.behind,
                };
                *count += 1;
            }
        }
    }

    /// Erases what the plan says, marks the head, and takes the region into use.
    pub(super) async fn apply(
        &mut self,
        which: Which,
        here: &mut Found<PAGES>,
    ) -> Result<u8, Error> {
        let sizes = Sizes::of::<F>();
        let plan = here.plan;
        let mut cleared = 0;
        for page in 0..self.region(which).pages() {
            if plan.erase >> page & 1 == 0 {
                continue;
            }
            let (region, flash, buffer) = self.parts(which);
            region.erase(flash, page, buffer).await?;
            self.counters.erases = self.counters.erases.saturating_add(1);
            cleared += 1;
            for key in 0..KEYS as u8 {
                let region = self.region(which);
                if let Some(address) = self.index.address(which, key)
                    && region.page_of(sizes, address) == page
                {
                    self.index.set(which, key, 0);
                    here.set(key, 0);
                }
            }
        }
        if plan.rebuild {
            self.counters.rebuilds = self.counters.rebuilds.saturating_add(1);
        }
        let (region, flash, buffer) = self.parts(which);
        if let (Some(head), true) = (plan.head, plan.mark_head) {
            let mut last_try = false;
            while let Err(error) = region.mark_head(flash, head).await {
                if last_try {
                    return Err(error);
                }
                // The marker was torn before, and reads as erased now: erase the empty sector.
                last_try = true;
                region.erase(flash, head, buffer).await?;
            }
        }
        region.adopt(sizes, &plan, here.cursor);
        if plan.rebuild {
            region.refused = None;
            self.account_wipe(which, true);
        }
        Ok(cleared)
    }

    /// Copies every cell that the other region has newer.
    pub(super) async fn catch_up(
        &mut self,
        which: Which,
        here: &mut Found<PAGES>,
        there: &Found<PAGES>,
    ) -> Result<(), Error> {
        for key in 0..KEYS as u8 {
            if self.active.needs(key)
                && self.copies_differ(here.of(key), there.of(key))
                && let Some(header) = self.read_copy(which.other(), key)
            {
                let length = header.padded(Sizes::of::<F>().word as usize);
                self.index.set_length(key, length);
                self.recycle_until_fits(which, key, length).await?;
                // Making room may have used the buffer.
                if self.read_copy(which.other(), key).is_none() {
                    continue;
                }
                self.append(which, key, length, true).await?;
                here.set(key, header.generation);
                self.counters.repairs = self.counters.repairs.saturating_add(1);
            }
        }
        Ok(())
    }

    fn copies_differ(&self, here: u32, there: u32) -> bool {
        if self.generation_counts() { here < there } else { here == 0 && there != 0 }
    }
}
