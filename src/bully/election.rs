//! The procedure Election, seen from the node that runs it, and Check.

use super::{Bully, Phase};
use crate::call::Standing;
use crate::effects::Note;
use crate::errata::Erratum;
use crate::id::{NodeId, NodeSet};
use crate::state::Status;
use crate::station::{Request, Turn};
use crate::time::Duration;
use crate::timers::Timer;
use crate::wire::{Kind, Message, Reject};

impl<const W: usize> Bully<W> {
    /// B2: ask all higher nodes; if there are none, go on at once.
    pub(super) fn election(&mut self, turn: &mut Turn<'_, W>) {
        self.juniors = NodeSet::EMPTY;
        if self.asked(turn, Phase::Ask).is_empty() {
            self.halt_all(turn);
        } else {
            self.ask(turn, Phase::Ask);
        }
    }

    pub(super) fn ask(&mut self, turn: &mut Turn<'_, W>, phase: Phase) {
        self.phase = phase;
        self.juniors = NodeSet::EMPTY;
        turn.cancel(Timer::Quiet);
        turn.open_round(self.asked(turn, phase), Kind::AytAns, turn.node.config.timing.t);
        self.send_request(turn);
        turn.arm_early_repeat();
    }

    /// B4: no higher node is there. Halt all lower ones.
    pub(super) fn halt_all(&mut self, turn: &mut Turn<'_, W>) {
        if turn.node.config.is_observer() {
            self.only_observers(turn);
            return;
        }
        let group = turn.next_group();
        turn.halt(Some(group));
        let node = &mut turn.node;
        let silent = node.config.higher().difference(&self.juniors);
        node.seen = node.seen.difference(&silent);
        node.counters.elections += 1;
        self.strangers = NodeSet::EMPTY;
        self.senior = None;
        turn.cancel(Timer::Quiet);
        turn.note(Note::Election(group));
        let lower = turn.node.config.lower().union(&self.admitted_juniors(turn));
        if lower.is_empty() {
            self.election_point(turn);
            return;
        }
        self.phase = Phase::Halting;
        self.round_began = turn.node.now;
        turn.open_round(lower, Kind::HaltAck, turn.node.config.timing.t);
        self.send_request(turn);
        self.arm_halt_repeat(turn);
    }

    /// Nobody is there who could coordinate. Say so, and ask again from time to time.
    fn only_observers(&mut self, turn: &mut Turn<'_, W>) {
        let node = &mut turn.node;
        node.seen = node.seen.difference(node.config.higher());
        let news = turn.status() != Status::Election;
        turn.halt(None);
        if news {
            turn.note(Note::OnlyObservers);
        }
        self.wait(turn);
    }

    /// A node leaves on purpose: what would follow from its silence follows at once.
    pub(super) fn leaving(&mut self, turn: &mut Turn<'_, W>, from: NodeId) {
        turn.departed(from);
        let state = &turn.node.state;
        if state.coordinator == Some(from) {
            if turn.heirs_above().is_empty() {
                self.election(turn);
            } else {
                self.defer(turn);
            }
        } else if state.up.contains(from) && self.phase == Phase::Halting {
            turn.node.state.up.remove(from);
        } else if state.up.contains(from) && turn.node.is_coordinator() {
            if state.status == Status::Normal {
                self.election(turn);
            } else {
                self.attempt_failed(turn);
            }
        }
    }

    /// Three repeats that may still halt, as far as T leaves room for them (whoever hears none of
    /// them costs another election), then one for the acknowledgements alone.
    fn arm_halt_repeat(&mut self, turn: &mut Turn<'_, W>) {
        let timing = &turn.node.config.timing;
        let (t, window) = (timing.t, timing.halt_window());
        let elapsed = turn.node.now.since(self.round_began);
        let roomy = window >= t.fraction(1, 16);
        let moment = |repeat| match repeat {
            _ if !roomy => t.fraction(1, 2),
            1..=3 => window.fraction(repeat, 3),
            _ => t.fraction(5, 8).max(window),
        };
        match (1..=4).map(moment).find(|moment| *moment > elapsed) {
            Some(moment) => turn.node.timers.set(Timer::Repeat, self.round_began + moment),
            None => turn.cancel(Timer::Repeat),
        }
    }

    /// B7, the election point: from here on this node is the coordinator.
    fn election_point(&mut self, turn: &mut Turn<'_, W>) {
        let me = turn.me();
        let state = &mut turn.node.state;
        state.coordinator = Some(me);
        state.status = Status::Reorganization;
        state.group = state.halted_by;
        turn.arm_beat();
        self.phase = Phase::Announce;
        turn.open_round(turn.node.state.up, Kind::NcAck, turn.node.config.timing.patient());
        if turn.node.state.up.is_empty() {
            self.reorganize(turn);
        } else {
            self.send_request(turn);
        }
    }

    /// B9: everybody who was halted has accepted; the application computes d, once.
    fn reorganize(&mut self, turn: &mut Turn<'_, W>) {
        self.phase = Phase::Reorg;
        turn.close_round();
        if let Some(group) = turn.node.state.group {
            turn.reorganize(group);
        }
    }

    /// B10: distribute d; the coordinator saves its state vector while Ready is under way.
    pub fn reorganized(&mut self, turn: &mut Turn<'_, W>, definition: &[u8]) {
        if self.phase != Phase::Reorg {
            return;
        }
        if !turn.define(definition) {
            self.attempt_failed(turn);
            return;
        }
        self.phase = Phase::Distribute;
        let wait = turn.node.config.timing.distribute();
        turn.open_round(turn.node.state.up, Kind::ReadyAck, wait);
        if !turn.node.state.up.is_empty() {
            self.send_request(turn);
        }
        turn.save_group(None);
        self.finish_if_complete(turn);
    }

    /// B12: all members have accepted and this node's own state vector is durable.
    fn finish_if_complete(&mut self, turn: &mut Turn<'_, W>) {
        let complete = turn.node.call.is_complete(turn.node.config.errata);
        if self.phase != Phase::Distribute || turn.node.saving.is_some() || !complete {
            return;
        }
        self.phase = Phase::Idle;
        turn.close_round();
        turn.cancel(Timer::Quiet);
        turn.group_formed();
        if !self.strangers.is_empty() {
            // Another turn, so that the task has started before it is stopped.
            turn.set_timer(Timer::Check, Duration::ZERO);
        }
    }

    /// B13: the attempt failed. A loop through Election, not a recursion.
    fn attempt_failed(&mut self, turn: &mut Turn<'_, W>) {
        if !turn.node.config.errata.has(Erratum::E3) {
            let state = &mut turn.node.state;
            state.status = Status::Election;
            state.coordinator = None;
            state.group = None;
        }
        turn.node.saving = None;
        self.election(turn);
    }

    /// Somebody's message shows that this coordinator's group is not as it should be.
    pub(super) fn provoked(&mut self, turn: &mut Turn<'_, W>, by: NodeId) {
        if turn.held_off(by) {
            return;
        }
        self.strangers.insert(by);
        let coordinates = turn.node.is_coordinator() && turn.status() == Status::Normal;
        if !coordinates || !matches!(self.phase, Phase::Idle | Phase::Check | Phase::Inquire) {
            return;
        }
        if self.provocations.take(turn.node.now, turn.node.config.timing.check) {
            turn.note(Note::ProvokedBy(by));
            self.election(turn);
        }
    }

    /// B17, the paper's Check: every P the coordinator asks all nodes whether they are Normal.
    pub(super) fn check(&mut self, turn: &mut Turn<'_, W>) {
        turn.arm_check();
        let others = turn.node.config.others();
        if !turn.node.is_coordinator()
            || turn.status() != Status::Normal
            || self.phase != Phase::Idle
            || others.is_empty()
        {
            return;
        }
        if let Some(stranger) = self.strangers.iter().next() {
            self.strangers = NodeSet::EMPTY;
            self.provoked(turn, stranger);
            if self.phase != Phase::Idle || turn.status() != Status::Normal {
                return;
            }
        }
        self.phase = Phase::Check;
        let timing = &turn.node.config.timing;
        let wait = timing.patient().min(timing.check);
        turn.open_round(others, Kind::AynAns, wait);
        self.send_request(turn);
    }

    fn check_ended(&mut self, turn: &mut Turn<'_, W>) {
        let silent = !turn.node.call.awaited().is_empty();
        let gone = turn.members_gone();
        self.wait(turn);
        if gone.is_empty() && !(silent && turn.node.config.errata.has(Erratum::E2)) {
            return;
        }
        if turn.ask_about(&gone) {
            self.phase = Phase::Inquire;
        } else {
            turn.node.silence.heard(&gone);
            self.election(turn);
        }
    }

    pub(super) fn phase_ended(&mut self, turn: &mut Turn<'_, W>) {
        match self.phase {
            Phase::Ask => self.halt_all(turn),
            Phase::Probe => {
                turn.unanswered_probe();
                self.halt_all(turn);
            }
            Phase::Inquire => self.inquiry_ended(turn),
            Phase::Halting => self.election_point(turn),
            Phase::Announce | Phase::Reorg | Phase::Distribute => self.attempt_failed(turn),
            Phase::Check => self.check_ended(turn),
            Phase::Idle => {}
        }
    }

    pub(super) fn repeat(&mut self, turn: &mut Turn<'_, W>) {
        if turn.node.call.awaited().is_empty() {
            return;
        }
        self.send_request(turn);
        let period = turn.node.config.timing.repeat;
        match self.phase {
            Phase::Halting => self.arm_halt_repeat(turn),
            Phase::Check => turn.arm_repeat(period),
            _ => turn.arm_early_repeat(),
        }
    }

    /// The request of the current phase, to those who have not answered it.
    fn send_request(&mut self, turn: &mut Turn<'_, W>) {
        let state = &turn.node.state;
        let message = match self.phase {
            Phase::Ask | Phase::Probe => {
                Message::AreYouThere { group: state.group, status: state.status }
            }
            Phase::Halting => {
                let Some(group) = state.halted_by else { return };
                let elapsed = turn.node.now.since(self.round_began);
                let window = turn.node.config.timing.halt_window();
                Message::Halt { group, binding: elapsed <= window }
            }
            Phase::Announce | Phase::Distribute | Phase::Check => {
                let Some(group) = state.group else { return };
                match self.phase {
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
            Phase::Idle | Phase::Reorg => return,
        };
        turn.broadcast_round(message);
    }

    /// A reply to the open round.
    pub fn reply(
        &mut self,
        turn: &mut Turn<'_, W>,
        from: NodeId,
        standing: Standing,
        message: Message<'_, W>,
    ) -> Result<(), Reject> {
        let awaited = standing == Standing::Awaited;
        let errata = turn.node.config.errata;
        match (self.phase, message) {
            (Phase::Ask | Phase::Probe, Message::AytAns { yes: false }) if awaited => {
                self.juniors.insert(from);
                if turn.node.call.is_complete(errata) {
                    self.phase_ended(turn);
                }
            }
            // B3: the first answer ends the round.
            (Phase::Ask, Message::AytAns { .. }) if awaited => {
                if turn.node.config.outranks(turn.me(), from) {
                    self.senior = Some(from);
                }
                self.wait(turn);
            }
            (Phase::Probe, Message::AytAns { .. }) if awaited => {
                if turn.node.state.coordinator == Some(from) {
                    self.suspicion_was_wrong(turn, from);
                } else {
                    self.wait(turn);
                }
            }
            // B6: no early end, see B7.
            (Phase::Halting, Message::HaltAck) if awaited => {
                turn.node.state.up.insert(from);
                self.strangers.remove(from);
                if errata.has(Erratum::E7) && turn.node.call.is_complete(errata) {
                    self.election_point(turn);
                }
            }
            // A node that was halted but whose acknowledgement was lost joins here.
            (Phase::Announce, Message::NcAck { accepted: true }) => {
                turn.node.state.up.insert(from);
                self.strangers.remove(from);
                if turn.node.call.is_complete(errata) {
                    self.reorganize(turn);
                }
            }
            (Phase::Distribute, Message::ReadyAck { accepted: true }) if awaited => {
                self.finish_if_complete(turn);
            }
            (Phase::Announce, Message::NcAck { .. })
            | (Phase::Distribute, Message::ReadyAck { .. })
                if awaited =>
            {
                self.attempt_failed(turn);
            }
            (Phase::Check, Message::AynAns { normal }) if awaited => {
                if !normal || !turn.node.state.up.contains(from) {
                    self.provoked(turn, from);
                }
                if self.phase == Phase::Check && turn.node.call.is_complete(errata) {
                    self.check_ended(turn);
                }
            }
            (Phase::Inquire, Message::Heard { heard }) => {
                if turn.vouched(&heard) {
                    self.inquiry_ended(turn);
                }
            }
            _ => return Err(Reject::NotAwaited),
        }
        Ok(())
    }

    /// A state vector is durable: the coordinator's own, or the one that a Ready waits for.
    pub fn saved(&mut self, turn: &mut Turn<'_, W>, ready: Option<Request>) {
        match ready {
            None => self.finish_if_complete(turn),
            Some(request) => self.accept_ready(turn, &request),
        }
    }
}
