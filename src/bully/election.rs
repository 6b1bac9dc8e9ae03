//! The procedure Election, seen from the node that runs it, and Check.

use super::Bully;
use crate::answers::Request;
use crate::call::Standing;
use crate::effects::Note;
use crate::errata::Erratum;
use crate::id::{NodeId, NodeSet};
use crate::phase::Phase;
use crate::state::Status;
use crate::station::Turn;
use crate::time::Duration;
use crate::timers::Timer;
use crate::wire::{Kind, Message, Reject};

impl<const W: usize> Bully<W> {
    /// B2: ask all higher nodes; if there are none, go on at once.
    pub(super) fn election(turn: &mut Turn<W>) {
        turn.node.bully.juniors = NodeSet::EMPTY;
        if Self::asked(turn, Phase::Ask).is_empty() {
            Self::halt_all(turn);
        } else {
            Self::ask(turn, Phase::Ask);
        }
    }

    pub(super) fn ask(turn: &mut Turn<W>, phase: Phase) {
        turn.node.phase = phase;
        turn.node.bully.juniors = NodeSet::EMPTY;
        turn.cancel(Timer::Quiet);
        turn.open_round(Kind::AytAns, Self::asked(turn, phase), turn.node.config.timing.t);
        Self::send_request(turn);
        turn.arm_early_repeat();
    }

    /// B4: no higher node is there. Halt all lower ones.
    pub(super) fn halt_all(turn: &mut Turn<W>) {
        if turn.node.config.is_observer() {
            Self::only_observers(turn);
            return;
        }
        let group = turn.begin_election();
        turn.halt(Some(group));
        let node = &mut turn.node;
        let silent = node.config.higher().difference(&node.bully.juniors);
        node.seen = node.seen.difference(&silent);
        turn.node.bully.strangers = NodeSet::EMPTY;
        turn.node.bully.senior = None;
        turn.cancel(Timer::Quiet);
        let lower = turn.node.config.lower().union(&Self::admitted_juniors(turn));
        if lower.is_empty() {
            Self::election_point(turn);
            return;
        }
        turn.node.phase = Phase::Halting;
        turn.node.bully.round_began = turn.node.now;
        turn.open_round(Kind::HaltAck, lower, turn.node.config.timing.t);
        Self::send_request(turn);
        Self::arm_halt_repeat(turn);
    }

    /// Nobody is there who could coordinate. Say so, and ask again from time to time.
    fn only_observers(turn: &mut Turn<W>) {
        let node = &mut turn.node;
        node.seen = node.seen.difference(node.config.higher());
        let news = turn.status() != Status::Election;
        turn.halt(None);
        if news {
            turn.note(Note::OnlyObservers);
        }
        Self::wait(turn);
    }

    /// A node leaves on purpose: what would follow from its silence follows at once.
    pub(super) fn leaving(turn: &mut Turn<W>, from: NodeId) {
        turn.departed(from);
        let state = &turn.node.state;
        if state.coordinator == Some(from) {
            if turn.heirs_above().is_empty() {
                Self::election(turn);
            } else {
                Self::defer(turn);
            }
        } else if state.up.contains(from) && turn.node.phase == Phase::Halting {
            turn.node.state.up.remove(from);
        } else if state.up.contains(from) && turn.node.is_coordinator() {
            if state.status == Status::Normal {
                Self::election(turn);
            } else {
                Self::attempt_failed(turn);
            }
        }
    }

    /// Three repeats that may still halt, as far as T leaves room for them (whoever hears none of
    /// them costs another election), then one for the acknowledgements alone.
    fn arm_halt_repeat(turn: &mut Turn<W>) {
        let timing = &turn.node.config.timing;
        let (t, window) = (timing.t, timing.halt_window());
        let elapsed = turn.node.now.since(turn.node.bully.round_began);
        let roomy = window >= t.fraction(1, 16);
        let moment = |repeat| match repeat {
            _ if !roomy => t.fraction(1, 2),
            1..=3 => window.fraction(repeat, 3),
            _ => t.fraction(5, 8).max(window),
        };
        match (1..=4).map(moment).find(|moment| *moment > elapsed) {
            Some(moment) => {
                turn.node.timers.set(Timer::Repeat, turn.node.bully.round_began + moment)
            }
            None => turn.cancel(Timer::Repeat),
        }
    }

    /// B7, the election point: from here on this node is the coordinator.
    fn election_point(turn: &mut Turn<W>) {
        let me = turn.me();
        let state = &mut turn.node.state;
        state.coordinator = Some(me);
        state.status = Status::Reorganization;
        state.group = state.halted_by;
        turn.arm_beat();
        turn.node.phase = Phase::Announce;
        turn.open_round(Kind::NcAck, turn.node.state.up, turn.node.config.timing.patient());
        if turn.node.state.up.is_empty() {
            Self::reorganize(turn);
        } else {
            Self::send_request(turn);
        }
    }

    /// B9: everybody who was halted has accepted; the application computes d, once.
    fn reorganize(turn: &mut Turn<W>) {
        if let Some(group) = turn.node.state.group {
            turn.reorganize(group);
        }
    }

    /// B10: distribute d; the coordinator saves its state vector while Ready is under way.
    pub fn reorganized(turn: &mut Turn<W>) {
        turn.node.phase = Phase::Distribute;
        let wait = turn.node.config.timing.distribute();
        turn.open_round(Kind::ReadyAck, turn.node.state.up, wait);
        if !turn.node.state.up.is_empty() {
            Self::send_request(turn);
        }
        turn.save_group(None);
        Self::finish_if_complete(turn);
    }

    /// B12: all members have accepted and this node's own state vector is durable.
    fn finish_if_complete(turn: &mut Turn<W>) {
        if turn.finished() && !turn.node.bully.strangers.is_empty() {
            // Another turn, so that the task has started before it is stopped.
            turn.set_timer(Timer::Check, Duration::ZERO);
        }
    }

    /// B13: the attempt failed. A loop through Election, not a recursion.
    fn attempt_failed(turn: &mut Turn<W>) {
        if !turn.node.config.errata.has(Erratum::E3) {
            let state = &mut turn.node.state;
            state.status = Status::Election;
            state.coordinator = None;
            state.group = None;
        }
        turn.node.saving = None;
        Self::election(turn);
    }

    /// Somebody's message shows that this coordinator's group is not as it should be.
    pub(super) fn provoked(turn: &mut Turn<W>, by: NodeId) {
        if turn.held_off(by) {
            return;
        }
        turn.node.bully.strangers.insert(by);
        let coordinates = turn.node.is_coordinator() && turn.status() == Status::Normal;
        if !coordinates || !matches!(turn.node.phase, Phase::Idle | Phase::Check | Phase::Inquire) {
            return;
        }
        if turn.node.bully.provocations.take(turn.node.now, turn.node.config.timing.check) {
            turn.note(Note::ProvokedBy(by));
            Self::election(turn);
        }
    }

    /// B17, the paper's Check: every P the coordinator asks all nodes whether they are Normal.
    pub(super) fn check(turn: &mut Turn<W>) {
        turn.arm_check();
        let others = turn.node.config.others();
        if !turn.node.is_coordinator()
            || turn.status() != Status::Normal
            || turn.node.phase != Phase::Idle
            || others.is_empty()
        {
            return;
        }
        if let Some(stranger) = turn.node.bully.strangers.iter().next() {
            turn.node.bully.strangers = NodeSet::EMPTY;
            Self::provoked(turn, stranger);
            if turn.node.phase != Phase::Idle || turn.status() != Status::Normal {
                return;
            }
        }
        turn.call_the_roll(Kind::AynAns, others);
        Self::send_request(turn);
    }

    fn check_ended(turn: &mut Turn<W>) {
        let somebody = !turn.node.call.awaited().is_empty();
        let silent = turn.missed_members();
        Self::wait(turn);
        if silent.is_empty() && !(somebody && turn.node.config.errata.has(Erratum::E2)) {
            return;
        }
        if !turn.ask_about_members(&silent) {
            Self::election(turn);
        }
    }

    pub(super) fn phase_ended(turn: &mut Turn<W>) {
        match turn.node.phase {
            Phase::Ask => Self::halt_all(turn),
            Phase::Probe => {
                turn.unanswered_probe();
                Self::halt_all(turn);
            }
            Phase::Inquire => Self::inquiry_ended(turn),
            Phase::Halting => Self::election_point(turn),
            Phase::Announce | Phase::Reorg | Phase::Distribute => Self::attempt_failed(turn),
            Phase::Check => Self::check_ended(turn),
            _ => {}
        }
    }

    pub(super) fn repeat(turn: &mut Turn<W>) {
        if turn.node.call.awaited().is_empty() {
            return;
        }
        Self::send_request(turn);
        match turn.node.phase {
            Phase::Halting => Self::arm_halt_repeat(turn),
            Phase::Check => turn.arm_check_repeat(true),
            _ => turn.arm_early_repeat(),
        }
    }

    /// The request of the current phase, to those who have not answered it.
    fn send_request(turn: &mut Turn<W>) {
        let state = &turn.node.state;
        let message = match turn.node.phase {
            Phase::Ask | Phase::Probe => {
                Message::AreYouThere { group: state.group, status: state.status }
            }
            Phase::Halting => {
                let Some(group) = state.halted_by else { return };
                let elapsed = turn.node.now.since(turn.node.bully.round_began);
                let window = turn.node.config.timing.halt_window();
                Message::Halt { group, binding: elapsed <= window }
            }
            Phase::Announce | Phase::Distribute | Phase::Check => {
                let Some(group) = state.group else { return };
                match turn.node.phase {
                    Phase::Announce => Message::NewCoordinator { group },
                    Phase::Check => {
                        // As good as a Beat to the members.
                        turn.arm_beat();
                        Message::AreYouNormal { group }
                    }
                    _ => {
                        turn.send_ready(group, None);
                        return;
                    }
                }
            }
            Phase::Inquire => {
                turn.send_inquiry();
                return;
            }
            _ => return,
        };
        turn.broadcast_round(message);
    }

    /// A reply to the open round.
    #[inline(never)] // short jumps
    pub fn reply(
        turn: &mut Turn<W>,
        from: NodeId,
        standing: Standing,
        message: &Message<'_, W>,
    ) -> Result<(), Reject> {
        let awaited = standing == Standing::Awaited;
        let errata = turn.node.config.errata;
        match (turn.node.phase, *message) {
            (Phase::Ask | Phase::Probe, Message::AytAns { yes: false }) if awaited => {
                turn.node.bully.juniors.insert(from);
                if turn.node.call.is_complete(errata) {
                    Self::phase_ended(turn);
                }
            }
            // B3: the first answer ends the round.
            (Phase::Ask, Message::AytAns { .. }) if awaited => {
                if turn.node.config.outranks(turn.me(), from) {
                    turn.node.bully.senior = Some(from);
                }
                Self::wait(turn);
            }
            (Phase::Probe, Message::AytAns { .. }) if awaited => {
                if turn.node.state.coordinator == Some(from) {
                    Self::suspicion_was_wrong(turn, from);
                } else {
                    Self::wait(turn);
                }
            }
            // B6: no early end, see B7.
            (Phase::Halting, Message::HaltAck) if awaited => {
                turn.node.state.up.insert(from);
                turn.node.bully.strangers.remove(from);
                if errata.has(Erratum::E7) && turn.node.call.is_complete(errata) {
                    Self::election_point(turn);
                }
            }
            // A node that was halted but whose acknowledgement was lost joins here.
            (Phase::Announce, Message::NcAck { accepted: true }) => {
                turn.node.state.up.insert(from);
                turn.node.bully.strangers.remove(from);
                if turn.node.call.is_complete(errata) {
                    Self::reorganize(turn);
                }
            }
            (Phase::Distribute, Message::ReadyAck { accepted: true }) if awaited => {
                Self::finish_if_complete(turn);
            }
            (Phase::Announce, Message::NcAck { .. })
            | (Phase::Distribute, Message::ReadyAck { .. })
                if awaited =>
            {
                Self::attempt_failed(turn);
            }
            (Phase::Check, Message::AynAns { normal }) if awaited => {
                if !normal || !turn.node.state.up.contains(from) {
                    Self::provoked(turn, from);
                }
                if turn.node.phase == Phase::Check && turn.node.call.is_complete(errata) {
                    Self::check_ended(turn);
                }
            }
            _ => return Err(Reject::NotAwaited),
        }
        Ok(())
    }

    /// A state vector is durable: the coordinator's own, or the one that a Ready waits for.
    pub fn saved(turn: &mut Turn<W>, ready: &Option<Request>) {
        match ready {
            None => Self::finish_if_complete(turn),
            Some(request) => Self::accept_ready(turn, request),
        }
    }
}
