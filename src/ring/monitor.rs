//! The answers to other nodes' calls, and the coordinator's Check.

use super::Ring;
use crate::answers::Request;
use crate::call::Standing;
use crate::id::{GroupId, NodeId, NodeSet};
use crate::phase::Phase;
use crate::state::Status;
use crate::station::Turn;
use crate::wire::{Kind, Message, Reject};

impl<const W: usize> Ring<W> {
    #[inline(never)] // short jumps
    pub fn request(
        turn: &mut Turn<W>,
        request: &Request,
        message: &Message<'_, W>,
    ) -> Result<(), Reject> {
        if turn.node.phase == Phase::Waking {
            if let Message::Token(token) = message {
                Self::overheard(turn, token);
            }
            return Err(Reject::Down);
        }
        match *message {
            Message::Token(token) if request.named => return Self::token(turn, request, &token),
            Message::Token(_) => return Err(Reject::Field),
            Message::AreYouThere { group, .. } => Self::are_you_there(turn, request, group),
            Message::AreYouNormal { group } => Self::are_you_normal(turn, request, group),
            Message::Beat { group, .. } => Self::beat_heard(turn, request.from, group),
            Message::HaveYouHeard { group, about } => {
                if turn.have_you_heard(request, group, &about) {
                    Self::defer(turn);
                }
            }
            Message::Leaving { .. } => Self::leaving(turn, request.from),
            _ => return Err(Reject::WrongAlgorithm),
        }
        Ok(())
    }

    /// R17, seen from the node that is asked or overhears it.
    fn are_you_there(turn: &mut Turn<W>, request: &Request, group: Option<GroupId>) {
        let (same, yes) = turn.probed(request.from, group);
        turn.answer_each(request, Message::AytAns { yes });
        let above = turn.node.config.outranks(request.from, turn.me());
        if same && above && !request.named {
            // A higher member of this group probes the coordinator.
            Self::defer(turn);
        }
    }

    fn are_you_normal(turn: &mut Turn<W>, request: &Request, group: GroupId) {
        let normal = group.is(&turn.node.state.group) && turn.status() == Status::Normal;
        turn.answer_each(request, Message::AynAns { normal });
        if normal && turn.node.state.coordinator == Some(request.from) {
            Self::heard(turn);
        }
    }

    /// R19 to R22, R27
    fn beat_heard(turn: &mut Turn<W>, from: NodeId, group: GroupId) {
        let state = &turn.node.state;
        let own_coordinator = state.coordinator == Some(from);
        if state.status != Status::Normal {
            // While this run is young, its token may still be on the way to an old coordinator.
            let left_out = Self::is_older_than_a_lap(turn);
            if group.is(&state.halted_by) || left_out {
                Self::start(turn, NodeSet::EMPTY);
            } else if Self::is_in_vain(turn) {
                Self::provoked(turn, from);
            }
        } else if own_coordinator && group.is(&state.group) {
            Self::heard(turn);
        } else if own_coordinator {
            // It has gone on without this node, or this is an old Beat: ask.
            Self::timeout(turn);
        } else if !turn.node.is_coordinator() {
            // A token may have missed this node: ask one's own coordinator, unless it is heard before.
            turn.hasten_quiet();
        } else if turn.node.config.outranks(turn.me(), from) {
            Self::provoked(turn, from);
        }
    }

    /// R18: every P the coordinator asks its members whether they are Normal.
    pub(super) fn check(turn: &mut Turn<W>) {
        turn.arm_check();
        let up = turn.node.state.up;
        if turn.node.phase != Phase::Idle || up.is_empty() {
            return;
        }
        turn.call_the_roll(Kind::AynAns, up);
        Self::send_check(turn);
    }

    pub(super) fn send_check(turn: &mut Turn<W>) {
        if let Some(group) = turn.node.state.group {
            // As good as a Beat to the members; others must hear one.
            turn.broadcast_round(Message::AreYouNormal { group });
        }
    }

    pub(super) fn check_ended(turn: &mut Turn<W>) {
        let silent = turn.missed_members();
        Self::wait(turn);
        if !silent.is_empty() && !turn.ask_about_members(&silent) {
            Self::start(turn, silent);
        }
    }

    /// A reply to the open round.
    #[inline(never)] // short jumps
    pub fn reply(
        turn: &mut Turn<W>,
        from: NodeId,
        standing: Standing,
        message: &Message<'_, W>,
    ) -> Result<(), Reject> {
        if standing != Standing::Awaited {
            return Err(Reject::NotAwaited);
        }
        match (turn.node.phase, *message) {
            (Phase::Hop, Message::HopAck) => Self::wait(turn),
            (Phase::Probe, Message::AytAns { yes: true }) => Self::heard(turn),
            (Phase::Probe, Message::AytAns { .. }) => Self::start(turn, NodeSet::EMPTY),
            (Phase::Check, Message::AynAns { normal: false }) => Self::provoked(turn, from),
            (Phase::Check, Message::AynAns { .. }) => {
                if turn.node.call.awaited().is_empty() {
                    Self::check_ended(turn);
                }
            }
            _ => return Err(Reject::NotAwaited),
        }
        Ok(())
    }
}
