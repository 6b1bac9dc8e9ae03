//! The coordinator's side: Check, Merge, and the distribution of a definition.

use super::{Invitation, Other, Phase};
use crate::call::Standing;
use crate::effects::Note;
use crate::errata::Erratum;
use crate::id::{GroupId, NodeId, NodeSet};
use crate::state::Status;
use crate::station::{Request, Turn};
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
    pub(super) fn check_due(&mut self, turn: &mut Turn<'_, W>) {
        turn.arm_check();
        if self.phase != Phase::Idle {
            return;
        }
        if self.higher_is_near(turn) && self.postponed_checks < POSTPONED_CHECKS_MAX {
            // An invitation is probably on its way.
            self.postponed_checks += 1;
            turn.set_timer(Timer::Check, turn.node.config.timing.t.times(2));
            return;
        }
        self.check(turn, true);
    }

    /// Whether a higher coordinator was heard in its last two periods of Beats.
    fn higher_is_near(&self, turn: &Turn<'_, W>) -> bool {
        let recent = self.near(turn);
        self.higher_heard.is_some_and(|at| turn.node.now.since(at) < recent)
    }

    /// Two periods of Beats and the way of one.
    fn near(&self, turn: &Turn<'_, W>) -> Duration {
        let timing = &turn.node.config.timing;
        timing.beat.times(2) + timing.tm
    }

    /// I2
    fn check(&mut self, turn: &mut Turn<'_, W>, roll_call: bool) {
        let others = turn.node.config.others();
        if turn.status() != Status::Normal || !turn.node.is_coordinator() || others.is_empty() {
            return;
        }
        self.phase = Phase::Check;
        self.roll_call = roll_call;
        self.postponed_checks = 0;
        self.round_began = turn.node.now;
        self.others = NodeSet::EMPTY;
        let asked = if roll_call { others } else { others.difference(&turn.node.state.up) };
        turn.open_round(asked, Kind::AycAns, turn.node.config.timing.t);
        self.send_request(turn);
    }

    /// A Beat of another group: the highest coordinator in reach should not wait for its next Check.
    pub(super) fn foreign_beat(&mut self, turn: &mut Turn<'_, W>, from: NodeId) {
        if turn.status() != Status::Normal || !turn.node.is_coordinator() {
            return;
        }
        if self.awaits_invitation_of(turn, from) {
            self.higher_heard = Some(turn.node.now);
            return;
        }
        let free = matches!(self.phase, Phase::Idle | Phase::Defer);
        let due = turn.node.now >= self.foreign_beats_until && !self.higher_is_near(turn);
        if due && matches!(self.phase, Phase::Idle | Phase::Defer | Phase::Check) {
            turn.note(Note::Foreign(from));
        }
        if due && free {
            self.check(turn, false);
        }
    }

    /// Whether this coordinator, of two that have found each other, is the one to be invited. Without
    /// preemption the larger group keeps its coordinator, and of two alone the one that has not just
    /// woken.
    fn gives_way_to(&self, turn: &Turn<'_, W>, other: NodeId) -> bool {
        let outranked = !self.rank_above(turn, other);
        if turn.node.config.preempt || turn.node.config.observers.contains(other) {
            return outranked;
        }
        let Other { number, up } = self.other[other];
        let theirs = GroupId { coordinator: other, number };
        let (mine, theirs) = (self.standing(turn), (up.len(), !theirs.is_first()));
        theirs > mine || theirs == mine && outranked
    }

    /// How many members the group has, and whether its coordinator was in another one before.
    fn standing(&self, turn: &Turn<'_, W>) -> (usize, bool) {
        let state = &turn.node.state;
        (state.up.len(), state.group.is_some_and(|group| !group.is_first()))
    }

    /// The same of a coordinator of which only a Beat was heard.
    fn awaits_invitation_of(&self, turn: &Turn<'_, W>, other: NodeId) -> bool {
        if turn.node.config.preempt || self.others.contains(other) && self.phase == Phase::Defer {
            return self.gives_way_to(turn, other);
        }
        // Who has the better standing only a Check can tell, unless this one has none.
        self.standing(turn) == (0, false) && !self.rank_above(turn, other)
    }

    /// I5: all answers are in that will come.
    fn check_ended(&mut self, turn: &mut Turn<'_, W>) {
        let called = self.roll_call && self.others.is_empty();
        let gone = if called { turn.members_gone() } else { NodeSet::EMPTY };
        self.phase = Phase::Idle;
        turn.close_round();
        if self.others.is_empty() {
            self.defer_until = None;
            if !self.roll_call {
                // Heard but not hearing, or bad luck: do not ask again with every Beat.
                let timing = &turn.node.config.timing;
                let pause = timing.t.times(2 << self.empty_checks.min(8)).min(timing.check);
                self.foreign_beats_until = turn.node.now + pause;
                self.empty_checks += 1;
                return;
            }
            if gone.is_empty() {
                return;
            }
            if turn.ask_about(&gone) {
                self.phase = Phase::Inquire;
            } else {
                // I21: re-form without the members that are gone.
                self.reform(turn, turn.node.state.up.difference(&gone));
            }
            return;
        }
        self.empty_checks = 0;
        let higher = self.others.iter().filter(|other| self.gives_way_to(turn, *other)).count();
        let higher = higher as u32;
        if turn.node.config.errata.has(Erratum::E21) {
            self.defer(turn, turn.node.config.timing.check.times(2));
        } else if higher == 0 {
            self.merge(turn, turn.node.state.up);
        } else {
            self.defer(turn, turn.node.config.timing.check.times(2).times(higher));
        }
    }

    /// A higher coordinator should invite; wait for it, but only as long as it is heard.
    fn defer(&mut self, turn: &mut Turn<'_, W>, span: Duration) {
        self.phase = Phase::Defer;
        self.higher_heard = Some(turn.node.now);
        let until = *self.defer_until.get_or_insert(turn.node.now + span);
        turn.set_timer(Timer::Phase, self.near(turn).min(until.since(turn.node.now)));
    }

    fn defer_ended(&mut self, turn: &mut Turn<'_, W>) {
        let left = self.defer_until.map_or(Duration::ZERO, |until| until.since(turn.node.now));
        if left == Duration::ZERO {
            self.merge(turn, turn.node.state.up);
        } else if self.higher_is_near(turn) {
            turn.set_timer(Timer::Phase, self.near(turn).min(left));
        } else {
            // It is gone. Ask again, without it.
            self.phase = Phase::Idle;
            self.check(turn, true);
        }
    }

    /// A roll call goes on while members are silent, because their answers may be lost.
    fn check_lasted_t(&mut self, turn: &mut Turn<'_, W>) {
        let timing = &turn.node.config.timing;
        let members_silent = !turn.node.state.up.intersection(turn.node.call.awaited()).is_empty();
        let waited = turn.node.now.since(self.round_began);
        let patient = waited < timing.patient();
        if self.roll_call && self.others.is_empty() && members_silent && patient {
            turn.set_timer(Timer::Phase, timing.t);
        } else {
            self.check_ended(turn);
        }
    }

    /// I6: found a new group and invite `remaining`, the members of the group that this node is in
    /// now, and all of `others` with the members that they named.
    pub(super) fn merge(&mut self, turn: &mut Turn<'_, W>, remaining: NodeSet<W>) {
        let me = turn.me();
        let Some(old_group) = turn.node.state.group else { return };
        let others = self.others;
        self.stop(turn);
        let group = turn.next_group();
        turn.node.counters.elections += 1;
        turn.note(Note::Election(group));
        let mut invited = remaining.union(&others);
        for other in others.iter() {
            invited = invited.union(&self.other[other].up);
        }
        let invited = invited.without(me).intersection(turn.node.config.members());
        // One entry per id: what a node said of itself wins.
        self.old = Some((old_group, remaining.difference(&others)));
        let state = &mut turn.node.state;
        state.group = Some(group);
        state.coordinator = Some(me);
        state.up = NodeSet::EMPTY;
        state.status = Status::Election;
        self.phase = Phase::Merge;
        self.round_began = turn.node.now;
        // Accepts are requests of their own; no reply belongs to this round.
        turn.open_round(invited, Kind::Accept, turn.node.config.timing.accept);
        if invited.is_empty() {
            self.merge_ended(turn);
        } else {
            self.send_invitations(turn);
        }
    }

    /// A new group of those of the old one who are left.
    pub(super) fn reform(&mut self, turn: &mut Turn<'_, W>, remaining: NodeSet<W>) {
        self.others = NodeSet::EMPTY;
        self.merge(turn, remaining);
    }

    /// One entry for each group to leave that has somebody who has not accepted yet. What does not
    /// fit into two datagrams waits for the repeat, when the first ones have accepted.
    fn send_invitations(&mut self, turn: &mut Turn<'_, W>) {
        let Some(group) = turn.node.state.group else { return };
        let awaited = *turn.node.call.awaited();
        let mut others = self.others.iter();
        let mut next = || {
            others.find_map(|other| {
                let Other { number, up } = self.other[other];
                let invited = up.with(other).intersection(&awaited);
                let leave = GroupId { coordinator: other, number };
                (!invited.is_empty()).then_some((leave, invited))
            })
        };
        let own = self.old.map(|(leave, members)| (leave, members.intersection(&awaited)));
        let mut entry = own.filter(|(_, invited)| !invited.is_empty()).or_else(&mut next);
        for _ in 0..INVITATION_DATAGRAMS_MAX {
            let mut list = InviteeList::<INVITEES_ROOM>::default();
            while let Some((leave, invited)) = &entry
                && list.push(*leave, invited)
            {
                entry = next();
            }
            turn.broadcast_round(Message::Invitation { group, invitees: list.entries() });
            if entry.is_none() {
                return;
            }
        }
    }

    /// I8: an Accept for the group of this node. The first one is answered by Ready, which is
    /// usually next; only a repeated or refused one gets an AcceptAns.
    pub(super) fn accepted(&mut self, turn: &mut Turn<'_, W>, request: &Request, group: GroupId) {
        let from = request.from;
        let mine = group.is(&turn.node.state.group) && turn.node.is_coordinator();
        let merging = self.phase == Phase::Merge && turn.status() == Status::Election;
        if mine && merging && !turn.node.state.up.contains(from) {
            turn.node.state.up.insert(from);
            turn.node.call.note(from);
            if turn.node.call.awaited().is_empty() {
                // Everybody who was invited is in: no need to wait out Tacc.
                self.merge_ended(turn);
            }
            return;
        }
        let ok = mine && turn.node.state.up.contains(from);
        turn.answer(request, Message::AcceptAns { ok });
    }

    /// I11: the members are fixed; the application computes d, once.
    fn merge_ended(&mut self, turn: &mut Turn<'_, W>) {
        let Some(group) = turn.node.state.group else { return };
        turn.close_round();
        self.others = NodeSet::EMPTY;
        self.old = None;
        if turn.node.state.up.is_empty() {
            self.alone(turn);
            return;
        }
        turn.node.state.status = Status::Reorganization;
        self.reorganize(turn, group);
    }

    fn reorganize(&mut self, turn: &mut Turn<'_, W>, group: GroupId) {
        self.phase = Phase::Reorg;
        turn.reorganize(group);
    }

    /// I12
    pub fn reorganized(&mut self, turn: &mut Turn<'_, W>, definition: &[u8]) {
        if self.phase != Phase::Reorg {
            return;
        }
        if !turn.define(definition) {
            self.recovery(turn);
            return;
        }
        self.phase = Phase::Distribute;
        let wait = turn.node.config.timing.distribute();
        turn.open_round(turn.node.state.up, Kind::ReadyAns, wait);
        self.send_request(turn);
        turn.save_group(None);
    }

    /// I14
    fn finish_if_complete(&mut self, turn: &mut Turn<'_, W>) {
        let complete = turn.node.call.is_complete(turn.node.config.errata);
        if self.phase != Phase::Distribute || turn.node.saving.is_some() || !complete {
            return;
        }
        self.phase = Phase::Idle;
        turn.close_round();
        turn.group_formed();
        turn.beat();
    }

    /// I15: again, with those who did answer, under a new number.
    pub(super) fn distribution_failed(&mut self, turn: &mut Turn<'_, W>) {
        let answered = turn.node.state.up.intersection(turn.node.call.answered());
        if turn.node.config.errata.has(Erratum::E19) {
            turn.node.state.up = answered;
            turn.close_round();
            if let Some(group) = turn.node.state.group {
                self.reorganize(turn, group);
            }
            return;
        }
        self.reform(turn, answered);
    }

    pub(super) fn phase_ended(&mut self, turn: &mut Turn<'_, W>) {
        match self.phase {
            Phase::Check => self.check_lasted_t(turn),
            // I6, end of Defer
            Phase::Defer => self.defer_ended(turn),
            Phase::Merge => {
                let timing = turn.node.config.timing;
                let waited = turn.node.now.since(self.round_began);
                if turn.node.call.awaited().is_empty() || waited >= timing.merge() {
                    self.merge_ended(turn);
                } else {
                    // A lost datagram must not cost a member: as long again, with repeats.
                    turn.set_timer(Timer::Phase, timing.accept);
                }
            }
            Phase::Distribute => self.distribution_failed(turn),
            // I10: the inviter is gone. The application overran Tr.
            Phase::Accepting | Phase::Reorg => self.recovery(turn),
            Phase::Probe => {
                turn.unanswered_probe();
                self.coordinator_is_dead(turn);
            }
            Phase::Inquire => self.inquiry_ended(turn),
            Phase::Idle => {}
        }
    }

    /// I19. The highest of the members that are left invites the others; they are all Normal in the
    /// old group, and everybody knows who they are.
    pub(super) fn coordinator_is_dead(&mut self, turn: &mut Turn<'_, W>) {
        let state = &turn.node.state;
        let normal = state.status == Status::Normal;
        match state.coordinator {
            Some(dead) if normal && !turn.node.config.is_observer() => {
                turn.node.seen.remove(dead);
                self.reform(turn, turn.node.state.up.without(dead));
            }
            _ => self.recovery(turn),
        }
    }

    pub(super) fn repeat(&mut self, turn: &mut Turn<'_, W>) {
        if turn.node.call.awaited().is_empty() {
            return;
        }
        self.send_request(turn);
        let period = turn.node.config.timing.repeat;
        match self.phase {
            Phase::Probe => turn.arm_early_repeat(),
            // These may last longer than their first deadline says.
            Phase::Check | Phase::Merge => turn.set_timer(Timer::Repeat, period),
            _ => turn.arm_repeat(period),
        }
    }

    /// The request of the current phase, to those who have not answered it.
    pub(super) fn send_request(&mut self, turn: &mut Turn<'_, W>) {
        let Some(group) = turn.node.state.group else { return };
        match self.phase {
            Phase::Check => {
                // As good as a Beat to the members.
                turn.arm_beat();
                let roll_call = self.roll_call;
                turn.broadcast_round(Message::AreYouCoordinator { group, roll_call });
            }
            Phase::Merge => self.send_invitations(turn),
            Phase::Distribute => turn.send_ready(group, None),
            Phase::Accepting => {
                turn.send_round(group.coordinator, Message::Accept { group });
                self.send_forward(turn, group);
            }
            Phase::Probe => turn.send_probe(),
            Phase::Inquire => turn.send_inquiry(),
            Phase::Idle | Phase::Defer | Phase::Reorg => {}
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
            // I4
            (Phase::Check, Message::AycAns { yes, group, up }) => {
                if let (true, Some(group)) = (yes, group.filter(|g| g.coordinator == from)) {
                    self.others.insert(from);
                    self.other[from] = Other { number: group.number, up };
                }
                if turn.node.call.awaited().is_empty() {
                    self.check_ended(turn);
                }
            }
            (Phase::Distribute, Message::ReadyAns { ok: true }) => self.finish_if_complete(turn),
            (Phase::Distribute, Message::ReadyAns { ok: false }) => {
                turn.node.state.up.remove(from);
                self.distribution_failed(turn);
            }
            // I9
            (Phase::Accepting, Message::AcceptAns { ok }) => {
                if ok {
                    self.accept_confirmed(turn);
                } else {
                    self.recovery(turn);
                }
            }
            // I18
            (Phase::Probe, Message::AytAns { yes }) => {
                if yes {
                    self.suspicion_was_wrong(turn);
                } else {
                    self.recovery(turn);
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
