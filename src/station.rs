//! What all algorithms stand on: the node's own data and the tools of one turn.
//!
//! A [`Turn`] is one event being handled to completion; that replaces the critical regions of the
//! paper. It gives the algorithms the time, the node's data, and the ways to send, answer and save.

use core::cmp::Ordering;

use crate::advice::Histogram;
use crate::call::Call;
use crate::config::{Config, Durability};
use crate::detector::Watch;
use crate::effects::{Effect, Effects, FailCause, MuteReason, Note, Ticket};
use crate::forming::Save;
use crate::hold_off::HoldOff;
use crate::id::{GroupId, NodeId, NodeSet, PerNode};
use crate::key::Keys;
use crate::link::{Header, Link, seal};
use crate::silence::Silence;
use crate::state::{StateVector, Status};
use crate::time::{Duration, Instant};
use crate::timers::{Timer, TimerTable};
use crate::wire::{Destination, Envelope, Kind, Message, Reject};

/// How many delayed answers a node keeps; one more is sent at once instead.
const DELAYED_ANSWERS_MAX: usize = 8;

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

/// A request that is being handled, or whose answer is still to come.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub from: NodeId,
    pub boot: u32,
    pub call: u32,
    /// It was sent to this node alone, or this node is among those whose answer is awaited.
    pub named: bool,
    /// The place of this node among those who are to answer.
    pub rank: usize,
    pub received: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Peer {
    answered_call: (u32, u32),
    /// In microseconds; wraps. A call is repeated for seconds, not for an hour.
    answered_at: u32,
}

#[derive(Debug, Clone, Copy)]
struct DelayedAnswer<const W: usize> {
    due: Instant,
    request: Request,
    message: Message<'static, W>,
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
    pub state: StateVector<W>,
    /// The time of the event that is being handled. (In a [`Turn`] it would be two more words to hand
    /// from function to function.)
    pub now: Instant,
    /// Why the node resets itself; nothing else of that step is carried out.
    pub failed: Option<FailCause>,
    pub mute: bool,
    application_runs: bool,
    pub boot: u32,
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
    /// How a coordinator watches its members.
    pub silence: Silence<W>,
    hold_off: HoldOff,
    pub link: Link<W>,
    peers: PerNode<Peer, W>,
    delayed: heapless::Vec<DelayedAnswer<W>, DELAYED_ANSWERS_MAX>,
}

impl<const W: usize> Station<W> {
    pub fn new(config: Config<W>, keys: Keys, instance: u32) -> Self {
        let times = Histogram::new(config.timing.t);
        let mut station = Self {
            watch: Watch::new(config.detector),
            silence: Silence::new(),
            buried: None,
            departed: NodeSet::EMPTY,
            hold_off: HoldOff::default(),
            config,
            now: Instant(0),
            boot: 0,
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
            peers: const { PerNode::all(Peer { answered_call: (0, 0), answered_at: 0 }) },
            delayed: heapless::Vec::new(),
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
        self.state.coordinator == Some(self.config.id)
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

/// One event being handled.
#[derive(Debug)]
pub struct Turn<'t, const W: usize> {
    pub node: &'t mut Station<W>,
    pub out: &'t mut Effects<W>,
}

impl<const W: usize> Turn<'_, W> {
    pub fn me(&self) -> NodeId {
        self.node.config.id
    }

    pub fn status(&self) -> Status {
        self.node.state.status
    }

    /// This node was heard in a later boot than before.
    pub fn rebooted(&mut self, id: NodeId) {
        let node = &mut *self.node;
        node.departed.remove(id);
        node.hold_off.rebooted(id, node.now, node.config.hold_off);
    }

    /// Whether this node reboots too often to be let in.
    pub fn held_off(&self, id: NodeId) -> bool {
        self.node.hold_off.holds(id, self.node.now, self.node.config.hold_off)
    }

    /// Whether that node would coordinate before this one does.
    pub fn may_take_over(&self, id: NodeId) -> bool {
        let config = &self.node.config;
        config.outranks(id, config.id) && !config.observers.contains(id)
    }

    pub fn note(&mut self, note: Note) {
        self.out.push(Effect::Note(note));
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
    pub fn open_round(&mut self, awaited: NodeSet<W>, expects: Kind, wait: Duration) {
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

    /// Ends the round and the timers that belong to it.
    pub fn close_round(&mut self) {
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

    // --- answers ----------------------------------------------------------------------------

    /// Answers a request that waits for an answer of this node; not twice within a round trip,
    /// because then the first answer may still be under way.
    pub fn answer(&mut self, request: &Request, message: Message<'static, W>) {
        self.answer_unless_within(self.node.config.timing.tm.times(2).0, request, message);
    }

    /// Answers however often it is asked: where silence counts as death, no answer is too many.
    pub fn answer_each(&mut self, request: &Request, message: Message<'static, W>) {
        self.answer_unless_within(0, request, message);
    }

    /// `hush`: in microseconds.
    fn answer_unless_within(&mut self, hush: u32, request: &Request, message: Message<'static, W>) {
        if !request.named {
            return;
        }
        let timing = &self.node.config.timing;
        let peer = &mut self.node.peers[request.from];
        let call = (request.boot, request.call);
        let now = self.node.now.0 as u32;
        if peer.answered_call == call && now.wrapping_sub(peer.answered_at) < hush {
            let withheld = &mut self.node.counters.answers_withheld;
            *withheld = withheld.saturating_add(1);
            return;
        }
        peer.answered_call = call;
        peer.answered_at = now;
        let delay = timing.answer_spacing.times(request.rank as u32);
        let answer = DelayedAnswer { due: self.node.now + delay, request: *request, message };
        if delay == Duration::ZERO || self.node.delayed.push(answer).is_err() {
            self.send_answer(request, message, Duration::ZERO);
        } else {
            self.arm_answers();
        }
    }

    /// How a request stands to the latest one of its sender that was answered: the same, newer, older.
    pub fn compare_with_answered(&self, request: &Request) -> Ordering {
        (request.boot, request.call).cmp(&self.node.peers[request.from].answered_call)
    }

    /// The guard of Assumption 9 for what follows from a request: late is failed.
    pub fn in_time(&mut self, request: &Request, more: Duration) -> bool {
        let config = &self.node.config;
        // Under strict durability it leaves only after the save of this turn.
        let save_ahead = match config.durability {
            Durability::Strict => config.timing.ts,
            Durability::Group => Duration::ZERO,
        };
        let last = request.received + config.timing.tp + more;
        let in_time = self.node.now + save_ahead <= last;
        if in_time {
            self.out.must_leave_by(last);
        } else {
            self.fail(FailCause::Deadline);
        }
        in_time
    }

    /// Answers now, after a save; the answer had Ts more time.
    pub fn answer_after_save(&mut self, request: &Request, message: Message<'static, W>) {
        self.send_answer(request, message, self.node.config.timing.ts);
    }

    /// Sends the answers whose time has come.
    pub fn send_due_answers(&mut self) {
        while let Some(index) =
            self.node.delayed.iter().position(|answer| answer.due <= self.node.now)
        {
            let answer = self.node.delayed.swap_remove(index);
            self.send_answer(&answer.request, answer.message, Duration::ZERO);
        }
        self.arm_answers();
    }

    fn arm_answers(&mut self) {
        match self.node.delayed.iter().map(|answer| answer.due).min() {
            Some(due) => self.node.timers.set(Timer::Answer, due),
            None => self.cancel(Timer::Answer),
        }
    }

    /// An answer leaves in time or not at all.
    fn send_answer(&mut self, request: &Request, message: Message<'static, W>, more: Duration) {
        if !self.in_time(request, more) {
            return;
        }
        if more == Duration::ZERO {
            self.node.handling.note(self.node.now.since(request.received));
        }
        let envelope = Envelope::Reply { requester_boot: request.boot };
        self.emit(Destination::Node(request.from), request.call, envelope, message);
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

    /// Asks for the state vector, as it is after this turn, to be made durable.
    pub fn save(&mut self) -> Saving {
        if self.node.config.durability == Durability::Strict {
            return Saving::BeforeAllElse;
        }
        let ticket = self.next_ticket();
        self.out.push(Effect::SaveState { ticket, wait: false });
        Saving::Later(ticket)
    }

    pub fn next_ticket(&mut self) -> Ticket {
        self.node.last_ticket = self.node.last_ticket.wrapping_add(1);
        Ticket(self.node.last_ticket)
    }

    pub fn stop_application(&mut self) {
        if self.node.application_runs {
            self.node.application_runs = false;
            self.out.push(Effect::StopApplication);
        }
    }

    pub fn start_application(&mut self) {
        // The group was formed without those who left. One that is back since, unheard by this node,
        // must not be passed over for ever.
        self.node.departed = NodeSet::EMPTY;
        self.node.application_runs = true;
        self.out.push(Effect::StartApplication);
    }

    /// Falls silent for good (D3): no timer is left, and no datagram will be handled.
    pub fn mute(&mut self, reason: MuteReason) {
        self.stop_application();
        self.node.mute = true;
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
