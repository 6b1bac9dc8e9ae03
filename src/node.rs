//! A node: `step(now, event) -> effects`, the way of a datagram through it, and its first moments.

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use crate::advice::Histogram;
use crate::bully::Bully;
use crate::config::{Algorithm, Config, ConfigError, Durability, Valid};
use crate::effects::{Effect, Effects, FailCause, MuteReason, Note, Ticket};
use crate::id::{GroupId, NodeId, NodeSet};
use crate::invitation::Invitation;
use crate::key::Keys;
use crate::leaving;
use crate::ring::Ring;
use crate::state::{StateVector, Status};
use crate::station::{Counters, Request, Station, Turn};
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

#[derive(Debug)]
#[repr(u8)] // otherwise the discriminant would fill 64 bits
enum Election<const W: usize> {
    Bully(Bully<W>),
    Invitation(Invitation<W>),
    Ring(Ring<W>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// Not booted, or mute for good.
    Down,
    /// The boot epoch is being made durable.
    SavingEpoch(u32),
    /// It greets the others and takes no part in elections yet.
    Waking,
    Up,
    /// It leaves, and says so this many times more.
    Leaving(u8),
}

/// A member of the flock. `W` words of 64 bits bound the number of nodes: 1 for 64, 4 for 255.
#[derive(Debug)]
pub struct Node<const W: usize> {
    station: Station<W>,
    election: Election<W>,
    life: Life,
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
        let election = match config.algorithm {
            Algorithm::Bully => Election::Bully(Bully::new()),
            Algorithm::Invitation => Election::Invitation(Invitation::new()),
            Algorithm::Ring => Election::Ring(Ring::new()),
        };
        Self { station: Station::new(config, keys, instance), election, life: Life::Down }
    }

    /// From now on these keys are accepted, and the first of them is sent with.
    pub fn set_keys(&mut self, keys: Keys) {
        self.station.link.set_keys(keys);
    }

    #[must_use]
    pub fn state_vector(&self) -> &StateVector<W> {
        &self.station.state
    }

    #[must_use]
    pub fn config(&self) -> &Config<W> {
        &self.station.config
    }

    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.station.counters
    }

    /// From a call of this node to its answers.
    #[must_use]
    pub fn round_trips(&self) -> &Histogram {
        &self.station.round_trips
    }

    /// From a reception to its answer, saves not counted.
    #[must_use]
    pub fn handling(&self) -> &Histogram {
        &self.station.handling
    }

    /// Counts a datagram that was refused before it came here.
    pub fn refuse(&mut self, reason: Reject) {
        self.station.counters.reject(reason);
    }

    /// How many datagrams in the name of `id` were not authentic.
    #[must_use]
    pub fn authentication_failures(&self, id: NodeId) -> u16 {
        if self.config().members().contains(id) { self.station.link.failures(id) } else { 0 }
    }

    /// This boot's epoch; 0 before it is durable.
    #[must_use]
    pub fn boot_epoch(&self) -> u32 {
        self.station.boot
    }

    /// When the next `Event::Timer` is due.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.station.failed.is_some() { None } else { self.station.timers.next() }
    }

    /// Whether the node is silent for good: its safe storage has let it down.
    #[must_use]
    pub fn is_mute(&self) -> bool {
        self.station.mute
    }

    /// Whether the node has left the flock on purpose, until its next boot.
    #[must_use]
    pub fn has_left(&self) -> bool {
        matches!(self.life, Life::Leaving(_))
    }

    /// Handles one event to completion. The effects replace what `out` held; carry them out in
    /// order before the next step.
    pub fn step(&mut self, now: Instant, event: Event<'_>, out: &mut Effects<W>) {
        out.clear();
        if self.station.failed.is_some() {
            return;
        }
        let strict = self.station.config.durability == Durability::Strict;
        let watched = |state: &StateVector<W>| (state.summary(), state.halted_by);
        let before = watched(&self.station.state);
        self.handle(now, event, out);
        if let Some(cause) = self.station.failed {
            // Whatever the step had begun is void.
            self.station.state.status = Status::Down;
            out.clear();
            if let FailCause::FollowedTwin(id) = cause {
                out.push(Effect::Note(Note::IdClash(id)));
            }
            out.push(Effect::FailSelf(cause));
        } else if strict && !self.station.mute && before != watched(&self.station.state) {
            let mut turn = Turn { node: &mut self.station, out };
            let ticket = turn.next_ticket();
            turn.out.push_first(Effect::SaveState { ticket, wait: true });
        }
    }

    fn handle(&mut self, now: Instant, event: Event<'_>, out: &mut Effects<W>) {
        self.station.now = now;
        let mut turn = Turn { node: &mut self.station, out };
        if !matches!(event, Event::Boot { .. }) && self.life != Life::Down {
            // Assumption 9: a node that ran late has failed, and must not act before it knows.
            if now.since(turn.node.last_progress) > turn.node.config.timing.tp {
                turn.fail(FailCause::Deadline);
                return;
            }
        }
        match event {
            Event::Boot { stored_epoch } => self.life = boot(&mut turn, stored_epoch),
            Event::EpochSaved { read_back } => {
                if let Life::SavingEpoch(epoch) = self.life {
                    self.life = epoch_saved(&mut turn, epoch, read_back);
                }
            }
            Event::Datagram { received, bytes } => {
                let judged = match self.life {
                    Life::Waking | Life::Up => {
                        dispatch(&mut turn, &mut self.election, self.life, received, bytes)
                    }
                    Life::Down | Life::SavingEpoch(_) | Life::Leaving(_) => Err(Reject::Down),
                };
                let counters = &mut turn.node.counters;
                match judged {
                    Ok(()) => {
                        counters.datagrams_accepted = counters.datagrams_accepted.saturating_add(1);
                    }
                    Err(reason) => counters.reject(reason),
                }
            }
            Event::StepDown => {
                if matches!(self.life, Life::Waking | Life::Up) {
                    self.life = Life::Leaving(leaving::leave(&mut turn));
                }
            }
            Event::Timer | Event::Saved(_) | Event::Reorganized { .. }
                if matches!(self.life, Life::Leaving(_)) =>
            {
                if let (Life::Leaving(times), Some(_)) = (self.life, turn.node.timers.take_due(now))
                {
                    self.life = Life::Leaving(leaving::say_so(&mut turn, times));
                }
            }
            Event::Timer => match turn.node.timers.take_due(now) {
                Some(Timer::Answer) => turn.send_due_answers(),
                Some(Timer::Greeting) => turn.greet(),
                Some(Timer::Hello) => turn.say_hello(NodeSet::EMPTY),
                Some(timer) => match &mut self.election {
                    Election::Bully(bully) => bully.timer(&mut turn, timer),
                    Election::Invitation(invitation) => invitation.timer(&mut turn, timer),
                    Election::Ring(ring) => ring.timer(&mut turn, timer),
                },
                None => {}
            },
            Event::Tick => {
                turn.node.last_progress = now;
                turn.say_clash();
            }
            Event::Saved(ticket) => {
                let save = turn.node.saving.take_if(|save| save.ticket == ticket);
                match (&mut self.election, save) {
                    (_, None) => {}
                    (Election::Bully(bully), Some(save)) => bully.saved(&mut turn, save.ready),
                    (Election::Invitation(invitation), Some(save)) => {
                        invitation.saved(&mut turn, save.ready);
                    }
                    (Election::Ring(ring), Some(save)) => ring.saved(&mut turn, save.ready),
                }
            }
            Event::SaveFailed => {
                turn.mute(MuteReason::StateNotDurable);
                self.life = Life::Down;
            }
            // Of another group it comes too late.
            Event::Reorganized { group, .. } if !group.is(&turn.node.state.group) => {}
            Event::Reorganized { definition, .. } => match &mut self.election {
                Election::Bully(bully) => bully.reorganized(&mut turn, definition),
                Election::Invitation(invitation) => invitation.reorganized(&mut turn, definition),
                Election::Ring(ring) => ring.reorganized(&mut turn, definition),
            },
        }
        if turn.node.mute {
            self.life = Life::Down;
        }
        if self.life == Life::Waking && turn.greeting_ends() {
            self.life = Life::Up;
            match &mut self.election {
                Election::Bully(bully) => bully.recovery(&mut turn),
                Election::Invitation(invitation) => invitation.recovery(&mut turn),
                Election::Ring(ring) => ring.recovery(&mut turn),
            }
        }
        if self.life == Life::Up {
            turn.greet_group();
        }
    }
}

/// D1 to D3: the new epoch is above everything that an earlier boot can have used, even if one of
/// two torn copies reads differently next time; without a readable one the node stays mute.
fn boot<const W: usize>(turn: &mut Turn<'_, W>, stored_epoch: Option<u32>) -> Life {
    turn.node.last_progress = turn.node.now;
    let reason = match stored_epoch {
        None => MuteReason::NoEpoch,
        Some(stored) => match stored.checked_add(2) {
            Some(epoch) => {
                turn.out.push(Effect::SaveEpoch(epoch));
                return Life::SavingEpoch(epoch);
            }
            None => MuteReason::EpochExhausted,
        },
    };
    turn.mute(reason);
    Life::Down
}

fn epoch_saved<const W: usize>(turn: &mut Turn<'_, W>, epoch: u32, read_back: Option<u32>) -> Life {
    if read_back != Some(epoch) {
        turn.mute(MuteReason::EpochNotDurable);
        return Life::Down;
    }
    turn.node.boot = epoch;
    turn.begin_greeting();
    Life::Waking
}

/// The way of a datagram: link, content, then the algorithm.
fn dispatch<const W: usize>(
    turn: &mut Turn<'_, W>,
    election: &mut Election<W>,
    life: Life,
    received: Instant,
    bytes: &mut [u8],
) -> Result<(), Reject> {
    let opened = turn.open(bytes)?;
    let frame = opened.frame;
    let (envelope, message) = Message::<W>::parse(&frame)?;
    let (named, rank) = match envelope {
        Envelope::Broadcast { awaited } => {
            let me = turn.me();
            (awaited.contains(me), awaited.rank_by_id(me))
        }
        _ => (true, 0),
    };
    if frame.kind == Kind::Hello {
        return turn.hello(&opened, named, &message);
    }
    turn.admit(&frame)?;
    if let Message::Clash { instance } = message {
        turn.clash_heard(frame.source, instance);
        return Ok(());
    }
    if life != Life::Up {
        return Err(Reject::Down);
    }
    turn.node.seen.insert(frame.source);
    if matches!(election, Election::Invitation(_)) && turn.held_off(frame.source) {
        return Err(Reject::HeldOff);
    }
    if turn.node.rises(frame.source, frame.boot) {
        turn.suspicion_proved_wrong(frame.source);
    }
    match envelope {
        Envelope::Reply { requester_boot } => {
            let (boot, errata) = (turn.node.boot, turn.node.config.errata);
            let answers = (requester_boot, frame.call);
            if let Some(taken) = turn.node.call.time(frame.source, answers, boot, turn.node.now) {
                turn.node.round_trips.note(taken);
            }
            let standing = turn.node.call.reply(frame.source, frame.kind, answers, boot, errata)?;
            match election {
                Election::Bully(bully) => bully.reply(turn, frame.source, standing, message),
                Election::Invitation(invitation) => {
                    invitation.reply(turn, frame.source, standing, message)
                }
                Election::Ring(ring) => ring.reply(turn, frame.source, standing, message),
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
            match election {
                Election::Bully(bully) => bully.request(turn, &request, message),
                Election::Invitation(invitation) => invitation.request(turn, &request, message),
                Election::Ring(ring) => ring.request(turn, &request, message),
            }
        }
    }
}
