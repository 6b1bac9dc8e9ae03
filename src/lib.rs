//! Bellwether: a flock of small boards on one Ethernet elects a coordinator, forms a group around
//! it, shares out the work, and does so again whenever a board dies, wakes, stalls or is cut off.
//!
//! The algorithms are Garcia-Molina's of 1982 (*Elections in a Distributed Computing System*):
//! [`bully`], which keeps one coordinator in the whole network as long as the network keeps its
//! bounds, and [`invitation`], which needs no bounds and keeps one coordinator per group; and with
//! them [`ring`], an election by a token that goes round, made to bear failures. The names in the code
//! are the paper's.
//!
//! # Where a datagram goes
//!
//! ```text
//!  bytes ──► link ──► wire ──► call ──► bully | invitation | ring ──► effects ──► the shell
//!           (authentic, (a view,  (numbered  (one event,                 Send, SaveState, Stop,
//!            of now,     then a    rounds,    handled to                 Reorganize, Start, FailSelf,
//!            and once)   meaning)  replies)   completion)                Note: carried out in order
//! ```
//!
//! [`node::Node::step`] takes the time and an event and returns [`effects::Effects`]. It does nothing
//! else: no clock, no socket, no flash, no allocation. A shell (the firmware's, or the simulator's
//! under `tests/sim`) asks [`node::Node::next_deadline`] when to call again.
//!
//! # Invariants
//!
//! - **The core never reads a clock.** Time is an argument, and every span is a configured one.
//! - **One event is handled to completion.** That replaces the critical regions of the paper. What a
//!   node is in the middle of is one `phase` with one deadline.
//! - **Effects are carried out in order**, all of them, before the next step.
//! - **A Save precedes every Send that depends on it.** No datagram leaves before the boot epoch is
//!   durable and read back; no Ready is accepted before the state vector is durable; under
//!   [`config::Durability::Strict`] nothing leaves before any change is.
//! - **Numbers are never used twice.** A group number is the durable boot epoch and a sequence
//!   number of that boot; it ends in a reset, not in a wrap.
//! - **A definition is computed once per group number.** What fails is done again under a new one.
//! - **Replies are sets.** A reply counts once, only for the open round of this boot, and only from a
//!   node that is awaited.
//! - **A late node fails before it acts.** A step whose tick, or an answer whose request, is older
//!   than Tp ends in `FailSelf`.
//! - **Only what is authentic and of now changes a node, and only once.** A datagram that is not moves a
//!   counter and nothing else; a peer whose boot is not proven is answered with a Hello.
//! - **Bad input changes nothing.** It is dropped with a [`wire::Reject`] reason and counted.
//! - **Everything is bounded.** One const parameter, the number of 64-bit words in a set of nodes,
//!   sizes a node: 1 for 64 nodes in a firmware, 4 for 255 on a host.
//!
//! Where `#[inline(never)]` stands without a reason, images are smaller for it (`cargo lab size`): in short
//! functions jumps are short, and more is kept where short instructions reach it.
#![no_std]
#![forbid(unsafe_code)]

// A datagram arrives: is it authentic and of now? Its content; reasons to refuse it.
pub mod link;
pub mod wire;

// It belongs to a numbered call, or opens one and is answered.
pub mod answers;
pub mod call;

// The node that it reaches, and what the algorithms of that node stand on.
pub mod node;
mod phase;
pub mod station;

// What it does to the node's state.
pub mod bully;
mod forming;
pub mod invitation;
pub mod ring;
pub mod state;

// Whether what it was told of the network is true.
pub mod advice;

// When the node acts by itself.
mod budget;
pub mod detector;
mod hold_off;
mod leaving;
pub mod timers;
mod watch;

// What outlives a power cut.
pub mod cells;

// What leaves the node, and the task that the user gives it.
pub mod application;
pub mod effects;

// What carries all this out on a board, what a board is told about itself, and what its lamp says.
pub mod lamp;
pub mod provision;
#[cfg(feature = "shell")]
pub mod shell;

// What everybody speaks of.
pub mod config;
pub mod errata;
pub mod id;
pub mod key;
pub mod time;
