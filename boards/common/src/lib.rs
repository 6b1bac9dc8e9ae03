//! What all boards share. A board brings its drivers and its memory map, says in [`Hardware`] how
//! they are taken into use, and names that in [`board!`]: see boards/README.md.
//!
//! | module | what |
//! |---|---|
//! | `hardware` | what a board must supply |
//! | `bring_up`, `tasks` | from the first instruction to a node that takes part |
//! | `retained` | what survives a reset: its cause, how often in a row, the last panic or fault |
//! | `stack` | a stack for the thread whose overflow faults |
//! | `priority` | critical sections that cannot hold up the deadline timer (feature `basepri`) |
//! | `executor` | an executor that sleeps (feature `executor`) |
//! | `clock`, `nor` | embassy's time by SysTick; a NOR flash with its times (features of these names) |
//! | `inbox`, `ethernet` | a driver for embassy-net, for a MAC whose interrupt takes frames in |
//! | `gate`, `stall` | the same door and time stamps around anybody's driver |
//! | `arrivals` | when datagrams came |
//! | `chip` | an Ethernet address from the number of a chip |
//! | `lamp` | a lamp that shows how the node is; the wish of the button |
//! | `counts` | what is counted since the boot |
//! | `register` | registers of chips without a peripheral access crate |
//! | `memory`, `division` | small routines that copy, fill and divide (feature `small-memory`) |
//! | `suite` | what drivers must be able to do, tried on the board itself (feature `suite`) |
//! | `provoke`, `cost` | failures and measurements on demand, for tests (feature `provoke`) |
#![no_std]

pub mod arrivals;
pub mod bring_up;
pub mod chip;
#[cfg(feature = "clock")]
pub mod clock;
#[cfg(feature = "provoke")]
mod cost;
pub mod counts;
#[cfg(feature = "small-memory")]
mod division;
pub mod ethernet;
#[cfg(feature = "executor")]
pub mod executor;
pub mod gate;
mod hardware;
pub mod inbox;
pub mod lamp;
#[cfg(feature = "small-memory")]
mod memory;
#[cfg(feature = "nor")]
pub mod nor;
#[cfg(feature = "basepri")]
pub mod priority;
#[cfg(feature = "provoke")]
mod provoke;
pub mod register;
pub mod retained;
pub mod stack;
mod stall;
#[cfg(feature = "suite")]
pub mod suite;
mod tasks;

pub use hardware::{Guard, Hardware, ts_min};

/// What the macro of the tasks needs; boards name these crates themselves.
#[doc(hidden)]
pub mod parts {
    pub use {bellwether, cortex_m_rt, embassy_executor, embassy_net, static_cell};
}

use defmt_rtt as _;
