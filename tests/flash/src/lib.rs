//! A strict NOR flash in memory, and the tests of the cell store on it.
//!
//! The flash ([`Nor`]) is deterministic, completes synchronously and can be cloned, so that the
//! simulator can give one to each of its nodes. See [`nor`] for how to cut the power.

pub mod cuts;
pub mod life;
pub mod nor;
pub mod parts;
pub mod ready;
pub mod scenario;
pub mod torn;
pub mod wear;

pub use nor::{Nor, NorError, Tear, Timing, WordRule, Worn};
pub use ready::ready;
