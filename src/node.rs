//! A node: `step(now, event) -> effects`, the way of a datagram through it, and its first moments.

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use crate::advice::Histogram;
use crate::answers::Request;
use crate::bully::Bully;
use crate::config::{Algorithm, Config, ConfigError, Durability, Valid};
use crate::effects::{Effect, Effects, FailCause, MuteReason, Note, Ticket};
use crate::forming::Save;
use crate::id::{GroupId, NodeId, NodeSet};
use crate::invitation::Invitation;
use crate::key::Keys;
use crate::leaving;
use crate::phase::Phase;
use crate::ring::Ring;
use crate::state::{StateVector, Status, Summary};
use crate::station::{Counters, Station, Turn};
use crate::time::Instant;
use crate::timers::Timer;
use crate::wire::{Envelope, Kind, Message, Reject};

/// What can happen to a node.
#[derive(Debug)]
pub enum Event<'a> {
    /// Power is on. `stored_epoch`: the highest boot epoch that could be read from safe storage.
    Boot { stored_epoch: Option<u32> },
    /// The epoch of `Effect::SaveEpoch` is durable and read back as this; `None`: it failed.
    EpochSaved { read_back: Option<u32> },
    /// A datagram that the network hardware took in at `received`. It is opened where it lies.
    Datagram { received: Instant, bytes: &'a mut [u8] },
    /// [`Node::next_deadline`] has come. Handles one timer; ask again for the next.
    Timer,
    /// At least every Tp/4, also when idle: shows that the node runs on time.
    Tick,
    /// The state vector of `Effect::SaveState` is durable.
    Saved(Ticket),
    /// It could not be made durable: the node can keep no promise any more and falls silent.
    SaveFailed,
    /// The node is asked to leave the flock. It says so, and is silent until its next boot.
    StepDown,
    /// The result of `Effect::Reorganize`.
    Reorganized { group: GroupId, definition: &'a [u8] },
}

/// Where a node is between its boot and its end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Life {
    /// Not booted, or mute for good.
    Down,
    /// The boot epoch is being made durable.
    SavingEpoch,
    /// It greets the others and takes no part in elections yet.
    Waking,
    Up,
    /// It leaves, and says so this many times more.
    Leaving(u8),
}

/// A member of the flock. `W` words of 64 bits bound the number of nodes: 1 for 64, 4 for 255.
pub struct Node<const W: usize> {
    turn: Turn<W>,
    /// The state vector after the last step, and whether that step changed it.
    known: (Summary<W>, Option<GroupId>),
    changed: bool,
}

impl<const W: usize> core::fmt::Debug for Node<W> {
    /// Without the effects of the last step, which are not part of it.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Node").field("station", &self.turn.node).finish_non_exhaustive()
    }
}

impl<const W: usize> Node<W> {
    /// A node that is still down, or why its configuration cannot work. `instance`: a random number
    /// that tells this board from another one with the same id.
    pub fn new(config: Config<W>, keys: Keys, instance: u32) -> Result<Self, ConfigError> {
        config.validated().map(|config| Self::of(config, keys, instance))
    }

    /// As [`Node::new`], for a configuration that is known to work. It cannot fail, so that the node can
    /// be built where it will live: a board has no stack for the copies that a `Result` costs.
    pub fn of(Valid(config): Valid<W>, keys: Keys, instance: u32) -> Self {
        let turn = Turn { node: Station::new(config, keys, instance), out: Effects::NONE };
        let known = (Summary::DOWN, None);
        Self { turn, known, changed: false }
    }

    /// From now on these keys are accepted, and the first of them is sent with.
    pub fn set_keys(&mut self, keys: Keys) {
        self.turn.node.link.set_keys(keys);
    }

    #[must_use]
    pub fn state_vector(&self) -> &StateVector<W> {
        &self.turn.node.state
    }

    #[must_use]
    pub fn config(&self) -> &Config<W> {
        &self.turn.node.config
    }

    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.turn.node.counters
    }

    /// From a call of this node to its answers.
    #[must_use]
    pub fn round_trips(&self) -> &Histogram {
        &self.turn.node.round_trips
    }

    /// From a reception to its answer, saves not counted.
    #[must_use]
    pub fn handling(&self) -> &Histogram {
        &self.turn.node.handling
    }

    /// Counts a datagram that was refused before it came here.
    pub fn refuse(&mut self, reason: Reject) {
        self.turn.node.counters.reject(reason);
    }

    /// How many datagrams in the name of `id` were not authentic.
    #[must_use]
    pub fn authentication_failures(&self, id: NodeId) -> u16 {
        if self.config().members().contains(id) { self.turn.node.link.failures(id) } else { 0 }
    }

    /// This boot's epoch; 0 before it is durable.
    #[must_use]
    pub fn boot_epoch(&self) -> u32 {
        self.turn.node.boot
    }

    /// When the next `Event::Timer` is due.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.turn.node.failed.is_some() { None } else { self.turn.node.timers.next() }
    }

    /// Whether the node is silent for good: its safe storage has let it down.
    #[must_use]
    pub fn is_mute(&self) -> bool {
        self.turn.node.mute
    }

    /// Whether the node has left the flock on purpose, until its next boot.
    #[must_use]
    pub fn has_left(&self) -> bool {
        matches!(self.turn.node.life, Life::Leaving(_))
    }

    /// Whether the last step changed the state vector.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.changed
    }

    /// The effects of the last step.
    #[must_use = "effects must be carried out, in order"]
    pub fn effects(&self) -> &Effects<W> {
        &self.turn.out
    }

    /// Handles one event to completion. Carry the effects out, in order, before the next step; they can
    /// be had again as [`Node::effects`].
    #[inline(never)]
    pub fn step(&mut self, now: Instant, event: Event<'_>) -> &Effects<W> {
        self.turn.out.clear();
        self.changed = false;
        if self.turn.node.failed.is_none() {
            self.take_step(now, event);
        }
        &self.turn.out
    }

    fn take_step(&mut self, now: Instant, event: Event<'_>) {
        let turn = &mut self.turn;
        turn.node.now = now;
        handle(turn, event);
        if let Some(cause) = turn.node.failed {
            // Whatever the step had begun is void.
            turn.node.state.status = Status::Down;
            turn.out.clear();
            if let FailCause::FollowedTwin(id) = cause {
                turn.note(Note::IdClash(id));
            }
            turn.ask(Effect::FailSelf(cause));
        }
        let now = (turn.node.state.summary(), turn.node.state.halted_by);
        self.changed = now != self.known;
        self.known = now;
        let node = &turn.node;
        let strict = node.config.durability == Durability::Strict;
        if strict && self.changed && node.failed.is_none() && !node.mute {
            let ticket = turn.next_ticket();
            turn.out.push_first(Effect::SaveState { ticket, wait: true });
        }
    }
}

/// Handles one event. (Each kind in a function of its own: in short functions jumps are short, and what is
/// used most stays in the registers that short instructions reach.)
#[inline(never)]
fn handle<const W: usize>(turn: &mut Turn<W>, event: Event<'_>) {
    let node = &turn.node;
    if !matches!(event, Event::Boot { .. })
        && !matches!(node.life, Life::Down)
        && node.now.since(node.last_progress) > node.config.timing.tp
    {
        // Assumption 9: a node that ran late has failed, and must not act before it knows.
        turn.fail(FailCause::Deadline);
        return;
    }
    match event {
        Event::Boot { stored_epoch } => boot(turn, stored_epoch),
        Event::EpochSaved { read_back } => epoch_saved(turn, read_back),
        Event::Datagram { received, bytes } => datagram(turn, received, bytes),
        Event::Timer => timer(turn),
        Event::Tick => {
            turn.node.last_progress = turn.node.now;
            turn.say_clash();
        }
        Event::Saved(ticket) => saved(turn, ticket),
        Event::SaveFailed => turn.mute(MuteReason::StateNotDurable),
        Event::StepDown => {
            if matches!(node.life, Life::Waking | Life::Up) {
                leaving::leave(turn);
            }
        }
        Event::Reorganized { group, definition } => reorganized(turn, group, definition),
    }
    if matches!(turn.node.life, Life::Waking) && turn.greeting_ends() {
        turn.node.life = Life::Up;
        match turn.node.config.algorithm {
            Algorithm::Bully => Bully::recovery(turn),
            Algorithm::Invitation => Invitation::recovery(turn),
            Algorithm::Ring => Ring::recovery(turn),
        }
    }
    if matches!(turn.node.life, Life::Up) {
        turn.greet_group();
    }
}

/// D1 to D3: the new epoch is above everything that an earlier boot can have used, even if one of
/// two torn copies reads differently next time; without a readable one the node stays mute.
#[inline(never)]
fn boot<const W: usize>(turn: &mut Turn<W>, stored_epoch: Option<u32>) {
    turn.node.last_progress = turn.node.now;
    let Some(stored) = stored_epoch else {
        turn.mute(MuteReason::NoEpoch);
        return;
    };
    let Some(epoch) = stored.checked_add(2) else {
        turn.mute(MuteReason::EpochExhausted);
        return;
    };
    turn.node.life = Life::SavingEpoch;
    turn.node.next_boot = epoch;
    turn.ask(Effect::SaveEpoch(epoch));
}

#[inline(never)]
fn epoch_saved<const W: usize>(turn: &mut Turn<W>, read_back: Option<u32>) {
    if !matches!(turn.node.life, Life::SavingEpoch) {
        return;
    }
    let epoch = turn.node.next_boot;
    if read_back != Some(epoch) {
        turn.mute(MuteReason::EpochNotDurable);
        return;
    }
    turn.node.boot = epoch;
    turn.node.life = Life::Waking;
    turn.begin_greeting();
}

#[inline(never)]
fn datagram<const W: usize>(turn: &mut Turn<W>, received: Instant, bytes: &mut [u8]) {
    let judged = match turn.node.life {
        Life::Waking | Life::Up => dispatch(turn, received, bytes),
        Life::Down | Life::SavingEpoch | Life::Leaving(_) => Err(Reject::Down),
    };
    let counters = &mut turn.node.counters;
    match judged {
        Ok(()) => counters.datagrams_accepted = counters.datagrams_accepted.saturating_add(1),
        Err(reason) => counters.reject(reason),
    }
}

#[inline(never)]
fn timer<const W: usize>(turn: &mut Turn<W>) {
    match turn.node.timers.take_due(turn.node.now) {
        None => {}
        Some(_) if matches!(turn.node.life, Life::Leaving(_)) => leaving::say_so(turn),
        Some(Timer::Answer) => turn.send_due_answers(),
        Some(Timer::Greeting) => turn.greet(),
        Some(Timer::Hello) => turn.say_hello(NodeSet::EMPTY),
        Some(timer) => timer_of_election(turn, timer),
    }
}

fn timer_of_election<const W: usize>(turn: &mut Turn<W>, timer: Timer) {
    match turn.node.config.algorithm {
        Algorithm::Bully => Bully::timer(turn, timer),
        Algorithm::Invitation => Invitation::timer(turn, timer),
        Algorithm::Ring => Ring::timer(turn, timer),
    }
}

#[inline(never)]
fn saved<const W: usize>(turn: &mut Turn<W>, ticket: Ticket) {
    let awaited = matches!(turn.node.life, Life::Up);
    let save = turn.node.saving.take_if(|save| awaited && save.ticket == ticket);
    let Some(Save { ready, .. }) = &save else { return };
    match turn.node.config.algorithm {
        Algorithm::Bully => Bully::saved(turn, ready),
        Algorithm::Invitation => Invitation::saved(turn, ready),
        Algorithm::Ring => Ring::saved(turn, ready),
    }
}

#[inline(never)]
fn reorganized<const W: usize>(turn: &mut Turn<W>, group: GroupId, definition: &[u8]) {
    let awaited = matches!(turn.node.life, Life::Up) && turn.node.phase == Phase::Reorg;
    if !awaited || !group.is(&turn.node.state.group) {
        return; // too late
    }
    if !turn.define(definition) {
        timer_of_election(turn, Timer::Phase);
        return;
    }
    match turn.node.config.algorithm {
        Algorithm::Bully => Bully::reorganized(turn),
        Algorithm::Invitation => Invitation::reorganized(turn),
        Algorithm::Ring => Ring::reorganized(turn),
    }
}

/// The way of a datagram: link, content, then the algorithm.
fn dispatch<const W: usize>(
    turn: &mut Turn<W>,
    received: Instant,
    bytes: &mut [u8],
) -> Result<(), Reject> {
    // What is large is looked at where it lies: moving it out of its result would copy it.
    let opened = &turn.open(bytes);
    let opened = opened.as_ref().map_err(|reason| *reason)?;
    let frame = &opened.frame;
    let parsed = &Message::<W>::parse(frame);
    let (envelope, message) = parsed.as_ref().map_err(|reason| *reason)?;
    let (named, rank) = match envelope {
        Envelope::Broadcast { awaited } => {
            let me = turn.me();
            (awaited.contains(me), awaited.rank_by_id(me))
        }
        _ => (true, 0),
    };
    if frame.kind == Kind::Hello {
        return turn.hello(opened, named, message);
    }
    turn.admit(frame)?;
    if let Message::Clash { instance } = message {
        turn.clash_heard(frame.source, *instance);
        return Ok(());
    }
    if !matches!(turn.node.life, Life::Up) {
        return Err(Reject::Down);
    }
    turn.node.seen.insert(frame.source);
    if turn.node.config.algorithm == Algorithm::Invitation && turn.held_off(frame.source) {
        return Err(Reject::HeldOff);
    }
    if turn.node.rises(frame.source, frame.boot) {
        turn.suspicion_proved_wrong(frame.source);
    }
    match envelope {
        Envelope::Reply { requester_boot } => {
            let (boot, errata) = (turn.node.boot, turn.node.config.errata);
            let answers = (*requester_boot, frame.call);
            if let Some(taken) = turn.node.call.time(frame.source, answers, boot, turn.node.now) {
                turn.node.round_trips.note(taken);
            }
            let standing = turn.node.call.reply(frame.source, frame.kind, answers, boot, errata)?;
            if let (Message::Heard { heard }, Phase::Inquire) = (message, turn.node.phase) {
                if turn.vouched(heard) {
                    timer_of_election(turn, Timer::Phase);
                }
                return Ok(());
            }
            match turn.node.config.algorithm {
                Algorithm::Bully => Bully::reply(turn, frame.source, standing, message),
                Algorithm::Invitation => Invitation::reply(turn, frame.source, standing, message),
                Algorithm::Ring => Ring::reply(turn, frame.source, standing, message),
            }
        }
        Envelope::Request | Envelope::Broadcast { .. } => {
            let request = Request {
                from: frame.source,
                boot: frame.boot,
                call: frame.call,
                named,
                rank,
                received,
            };
            match turn.node.config.algorithm {
                Algorithm::Bully => Bully::request(turn, &request, message),
                Algorithm::Invitation => Invitation::request(turn, &request, message),
                Algorithm::Ring => Ring::request(turn, &request, message),
            }
        }
    }
}
