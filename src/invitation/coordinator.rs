//! The coordinator's side: Check, Merge, and the distribution of a definition.

use super::{Invitation, Other};
use crate::answers::Request;
use crate::call::Standing;
use crate::effects::Note;
use crate::errata::Erratum;
use crate::id::{GroupId, NodeId, NodeSet};
use crate::phase::Phase;
use crate::state::Status;
use crate::station::Turn;
use crate::time::Duration;
use crate::timers::Timer;
use crate::wire::{InviteeList, Kind, Message, Reject};

/// Bytes of the entries of one Invitation.
pub(super) const INVITEES_ROOM: usize = 1380;

/// As many datagrams as the effects of one step have room for.
const INVITATION_DATAGRAMS_MAX: usize = 2;

/// How often in a row a Check gives way to a higher coordinator that was heard.
const POSTPONED_CHECKS_MAX: u8 = 3;

impl<const W: usize> Invitation<W> {
    /// I2, every P: ask everybody, which is also the roll call of one's own members (I21).
    pub(super) fn check_due(turn: &mut Turn<W>) {
        turn.arm_check();
        if turn.node.phase != Phase::Idle {
            return;
        }
        if Self::higher_is_near(turn)
            && turn.node.invitation.postponed_checks < POSTPONED_CHECKS_MAX
        {
            // An invitation is probably on its way.
            turn.node.invitation.postponed_checks += 1;
            turn.set_timer(Timer::Check, turn.node.config.timing.t.times(2));
            return;
        }
        Self::check(turn, true);
    }

    /// Whether a higher coordinator was heard in its last two periods of Beats.
    fn higher_is_near(turn: &Turn<W>) -> bool {
        let recent = Self::near(turn);
        turn.node.invitation.higher_heard.is_some_and(|at| turn.node.now.since(at) < recent)
    }

    /// Two periods of Beats and the way of one.
    fn near(turn: &Turn<W>) -> Duration {
        let timing = &turn.node.config.timing;
        timing.beat.times(2) + timing.tm
    }

    /// I2
    fn check(turn: &mut Turn<W>, roll_call: bool) {
        let others = turn.node.config.others();
        if turn.status() != Status::Normal || !turn.node.is_coordinator() || others.is_empty() {
            return;
        }
        turn.node.invitation.roll_call = roll_call;
        turn.node.invitation.check_by_beat = false;
        turn.node.invitation.postponed_checks = 0;
        turn.node.invitation.others = NodeSet::EMPTY;
        let asked = if roll_call { others } else { others.difference(&turn.node.state.up) };
        turn.call_the_roll(Kind::AycAns, asked);
        Self::send_request(turn);
    }

    /// A Beat of another group: the highest coordinator in reach should not wait for its next Check.
    pub(super) fn foreign_beat(turn: &mut Turn<W>, from: NodeId) {
        if turn.status() != Status::Normal || !turn.node.is_coordinator() {
            return;
        }
        if Self::awaits_invitation_of(turn, from) {
            turn.node.invitation.higher_heard = Some(turn.node.now);
            return;
        }
        let free = matches!(turn.node.phase, Phase::Idle | Phase::Defer);
        let due = turn.node.now >= turn.node.invitation.foreign_beats_until
            && !Self::higher_is_near(turn);
        if due && matches!(turn.node.phase, Phase::Idle | Phase::Defer | Phase::Check) {
            turn.note(Note::Foreign(from));
        }
        if due && free {
            // A member that is heard from another group has left this one, perhaps with others.
            Self::check(turn, turn.node.state.up.contains(from));
            turn.node.invitation.check_by_beat = true;
        }
    }

    /// Whether this coordinator, of two that have found each other, is the one to be invited. Without
    /// preemption the larger group keeps its coordinator, and of two alone the one that has not just
    /// woken.
    fn gives_way_to(turn: &Turn<W>, other: NodeId) -> bool {
        let outranked = !Self::rank_above(turn, other);
        if turn.node.config.preempt || turn.node.config.observers.contains(other) {
            return outranked;
        }
        let Other { number, up } = turn.node.invitation.other[other];
        let theirs = GroupId { coordinator: other, number };
        let (mine, theirs) = (Self::standing(turn), (up.len(), !theirs.is_first()));
        theirs > mine || theirs == mine && outranked
    }

    /// How many members the group has, and whether its coordinator was in another one before.
    fn standing(turn: &Turn<W>) -> (usize, bool) {
        let state = &turn.node.state;
        (state.up.len(), state.group.is_some_and(|group| !group.is_first()))
    }

    /// The same of a coordinator of which only a Beat was heard.
    fn awaits_invitation_of(turn: &Turn<W>, other: NodeId) -> bool {
        if turn.node.config.preempt
            || turn.node.invitation.others.contains(other) && turn.node.phase == Phase::Defer
        {
            return Self::gives_way_to(turn, other);
        }
        // Who has the better standing only a Check can tell, unless this one has none.
        Self::standing(turn) == (0, false) && !Self::rank_above(turn, other)
    }

    /// I5: all answers are in that will come.
    fn check_ended(turn: &mut Turn<W>) {
        let called = turn.node.invitation.roll_call && turn.node.invitation.others.is_empty();
        let silent = if called { turn.missed_members() } else { NodeSet::EMPTY };
        turn.close_round();
        if turn.node.invitation.others.is_empty() {
            turn.node.invitation.defer_until = None;
            if turn.node.invitation.check_by_beat {
                // Heard but not hearing, or bad luck: do not ask again with every Beat.
                let timing = &turn.node.config.timing;
                let pause =
                    timing.t.times(2 << turn.node.invitation.empty_checks.min(8)).min(timing.check);
                turn.node.invitation.foreign_beats_until = turn.node.now + pause;
                turn.node.invitation.empty_checks += 1;
            }
            if !silent.is_empty() && !turn.ask_about_members(&silent) {
                // I21: re-form without the members that are gone.
                Self::reform(turn, turn.node.state.up.difference(&silent));
            }
            return;
        }
        turn.node.invitation.empty_checks = 0;
        let higher = turn
            .node
            .invitation
            .others
            .iter()
            .filter(|other| Self::gives_way_to(turn, *other))
            .count();
        let higher = higher as u32;
        if turn.node.config.errata.has(Erratum::E21) {
            Self::defer(turn, turn.node.config.timing.check.times(2));
        } else if higher == 0 {
            Self::merge(turn, turn.node.state.up);
        } else {
            Self::defer(turn, turn.node.config.timing.check.times(2).times(higher));
        }
    }

    /// A higher coordinator should invite; wait for it, but only as long as it is heard.
    fn defer(turn: &mut Turn<W>, span: Duration) {
        turn.node.phase = Phase::Defer;
        turn.node.invitation.higher_heard = Some(turn.node.now);
        let until = *turn.node.invitation.defer_until.get_or_insert(turn.node.now + span);
        turn.set_timer(Timer::Phase, Self::near(turn).min(until.since(turn.node.now)));
    }

    fn defer_ended(turn: &mut Turn<W>) {
        let left = turn
            .node
            .invitation
            .defer_until
            .map_or(Duration::ZERO, |until| until.since(turn.node.now));
        if left == Duration::ZERO {
            Self::merge(turn, turn.node.state.up);
        } else if Self::higher_is_near(turn) {
            turn.set_timer(Timer::Phase, Self::near(turn).min(left));
        } else {
            // It is gone. Ask again, without it.
            turn.node.phase = Phase::Idle;
            Self::check(turn, true);
        }
    }

    /// I6: found a new group and invite `remaining`, the members of the group that this node is in
    /// now, and all of `others` with the members that they named.
    pub(super) fn merge(turn: &mut Turn<W>, remaining: NodeSet<W>) {
        let me = turn.me();
        let Some(old_group) = turn.node.state.group else { return };
        let others = turn.node.invitation.others;
        Self::stop(turn);
        let group = turn.begin_election();
        let mut invited = remaining.union(&others);
        for other in others.iter() {
            invited = invited.union(&turn.node.invitation.other[other].up);
        }
        let invited = invited.without(me).intersection(turn.node.config.members());
        // One entry per id: what a node said of itself wins.
        turn.node.invitation.old = Some((old_group, remaining.difference(&others)));
        let state = &mut turn.node.state;
        state.group = Some(group);
        state.coordinator = Some(me);
        state.up = NodeSet::EMPTY;
        state.status = Status::Election;
        turn.node.phase = Phase::Merge;
        turn.node.invitation.round_began = turn.node.now;
        // Accepts are requests of their own; no reply belongs to this round.
        turn.open_round(Kind::Accept, invited, turn.node.config.timing.accept);
        if invited.is_empty() {
            Self::merge_ended(turn);
        } else {
            Self::send_invitations(turn);
        }
    }

    /// A new group of those of the old one who are left.
    #[inline(never)]
    pub(super) fn reform(turn: &mut Turn<W>, remaining: NodeSet<W>) {
        turn.node.invitation.others = NodeSet::EMPTY;
        Self::merge(turn, remaining);
    }

    /// One entry for each group to leave that has somebody who has not accepted yet. What does not
    /// fit into two datagrams waits for the repeat, when the first ones have accepted.
    fn send_invitations(turn: &mut Turn<W>) {
        let Some(group) = turn.node.state.group else { return };
        let awaited = *turn.node.call.awaited();
        let mut others = turn.node.invitation.others.iter();
        let mut next = |turn: &Turn<W>| {
            others.find_map(|other| {
                let Other { number, up } = turn.node.invitation.other[other];
                let invited = up.with(other).intersection(&awaited);
                let leave = GroupId { coordinator: other, number };
                (!invited.is_empty()).then_some((leave, invited))
            })
        };
        let old = turn.node.invitation.old;
        let own = old.map(|(leave, members)| (leave, members.intersection(&awaited)));
        let own = own.filter(|(_, invited)| !invited.is_empty());
        let mut entry = own.or_else(|| next(turn));
        for _ in 0..INVITATION_DATAGRAMS_MAX {
            let mut list = InviteeList::<INVITEES_ROOM>::default();
            while let Some((leave, invited)) = &entry
                && list.push(*leave, invited)
            {
                entry = next(turn);
            }
            turn.broadcast_round(Message::Invitation { group, invitees: list.entries() });
            if entry.is_none() {
                return;
            }
        }
    }

    /// I8: an Accept for the group of this node. The first one is answered by Ready, which is
    /// usually next; only a repeated or refused one gets an AcceptAns.
    pub(super) fn accepted(turn: &mut Turn<W>, request: &Request, group: GroupId) {
        let from = request.from;
        let mine = group.is(&turn.node.state.group) && turn.node.is_coordinator();
        let merging = turn.node.phase == Phase::Merge && turn.status() == Status::Election;
        if mine && merging && !turn.node.state.up.contains(from) {
            turn.node.state.up.insert(from);
            turn.node.call.note(from);
            if turn.node.call.awaited().is_empty() {
                // Everybody who was invited is in: no need to wait out Tacc.
                Self::merge_ended(turn);
            }
            return;
        }
        let ok = mine && turn.node.state.up.contains(from);
        turn.answer(request, Message::AcceptAns { ok });
    }

    /// I11: the members are fixed; the application computes d, once.
    fn merge_ended(turn: &mut Turn<W>) {
        let Some(group) = turn.node.state.group else { return };
        turn.close_round();
        turn.node.invitation.others = NodeSet::EMPTY;
        turn.node.invitation.old = None;
        if turn.node.state.up.is_empty() {
            Self::alone(turn);
            return;
        }
        turn.node.state.status = Status::Reorganization;
        turn.reorganize(group);
    }

    /// I12
    pub fn reorganized(turn: &mut Turn<W>) {
        turn.node.phase = Phase::Distribute;
        let wait = turn.node.config.timing.distribute();
        turn.open_round(Kind::ReadyAns, turn.node.state.up, wait);
        Self::send_request(turn);
        turn.save_group(None);
    }

    /// I14
    fn finish_if_complete(turn: &mut Turn<W>) {
        if turn.finished() {
            turn.beat();
        }
    }

    /// I15: again, with those who did answer, under a new number.
    pub(super) fn distribution_failed(turn: &mut Turn<W>) {
        let answered = turn.node.state.up.intersection(turn.node.call.answered());
        if turn.node.config.errata.has(Erratum::E19) {
            turn.node.state.up = answered;
            if let Some(group) = turn.node.state.group {
                turn.reorganize(group);
            }
            return;
        }
        Self::reform(turn, answered);
    }

    pub(super) fn phase_ended(turn: &mut Turn<W>) {
        match turn.node.phase {
            Phase::Check => Self::check_ended(turn),
            // I6, end of Defer
            Phase::Defer => Self::defer_ended(turn),
            Phase::Merge => {
                let timing = turn.node.config.timing;
                let waited = turn.node.now.since(turn.node.invitation.round_began);
                if turn.node.call.awaited().is_empty() || waited >= timing.merge() {
                    Self::merge_ended(turn);
                } else {
                    // A lost datagram must not cost a member: as long again, with repeats.
                    turn.set_timer(Timer::Phase, timing.accept);
                }
            }
            Phase::Distribute => Self::distribution_failed(turn),
            // I10: the inviter is gone. The application overran Tr.
            Phase::Accepting | Phase::Reorg => Self::recovery(turn),
            Phase::Probe => {
                turn.unanswered_probe();
                Self::coordinator_is_dead(turn);
            }
            Phase::Inquire => Self::inquiry_ended(turn),
            _ => {}
        }
    }

    /// I19. The highest of the members that are left invites the others; they are all Normal in the
    /// old group, and everybody knows who they are.
    pub(super) fn coordinator_is_dead(turn: &mut Turn<W>) {
        let state = &turn.node.state;
        let normal = state.status == Status::Normal;
        match state.coordinator {
            Some(dead) if normal && !turn.node.config.is_observer() => {
                turn.node.seen.remove(dead);
                Self::reform(turn, turn.node.state.up.without(dead));
            }
            _ => Self::recovery(turn),
        }
    }

    pub(super) fn repeat(turn: &mut Turn<W>) {
        if turn.node.call.awaited().is_empty() {
            return;
        }
        Self::send_request(turn);
        let period = turn.node.config.timing.repeat;
        match turn.node.phase {
            Phase::Probe => turn.arm_early_repeat(),
            // Another coordinator is not kept waiting for silent members.
            Phase::Check => turn.arm_check_repeat(turn.node.invitation.others.is_empty()),
            // This may last longer than its first deadline says.
            Phase::Merge => turn.set_timer(Timer::Repeat, period),
            _ => turn.arm_repeat(period),
        }
    }

    /// The request of the current phase, to those who have not answered it.
    pub(super) fn send_request(turn: &mut Turn<W>) {
        let Some(group) = turn.node.state.group else { return };
        match turn.node.phase {
            Phase::Check => {
                // As good as a Beat to the members.
                turn.arm_beat();
                let roll_call = turn.node.invitation.roll_call;
                turn.broadcast_round(Message::AreYouCoordinator { group, roll_call });
            }
            Phase::Merge => Self::send_invitations(turn),
            Phase::Distribute => turn.send_ready(group, None),
            Phase::Accepting => {
                turn.send_round(group.coordinator, Message::Accept { group });
                Self::send_forward(turn, group);
            }
            Phase::Probe => turn.send_probe(),
            Phase::Inquire => turn.send_inquiry(),
            _ => {}
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
            // I4
            (Phase::Check, Message::AycAns { yes, group, up }) => {
                if let (true, Some(group)) = (yes, group.filter(|g| g.coordinator == from)) {
                    turn.node.invitation.others.insert(from);
                    turn.node.invitation.other[from] = Other { number: group.number, up };
                }
                if turn.node.call.awaited().is_empty() {
                    Self::check_ended(turn);
                }
            }
            (Phase::Distribute, Message::ReadyAns { ok: true }) => Self::finish_if_complete(turn),
            (Phase::Distribute, Message::ReadyAns { ok: false }) => {
                turn.node.state.up.remove(from);
                Self::distribution_failed(turn);
            }
            // I9
            (Phase::Accepting, Message::AcceptAns { ok }) => {
                if ok {
                    Self::accept_confirmed(turn);
                } else {
                    Self::recovery(turn);
                }
            }
            // I18
            (Phase::Probe, Message::AytAns { yes }) => {
                if yes {
                    Self::suspicion_was_wrong(turn);
                } else {
                    Self::recovery(turn);
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
