//! Regions that are surveyed, copied or started anew while the store is in use.

use super::boot::Found;
use super::erasing::Pending;
use super::error::{Error, Reason, Which};
use super::guard::Flash;
use super::plan::Plan;
use super::record::KEYS;
use super::report::{Provisioning, Report};
use super::store::Store;

/// A region that asks for more than this between two boots is beyond repair.
const REBUILDS_MAX: u32 = 8;

impl<F: Flash, const PAGES: usize, const BUFFER: usize> Store<F, PAGES, BUFFER> {
    /// Whether the other region has a good copy, at least as new, of every cell of this one.
    pub(super) fn can_replace(&mut self, which: Which) -> bool {
        let other = which.other();
        if !self.in_use().contains(&other) {
            return false;
        }
        for key in 0..KEYS as u8 {
            if !self.is_live(key) {
                continue;
            }
            let here = self.read_copy(which, key).map_or(0, |header| header.generation);
            if self.read_copy(other, key).is_none_or(|there| there.generation < here) {
                return false;
            }
        }
        true
    }

    /// Copies a region anew whose sector refused a program: a word that a cut has torn can read as
    /// erased and still not take a program. The sector in question is erased first; if it is
    /// worn, nothing else is touched.
    pub(super) async fn renew(&mut self, which: Which) -> Result<(), Error> {
        if let Some(page) = self.region(which).refused {
            if self.counters.rebuilds >= REBUILDS_MAX || !self.can_replace(which) {
                return Err(Error::at(page, Reason::ProgramFailed).within(which));
            }
            let (region, flash, buffer) = self.parts(which);
            region.erase(flash, page, buffer).await?;
            region.suspect = true;
            self.rebuild(which).await?;
            self.parts(which).0.refused = None;
        }
        Ok(())
    }

    /// Erases a region and copies the other one.
    pub(super) async fn rebuild(&mut self, which: Which) -> Result<(), Error> {
        if !self.can_replace(which) {
            return Err(Error::new(Reason::Full).within(which));
        }
        let erase = Pending::Region(which);
        self.note(&[which.other()], erase, true).await?;
        let (region, flash, buffer) = self.parts(which);
        let kinds = region.survey(flash, buffer).await;
        let mut here = Found { plan: Plan::rebuild(region.kinds(&kinds)), ..Found::NOTHING };
        self.apply(which, &mut here).await?;
        let there = Found { generation: [u32::MAX; KEYS], ..Found::NOTHING };
        let copied = self.catch_up(which, &mut here, &there).await;
        let noted = match copied {
            Ok(()) => self.note(&Which::BOTH, erase, false).await,
            error => error,
        };
        if noted.is_err() {
            self.parts(which).0.suspect = true;
        }
        noted.map_err(|error| error.within(which))
    }

    /// Surveys a region after an operation that did not end, and puts it in order.
    pub(super) async fn restore(&mut self, which: Which) -> Result<(), Error> {
        let other = which.other();
        let mut found = [Found::NOTHING; 2];
        for region in [which, other] {
            for key in 0..KEYS as u8 {
                self.index.set(region, key, 0);
            }
            if let Some(seen) = found.get_mut(region.index()) {
                self.examine(region, seen).await;
            }
        }
        let mut report =
            Report { provisioning: Provisioning::Partial, regions: Default::default() };
        let pending = self.heed_pending_erase(&mut found);
        self.put_in_order(which, &mut found, &mut report)
            .await
            .map_err(|error| error.within(which))?;
        self.renew(which).await?;
        match pending {
            Some(erase) => self.note(&Which::BOTH, erase, false).await,
            None => Ok(()),
        }
    }

    /// Erases a region, blank sectors included, and forgets its cells.
    pub(super) async fn clear(&mut self, which: Which) -> Result<(), Error> {
        let (region, flash, buffer) = self.parts(which);
        let kinds = region.survey(flash, buffer).await;
        let mut nothing = Found { plan: Plan::erase_all(region.kinds(&kinds)), ..Found::NOTHING };
        for key in 0..KEYS as u8 {
            self.index.set(which, key, 0);
        }
        self.elections = 0;
        self.wiped = 0;
        self.load_active();
        self.apply(which, &mut nothing).await?;
        Ok(())
    }
}
