//! The answers to other nodes' calls, and the coordinator's Check.

use super::{Phase, Ring};
use crate::call::Standing;
use crate::id::{GroupId, NodeId, NodeSet};
use crate::state::Status;
use crate::station::{Request, Turn};
use crate::wire::{Kind, Message, Reject};

impl<const W: usize> Ring<W> {
    pub fn request(
        &mut self,
        turn: &mut Turn<'_, W>,
        request: &Request,
        message: Message<'_, W>,
    ) -> Result<(), Reject> {
        if self.phase == Phase::Waking {
            if let Message::Token(token) = message {
                self.overheard(turn, &token);
            }
            return Err(Reject::Down);
        }
        match message {
            Message::Token(token) if request.named => return self.token(turn, request, &token),
            Message::Token(_) => return Err(Reject::Field),
            Message::AreYouThere { group, .. } => self.are_you_there(turn, request, group),
            Message::AreYouNormal { group } => self.are_you_normal(turn, request, group),
            Message::Beat { group, .. } => self.beat_heard(turn, request.from, group),
            Message::HaveYouHeard { group, about } => {
                if turn.have_you_heard(request, group, &about) {
                    self.defer(turn);
                }
            }
            Message::Leaving { .. } => self.leaving(turn, request.from),
            _ => return Err(Reject::WrongAlgorithm),
        }
        Ok(())
    }

    /// R17, seen from the node that is asked or overhears it.
    fn are_you_there(&mut self, turn: &mut Turn<'_, W>, request: &Request, group: Option<GroupId>) {
        let (same, yes) = turn.probed(request.from, group);
        turn.answer_each(request, Message::AytAns { yes });
        let above = turn.node.config.outranks(request.from, turn.me());
        if same && above && !request.named {
            // A higher member of this group probes the coordinator.
            self.defer(turn);
        }
    }

    fn are_you_normal(&mut self, turn: &mut Turn<'_, W>, request: &Request, group: GroupId) {
        let normal = group.is(&turn.node.state.group) && turn.status() == Status::Normal;
        turn.answer(request, Message::AynAns { normal });
        if normal && turn.node.state.coordinator == Some(request.from) {
            self.heard(turn);
        }
    }

    /// R19 to R22
    fn beat_heard(&mut self, turn: &mut Turn<'_, W>, from: NodeId, group: GroupId) {
        let state = &turn.node.state;
        let own_coordinator = state.coordinator == Some(from);
        if state.status != Status::Normal {
            // While this run is young, its token may still be on the way to an old coordinator.
            let left_out = self.is_older_than_a_lap(turn);
            if group.is(&state.halted_by) || left_out {
                self.start(turn, NodeSet::EMPTY);
            }
        } else if own_coordinator && group.is(&state.group) {
            self.heard(turn);
        } else if own_coordinator {
            // It has gone on without this node, or this is an old Beat: ask.
            self.timeout(turn);
        } else if !turn.node.is_coordinator() {
            // A token may have missed this node: ask one's own coordinator, unless it is heard before.
            turn.hasten_quiet();
        } else if turn.node.config.outranks(turn.me(), from) {
            self.provoked(turn, from);
        }
    }

    /// R18: every P the coordinator asks its members whether they are Normal.
    pub(super) fn check(&mut self, turn: &mut Turn<'_, W>) {
        turn.arm_check();
        let up = turn.node.state.up;
        if self.phase != Phase::Idle || up.is_empty() {
            return;
        }
        self.phase = Phase::Check;
        let timing = &turn.node.config.timing;
        let wait = timing.patient().min(timing.check);
        turn.open_round(up, Kind::AynAns, wait);
        self.send_check(turn);
    }

    pub(super) fn send_check(&mut self, turn: &mut Turn<'_, W>) {
        if let Some(group) = turn.node.state.group {
            // As good as a Beat to the members; others must hear one.
            turn.broadcast_round(Message::AreYouNormal { group });
        }
    }

    pub(super) fn check_ended(&mut self, turn: &mut Turn<'_, W>) {
        let gone = turn.members_gone();
        self.wait(turn);
        if gone.is_empty() {
            return;
        }
        if turn.ask_about(&gone) {
            self.phase = Phase::Inquire;
        } else {
            self.start(turn, gone);
        }
    }

    /// A reply to the open round.
    pub fn reply(
        &mut self,
        turn: &mut Turn<'_, W>,
        from: NodeId,
        standing: Standing,
        message: Message<'_, W>,
    ) -> Result<(), Reject> {
        if standing != Standing::Awaited && self.phase != Phase::Inquire {
            return Err(Reject::NotAwaited);
        }
        match (self.phase, message) {
            (Phase::Hop, Message::HopAck) => self.wait(turn),
            (Phase::Probe, Message::AytAns { yes: true }) => self.heard(turn),
            (Phase::Probe, Message::AytAns { .. }) => self.start(turn, NodeSet::EMPTY),
            (Phase::Check, Message::AynAns { normal: false }) => self.provoked(turn, from),
            (Phase::Check, Message::AynAns { .. }) => {
                if turn.node.call.awaited().is_empty() {
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
}
