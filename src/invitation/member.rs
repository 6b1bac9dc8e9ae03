//! The answers to other nodes' calls: the paper's AreYouCoordinator, AreYouThere, Invitation,
//! Accept and Ready.

use super::coordinator::INVITEES_ROOM;
use super::{Forward, Invitation};
use crate::answers::Request;
use crate::errata::Erratum;
use crate::id::{GroupId, NodeId, NodeSet};
use crate::phase::Phase;
use crate::state::Status;
use crate::station::Turn;
use crate::time::Duration;
use crate::timers::Timer;
use crate::wire::{InviteeList, Invitees, Kind, Message, Reject};

impl<const W: usize> Invitation<W> {
    #[inline(never)] // short jumps
    pub fn request(
        turn: &mut Turn<W>,
        request: &Request,
        message: &Message<'_, W>,
    ) -> Result<(), Reject> {
        let from = request.from;
        if turn.node.config.errata.has(Erratum::E11) && turn.node.state.coordinator == Some(from) {
            Self::heard(turn);
        }
        match *message {
            Message::AreYouCoordinator { group, roll_call } if group.coordinator == from => {
                Self::are_you_coordinator(turn, request, group, roll_call);
            }
            Message::AreYouThere { group, status } => {
                Self::are_you_there(turn, request, group, status);
            }
            Message::Invitation { group, invitees } => {
                Self::invitation(turn, request, group, invitees);
            }
            Message::Accept { group } => {
                Self::accepted(turn, request, group);
            }
            Message::Ready { group, up, definition } if group.coordinator == from => {
                Self::ready(turn, request, group, up, definition);
            }
            Message::Beat { group, .. } if group.coordinator == from => {
                Self::beat_heard(turn, from, group);
            }
            Message::Leaving { .. } => Self::leaving(turn, from),
            Message::HaveYouHeard { group, about } => {
                if turn.have_you_heard(request, group, &about) {
                    Self::defer_probe(turn);
                }
            }
            Message::AreYouCoordinator { .. } | Message::Ready { .. } | Message::Beat { .. } => {
                return Err(Reject::Field);
            }
            _ => return Err(Reject::WrongAlgorithm),
        }
        Ok(())
    }

    /// I3
    fn are_you_coordinator(turn: &mut Turn<W>, request: &Request, group: GroupId, roll_call: bool) {
        let state = &turn.node.state;
        let coordinates = state.status == Status::Normal && turn.node.is_coordinator();
        let yes = coordinates || turn.is_lone_observer();
        let (own_group, up) = (state.group, if yes { state.up } else { NodeSet::EMPTY });
        let called = roll_call && group.is(&own_group);
        let answer = Message::AycAns { yes, group: own_group, up };
        if called {
            turn.answer_each(request, answer);
        } else if yes {
            turn.answer(request, answer);
        }
        if group.is(&own_group) {
            Self::heard(turn);
        } else if !turn.node.config.preempt {
            // It sends no Beat meanwhile, and may have to be invited by this node.
            Self::foreign_beat(turn, request.from);
        }
    }

    /// I17
    fn are_you_there(
        turn: &mut Turn<W>,
        request: &Request,
        group: Option<GroupId>,
        status: Status,
    ) {
        let (same, yes) = turn.probed(request.from, group);
        if !request.named {
            // A higher member of this group probes the coordinator.
            if same && turn.may_take_over(request.from) {
                Self::defer_probe(turn);
            }
            return;
        }
        match group {
            Some(group)
                if yes && status == Status::Reorganization && turn.status() == Status::Normal =>
            {
                if turn.in_time(request, Duration::ZERO) {
                    turn.send_ready(group, Some(request.from));
                }
            }
            _ => turn.answer_each(request, Message::AytAns { yes }),
        }
    }

    fn beat_heard(turn: &mut Turn<W>, from: NodeId, group: GroupId) {
        let state = &turn.node.state;
        match state.group {
            Some(mine) if mine == group => Self::heard(turn),
            // One's own coordinator has gone on to another group without this node.
            Some(mine)
                if state.coordinator == Some(from)
                    && mine.coordinator == from
                    && mine.number < group.number
                    && !turn.node.config.errata.has(Erratum::E11) =>
            {
                Self::recovery(turn);
            }
            _ => Self::foreign_beat(turn, from),
        }
    }

    /// I7: only a node that is Normal in the group that it is asked to leave comes along.
    fn invitation(
        turn: &mut Turn<W>,
        request: &Request,
        group: GroupId,
        invitees: Invitees<'_, W>,
    ) {
        let me = turn.me();
        let errata = turn.node.config.errata;
        let Some(own_group) = turn.node.state.group else { return };
        let mut named = NodeSet::EMPTY;
        let mut invited = false;
        for (leave, members) in invitees.iter() {
            named = named.union(&members);
            let any_group = errata.has(Erratum::E13) || errata.has(Erratum::E14);
            invited |= members.contains(me) && (leave == own_group || any_group);
        }
        if own_group == group && turn.node.phase == Phase::Accepting && named.contains(me) {
            // Accepted already, but the inviter does not know.
            turn.send_round(group.coordinator, Message::Accept { group });
            return;
        }
        let to_self = group.coordinator == me && !errata.has(Erratum::E14);
        let free = turn.status() == Status::Normal || turn.is_lone_observer();
        if !invited || to_self || !free {
            return;
        }
        if !turn.in_time(request, Duration::ZERO) {
            return;
        }
        let was_coordinator = turn.node.is_coordinator();
        let left_behind = turn.node.state.up.difference(&named).without(request.from);
        Self::stop(turn);
        let state = &mut turn.node.state;
        state.status = Status::Election;
        state.coordinator = Some(group.coordinator);
        state.group = Some(group);
        state.up = NodeSet::EMPTY;
        if was_coordinator && !left_behind.is_empty() {
            turn.node.invitation.forward = Some(Forward { leave: own_group, members: left_behind });
        }
        turn.node.phase = Phase::Accepting;
        let wait = turn.node.config.timing.patient();
        turn.open_round(Kind::AcceptAns, NodeSet::only(group.coordinator), wait);
        turn.set_timer(Timer::Limit, turn.node.config.timing.limit());
        Self::send_request(turn);
        turn.set_timer(Timer::Repeat, turn.node.config.timing.t);
    }

    /// The members whom the Invitation did not name learn of it from their old coordinator.
    #[inline(never)] // so that the list lies on the stack only when it is sent
    pub(super) fn send_forward(turn: &mut Turn<W>, group: GroupId) {
        let Some(Forward { leave, members }) = turn.node.invitation.forward else { return };
        let mut list = InviteeList::<INVITEES_ROOM>::default();
        if list.push(leave, &members) {
            let invitees = list.entries();
            turn.announce_to(members, Message::Invitation { group, invitees });
        }
    }

    /// I9: the inviter counts on this node.
    pub(super) fn accept_confirmed(turn: &mut Turn<W>) {
        turn.node.invitation.forward = None;
        turn.node.state.status = Status::Reorganization;
        Self::wait(turn);
    }

    /// I13: the definition is made durable, then the node is Normal and says so.
    fn ready(
        turn: &mut Turn<W>,
        request: &Request,
        group: GroupId,
        up: NodeSet<W>,
        definition: &[u8],
    ) {
        let me = turn.me();
        let waiting = turn.status() == Status::Reorganization
            || turn.node.phase == Phase::Accepting && !turn.node.config.errata.has(Erratum::E15);
        if !group.is(&turn.node.state.group) || turn.node.is_coordinator() {
            turn.answer(request, Message::ReadyAns { ok: false });
            return;
        }
        if turn.status() == Status::Normal {
            turn.answer(request, Message::ReadyAns { ok: true });
            Self::heard(turn);
            return;
        }
        if !up.contains(me) {
            // The merge closed before this node's Accept came in.
            Self::recovery(turn);
            return;
        }
        if !waiting {
            turn.answer(request, Message::ReadyAns { ok: false });
            return;
        }
        if turn.node.saving.is_some() || !turn.define(definition) {
            return;
        }
        if turn.node.phase == Phase::Accepting {
            // Ready overtook AcceptAns, and says as much.
            Self::accept_confirmed(turn);
        }
        turn.node.state.up = up.with(request.from).without(me);
        if turn.save_group(Some(*request)) {
            Self::accept_ready(turn, request);
        }
        Self::heard(turn);
    }

    /// The state vector with the definition is durable.
    pub(super) fn accept_ready(turn: &mut Turn<W>, request: &Request) {
        if turn.accept_ready(request, Message::ReadyAns { ok: true }) {
            turn.cancel(Timer::Limit);
            Self::heard(turn);
        }
    }
}
