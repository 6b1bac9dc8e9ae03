//! What can go wrong, where, and what it did to the stored values.

use core::fmt;
use core::num::NonZeroU8;

/// One of the two regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Written first.
    A,
    /// Written second.
    B,
}

impl Which {
    /// Both, in the order in which they are written.
    pub const BOTH: [Which; 2] = [Which::A, Which::B];

    /// The region that holds the other copy.
    #[must_use]
    pub const fn other(self) -> Which {
        match self {
            Which::A => Which::B,
            Which::B => Which::A,
        }
    }

    pub(super) const fn index(self) -> usize {
        match self {
            Which::A => 0,
            Which::B => 1,
        }
    }
}

/// Why the two ranges cannot hold a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutError {
    /// A range does not start and end on an erase sector, or ends beyond the flash.
    NotOnSectors,
    /// The ranges share a sector.
    Overlap,
    /// A range has fewer than three sectors: head, open one, and one to make ready.
    TooFewSectors,
    /// A range has more sectors than the caches were sized for.
    TooManySectors,
    /// The record buffer cannot hold the header of a record, or a sector cannot hold the buffer.
    BufferSize,
}

/// Why an operation failed. Unless a variant says otherwise the old value stays readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The part refused to program: worn, protected, or a driver fault. In region B the new value
    /// is already in region A, and the next boot will read the new one.
    ProgramFailed,
    /// The part refused to erase, or the sector was not blank afterwards.
    EraseFailed,
    /// What was read back is not what was written, twice in a row. Region B as above.
    VerifyMismatch,
    /// The values that must be kept leave no room for this one. Nothing was written.
    Full,
    /// The save would need an erase first, on the path of an answer. Nothing was written.
    NotPrepared,
    /// The value is longer than the record buffer allows. Nothing was written.
    TooLong,
    /// The stored record has a newer format than this firmware knows. Nothing was written.
    NewerFormat {
        /// The format on flash.
        stored: u8,
    },
    /// Values existed, and no good copy of this one is left. Nothing was written.
    Unreadable {
        /// The key of the cell.
        key: u8,
    },
    /// The node was never provisioned (or its provisioning was cut short). Nothing was written.
    Unprovisioned,
    /// A counter reached its end. Nothing was written.
    Exhausted,
    /// The stored bytes do not decode. Nothing was written.
    Malformed,
    /// The map and this store disagree about the region; it is surveyed again before its next use.
    Structure,
    /// The ranges given cannot hold a store. Nothing was read.
    Layout(LayoutError),
}

/// A sector of a region, counted from 0. One byte, also where there may be none: errors cross many
/// calls on their way up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sector(NonZeroU8);

impl Sector {
    pub(super) const fn new(number: u8) -> Self {
        Self(NonZeroU8::MIN.saturating_add(number))
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0.get() - 1
    }
}

/// An error of the store, with the place where there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// The region, where one is to blame.
    pub region: Option<Which>,
    /// The sector of that region, where one is to blame.
    pub sector: Option<Sector>,
    /// What happened.
    pub reason: Reason,
}

impl Error {
    pub(super) const fn new(reason: Reason) -> Self {
        Self { region: None, sector: None, reason }
    }

    pub(super) const fn at(sector: u8, reason: Reason) -> Self {
        Self { region: None, sector: Some(Sector::new(sector)), reason }
    }

    pub(super) const fn within(mut self, which: Which) -> Self {
        self.region = Some(which);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::ProgramFailed => f.write_str("the part refused to program")?,
            Reason::EraseFailed => f.write_str("the sector could not be erased")?,
            Reason::VerifyMismatch => f.write_str("what was read back is not what was written")?,
            Reason::Full => f.write_str("no room beside the values that must be kept")?,
            Reason::NotPrepared => f.write_str("the save would have to wait for an erase")?,
            Reason::TooLong => f.write_str("the value is longer than a record can be")?,
            Reason::NewerFormat { stored } => {
                write!(f, "format {stored} on flash is newer than this firmware knows")?
            }
            Reason::Unreadable { key } => write!(f, "no good copy of cell {key} is left")?,
            Reason::Unprovisioned => f.write_str("the node is not provisioned")?,
            Reason::Exhausted => f.write_str("a counter reached its end")?,
            Reason::Malformed => f.write_str("the stored bytes do not decode")?,
            Reason::Structure => f.write_str("the region is not in the expected state")?,
            Reason::Layout(why) => write!(f, "the regions cannot hold a store: {why:?}")?,
        }
        if let Some(region) = self.region {
            write!(f, ", region {region:?}")?;
        }
        if let Some(sector) = self.sector {
            write!(f, ", sector {}", sector.number())?;
        }
        Ok(())
    }
}

impl core::error::Error for Error {}
