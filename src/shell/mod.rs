//! The shell: async functions that carry out what the core decides. No decisions here.
//!
//! ```text
//!  board: driver ──► embassy-net ──► UdpSocket ──┐            ┌──► Application (in place)
//!                                                ├── member::run ──► Board (deadline, reset)
//!  board: NorFlash ──► cells::task::run ◄──────► ┘            └──► log (RTT)
//!                       (requests, answers)
//! ```
//!
//! A board opens its cells with [`start::open`], then gives [`member::Member::run`] and
//! [`crate::cells::task::run`] a task each (embassy tasks cannot be generic, these can).
//!
//! Node to node datagrams go to an IPv4 multicast group per node. smoltcp asks for neighbours one
//! at a time and at most once a second, and what waits for an answer blocks everything behind it: a
//! datagram to a dead node would stop those to the living. A multicast group has its hardware
//! address by arithmetic, so nobody has to be asked.

pub mod board;
pub mod door;
pub mod log;
pub mod member;
pub mod sharing;
pub mod start;

pub use board::{Board, ResetCause};
pub use door::{Door, Guest, TurnedAway};
pub use member::Member;
pub use sharing::Sharing;

/// Words of a node set in a firmware: 64 nodes.
pub const WORDS: usize = 1;
