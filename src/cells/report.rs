//! What a boot found and did, and what happened since.

use super::error::{Error, Which};

/// What a boot made of one region, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing had to be done.
    Good,
    /// A sector or some records were torn, older than the other copy, or gone; they were repaired.
    Torn,
    /// Not one good record was left although the other region had some; it was copied anew.
    Lost,
    /// Its sectors made no sense; it was erased and copied from the other region.
    Rebuilt,
    /// It could not be repaired; the values are read from the other region.
    Failing,
}

/// What a boot found in one region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegionReport {
    /// Good records walked over, stale ones included.
    pub records: u32,
    /// Sectors left unclear by a torn erase or marker, and erased again.
    pub sectors_cleared: u8,
    /// Cells whose copy here was older than the other one, or torn.
    pub behind: u8,
    /// Cells with no copy here, but one in the other region.
    pub missing: u8,
    /// The whole region was erased and copied from the other one.
    pub rebuilt: bool,
    /// Why the region could not be repaired.
    pub failure: Option<Error>,
}

impl RegionReport {
    /// The findings in one word.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.failure.is_some() {
            Verdict::Failing
        } else if self.records == 0 && self.missing > 0 {
            Verdict::Lost
        } else if self.rebuilt {
            Verdict::Rebuilt
        } else if self.sectors_cleared > 0 || self.behind > 0 || self.missing > 0 {
            Verdict::Torn
        } else {
            Verdict::Good
        }
    }
}

/// Whether this node may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provisioning {
    /// Both regions are erased: a new board.
    Blank,
    /// No good record, but the regions are not erased: foreign bytes, or both copies of everything
    /// are gone. The node stays mute until it is provisioned (anew).
    Debris,
    /// Records, but no provisioning mark: a provisioning that was cut short.
    Partial,
    /// Provisioned, and everything that the mark promises is readable.
    Complete,
    /// The mark says that values existed, and the one with this key has no good copy: the node
    /// stays mute.
    Unreadable {
        /// The first key without a good copy.
        key: u8,
    },
}

/// What a boot found and did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Whether this node may speak.
    pub provisioning: Provisioning,
    /// Per region, A first.
    pub regions: [RegionReport; 2],
}

impl Report {
    /// The findings about one region.
    #[must_use]
    pub fn region(&self, which: Which) -> &RegionReport {
        let [a, b] = &self.regions;
        match which {
            Which::A => a,
            Which::B => b,
        }
    }
}

/// What happened since the boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Values saved in both regions.
    pub saves: u32,
    /// Saves refused because they would have needed an erase on the path of an answer.
    pub saves_refused: u32,
    /// Saves that failed.
    pub saves_failed: u32,
    /// Records written again because they did not read back.
    pub verify_retries: u32,
    /// Records copied from one region to the other.
    pub repairs: u32,
    /// Records moved out of a sector before it was erased.
    pub moves: u32,
    /// Sectors erased.
    pub erases: u32,
    /// Regions erased and copied anew.
    pub rebuilds: u32,
}
