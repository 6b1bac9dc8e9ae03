//! What the simulator and the lab have in common: the scenario that is played, the trace that is
//! written, and the judgement of what was expected against what was seen. Flock files are read with
//! the same [`toml_table`], so that all errors in files look alike; so are the delays that the lab measured
//! on some network and the simulator replays ([`Delays`]).
//!
//! The crate knows no protocol and no network. It depends on neither the core nor the programs
//! that use it, so that simulator and lab cannot come to read the same file differently.
//!
//! All times are whole microseconds in `u64` (`…_us`); files speak of milliseconds with up to
//! three decimals.
//!
//! Beyond the keys that every scenario knows, these are read:
//! - `t_ms`: T, where it shall be longer than 2 Tm + Tp.
//! - `detector = "reliable" | "heartbeat" | "adaptive" | "indirect"` (default: heartbeat), and
//!   `quiet_max_ms`, the longest silence that the adaptive one bears.
//! - `hold_off_ms`: a node that reboots twice within this time is let in only when it has been up for as
//!   long.
//! - `observers = [1, 2]`: nodes that never coordinate.
//! - `do = "leave"` with `nodes`: these say that they leave, and are silent until their next boot.
//! - `[[expect]] elections = { since_ms = 5000, at_least = 1, at_most = 3 }`: how many groups were
//!   formed in the whole run, by whomever, from `since_ms` (default 0) to the time of the
//!   expectation. A group is formed when its coordinator turns Normal in it for the first time.
//! - `do = "reset"` with `nodes`: the reset pin is pulled; RAM is lost, the firmware starts again;
//! - `do = "unplug"` and `do = "plug"` with `nodes`: the cable of a board is pulled and put back;
//!   the board runs on and keeps its state. Not while it is paused: nobody could tell it.
//! - `at_most` beside `at_least` in `resets`. Each listed node is judged by itself.

#![forbid(unsafe_code)]

mod bad;
mod delays;
mod judge;
mod judge_trace;
mod parse;
mod parse_at;
mod parse_expect;
mod power;
mod scenario;
mod time;
pub mod toml_table;
mod trace;
mod watch;

#[cfg(test)]
mod judge_tests;
#[cfg(test)]
mod parse_tests;
#[cfg(test)]
mod rejection_tests;
#[cfg(test)]
mod scenario_files_tests;
#[cfg(test)]
mod trace_tests;
#[cfg(test)]
mod watch_tests;

pub use bad::BadFile;
pub use delays::{Delays, Distribution};
pub use judge::{NodeView, Observation, ResetCounts, Unmet, judge};
pub use judge_trace::judge_trace;
pub use parse::Overrides;
pub use scenario::{
    Action, Algorithm, Bounds, Detector, Durability, Expectation, ExpectedElections,
    ExpectedResets, Group, LinkQuality, NodeId, ResetCause, Scenario, Status, Step, TimedAction,
};
pub use trace::{BadTrace, NodeEvent, Run, Target, TraceEvent, TraceWriter, What, read_trace};
pub use watch::Watch;
