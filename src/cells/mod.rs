//! Safe cells: state that no power cut can ruin.
//!
//! Every value is written twice, in two flash regions that share no erase sector. Each region is a
//! `sequential-storage` map that is complete by itself, so the loss of any sector, a torn program
//! or a torn erase leaves the old value or the new one, never neither.
//!
//! # On flash
//!
//! ```text
//!  one NorFlash
//!  ├── region A ─────────────────────────────┬── region B ────────────────── (no common sector)
//!  │ sector 0 │ sector 1 │ … │ sector N-1    │ the same again
//!
//!  a sector (a "page" of the map), word = max(4, write size, read size)
//!  ┌────────┬─────────────────────────────────────────────────────────┬────────┐
//!  │ start  │ item │ item │ item │ …                │ 0xFF …          │ end    │
//!  │ marker │                                                         │ marker │
//!  └────────┴─────────────────────────────────────────────────────────┴────────┘
//!   1 word                                                              1 word
//!  no marker: open; start only: the head, where items are appended; both: closed.
//!  In ring order a region is: closed sectors (oldest first), the head, open sectors (at least one).
//!
//!  an item of the map (padded to words)
//!  ┌──────────────┬─────────┬──────────────┬─────┬──────────────────────┐
//!  │ crc32 (data) │ length  │ crc16(length)│ pad │ data = our record    │
//!  └──────────────┴─────────┴──────────────┴─────┴──────────────────────┘
//!  0              4         6              8     8 rounded up to a word
//!
//!  our record (little endian; see `record`)
//!  ┌─────┬────────┬─────────┬────────────┬──────────┬───────────┬───────────┐
//!  │ key │ format │ length  │ generation │ checksum │ value     │ pad, zero │
//!  └─────┴────────┴─────────┴────────────┴──────────┴───────────┴───────────┘
//!  0     1        2         4            8          12          12 + length
//! ```
//!
//! The generation is one counter for the whole store. It grows with every save, and by two with
//! every boot, so that a torn record that happens to read as good at a later boot can never share
//! its generation with another one. The newest good record of a key, whichever region holds it and
//! wherever it lies, is the value. What was acknowledged is newer than any torn record; a value
//! whose save was cut may come and go between boots until its cell is saved or pinned
//! ([`Store::pin`]).
//!
//! # Who may erase
//!
//! The map may not: its appends run behind a guard that refuses every erase. Space is made by
//! [`Store::prepare_step`], in idle time: it copies the records that are still needed out of the
//! oldest closed sector, reads them back, and erases that sector. The account of free space
//! ([`Store::writes_before_erase`]) says before a save starts whether it fits; a save on the path
//! of an answer that does not fit is refused with nothing changed.
//!
//! # Architecture invariants
//!
//! - Nothing here allocates, reads a clock, or knows an executor.
//! - Between two calls every region has at least one open sector after its head, and either two of
//!   them or room in the head for what the oldest sector still holds: space can always be made.
//! - While a sector is being erased, a note in both regions says so; see `erasing`.
//! - When keys were replaced, no sector that held the old ones stays unerased; see `secret`.
//! - A sector is erased only when every record that it holds has a good newer or equal copy
//!   elsewhere.

mod boot;
mod configuration;
mod erasing;
mod error;
mod guard;
mod index;
mod part;
mod plan;
mod prepare;
mod rebuild;
mod record;
mod region;
mod report;
mod secret;
mod store;
pub mod task;
mod typed;

pub use configuration::{CHUNK_BYTES_MAX, CHUNKS_MAX, ConfigurationHead};
pub use error::{Error, LayoutError, Reason, Sector, Which};
pub use guard::Flash;
pub use part::{Geometry, Lifetime, Part, Wear};
pub use prepare::Progress;
pub use record::{KEYS, RECORD_HEADER_BYTES};
pub use report::{Counters, Provisioning, RegionReport, Report, Verdict};
#[cfg(feature = "sabotage")]
pub use store::Sabotage;
pub use store::{Layout, Loaded, Path, Store};
pub use typed::{
    BootEpoch, Cell, ELECTION_BYTES_MAX, Election, GroupCounter, HISTORY_RECORDS, Mark, keys,
};
