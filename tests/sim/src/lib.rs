//! The simulator: the real core in virtual time, with every fault of the field.
//!
//! A run is a [`world::World`]: boards ([`machine`]) whose nodes are stepped by a simulated shell
//! ([`shell`]), a wire ([`network`]) and clocks ([`clock`]). The [`checker`] looks at every change of
//! every state vector and knows nothing of elections. On top of that: [`play`] a scenario file,
//! [`random`] runs with random faults, with an [`attacker`] on the wire if asked, [`explore`] all runs
//! of a small flock, [`measure`] and [`compare`].
//!
//! Without the feature `worlds` there is no world to run, only what judges one: the lab needs no more.
//!
//! There is no protocol logic here. What a node does is decided by the core alone; only the textbook
//! algorithms of [`reference`](mod@reference) are here, which are for comparison and in no firmware.

#[cfg(feature = "worlds")]
mod agenda;
#[cfg(feature = "worlds")]
pub mod attacker;
pub mod checker;
#[cfg(feature = "worlds")]
pub mod choices;
pub mod clock;
#[cfg(feature = "worlds")]
pub mod compare;
#[cfg(feature = "worlds")]
pub mod demo;
#[cfg(feature = "worlds")]
pub mod explore;
#[cfg(feature = "worlds")]
pub mod faults;
pub mod flash;
pub mod liveness;
#[cfg(feature = "worlds")]
pub mod machine;
#[cfg(feature = "worlds")]
pub mod measure;
#[cfg(feature = "worlds")]
pub mod network;
#[cfg(feature = "worlds")]
pub mod observe;
pub mod play;
#[cfg(feature = "worlds")]
pub mod random;
#[cfg(feature = "worlds")]
pub mod reference;
#[cfg(feature = "worlds")]
pub mod report;
pub mod settings;
#[cfg(feature = "worlds")]
pub mod shell;
#[cfg(feature = "worlds")]
pub mod storage;
#[cfg(feature = "worlds")]
pub mod transit;
#[cfg(feature = "worlds")]
pub mod world;
