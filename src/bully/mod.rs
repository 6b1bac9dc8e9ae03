//! Bully: the paper's Appendix I, with parallel rounds.
//!
//! The functions carry the names of the paper's procedures; the numbers B1 to B17 are those of the
//! transition table of PROTOCOLS section 1. Where a round names nodes, it is one broadcast.
//!
//! - `mod.rs`: Recovery, Timeout, and what a node does while it waits.
//! - `election.rs`: the procedure Election, seen from the node that runs it, and Check.
//! - `monitor.rs`: the answers to other nodes' calls.
//! - `seniority.rs`: who gives way to whom without preemption and to whom with hold-off.
//!
//! Invariants:
//! - The Halt round lasts its whole T, whoever has answered (B7). Ending it early elects two.
//! - Only a `binding` Halt halts a node for the first time, and none is sent later than T minus the
//!   least T into the round, so that at its end everything that a halted node had sent has arrived.
//! - A definition is computed once per election number.
//!
//! Order: none is needed within Tm. Every Halt, NewCoordinator and Ready names its election, replies name
//! their round, and at the end of the Halt round all that a halted node had sent has arrived in whatever
//! order. What is needed is that the one binding Halt is taken: it must not be dropped because it was
//! overtaken, nor be refused because it overtook the Hello that proves its sender. The link sees to both.

mod election;
mod monitor;
mod seniority;
#[cfg(test)]
mod tests;

use crate::budget::Budget;
use crate::errata::Erratum;
use crate::id::{NodeId, NodeSet};
use crate::phase::Phase;
use crate::state::Status;
use crate::station::Turn;
use crate::time::{Duration, Instant};
use crate::timers::Timer;

/// What Bully remembers from event to event. Its procedures are handed the whole [`Turn`], which holds
/// this, too.
#[derive(Debug)]
#[repr(C)] // see `Station`
pub struct Bully<const W: usize> {
    /// A lower node that this one gives way to.
    senior: Option<NodeId>,
    /// When the current round began.
    round_began: Instant,
    /// Nodes that showed during an election that they are no part of it.
    strangers: NodeSet<W>,
    /// Higher nodes that give way to this one in the election that it begins.
    juniors: NodeSet<W>,
    provocations: Budget,
}

impl<const W: usize> Bully<W> {
    pub fn new() -> Self {
        Self {
            round_began: Instant(0),
            strangers: NodeSet::EMPTY,
            provocations: Budget::FULL,
            senior: None,
            juniors: NodeSet::EMPTY,
        }
    }

    /// B1: the node has woken and its boot epoch is durable.
    pub fn recovery(turn: &mut Turn<W>) {
        turn.arm_check();
        // The greeting has lasted T unless all have answered: it has asked who is there, but for
        // those who speak version 1.
        let asked = Self::asked(turn, Phase::Ask);
        let silent = asked.intersection(turn.node.link.proven()).is_empty();
        if silent && !turn.node.config.accept_version_1 {
            Self::halt_all(turn);
        } else {
            Self::election(turn);
        }
    }

    pub fn timer(turn: &mut Turn<W>, timer: Timer) {
        match timer {
            Timer::Phase => Self::phase_ended(turn),
            Timer::Repeat => Self::repeat(turn),
            Timer::Quiet => Self::timeout(turn),
            Timer::Check => Self::check(turn),
            Timer::Beat => turn.beat(),
            Timer::Answer | Timer::Greeting | Timer::Hello | Timer::Limit => {}
        }
    }

    /// The paper's Timeout: the coordinator has been silent for too long, or nobody has taken over.
    fn timeout(turn: &mut Turn<W>) {
        if turn.node.phase != Phase::Idle {
            return;
        }
        match (turn.status(), turn.node.state.coordinator) {
            // B14
            (Status::Down | Status::Election, _) | (_, None) => Self::election(turn),
            // B15: the coordinator is a higher node, so asking all higher ones asks it too.
            (_, Some(coordinator)) if coordinator != turn.me() => {
                if !turn.ask_about_coordinator(coordinator) {
                    Self::probe(turn, coordinator);
                }
            }
            // B16: the announcement failed and the higher node that answered is gone again.
            (Status::Reorganization, _) => {
                if turn.node.config.errata.has(Erratum::E3) {
                    Self::wait(turn);
                } else {
                    Self::election(turn);
                }
            }
            (Status::Normal, _) => {}
        }
    }

    /// Back to Idle; unless this node coordinates, it waits for a sign of life.
    fn wait(turn: &mut Turn<W>) {
        turn.close_round();
        Self::arm_quiet(turn);
    }

    /// Suspicion is staggered by rank, so that one node probes and the others hear it do so.
    fn arm_quiet(turn: &mut Turn<W>) {
        let node = &turn.node;
        match (node.state.status, node.state.coordinator) {
            (Status::Normal, Some(coordinator)) if coordinator == node.config.id => {
                turn.cancel(Timer::Quiet);
            }
            (Status::Normal | Status::Reorganization, Some(_)) => turn.arm_quiet(),
            // Whoever halted this node needs one T before it announces itself.
            _ => {
                let timing = &node.config.timing;
                let mut higher = node.seen.intersection(node.config.higher());
                if let Some(halter) = node.state.halted_by {
                    higher.remove(halter.coordinator);
                }
                let stagger = timing.stagger.times(higher.len() as u32);
                turn.set_timer(Timer::Quiet, timing.t.times(2) + stagger);
            }
        }
    }

    /// A sign of life of the coordinator, or of the node that is about to be.
    fn heard(turn: &mut Turn<W>, from: NodeId) {
        let coordinates = turn.node.state.coordinator == Some(from);
        if coordinates {
            turn.sign_of_life();
        }
        match turn.node.phase {
            Phase::Inquire if coordinates => Self::wait(turn),
            Phase::Probe if coordinates => Self::suspicion_was_wrong(turn, from),
            // It is there: that answers the question.
            Phase::Ask => Self::wait(turn),
            Phase::Idle => Self::arm_quiet(turn),
            _ => {}
        }
    }

    fn suspicion_was_wrong(turn: &mut Turn<W>, coordinator: NodeId) {
        turn.answered_probe(coordinator);
        Self::wait(turn);
    }

    /// A higher node is at work: leave it to that node for two T.
    fn defer(turn: &mut Turn<W>) {
        if matches!(turn.node.phase, Phase::Ask | Phase::Probe | Phase::Inquire) {
            Self::wait(turn);
        }
        if turn.node.phase == Phase::Idle {
            turn.postpone_quiet(Duration::ZERO);
        }
    }

    /// Waits little more than one T for a sign of life. Few nodes are ever left out of a group, so
    /// that it is enough to keep neighbours in rank apart.
    fn hurry(turn: &mut Turn<W>) {
        let node = &turn.node;
        let timing = &node.config.timing;
        let above = node.seen.intersection(node.config.higher()).len() as u32 % 4;
        let latest = turn.node.now + timing.t + timing.stagger.times(above);
        if node.timers.at(Timer::Quiet) > latest {
            turn.node.timers.set(Timer::Quiet, latest);
        }
    }

    fn probe(turn: &mut Turn<W>, coordinator: NodeId) {
        if !turn.node.watch.calls() {
            turn.suspect(coordinator);
        }
        Self::ask(turn, Phase::Probe);
    }

    fn inquiry_ended(turn: &mut Turn<W>) {
        let missed = turn.missed();
        Self::wait(turn);
        match turn.node.state.coordinator {
            _ if missed.is_empty() => {}
            Some(coordinator) if coordinator != turn.me() => {
                Self::probe(turn, coordinator);
            }
            _ => {
                turn.members_gone(&missed);
                Self::election(turn);
            }
        }
    }
}

impl<const W: usize> Default for Bully<W> {
    fn default() -> Self {
        Self::new()
    }
}
