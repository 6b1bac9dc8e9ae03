//! Invitation: the paper's Appendix II, with the answers of Chow and Johnson, refined.
//!
//! The functions carry the names of the paper's procedures; the numbers I1 to I21 are those of the
//! transition table of PROTOCOLS section 2.
//!
//! - `mod.rs`: Recovery, Timeout, signs of life.
//! - `coordinator.rs`: Check, Merge and the distribution of a definition.
//! - `member.rs`: the answers to other nodes' calls.
//!
//! Invariants:
//! - Every group has a number of its own, and its definition is computed once; what fails is done
//!   again under a new number (I15). So Assertion 3 needs no clock and no bound on the network.
//! - An invitation names the group that the invitee is asked to leave (I7); any other is void.
//! - Only messages of this very group count as a sign of life of its coordinator (I16).
//!
//! Order: none is needed. A Ready may come before the AcceptAns (I13), a Beat of an earlier group of one's
//! coordinator is told by its number and means nothing, an Invitation to leave a group that is left is
//! void (I7), and answers name their round.
//!
//! Beyond the table:
//! - AycAns tells the members that would come along, so that one Invitation names everybody and is
//!   repeated to those who have not accepted; the old coordinator forwards it only to members whom it
//!   does not name. The merge can therefore end as soon as all have accepted.
//! - Of the members of a dead coordinator the highest probes first, and invites the others itself
//!   instead of letting everybody fall apart into groups of one.

mod coordinator;
mod member;
#[cfg(test)]
mod tests;

use crate::effects::Note;
use crate::id::{GroupId, NodeId, NodeSet, PerNode};
use crate::phase::Phase;
use crate::state::{Definition, Status};
use crate::station::Turn;
use crate::time::{Duration, Instant};
use crate::timers::Timer;

/// What another coordinator said of its group.
#[derive(Debug, Clone, Copy)]
struct Other<const W: usize> {
    number: u64,
    up: NodeSet<W>,
}

/// An invitation that this node, as the coordinator of its old group, passes on to its members.
#[derive(Debug, Clone, Copy)]
struct Forward<const W: usize> {
    leave: GroupId,
    members: NodeSet<W>,
}

/// What Invitation remembers from event to event. Its procedures are handed the whole [`Turn`], which
/// holds this, too.
#[derive(Debug)]
#[repr(C)] // see `Station`
pub struct Invitation<const W: usize> {
    /// The Check that is under way asks every node, not only coordinators.
    roll_call: bool,
    /// It was caused by a Beat.
    check_by_beat: bool,
    postponed_checks: u8,
    /// How many Checks in a row were caused by a Beat and found nobody.
    empty_checks: u32,
    /// The coordinators that answered Check; what they said is in `other`.
    others: NodeSet<W>,
    round_began: Instant,
    /// When a wait for higher coordinators ends, however often it is interrupted.
    defer_until: Option<Instant>,
    /// When a higher foreign coordinator was last heard.
    higher_heard: Option<Instant>,
    /// Until then, Beats of foreign coordinators cause no Check.
    foreign_beats_until: Instant,
    /// The group that the members of one's own old group are invited to leave, and who they are.
    old: Option<(GroupId, NodeSet<W>)>,
    forward: Option<Forward<W>>,
    other: PerNode<Other<W>, W>,
}

impl<const W: usize> Invitation<W> {
    pub fn new() -> Self {
        Self {
            roll_call: false,
            check_by_beat: false,
            others: NodeSet::EMPTY,
            other: const { PerNode::all(Other { number: 0, up: NodeSet::EMPTY }) },
            old: None,
            round_began: Instant(0),
            defer_until: None,
            forward: None,
            higher_heard: None,
            foreign_beats_until: Instant(0),
            empty_checks: 0,
            postponed_checks: 0,
        }
    }

    /// I1: a group of one, after waking and whenever a group has fallen apart.
    pub fn recovery(turn: &mut Turn<W>) {
        Self::stop(turn);
        let group = turn.next_group();
        let me = turn.me();
        let state = &mut turn.node.state;
        state.group = Some(group);
        if turn.node.config.is_observer() {
            Self::lone_observer(turn);
            return;
        }
        state.coordinator = Some(me);
        Self::alone(turn);
        // Hear for a period of Beats who else is there; then ask.
        let timing = &turn.node.config.timing;
        let soon = timing.beat + timing.tm;
        turn.set_timer(Timer::Check, soon);
        turn.node.invitation.foreign_beats_until = turn.node.now + soon;
    }

    /// An observer without a coordinator is in no state to work. Its group number serves for others
    /// to invite it, and its Beats for them to find it.
    fn lone_observer(turn: &mut Turn<W>) {
        let state = &mut turn.node.state;
        state.coordinator = None;
        state.up = NodeSet::EMPTY;
        state.definition = None;
        state.status = Status::Election;
        turn.note(Note::OnlyObservers);
        turn.beat();
    }

    /// A node leaves on purpose: what would follow from its silence follows at once.
    fn leaving(turn: &mut Turn<W>, from: NodeId) {
        turn.departed(from);
        let state = &turn.node.state;
        let normal = state.status == Status::Normal;
        if state.coordinator == Some(from) {
            if !normal {
                Self::recovery(turn);
            } else if turn.heirs_above().is_empty() {
                Self::coordinator_is_dead(turn);
            } else {
                Self::defer_probe(turn);
            }
        } else if turn.node.is_coordinator() && state.up.contains(from) {
            match turn.node.phase {
                Phase::Merge => turn.node.state.up.remove(from),
                Phase::Distribute => {
                    turn.node.state.up.remove(from);
                    Self::distribution_failed(turn);
                }
                _ if normal => {
                    Self::reform(turn, turn.node.state.up.without(from));
                }
                _ => {}
            }
        }
    }

    /// The group of this node has no other members: `single(g)` needs no agreement.
    fn alone(turn: &mut Turn<W>) {
        turn.node.state.up = NodeSet::EMPTY;
        turn.node.state.definition = Some(Definition::SINGLE);
        turn.node.state.status = Status::Normal;
        turn.node.phase = Phase::Idle;
        // Saved, but nothing waits for it.
        let _lazily = turn.save();
        turn.start_application();
        turn.arm_check();
        turn.beat();
    }

    /// The paper's STOP: whatever was under way is void, and the application rests.
    fn stop(turn: &mut Turn<W>) {
        turn.close_round();
        turn.cancel(Timer::Quiet);
        turn.cancel(Timer::Limit);
        turn.cancel(Timer::Beat);
        turn.node.saving = None;
        turn.node.invitation.forward = None;
        turn.node.invitation.old = None;
        turn.node.invitation.defer_until = None;
        turn.stop_application();
    }

    pub fn timer(turn: &mut Turn<W>, timer: Timer) {
        match timer {
            Timer::Phase => Self::phase_ended(turn),
            Timer::Repeat => Self::repeat(turn),
            Timer::Quiet => Self::timeout(turn),
            Timer::Check => Self::check_due(turn),
            Timer::Beat => turn.beat(),
            // I20: the group that this node accepted has not become Normal in time.
            Timer::Limit if turn.status() != Status::Normal && !turn.node.is_coordinator() => {
                Self::recovery(turn);
            }
            Timer::Limit | Timer::Answer | Timer::Greeting | Timer::Hello => {}
        }
    }

    /// I16: the coordinator has been silent for too long.
    fn timeout(turn: &mut Turn<W>) {
        let Some(coordinator) = turn.node.state.coordinator else { return };
        if turn.node.phase != Phase::Idle || coordinator == turn.me() {
            return;
        }
        if !turn.ask_about_coordinator(coordinator) {
            turn.probe(coordinator);
        }
    }

    fn inquiry_ended(turn: &mut Turn<W>) {
        let missed = turn.missed();
        turn.close_round();
        match turn.node.state.coordinator {
            Some(coordinator) if coordinator != turn.me() => {
                if missed.is_empty() {
                    turn.arm_quiet();
                } else {
                    turn.probe(coordinator);
                }
            }
            _ if missed.is_empty() => {}
            // I21: re-form without the members that are gone.
            _ => {
                turn.members_gone(&missed);
                Self::reform(turn, turn.node.state.up.difference(&missed));
            }
        }
    }

    /// A sign of life of the coordinator of this very group.
    fn heard(turn: &mut Turn<W>) {
        if turn.node.is_coordinator() {
            return;
        }
        turn.sign_of_life();
        match turn.node.phase {
            Phase::Inquire => Self::wait(turn),
            Phase::Probe => Self::suspicion_was_wrong(turn),
            Phase::Idle => turn.arm_quiet(),
            _ => {}
        }
    }

    fn suspicion_was_wrong(turn: &mut Turn<W>) {
        if let Some(coordinator) = turn.node.state.coordinator {
            turn.answered_probe(coordinator);
        }
        Self::wait(turn);
    }

    /// Back to Idle; this member waits for a sign of life.
    fn wait(turn: &mut Turn<W>) {
        turn.close_round();
        turn.arm_quiet();
    }

    /// A higher member of this group is probing the coordinator: leave it to that node for two T.
    fn defer_probe(turn: &mut Turn<W>) {
        if matches!(turn.node.phase, Phase::Probe | Phase::Inquire) {
            Self::wait(turn);
        }
        if turn.node.phase == Phase::Idle {
            turn.postpone_quiet(Duration::ZERO);
        }
    }

    fn rank_above(turn: &Turn<W>, other: NodeId) -> bool {
        turn.node.config.outranks(turn.me(), other)
    }
}

impl<const W: usize> Default for Invitation<W> {
    fn default() -> Self {
        Self::new()
    }
}
