//! The way of the token: how a run starts, is passed on, and ends.

use core::cmp::Ordering;

use super::Ring;
use crate::answers::Request;
use crate::effects::{FailCause, Note};
use crate::errata::Erratum;
use crate::id::{GroupId, NodeId, NodeSet};
use crate::phase::Phase;
use crate::state::Status;
use crate::station::Turn;
use crate::timers::Timer;
use crate::wire::{Incumbent, Kind, Lap, Message, Reject, Token};

/// Limits double while one's own runs fail, this often.
const DOUBLINGS_MAX: u8 = 2;

impl<const W: usize> Ring<W> {
    /// R3
    pub(super) fn start(turn: &mut Turn<W>, suspects: NodeSet<W>) {
        let Some(round) = turn.node.ring.round.checked_add(1) else {
            turn.fail(FailCause::NumbersExhausted);
            return;
        };
        let run = turn.begin_election();
        Self::join(turn, run, round);
        turn.node.ring.list = NodeSet::EMPTY;
        turn.node.ring.suspects = suspects;
        Self::pass_on(turn, turn.me());
    }

    /// The paper's STOP, and the first half of R3 and R4.
    fn join(turn: &mut Turn<W>, run: GroupId, round: u32) {
        turn.halt(Some(run));
        turn.close_round();
        for timer in [Timer::Quiet, Timer::Check, Timer::Beat] {
            turn.cancel(timer);
        }
        turn.node.ring.round = round;
        turn.node.ring.joined = turn.node.now;
        turn.node.ring.lap = Lap::Elect;
        turn.node.ring.incumbent = None;
        let limit = turn.node.config.timing.run_limit(turn.node.config.members().len());
        let own = run.coordinator == turn.me();
        let doublings = if own { turn.node.ring.failed_runs.min(DOUBLINGS_MAX) } else { 0 };
        turn.set_timer(Timer::Limit, limit.times(1 << doublings));
    }

    /// Gives the token to the first node behind `after` that has to have it.
    fn pass_on(turn: &mut Turn<W>, after: NodeId) {
        let me = turn.me();
        let (ring, wait) = match turn.node.ring.lap {
            Lap::Elect => {
                turn.node.ring.list.insert(me);
                turn.node.ring.suspects = turn.node.ring.suspects.union(&turn.node.departed);
                Self::stand(turn);
                let ring = turn.node.config.members().difference(&turn.node.ring.suspects);
                // The lap ends at its initiator, whatever anybody thinks of that node.
                let initiator = turn.node.state.halted_by.map(|run| run.coordinator);
                let initiator = initiator.filter(|_| !turn.node.config.errata.has(Erratum::R5));
                (
                    initiator.map_or(ring, |initiator| ring.with(initiator)),
                    turn.node.config.timing.t,
                )
            }
            Lap::Coord => (turn.node.ring.list, turn.node.config.timing.t),
            Lap::Ready => (turn.node.ring.list, turn.node.config.timing.distribute()),
        };
        let next = ring.next_after(after).unwrap_or(me);
        if next == me {
            // Nobody else is left, or the lap begins here.
            match turn.node.ring.lap {
                Lap::Elect => Self::elect_closed(turn),
                Lap::Coord => Self::announced(turn),
                Lap::Ready => Self::finish(turn),
            }
            return;
        }
        turn.node.phase = Phase::Hop;
        turn.node.ring.next = Some(next);
        turn.open_round(Kind::HopAck, NodeSet::only(next), wait);
        Self::send_token(turn);
        turn.arm_early_repeat();
    }

    pub(super) fn send_token(turn: &mut Turn<W>) {
        let (Some(next), Some(run)) = (turn.node.ring.next, turn.node.state.halted_by) else {
            return;
        };
        let definition = turn.definition();
        let message = Message::Token(Token {
            lap: turn.node.ring.lap,
            run,
            round: turn.node.ring.round,
            list: turn.node.ring.list,
            suspects: turn.node.ring.suspects,
            incumbent: turn.node.ring.incumbent,
            definition: definition.as_bytes(),
        });
        turn.send_round(next, message);
    }

    /// R13 to R15: the next node does not take the token.
    pub(super) fn hop_failed(turn: &mut Turn<W>) {
        let Some(dead) = turn.node.ring.next else { return };
        let initiator = turn.node.state.halted_by.map(|run| run.coordinator);
        match turn.node.ring.lap {
            Lap::Elect if initiator == Some(dead) && !turn.node.config.errata.has(Erratum::R5) => {
                Self::start(turn, NodeSet::EMPTY);
            }
            Lap::Coord if Self::highest(turn) == Some(dead) => Self::start(turn, NodeSet::EMPTY),
            Lap::Ready => Self::start(turn, NodeSet::EMPTY),
            Lap::Elect | Lap::Coord => {
                turn.node.ring.suspects.insert(dead);
                turn.node.ring.list.remove(dead);
                Self::pass_on(turn, dead);
            }
        }
    }

    /// Who coordinates those of the list: R24, or the highest that is no observer.
    fn highest(turn: &Turn<W>) -> Option<NodeId> {
        let config = &turn.node.config;
        let candidates = turn.node.ring.list.difference(&config.observers);
        let incumbent = turn.node.ring.incumbent.filter(|one| candidates.contains(one.id));
        let higher = |one, other| if config.outranks(one, other) { one } else { other };
        incumbent.map(|one| one.id).or_else(|| candidates.iter().reduce(higher))
    }

    /// R24: this node keeps its role, if nobody has a better claim.
    fn stand(turn: &mut Turn<W>) {
        let (config, me) = (&turn.node.config, turn.me());
        let Ring { led, incumbent, .. } = turn.node.ring;
        let stays = incumbent
            .is_none_or(|other| (led, config.outranks(me, other.id)) > (other.members, false));
        if !config.preempt && led > 0 && stays {
            turn.node.ring.incumbent = Some(Incumbent { id: me, members: led });
        }
    }

    /// A token has come.
    #[inline(never)]
    pub(super) fn token(
        turn: &mut Turn<W>,
        request: &Request,
        token: &Token<'_, W>,
    ) -> Result<(), Reject> {
        match turn.compare_with_answered(request) {
            Ordering::Greater => {}
            // R12
            Ordering::Equal => {
                turn.answer_each(request, Message::HopAck);
                return Ok(());
            }
            // Its sender has long gone on.
            Ordering::Less => return Err(Reject::NotAwaited),
        }
        match token.lap {
            Lap::Elect => Self::elect(turn, request, token)?,
            // R12: silence, so that a run that counts on this node in vain goes on without it.
            _ if !token.run.is(&turn.node.state.halted_by) => return Err(Reject::NotAwaited),
            _ if !token.list.contains(turn.me()) => return Err(Reject::NotAwaited),
            // R23: a run of observers alone ends with its first lap.
            _ if token.list.is_subset(&turn.node.config.observers) => return Err(Reject::Field),
            Lap::Coord => {
                turn.answer_each(request, Message::HopAck);
                if turn.status() == Status::Election {
                    Self::take_over(turn, token);
                    Self::announced(turn);
                }
            }
            Lap::Ready => Self::ready(turn, request, token)?,
        }
        Ok(())
    }

    /// How the place of a token among all runs stands to that of the run that this node is in.
    fn compare(turn: &Turn<W>, token: &Token<'_, W>) -> Ordering {
        (token.round, Some(token.run)).cmp(&(turn.node.ring.round, turn.node.state.halted_by))
    }

    /// R1: a run that passes over this node while it wakes must not find it in a smaller one later.
    pub(super) fn overheard(turn: &mut Turn<W>, token: &Token<'_, W>) {
        let deaf = turn.node.config.errata.has(Erratum::R1);
        if !deaf && Self::compare(turn, token) == Ordering::Greater {
            turn.node.ring.round = token.round;
            turn.node.state.halted_by = Some(token.run);
        }
    }

    fn take_over(turn: &mut Turn<W>, token: &Token<'_, W>) {
        turn.node.ring.list = token.list.intersection(turn.node.config.members());
        turn.node.ring.suspects = token.suspects;
        turn.node.ring.incumbent = token.incumbent;
        turn.node.ring.lap = token.lap;
    }

    /// R4 to R6
    fn elect(turn: &mut Turn<W>, request: &Request, token: &Token<'_, W>) -> Result<(), Reject> {
        let me = turn.me();
        if turn.held_off(token.run.coordinator) {
            // R25: without an answer it would go on alone.
            turn.answer_each(request, Message::HopAck);
            return Err(Reject::HeldOff);
        }
        let place = Self::compare(turn, token);
        let own = token.run.coordinator == me;
        if place == Ordering::Greater {
            // The task rests before anything is sent.
            Self::join(turn, token.run, token.round);
        }
        turn.answer_each(request, Message::HopAck);
        match place {
            // Begun by an earlier life of this node, which can no longer close it.
            Ordering::Greater if own => Self::start(turn, NodeSet::EMPTY),
            Ordering::Greater => {
                Self::take_over(turn, token);
                Self::pass_on(turn, me);
            }
            Ordering::Equal
                if turn.node.config.errata.has(Erratum::R5) && !token.list.contains(me) =>
            {
                Self::join(turn, token.run, token.round);
                Self::take_over(turn, token);
                Self::pass_on(turn, me);
            }
            Ordering::Equal
                if own && turn.node.ring.lap == Lap::Elect
                    || turn.node.config.errata.has(Erratum::R5) =>
            {
                Self::take_over(turn, token);
                turn.node.ring.list.insert(me);
                Self::elect_closed(turn);
            }
            Ordering::Less if turn.status() == Status::Normal || Self::is_stuck(turn) => {
                Self::provoked(turn, request.from);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the run of this node has lost its Elect lap, or closes it in vain (R27).
    fn is_stuck(turn: &Turn<W>) -> bool {
        turn.node.ring.lap == Lap::Elect && Self::is_older_than_a_lap(turn)
            || Self::is_in_vain(turn)
    }

    /// Whether the run of this node has given up every node that could coordinate it. What its token has
    /// passed over in a divided network it will not ask again when that has healed.
    pub(super) fn is_in_vain(turn: &Turn<W>) -> bool {
        let config = &turn.node.config;
        let left = config.members().difference(&turn.node.ring.suspects);
        turn.node.ring.lap == Lap::Elect && left.is_subset(&config.observers)
    }

    pub(super) fn is_older_than_a_lap(turn: &Turn<W>) -> bool {
        let lap = turn.node.config.timing.lap(turn.node.config.members().len());
        turn.node.now.since(turn.node.ring.joined) > lap
    }

    /// R5: every live node has joined. The next lap ends at the highest, so it begins behind it.
    fn elect_closed(turn: &mut Turn<W>) {
        turn.node.ring.lap = Lap::Coord;
        turn.node.ring.list = turn.without_held_off(turn.node.ring.list);
        match Self::highest(turn) {
            Some(highest) => Self::pass_on(turn, highest),
            // R23
            None => {
                turn.node.ring.lap = Lap::Elect;
                if turn.node.ring.failed_runs == 0 {
                    turn.note(Note::OnlyObservers);
                }
                Self::wait(turn);
            }
        }
    }

    /// R7, R8
    fn announced(turn: &mut Turn<W>) {
        let me = turn.me();
        let Some(run) = turn.node.state.halted_by else { return };
        let coordinator = Self::highest(turn);
        let state = &mut turn.node.state;
        state.coordinator = coordinator;
        state.group = Some(run);
        state.status = Status::Reorganization;
        if coordinator == Some(me) {
            state.up = turn.node.ring.list.without(me);
            turn.reorganize(run);
        } else {
            Self::pass_on(turn, me);
        }
    }

    /// R9
    pub fn reorganized(turn: &mut Turn<W>) {
        turn.save_group(None);
        turn.cancel(Timer::Phase);
        turn.node.phase = Phase::Idle;
        turn.node.ring.lap = Lap::Ready;
        Self::pass_on(turn, turn.me());
    }

    /// R10, R11
    fn ready(turn: &mut Turn<W>, request: &Request, token: &Token<'_, W>) -> Result<(), Reject> {
        // The lap ends at the coordinator.
        if !turn.node.state.coordinator.is_some_and(|id| token.list.contains(id)) {
            return Err(Reject::NotAwaited);
        }
        match turn.status() {
            Status::Normal => turn.answer_each(request, Message::HopAck),
            Status::Reorganization if turn.node.is_coordinator() => {
                // Only an answer that follows the save may say so; a repeat will come.
                if turn.node.ring.lap == Lap::Ready && turn.node.saving.is_none() {
                    turn.answer_each(request, Message::HopAck);
                    Self::finish(turn);
                }
            }
            Status::Reorganization if turn.node.saving.is_none() => {
                if !turn.define(token.definition) {
                    return Err(Reject::Field);
                }
                Self::take_over(turn, token);
                // Where the Coord lap left off is of no interest any more.
                Self::wait(turn);
                turn.node.state.up = turn.node.ring.list.without(turn.me());
                if turn.save_group(Some(*request)) {
                    Self::accept_ready(turn, request);
                }
            }
            Status::Reorganization => {}
            Status::Election | Status::Down => return Err(Reject::NotAwaited),
        }
        Ok(())
    }

    /// The state vector with the definition is durable.
    fn accept_ready(turn: &mut Turn<W>, request: &Request) {
        if turn.accept_ready(request, Message::HopAck) {
            Self::run_ended(turn, 0);
            Self::pass_on(turn, turn.me());
        }
    }

    /// The node is Normal, in a group of so many members that it leads.
    fn run_ended(turn: &mut Turn<W>, led: usize) {
        turn.node.ring.led = led.min(u8::MAX.into()) as u8;
        turn.node.ring.failed_runs = 0;
        turn.cancel(Timer::Limit);
    }

    /// R11: all members have made the definition durable, and so has this node.
    fn finish(turn: &mut Turn<W>) {
        if turn.node.saving.is_some() {
            return;
        }
        Self::wait(turn);
        Self::run_ended(turn, turn.node.state.up.len() + 1);
        turn.group_formed();
        turn.beat();
    }

    /// A state vector is durable: the coordinator's own, or the one that a Ready waits for.
    pub fn saved(turn: &mut Turn<W>, ready: &Option<Request>) {
        match ready {
            None if turn.node.state.up.is_empty() => Self::finish(turn),
            None => {}
            Some(request) => Self::accept_ready(turn, request),
        }
    }
}
