//! A strict NOR flash in memory, and the tests of the cell store on it.
//!
//! The flash ([`Nor`]) is deterministic, completes synchronously and can be cloned, so that the
//! simulator can give one to each of its nodes. See [`nor`] for how to cut the power.
//!
//! | command | what it does |
//! |---|---|
//! | `cargo test -p bellwether-flash` | the reduced tests, some tens of thousands of cuts |
//! | `cargo test -p bellwether-flash --features sabotage --target-dir target/switched --test shown_to_fail` | the cut tests fail when the store is spoilt |
//! | `cargo cells cuts --deep` | every byte, and every operation of each recovery: 1.6 million cuts in some minutes |
//! | `cargo cells torn` | 100,000 torn erases |
//! | `cargo cells wear` | 1,000,000 saves, erases of each sector |
//! | `cargo cells life` | years, worst save, programs and erases per board |
//! | `cargo cells show IMAGE …` | what is left in a flash image |
//! | `cargo cells provision IMAGE …` | gives an image its values, again |
//! | `cargo verify --only fuzzing` | random operations and cuts against a map |
//!
//! Without the feature `trials` there is only what other programs use: the flash, and images of it.

#[cfg(feature = "trials")]
pub mod cuts;
#[cfg(feature = "trials")]
pub mod fuzz;
#[cfg(feature = "trials")]
pub mod life;
pub mod nor;
pub mod parts;
pub mod provision;
pub mod read;
pub mod ready;
pub mod scenario;
pub mod show;
#[cfg(feature = "trials")]
pub mod torn;
#[cfg(feature = "trials")]
pub mod wear;

pub use nor::{Ecc, Nor, NorError, Tear, Timing, WordRule, Worn};
pub use ready::until_cut;
