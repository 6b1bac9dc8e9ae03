//! Ring: an election by a token with a list, three laps, and skipping of dead nodes.
//!
//! The ring is the member table in order of the ids. A node that misses its coordinator starts a
//! *run*: it sends a token round that everybody joins (`Elect`), the highest node of the list becomes
//! coordinator (`Coord`), shares out the work, and sends the definition round (`Ready`). Every hop is
//! acknowledged, repeated, and after T given to the next node instead.
//!
//! - `mod.rs`: waking, Timeout, signs of life.
//! - `laps.rs`: the way of the token.
//! - `monitor.rs`: the answers to other nodes' calls, and the coordinator's Check.
//!
//! # Transitions
//!
//! PROTOCOLS section 3.2, with its holes closed. `Start(S)` begins with the suspects `S`.
//!
//! | # | event and guard | effect |
//! |---|---|---|
//! | R1 | Boot, epoch durable | `st=Down`; for 3/2 T no answer to anybody; of tokens only the largest `(round, run)` is noted |
//! | R2 | that time is over | Start({}) |
//! | R3 | Start(S) | STOP; `run=(self, next); round+=1; h=run; st=Election; c=g=none; Up={}; list={self}`; limit R; pass Elect on |
//! | R4 | Elect, `(round, run)` above one's own | STOP; HopAck; a run of one's own earlier life: Start({}) above it; else `h=run; st=Election; c=g=none; Up={}; list+=self`; limit R; pass Elect on |
//! | R5 | Elect, one's own run, first return | HopAck; Coord to the node of `list` behind `max(list)` |
//! | R6 | Elect, `(round, run)` below one's own | HopAck; Normal, or a lap after joining still in Elect, or in a run in vain (R27): Start({}) (allowance); else the run is extinct here |
//! | R7 | Coord, `h=run, st=Election`, self in `list` | HopAck; `c=max(list); g=run; st=Reorganization`; pass on in `list`, but `max(list)` itself: R8 |
//! | R8 | Coord at `max(list)` | `Up=list-self`; the application computes `d`, once (deadline Tr, else Start({})) |
//! | R9 | ReorgDone(d) | save; pass Ready on in `list` |
//! | R10 | Ready, `g=run, c!=self, st=Reorganization` | `d; Up=list-self`; save; **then** `st=Normal`; HopAck; pass on in `list` |
//! | R11 | Ready back at c, own save done | HopAck; `st=Normal` |
//! | R12 | a hop already taken | HopAck again, nothing else. Coord and Ready of any other run: no answer |
//! | R13 | T without HopAck, Elect | `suspects+=next`; next was the initiator: Start({}); else to the one behind it |
//! | R14 | T without HopAck, Coord | `list-=next`; next was `max(list)`: Start({}); else to the one behind it |
//! | R15 | k T + Ts without HopAck, Ready | Start({}): `d` counts on the dead node |
//! | R16 | limit R since joining, not Normal | Start({}); R doubles while one's own runs fail, up to fourfold |
//! | R17 | quiet timer, Normal, `c!=self` | AreYouThere to c; no: Start({}); T without answer: Start({c}) |
//! | R18 | every P, Normal, `c=self` | AreYouNormal to Up; no: Start({}) (allowance); silent for 9/4 T, though asked again and again: Start({them}) |
//! | R19 | Beat of c with another g, Normal | as R17, without waiting |
//! | R20 | Beat of another coordinator, Normal, `c=self`, outranking it | Start({}) (allowance) |
//! | R21 | Beat of another coordinator, Normal, `c!=self` | the quiet timer ends within Q |
//! | R22 | Beat while not Normal, of `h`, or a lap after joining | the group has formed without this node: Start({}) |
//! | R23 | R5, all of `list` are observers | nobody can coordinate: as they are until R16, R22 or R27 |
//! | R24 | R3 and R4 without preemption, after a group that this node coordinated | it is the incumbent of the run, unless that knows one of a larger group or of a higher priority. R7: the incumbent of `list` goes before `max(list)` |
//! | R25 | Elect of a run that a node held off began | HopAck, and the run is extinct here. R5: a node held off is left out of `list` |
//! | R26 | Leaving from c, or at c from one of Up | the highest of Up that is left: Start({}); the others leave it to that one. Departed nodes are suspects of every run |
//! | R27 | Beat while in Elect, in a run in vain: all but its suspects are observers | there is a coordinator after all, whom this run has passed over: Start({}) (allowance) |
//!
//! # What holds
//!
//! - **Assertion 3, whatever the network does.** Only the initiator that lives on closes its Elect lap,
//!   once, so that a run has one `max(list)`; only that node computes `d`, once. (Section 3.2 lets
//!   any node close a lap whose initiator is dead. Two copies of a token could then be closed with
//!   two lists under one number, and are in random runs of a build that does so (erratum R5). Here whoever
//!   finds the initiator dead starts a run of its own.)
//! - **Assertion 1, as long as datagrams take at most Tm and none is lost (Assumptions 8 and 9).**
//!   `(round, h)` of a node never goes back while it runs, so that a larger run that has closed has
//!   taken every live node out of all smaller ones; and a node that is skipped is down. A node that
//!   has rebooted has forgotten `h`. So it takes part in nothing until every hop to its earlier life
//!   has ended (R1), and a run that passes over it while it wakes must not find it in a smaller one
//!   afterwards: either it has heard of that run, and starts above it, or it wakes so late that
//!   the larger token is ahead of every smaller one. For the same reason suspects are not handed on from
//!   run to run: a run believes its own hops, and what its initiator has found out as a Normal node.
//!   This is argued and simulated, not model-checked. Without the note of a waking node random runs find two
//!   coordinators (erratum R1); that the wait itself is needed rests on the argument alone.
//! - **Order is not needed.** A token of an earlier round of its sender is told by its call number and void,
//!   because its sender has gone on; one of a smaller run is told by `(round, run)`; a Beat of an earlier
//!   group by its number: it costs a question at most (R19). An overtaken token is taken while its hop
//!   waits for it, which it must be: a hop that is refused for a T counts its node for dead. Random and
//!   explored runs overtake, and find nothing.
//! - **No token is immortal.** Each node takes each lap of a run at most once. That is the hop budget:
//!   n per lap.
//!
//! Simultaneous runs: of equal rounds the one with the higher initiator survives, as soon as the two
//! meet. A node that is Normal answers a run of the past with a new one (R6), as Chang and Roberts
//! let a node put its own id in the place of a smaller one.

mod laps;
mod monitor;
#[cfg(test)]
mod tests;

use crate::budget::Budget;
use crate::effects::Note;
use crate::id::{NodeId, NodeSet};
use crate::phase::Phase;
use crate::state::Status;
use crate::station::Turn;
use crate::time::Instant;
use crate::timers::Timer;
use crate::wire::{Incumbent, Lap};

/// What Ring remembers from event to event. Its procedures are handed the whole [`Turn`], which holds
/// this, too.
#[derive(Debug)]
#[repr(C)] // see `Station`
pub struct Ring<const W: usize> {
    /// The latest lap of its run that the node took part in.
    lap: Lap,
    /// Who is to take the token.
    next: Option<NodeId>,
    /// How large the group was that this node coordinated last, if it has been in no other since.
    led: u8,
    /// How many of one's own runs in a row came to nothing.
    failed_runs: u8,
    incumbent: Option<Incumbent>,
    /// The place of S(i).h among all runs: (round, h).
    round: u32,
    list: NodeSet<W>,
    suspects: NodeSet<W>,
    /// When the node joined that run.
    joined: Instant,
    provocations: Budget,
}

impl<const W: usize> Ring<W> {
    pub fn new() -> Self {
        Self {
            round: 0,
            joined: Instant(0),
            lap: Lap::Elect,
            list: NodeSet::EMPTY,
            suspects: NodeSet::EMPTY,
            incumbent: None,
            led: 0,
            next: None,
            failed_runs: 0,
            provocations: Budget::FULL,
        }
    }

    /// R1: the node has woken and its boot epoch is durable.
    pub fn recovery(turn: &mut Turn<W>) {
        turn.node.phase = Phase::Waking;
        turn.set_timer(Timer::Phase, turn.node.config.timing.waking());
    }

    pub fn timer(turn: &mut Turn<W>, timer: Timer) {
        match timer {
            Timer::Phase => Self::phase_ended(turn),
            Timer::Repeat => Self::repeat(turn),
            Timer::Quiet => Self::timeout(turn),
            Timer::Check => Self::check(turn),
            Timer::Beat => turn.beat(),
            Timer::Limit => Self::limit(turn),
            Timer::Answer | Timer::Greeting | Timer::Hello => {}
        }
    }

    /// R16: the run has come to nothing.
    fn limit(turn: &mut Turn<W>) {
        let own = turn.node.state.halted_by.is_some_and(|run| run.coordinator == turn.me());
        if own {
            turn.node.ring.failed_runs = turn.node.ring.failed_runs.saturating_add(1);
        }
        Self::start(turn, NodeSet::EMPTY);
    }

    /// R17: the coordinator has been silent for too long.
    fn timeout(turn: &mut Turn<W>) {
        let Some(coordinator) = turn.node.state.coordinator else { return };
        if turn.node.phase != Phase::Idle
            || coordinator == turn.me()
            || turn.status() != Status::Normal
        {
            return;
        }
        if !turn.ask_about_coordinator(coordinator) {
            turn.probe(coordinator);
        }
    }

    fn inquiry_ended(turn: &mut Turn<W>) {
        let missed = turn.missed();
        Self::wait(turn);
        match turn.node.state.coordinator {
            _ if missed.is_empty() => {}
            Some(coordinator) if coordinator != turn.me() => turn.probe(coordinator),
            _ => {
                turn.members_gone(&missed);
                Self::start(turn, missed);
            }
        }
    }

    /// A higher member is on the case of the coordinator. Its token may take a while to get here.
    fn defer(turn: &mut Turn<W>) {
        if matches!(turn.node.phase, Phase::Probe | Phase::Inquire) {
            Self::wait(turn);
        }
        let lap = turn.node.config.timing.lap(turn.node.config.members().len());
        turn.postpone_quiet(lap);
    }

    /// R26: a node leaves on purpose. What would follow from its silence follows at once.
    fn leaving(turn: &mut Turn<W>, from: NodeId) {
        turn.departed(from);
        let state = &turn.node.state;
        if state.coordinator == Some(from) && !turn.heirs_above().is_empty() {
            Self::defer(turn);
        } else if state.coordinator == Some(from)
            || turn.node.is_coordinator() && state.up.contains(from)
        {
            Self::start(turn, NodeSet::EMPTY);
        } else if turn.node.phase == Phase::Hop && turn.node.ring.next == Some(from) {
            Self::hop_failed(turn);
        }
    }

    /// Back to Idle; a Normal member waits for a sign of life.
    fn wait(turn: &mut Turn<W>) {
        turn.close_round();
        if turn.status() == Status::Normal && !turn.node.is_coordinator() {
            turn.arm_quiet();
        }
    }

    /// A sign of life of the coordinator of this very group.
    fn heard(turn: &mut Turn<W>) {
        turn.sign_of_life();
        if let (Phase::Probe, Some(coordinator)) = (turn.node.phase, turn.node.state.coordinator) {
            turn.answered_probe(coordinator);
        }
        if matches!(turn.node.phase, Phase::Idle | Phase::Probe | Phase::Inquire) {
            Self::wait(turn);
        }
    }

    /// Somebody's message shows that the group of this node is not as it should be.
    fn provoked(turn: &mut Turn<W>, by: NodeId) {
        if turn.node.ring.provocations.take(turn.node.now, turn.node.config.timing.check) {
            turn.note(Note::ProvokedBy(by));
            Self::start(turn, NodeSet::EMPTY);
        }
    }

    fn phase_ended(turn: &mut Turn<W>) {
        match turn.node.phase {
            // R2; Tr
            Phase::Waking | Phase::Reorg => Self::start(turn, NodeSet::EMPTY),
            Phase::Hop => Self::hop_failed(turn),
            Phase::Check => Self::check_ended(turn),
            // R17
            Phase::Probe => {
                let silent = *turn.node.call.awaited();
                turn.unanswered_probe();
                Self::start(turn, silent);
            }
            Phase::Inquire => Self::inquiry_ended(turn),
            _ => {}
        }
    }

    fn repeat(turn: &mut Turn<W>) {
        match turn.node.phase {
            Phase::Hop => Self::send_token(turn),
            Phase::Probe => turn.send_probe(),
            Phase::Inquire => turn.send_inquiry(),
            Phase::Check => {
                Self::send_check(turn);
                turn.arm_check_repeat(true);
                return;
            }
            _ => return,
        }
        turn.arm_early_repeat();
    }
}

impl<const W: usize> Default for Ring<W> {
    fn default() -> Self {
        Self::new()
    }
}
