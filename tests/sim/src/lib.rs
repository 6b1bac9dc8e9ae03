//! The simulator: the real core in virtual time, with every fault of the field.
//!
//! A run is a [`world::World`]: boards ([`machine`]) whose nodes are stepped by a simulated shell
//! ([`shell`]), a wire ([`network`]) and clocks ([`clock`]). The [`checker`] looks at every change of
//! every state vector and knows nothing of elections. On top of that: [`play`] a scenario file,
//! [`random`] runs with random faults, with an [`attacker`] on the wire if asked, [`explore`] all runs
//! of a small flock, [`measure`] and [`compare`].
//!
//! There is no protocol logic here. What a node does is decided by the core alone; only the textbook
//! algorithms of [`reference`](mod@reference) are here, which are for comparison and in no firmware.

mod agenda;
pub mod attacker;
pub mod checker;
pub mod choices;
pub mod clock;
pub mod compare;
pub mod demo;
pub mod explore;
pub mod faults;
pub mod flash;
pub mod liveness;
pub mod machine;
pub mod measure;
pub mod network;
pub mod observe;
pub mod play;
pub mod random;
pub mod reference;
pub mod report;
pub mod settings;
pub mod shell;
pub mod storage;
pub mod transit;
pub mod world;
