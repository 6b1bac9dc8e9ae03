//! What all algorithms stand on: the node's own data and the tools of one turn.
//!
//! A [`Turn`] is one event being handled to completion; that replaces the critical regions of the
//! paper. It gives the algorithms the time, the node's data, and the ways to send, answer and save.

use crate::advice::Histogram;
use crate::answers::Answers;
use crate::bully::Bully;
use crate::call::Call;
use crate::config::{Config, Durability};
use crate::detector::Watch;
use crate::effects::{Effect, Effects, FailCause, MuteReason, Note, Ticket};
use crate::forming::Save;
use crate::hold_off::HoldOff;
use crate::id::{GroupId, NodeId, NodeSet};
use crate::invitation::Invitation;
use crate::key::Keys;
use crate::link::{Header, Link, seal};
use crate::node::Life;
use crate::phase::Phase;
use crate::ring::Ring;
use crate::state::{StateVector, Status};
use crate::time::{Duration, Instant};
use crate::timers::{Timer, TimerTable};
use crate::wire::{Destination, Envelope, Kind, Message, Reject};

/// What the node counts about itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    rejected: [u32; Reject::COUNT],
    pub datagrams_accepted: u32,
    /// Answers that would have repeated one that may still be under way.
    pub answers_withheld: u32,
    pub suspicions: u32,
    pub suspicions_wrong: u32,
    pub elections: u32,
}

impl Counters {
    #[must_use]
    pub fn rejected(&self, reason: Reject) -> u32 {
        self.rejected[reason as usize]
    }

    pub(crate) fn reject(&mut self, reason: Reject) {
        let count = &mut self.rejected[reason as usize];
        *count = count.saturating_add(1);
    }
}

/// Whether a save is still to be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saving {
    /// `Event::Saved` with this ticket will say so.
    Later(Ticket),
    /// Strict durability: nothing of this turn leaves before the save is done.
    BeforeAllElse,
}

/// The data of a node that does not belong to one algorithm alone. It lies in memory as it stands here
/// (`repr(C)`), what is used most in front: shorter instructions reach it.
#[derive(Debug)]
#[repr(C)]
pub struct Station<const W: usize> {
    pub(crate) life: Life,
    pub phase: Phase,
    /// Why the node resets itself; nothing else of that step is carried out.
    pub failed: Option<FailCause>,
    pub mute: bool,
    application_runs: bool,
    /// As in the configuration.
    pub id: NodeId,
    pub state: StateVector<W>,
    /// The time of the event that is being handled. (In a [`Turn`] it would be two more words to hand
    /// from function to function.)
    pub now: Instant,
    pub boot: u32,
    /// The epoch that is being made durable.
    pub(crate) next_boot: u32,
    group_seq: u32,
    last_ticket: u32,
    /// The nodes that gave a sign of life since they were last found silent.
    pub seen: NodeSet<W>,
    /// The nodes that said that they leave since this node was last Normal, and have not been heard in a
    /// later boot.
    pub departed: NodeSet<W>,
    pub call: Call<W>,
    /// The save that the group of this node waits for.
    pub saving: Option<Save>,
    pub timers: TimerTable,
    pub config: Config<W>,
    // What the algorithms remember; one of the three is used.
    pub bully: Bully<W>,
    pub ring: Ring<W>,
    pub invitation: Invitation<W>,
    /// Watches the coordinator.
    pub watch: Watch<W>,
    pub last_progress: Instant,
    /// The node that was last found dead, in the boot that it was known to be in.
    buried: Option<(NodeId, u32)>,
    pub counters: Counters,
    /// From a call to its answers.
    pub round_trips: Histogram,
    /// From a reception to its answer, saves not counted.
    pub handling: Histogram,
    hold_off: HoldOff,
    pub link: Link<W>,
    pub(crate) answers: Answers<W>,
}

impl<const W: usize> Station<W> {
    pub fn new(config: Config<W>, keys: Keys, instance: u32) -> Self {
        let times = Histogram::new(config.timing.t);
        let mut station = Self {
            watch: Watch::new(config.detector),
            phase: Phase::Idle,
            id: config.id,
            bully: Bully::new(),
            ring: Ring::new(),
            invitation: Invitation::new(),
            buried: None,
            departed: NodeSet::EMPTY,
            hold_off: HoldOff::default(),
            config,
            now: Instant(0),
            boot: 0,
            next_boot: 0,
            life: Life::Down,
            state: StateVector::DOWN,
            call: Call::default(),
            link: Link::new(keys, instance),
            timers: TimerTable::default(),
            counters: Counters::default(),
            round_trips: times,
            handling: times,
            seen: NodeSet::EMPTY,
            last_progress: Instant(0),
            saving: None,
            failed: None,
            mute: false,
            application_runs: false,
            group_seq: 0,
            last_ticket: 0,
            answers: Answers::new(),
        };
        if station.config.errata.needs_the_clear() {
            station.link.speak_in_the_clear(station.config.others());
        }
        station
    }

    /// As after 2^32 groups.
    #[cfg(test)]
    pub(crate) fn use_up_group_numbers(&mut self) {
        self.group_seq = u32::MAX;
    }

    pub fn is_coordinator(&self) -> bool {
        self.state.coordinator == Some(self.id)
    }

    /// This node counts as dead. If it is heard again in the same boot, that was wrong.
    pub fn bury(&mut self, id: NodeId) {
        self.buried = Some((id, self.link.followed_epoch(id)));
    }

    /// Whether this datagram shows that its source was taken for dead and is not.
    pub fn rises(&mut self, source: NodeId, boot: u32) -> bool {
        self.buried.take_if(|(dead, _)| *dead == source).is_some_and(|(_, then)| then == boot)
    }
}

/// One event being handled. It is all that an algorithm is handed: one pointer from function to function.
#[derive(Debug)]
#[repr(C)] // see `Station`
pub struct Turn<const W: usize> {
    pub node: Station<W>,
    pub out: Effects<W>,
}

impl<const W: usize> Turn<W> {
    pub fn me(&self) -> NodeId {
        self.node.id
    }

    pub fn status(&self) -> Status {
        self.node.state.status
    }

    /// This node was heard in a later boot than before.
    pub fn rebooted(&mut self, id: NodeId) {
        let node = &mut self.node;
        node.departed.remove(id);
        node.hold_off.rebooted(id, node.now, node.config.hold_off);
    }

    /// Whether this node reboots too often to be let in.
    pub fn held_off(&self, id: NodeId) -> bool {
        self.node.hold_off.holds(id, self.node.now, self.node.config.hold_off)
    }

    /// Those of these nodes that are let in.
    #[inline(never)]
    pub fn without_held_off(&self, mut nodes: NodeSet<W>) -> NodeSet<W> {
        for id in nodes.iter() {
            if self.held_off(id) {
                nodes.remove(id);
            }
        }
        nodes
    }

    /// Whether that node would coordinate before this one does.
    pub fn may_take_over(&self, id: NodeId) -> bool {
        let config = &self.node.config;
        config.outranks(id, config.id) && !config.observers.contains(id)
    }

    pub fn note(&mut self, note: Note) {
        self.ask(Effect::Note(note));
    }

    /// Asks the shell to do something.
    #[inline(never)]
    pub fn ask(&mut self, effect: Effect<'static, W>) {
        self.out.push(effect);
    }

    // --- time -------------------------------------------------------------------------------

    #[inline(never)]
    pub fn set_timer(&mut self, timer: Timer, span: Duration) {
        self.node.timers.set(timer, self.node.now + span);
    }

    #[inline(never)]
    pub fn cancel(&mut self, timer: Timer) {
        self.node.timers.cancel(timer);
    }

    pub fn arm_check(&mut self) {
        self.set_timer(Timer::Check, self.node.config.timing.check);
    }

    pub fn arm_beat(&mut self) {
        self.set_timer(Timer::Beat, self.node.config.timing.beat);
    }

    // --- calls ------------------------------------------------------------------------------

    /// Opens a round to `awaited` whose replies are of one kind, and which ends after `wait` unless it is closed before.
    pub fn open_round(&mut self, expects: Kind, awaited: NodeSet<W>, wait: Duration) {
        // Answers that wait for a save say nothing of the network.
        let timed = wait < self.node.config.timing.distribute();
        if self.node.call.open(awaited, expects, timed.then_some(self.node.now)).is_none() {
            self.fail(FailCause::NumbersExhausted);
        }
        self.set_timer(Timer::Phase, wait);
        self.set_timer(Timer::Repeat, self.node.config.timing.repeat);
    }

    /// Sends the request of the open round to those who have not answered yet.
    pub fn broadcast_round(&mut self, message: Message<'_, W>) {
        let (call, awaited) = (self.node.call.number(), *self.node.call.awaited());
        self.emit(Destination::All, call, Envelope::Broadcast { awaited }, message);
    }

    /// As [`Turn::broadcast_round`], to the one node that is awaited.
    pub fn send_round(&mut self, to: NodeId, message: Message<'_, W>) {
        let call = self.node.call.number();
        self.emit(Destination::Node(to), call, Envelope::Request, message);
    }

    /// Arms the next repeat of the open round, if an answer to it can still come in time.
    pub fn arm_repeat(&mut self, period: Duration) {
        let end = self.node.timers.at(Timer::Phase);
        if self.node.now + period + self.node.config.timing.tm < end {
            self.set_timer(Timer::Repeat, period);
        }
    }

    /// Questions whether a node is there are repeated twice as often, and where something is lost more
    /// is likely to be.
    pub fn arm_early_repeat(&mut self) {
        self.arm_repeat(self.node.config.timing.repeat.fraction(1, 2));
    }

    /// Ends the phase: its round, and the timers that belong to it.
    pub fn close_round(&mut self) {
        self.node.phase = Phase::Idle;
        self.node.call.close();
        self.cancel(Timer::Phase);
        self.cancel(Timer::Repeat);
    }

    /// A broadcast that awaits nobody, under a number of its own.
    pub fn announce(&mut self, message: Message<'_, W>) {
        self.announce_to(NodeSet::EMPTY, message);
    }

    /// A broadcast outside any round that names those whom it concerns.
    pub fn announce_to(&mut self, awaited: NodeSet<W>, message: Message<'_, W>) {
        let Some(call) = self.node.call.take_number() else {
            self.fail(FailCause::NumbersExhausted);
            return;
        };
        self.emit(Destination::All, call, Envelope::Broadcast { awaited }, message);
    }

    // --- datagrams --------------------------------------------------------------------------

    pub fn emit(
        &mut self,
        to: Destination,
        call: u32,
        envelope: Envelope<W>,
        message: Message<'_, W>,
    ) {
        if self.node.failed.is_some() {
            return;
        }
        let kind = message.kind();
        if self.emit_clear(to, call, &envelope, &message, kind) {
            return;
        }
        let Some(sequence) = self.node.link.next_sequence() else {
            self.fail(FailCause::NumbersExhausted);
            return;
        };
        let slot = &self.node.link.keys().send;
        let header = Header {
            kind,
            network: self.node.config.network,
            source: self.node.config.id,
            destination: to,
            boot: self.node.boot,
            sequence,
            key: slot.id,
        };
        let numbers = (call, self.node.link.epoch_of(to));
        let room = self.out.room();
        let len = seal::seal(&header, &slot.key, numbers, &envelope, &message, room);
        self.out.push_datagram(to, kind, len);
    }

    // --- numbers, safe storage, failure -----------------------------------------------------

    /// A group or election number that no node has used or will use: this node's boot epoch, which
    /// is durable, and a sequence number of this boot.
    pub fn next_group(&mut self) -> GroupId {
        match self.node.group_seq.checked_add(1) {
            Some(seq) => self.node.group_seq = seq,
            None => self.fail(FailCause::NumbersExhausted),
        }
        let number = u64::from(self.node.boot) << 32 | u64::from(self.node.group_seq);
        GroupId { coordinator: self.me(), number }
    }

    /// A number for the election, merge or run that begins.
    pub fn begin_election(&mut self) -> GroupId {
        let group = self.next_group();
        self.node.counters.elections += 1;
        self.ask(Effect::Election(group));
        group
    }

    /// Asks for the state vector, as it is after this turn, to be made durable.
    pub fn save(&mut self) -> Saving {
        if self.node.config.durability == Durability::Strict {
            return Saving::BeforeAllElse;
        }
        let ticket = self.next_ticket();
        self.ask(Effect::SaveState { ticket, wait: false });
        Saving::Later(ticket)
    }

    pub fn next_ticket(&mut self) -> Ticket {
        self.node.last_ticket = self.node.last_ticket.wrapping_add(1);
        Ticket(self.node.last_ticket)
    }

    pub fn stop_application(&mut self) {
        if self.node.application_runs {
            self.node.application_runs = false;
            self.ask(Effect::StopApplication);
        }
    }

    pub fn start_application(&mut self) {
        // The group was formed without those who left. One that is back since, unheard by this node,
        // must not be passed over for ever.
        self.node.departed = NodeSet::EMPTY;
        self.node.application_runs = true;
        self.ask(Effect::StartApplication);
    }

    /// Falls silent for good (D3): no timer is left, and no datagram will be handled.
    pub fn mute(&mut self, reason: MuteReason) {
        self.stop_application();
        self.node.mute = true;
        self.node.life = Life::Down;
        self.node.state.status = Status::Down;
        self.node.timers = TimerTable::default();
        self.note(Note::Mute(reason));
    }

    #[inline(never)] // copied nine times otherwise
    pub fn fail(&mut self, cause: FailCause) {
        if self.node.failed.is_none() {
            self.node.failed = Some(cause);
        }
    }
}
