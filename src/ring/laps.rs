//! The way of the token: how a run starts, is passed on, and ends.

use core::cmp::Ordering;

use super::{Phase, Ring};
use crate::effects::{FailCause, Note};
use crate::errata::Erratum;
use crate::id::{GroupId, NodeId, NodeSet};
use crate::state::Status;
use crate::station::{Request, Turn};
use crate::timers::Timer;
use crate::wire::{Incumbent, Kind, Lap, Message, Reject, Token};

/// Limits double while one's own runs fail, this often.
const DOUBLINGS_MAX: u8 = 2;

impl<const W: usize> Ring<W> {
    /// R3
    pub(super) fn start(&mut self, turn: &mut Turn<'_, W>, suspects: NodeSet<W>) {
        let Some(round) = self.round.checked_add(1) else {
            turn.fail(FailCause::NumbersExhausted);
            return;
        };
        let run = turn.next_group();
        turn.node.counters.elections += 1;
        turn.note(Note::Election(run));
        self.join(turn, run, round);
        self.list = NodeSet::EMPTY;
        self.suspects = suspects;
        self.pass_on(turn, turn.me());
    }

    /// The paper's STOP, and the first half of R3 and R4.
    fn join(&mut self, turn: &mut Turn<'_, W>, run: GroupId, round: u32) {
        turn.halt(Some(run));
        turn.close_round();
        for timer in [Timer::Quiet, Timer::Check, Timer::Beat] {
            turn.cancel(timer);
        }
        self.phase = Phase::Idle;
        self.round = round;
        self.joined = turn.node.now;
        self.lap = Lap::Elect;
        self.incumbent = None;
        let limit = turn.node.config.timing.run_limit(turn.node.config.members().len());
        let own = run.coordinator == turn.me();
        let doublings = if own { self.failed_runs.min(DOUBLINGS_MAX) } else { 0 };
        turn.set_timer(Timer::Limit, limit.times(1 << doublings));
    }

    /// Gives the token to the first node behind `after` that has to have it.
    fn pass_on(&mut self, turn: &mut Turn<'_, W>, after: NodeId) {
        let me = turn.me();
        let timing = &turn.node.config.timing;
        let (ring, wait) = match self.lap {
            Lap::Elect => {
                self.list.insert(me);
                self.suspects = self.suspects.union(&turn.node.departed);
                self.stand(turn);
                let ring = turn.node.config.members().difference(&self.suspects);
                // The lap ends at its initiator, whatever anybody thinks of that node.
                let initiator = turn.node.state.halted_by.map(|run| run.coordinator);
                let initiator = initiator.filter(|_| !turn.node.config.errata.has(Erratum::R5));
                (initiator.map_or(ring, |initiator| ring.with(initiator)), timing.t)
            }
            Lap::Coord => (self.list, timing.t),
            Lap::Ready => (self.list, timing.distribute()),
        };
        let next = ring.next_after(after).unwrap_or(me);
        if next == me {
            // Nobody else is left, or the lap begins here.
            match self.lap {
                Lap::Elect => self.elect_closed(turn),
                Lap::Coord => self.announced(turn),
                Lap::Ready => self.finish(turn),
            }
            return;
        }
        self.phase = Phase::Hop;
        self.next = Some(next);
        turn.open_round(NodeSet::only(next), Kind::HopAck, wait);
        self.send_token(turn);
        turn.arm_early_repeat();
    }

    pub(super) fn send_token(&mut self, turn: &mut Turn<'_, W>) {
        let (Some(next), Some(run)) = (self.next, turn.node.state.halted_by) else { return };
        let definition = turn.definition();
        let message = Message::Token(Token {
            lap: self.lap,
            run,
            round: self.round,
            list: self.list,
            suspects: self.suspects,
            incumbent: self.incumbent,
            definition: definition.as_bytes(),
        });
        turn.send_round(next, message);
    }

    /// R13 to R15: the next node does not take the token.
    pub(super) fn hop_failed(&mut self, turn: &mut Turn<'_, W>) {
        let Some(dead) = self.next else { return };
        let initiator = turn.node.state.halted_by.map(|run| run.coordinator);
        match self.lap {
            Lap::Elect if initiator == Some(dead) && !turn.node.config.errata.has(Erratum::R5) => {
                self.start(turn, NodeSet::EMPTY);
            }
            Lap::Coord if self.highest(turn) == Some(dead) => self.start(turn, NodeSet::EMPTY),
            Lap::Ready => self.start(turn, NodeSet::EMPTY),
            Lap::Elect | Lap::Coord => {
                self.suspects.insert(dead);
                self.list.remove(dead);
                self.pass_on(turn, dead);
            }
        }
    }

    /// Who coordinates those of the list: R24, or the highest that is no observer.
    fn highest(&self, turn: &Turn<'_, W>) -> Option<NodeId> {
        let config = &turn.node.config;
        let candidates = self.list.difference(&config.observers);
        let incumbent = self.incumbent.filter(|one| candidates.contains(one.id));
        let higher = |one, other| if config.outranks(one, other) { one } else { other };
        incumbent.map(|one| one.id).or_else(|| candidates.iter().reduce(higher))
    }

    /// R24: this node keeps its role, if nobody has a better claim.
    fn stand(&mut self, turn: &Turn<'_, W>) {
        let (config, me) = (&turn.node.config, turn.me());
        let stays = self
            .incumbent
            .is_none_or(|other| (self.led, config.outranks(me, other.id)) > (other.members, false));
        if !config.preempt && self.led > 0 && stays {
            self.incumbent = Some(Incumbent { id: me, members: self.led });
        }
    }

    /// A token has come.
    pub(super) fn token(
        &mut self,
        turn: &mut Turn<'_, W>,
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
            Lap::Elect => self.elect(turn, request, token)?,
            // R12: silence, so that a run that counts on this node in vain goes on without it.
            _ if !token.run.is(&turn.node.state.halted_by) => return Err(Reject::NotAwaited),
            _ if !token.list.contains(turn.me()) => return Err(Reject::NotAwaited),
            // R23: a run of observers alone ends with its first lap.
            _ if token.list.is_subset(&turn.node.config.observers) => return Err(Reject::Field),
            Lap::Coord => {
                turn.answer_each(request, Message::HopAck);
                if turn.status() == Status::Election {
                    self.take_over(turn, token);
                    self.announced(turn);
                }
            }
            Lap::Ready => self.ready(turn, request, token)?,
        }
        Ok(())
    }

    /// How the place of a token among all runs stands to that of the run that this node is in.
    fn compare(&self, turn: &Turn<'_, W>, token: &Token<'_, W>) -> Ordering {
        (token.round, Some(token.run)).cmp(&(self.round, turn.node.state.halted_by))
    }

    /// R1: a run that passes over this node while it wakes must not find it in a smaller one later.
    pub(super) fn overheard(&mut self, turn: &mut Turn<'_, W>, token: &Token<'_, W>) {
        let deaf = turn.node.config.errata.has(Erratum::R1);
        if !deaf && self.compare(turn, token) == Ordering::Greater {
            self.round = token.round;
            turn.node.state.halted_by = Some(token.run);
        }
    }

    fn take_over(&mut self, turn: &Turn<'_, W>, token: &Token<'_, W>) {
        self.list = token.list.intersection(turn.node.config.members());
        self.suspects = token.suspects;
        self.incumbent = token.incumbent;
        self.lap = token.lap;
    }

    /// R4 to R6
    fn elect(
        &mut self,
        turn: &mut Turn<'_, W>,
        request: &Request,
        token: &Token<'_, W>,
    ) -> Result<(), Reject> {
        let me = turn.me();
        if turn.held_off(token.run.coordinator) {
            // R25: without an answer it would go on alone.
            turn.answer_each(request, Message::HopAck);
            return Err(Reject::HeldOff);
        }
        let place = self.compare(turn, token);
        let own = token.run.coordinator == me;
        if place == Ordering::Greater {
            // The task rests before anything is sent.
            self.join(turn, token.run, token.round);
        }
        turn.answer_each(request, Message::HopAck);
        match place {
            // Begun by an earlier life of this node, which can no longer close it.
            Ordering::Greater if own => self.start(turn, NodeSet::EMPTY),
            Ordering::Greater => {
                self.take_over(turn, token);
                self.pass_on(turn, me);
            }
            Ordering::Equal
                if turn.node.config.errata.has(Erratum::R5) && !token.list.contains(me) =>
            {
                self.join(turn, token.run, token.round);
                self.take_over(turn, token);
                self.pass_on(turn, me);
            }
            Ordering::Equal
                if own && self.lap == Lap::Elect || turn.node.config.errata.has(Erratum::R5) =>
            {
                self.take_over(turn, token);
                self.list.insert(me);
                self.elect_closed(turn);
            }
            Ordering::Less if turn.status() == Status::Normal || self.is_stuck(turn) => {
                self.provoked(turn, request.from);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the run of this node has lost its Elect lap, or closed it in vain (R23).
    fn is_stuck(&self, turn: &Turn<'_, W>) -> bool {
        self.lap == Lap::Elect && self.is_older_than_a_lap(turn)
    }

    pub(super) fn is_older_than_a_lap(&self, turn: &Turn<'_, W>) -> bool {
        let lap = turn.node.config.timing.lap(turn.node.config.members().len());
        turn.node.now.since(self.joined) > lap
    }

    /// R5: every live node has joined. The next lap ends at the highest, so it begins behind it.
    fn elect_closed(&mut self, turn: &mut Turn<'_, W>) {
        self.lap = Lap::Coord;
        self.list = self.list.iter().filter(|id| !turn.held_off(*id)).collect();
        match self.highest(turn) {
            Some(highest) => self.pass_on(turn, highest),
            // R23
            None => {
                self.lap = Lap::Elect;
                if self.failed_runs == 0 {
                    turn.note(Note::OnlyObservers);
                }
                self.wait(turn);
            }
        }
    }

    /// R7, R8
    fn announced(&mut self, turn: &mut Turn<'_, W>) {
        let me = turn.me();
        let Some(run) = turn.node.state.halted_by else { return };
        let coordinator = self.highest(turn);
        let state = &mut turn.node.state;
        state.coordinator = coordinator;
        state.group = Some(run);
        state.status = Status::Reorganization;
        if coordinator == Some(me) {
            state.up = self.list.without(me);
            turn.close_round();
            self.phase = Phase::Reorg;
            turn.reorganize(run);
        } else {
            self.pass_on(turn, me);
        }
    }

    /// R9
    pub fn reorganized(&mut self, turn: &mut Turn<'_, W>, definition: &[u8]) {
        if self.phase != Phase::Reorg {
            return;
        }
        if !turn.define(definition) {
            self.start(turn, NodeSet::EMPTY);
            return;
        }
        turn.save_group(None);
        turn.cancel(Timer::Phase);
        self.phase = Phase::Idle;
        self.lap = Lap::Ready;
        self.pass_on(turn, turn.me());
    }

    /// R10, R11
    fn ready(
        &mut self,
        turn: &mut Turn<'_, W>,
        request: &Request,
        token: &Token<'_, W>,
    ) -> Result<(), Reject> {
        // The lap ends at the coordinator.
        if !turn.node.state.coordinator.is_some_and(|id| token.list.contains(id)) {
            return Err(Reject::NotAwaited);
        }
        match turn.status() {
            Status::Normal => turn.answer_each(request, Message::HopAck),
            Status::Reorganization if turn.node.is_coordinator() => {
                // Only an answer that follows the save may say so; a repeat will come.
                if self.lap == Lap::Ready && turn.node.saving.is_none() {
                    turn.answer_each(request, Message::HopAck);
                    self.finish(turn);
                }
            }
            Status::Reorganization if turn.node.saving.is_none() => {
                if !turn.define(token.definition) {
                    return Err(Reject::Field);
                }
                self.take_over(turn, token);
                // Where the Coord lap left off is of no interest any more.
                self.wait(turn);
                turn.node.state.up = self.list.without(turn.me());
                if turn.save_group(Some(*request)) {
                    self.accept_ready(turn, request);
                }
            }
            Status::Reorganization => {}
            Status::Election | Status::Down => return Err(Reject::NotAwaited),
        }
        Ok(())
    }

    /// The state vector with the definition is durable.
    fn accept_ready(&mut self, turn: &mut Turn<'_, W>, request: &Request) {
        if turn.accept_ready(request, Message::HopAck) {
            self.run_ended(turn, 0);
            self.pass_on(turn, turn.me());
        }
    }

    /// The node is Normal, in a group of so many members that it leads.
    fn run_ended(&mut self, turn: &mut Turn<'_, W>, led: usize) {
        self.led = led.min(u8::MAX.into()) as u8;
        self.failed_runs = 0;
        turn.cancel(Timer::Limit);
    }

    /// R11: all members have made the definition durable, and so has this node.
    fn finish(&mut self, turn: &mut Turn<'_, W>) {
        if turn.node.saving.is_some() {
            return;
        }
        self.wait(turn);
        self.run_ended(turn, turn.node.state.up.len() + 1);
        turn.group_formed();
        turn.beat();
    }

    /// A state vector is durable: the coordinator's own, or the one that a Ready waits for.
    pub fn saved(&mut self, turn: &mut Turn<'_, W>, ready: Option<Request>) {
        match ready {
            None if turn.node.state.up.is_empty() => self.finish(turn),
            None => {}
            Some(request) => self.accept_ready(turn, &request),
        }
    }
}
