//! The answers to other nodes' calls: the paper's AreYouThere, AreYouNormal, Halt, NewCoordinator
//! and Ready.

use super::Bully;
use crate::answers::Request;
use crate::effects::Note;
use crate::errata::Erratum;
use crate::id::{GroupId, NodeId, NodeSet};
use crate::phase::Phase;
use crate::state::Status;
use crate::station::Turn;
use crate::wire::{Message, Reject};

impl<const W: usize> Bully<W> {
    #[inline(never)] // short jumps
    pub fn request(
        turn: &mut Turn<W>,
        request: &Request,
        message: &Message<'_, W>,
    ) -> Result<(), Reject> {
        match *message {
            Message::AreYouThere { group, status } => {
                Self::are_you_there(turn, request, group, status);
            }
            Message::AreYouNormal { group } => Self::are_you_normal(turn, request, group),
            Message::Halt { group, binding } if group.coordinator == request.from => {
                return Self::halt(turn, request, group, binding);
            }
            Message::NewCoordinator { group } if group.coordinator == request.from => {
                Self::new_coordinator(turn, request, group);
            }
            Message::Ready { group, up, definition } if group.coordinator == request.from => {
                Self::ready(turn, request, group, up, definition);
            }
            Message::Beat { group, normal } if group.coordinator == request.from => {
                Self::beat_heard(turn, request.from, group, normal);
            }
            Message::HaveYouHeard { group, about } => {
                if turn.have_you_heard(request, group, &about) {
                    Self::defer(turn);
                }
            }
            Message::Leaving { .. } => Self::leaving(turn, request.from),
            Message::Halt { .. }
            | Message::NewCoordinator { .. }
            | Message::Ready { .. }
            | Message::Beat { .. } => return Err(Reject::Field),
            _ => return Err(Reject::WrongAlgorithm),
        }
        Ok(())
    }

    fn are_you_there(
        turn: &mut Turn<W>,
        request: &Request,
        group: Option<GroupId>,
        status: Status,
    ) {
        let from = request.from;
        let asker_is_higher = turn.node.config.outranks(from, turn.me());
        let keeps = asker_is_higher && request.named && Self::keeps_its_role(turn, from);
        // Only a node that wakes asks a lower one, and takes any answer for a coordinator's.
        if keeps || !asker_is_higher || !turn.node.config.asks_when_it_wakes() {
            let gives_way = !asker_is_higher && Self::gives_way(turn, from, group, status);
            turn.answer_each(request, Message::AytAns { yes: !gives_way });
        }
        if asker_is_higher && !keeps {
            // A higher node is alive and on the case.
            if turn.may_take_over(from) && !turn.node.is_coordinator() {
                Self::defer(turn);
            }
            return;
        }
        // Who asks is either a member that misses its coordinator, or no member.
        let state = &turn.node.state;
        let belongs = match turn.node.phase {
            Phase::Halting => state.up.contains(request.from),
            Phase::Announce | Phase::Reorg | Phase::Distribute => {
                state.up.contains(request.from) && status != Status::Down
            }
            _ => {
                let same = status == Status::Normal && group == state.group;
                state.up.contains(request.from) && same
            }
        };
        if !belongs && (turn.node.is_coordinator() || turn.node.phase == Phase::Halting) {
            Self::provoked(turn, request.from);
        }
    }

    fn are_you_normal(turn: &mut Turn<W>, request: &Request, group: GroupId) {
        let mine = group.is(&turn.node.state.group);
        let normal = mine && turn.status() == Status::Normal;
        turn.answer_each(request, Message::AynAns { normal });
        Self::claim_heard(turn, request.from, mine);
    }

    fn beat_heard(turn: &mut Turn<W>, from: NodeId, group: GroupId, normal: bool) {
        let state = &turn.node.state;
        // A node that was halted and missed NewCoordinator also hears it from its halter.
        let mine = group.is(&state.group) || group.is(&state.halted_by);
        if mine && normal && state.status != Status::Normal {
            // The election has ended without this node: an answer of it was lost. Say so.
            Self::timeout(turn);
            return;
        }
        Self::claim_heard(turn, from, mine);
    }

    /// Somebody says that it is the coordinator of a group.
    fn claim_heard(turn: &mut Turn<W>, from: NodeId, mine: bool) {
        if mine {
            Self::heard(turn, from);
            return;
        }
        if turn.node.config.outranks(turn.me(), from) {
            // A lower node coordinates: the two of us must not both go on.
            Self::provoked(turn, from);
            return;
        }
        if turn.node.phase != Phase::Idle {
            return;
        }
        if turn.node.config.is_observer() && turn.node.state.halted_by.is_none() {
            // Here is a candidate after all.
            Self::election(turn);
        } else if !turn.node.is_coordinator() {
            // A higher node coordinates a group without this one: let it know soon, unless one's
            // own coordinator is heard before.
            Self::hurry(turn);
        }
    }

    /// B5
    fn halt(
        turn: &mut Turn<W>,
        request: &Request,
        group: GroupId,
        binding: bool,
    ) -> Result<(), Reject> {
        let from_below = turn.node.config.outranks(turn.me(), request.from);
        if from_below && Self::follows(turn, request.from) {
            // It takes in only those whom it names.
            let taken_in = request.named || group.is(&turn.node.state.halted_by);
            if turn.node.config.preempt || !taken_in {
                return Err(Reject::NotAwaited);
            }
        } else if from_below {
            turn.note(Note::HaltFromBelow(request.from));
            Self::provoked(turn, request.from);
            return Err(Reject::HaltFromBelow);
        }
        let state = &turn.node.state;
        let known = state.halted_by.filter(|halter| halter.coordinator == request.from);
        if known == Some(group) {
            // Acknowledged already, perhaps in vain. Not if the election has moved on.
            if state.status == Status::Election {
                turn.answer(request, Message::HaltAck);
                Self::heard(turn, request.from);
            }
            return Ok(());
        }
        if !binding || known.is_some_and(|halter| group.number < halter.number) {
            return Err(Reject::NotAwaited);
        }
        turn.halt(Some(group));
        turn.node.bully.senior = from_below.then_some(request.from);
        turn.answer(request, Message::HaltAck);
        Self::wait(turn);
        Ok(())
    }

    /// B8
    fn new_coordinator(turn: &mut Turn<W>, request: &Request, group: GroupId) {
        let state = &mut turn.node.state;
        let mut accepted = group.is(&state.group);
        if state.status == Status::Election && group.is(&state.halted_by) {
            state.coordinator = Some(request.from);
            state.status = Status::Reorganization;
            state.group = Some(group);
            accepted = true;
        }
        if accepted {
            // Also if it is not named: the coordinator may have missed its HaltAck.
            turn.answer(&Request { named: true, ..*request }, Message::NcAck { accepted });
            Self::heard(turn, request.from);
        } else {
            let accepted = turn.node.config.errata.has(Erratum::E5);
            turn.answer(request, Message::NcAck { accepted });
        }
    }

    /// B11: the definition is made durable, then the node is Normal and says so.
    fn ready(
        turn: &mut Turn<W>,
        request: &Request,
        group: GroupId,
        up: NodeSet<W>,
        definition: &[u8],
    ) {
        let me = turn.me();
        if !group.is(&turn.node.state.group) || !up.contains(me) {
            let accepted = turn.node.config.errata.has(Erratum::E5);
            turn.answer(request, Message::ReadyAck { accepted });
            if group.is(&turn.node.state.group) {
                // It joined too late for this definition: ask, so that the coordinator knows.
                Self::timeout(turn);
            }
            return;
        }
        match turn.status() {
            Status::Normal => turn.answer(request, Message::ReadyAck { accepted: true }),
            Status::Reorganization if turn.node.saving.is_none() => {
                if !turn.define(definition) {
                    return;
                }
                turn.node.state.up = up.with(request.from).without(me);
                if turn.save_group(Some(*request)) {
                    Self::accept_ready(turn, request);
                }
            }
            _ => {}
        }
        Self::heard(turn, request.from);
    }

    /// The state vector with the definition is durable.
    pub(super) fn accept_ready(turn: &mut Turn<W>, request: &Request) {
        if turn.accept_ready(request, Message::ReadyAck { accepted: true }) {
            Self::heard(turn, request.from);
        }
    }
}
