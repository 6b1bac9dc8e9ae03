//! A bench for one node: lets time pass, feeds it datagrams of its peers, decodes what it does.

extern crate std;

use super::{Event, Node};
use crate::config::{Algorithm, Config, Durability, Timing};
use crate::effects::{Effect, FailCause, Note, Ticket};
use crate::id::{GroupId, NodeId, NodeSet};
use crate::key::{KEY_BYTES, Keys, LinkKey};
use crate::link::{Header, look_into, seal};
use crate::state::{StateVector, Status};
use crate::station::Station;
use crate::time::{Duration, Instant};
use crate::timers::Timer;
use crate::wire::{DATAGRAM_BYTES_MAX, Destination, Echoes, Envelope, Kind, Message, Reject};
use std::boxed::Box;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::vec::Vec;

/// The epoch that a node on the bench finds stored, and the one that it runs in.
pub const STORED_EPOCH: u32 = 40;
pub const BOOT: u32 = STORED_EPOCH + 2;
/// The epoch of all peers.
pub const PEER_BOOT: u32 = 7;
/// Tells the board of the node on the bench from others.
pub const INSTANCE: u32 = 0x1257_a7ce;

/// The key of the flock.
pub fn keys() -> Keys {
    Keys::one(1, LinkKey::new([0x5a; KEY_BYTES]))
}

pub fn id(n: u8) -> NodeId {
    NodeId::new(n).expect("ids start at 1")
}

pub fn set<const W: usize>(ids: impl IntoIterator<Item = u8>) -> NodeSet<W> {
    ids.into_iter().map(id).collect()
}

/// The `seq`th group or election of a peer.
pub fn group_of(coordinator: u8, seq: u32) -> GroupId {
    let boot = u64::from(PEER_BOOT);
    GroupId { coordinator: id(coordinator), number: boot << 32 | u64::from(seq) }
}

/// The `seq`th group or election of the node on the bench.
pub fn own_group(me: u8, seq: u32) -> GroupId {
    GroupId { coordinator: id(me), number: u64::from(BOOT) << 32 | u64::from(seq) }
}

/// Tm = 20 ms, Tp = 10 ms, Ts = 5 ms and the least T that goes with them.
pub fn timing() -> Timing {
    let ms = Duration::from_millis;
    Timing::derive(ms(20), ms(10), ms(5))
}

/// Node `me` of the nodes 1 to `nodes`, all of equal preference.
pub fn config<const W: usize>(me: u8, nodes: u8, algorithm: Algorithm) -> Config<W> {
    let mut config = Config::new(id(me), algorithm, Durability::Group, timing());
    for node in 1..=nodes {
        config.add_member(node, 0).expect("a good table");
    }
    config
}

/// A datagram of the node on the bench, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent<const W: usize> {
    pub to: Destination,
    pub call: u32,
    /// The boot in which the node knows the receiver.
    pub receiver: u32,
    pub envelope: Envelope<W>,
    pub message: Message<'static, W>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act<const W: usize> {
    Sent(Sent<W>),
    Other(Effect<'static, W>),
}

/// What the node did in one step or in several.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Acts<const W: usize>(pub Vec<Act<W>>);

impl<const W: usize> Acts<W> {
    /// For steps that only lead to the one that matters.
    pub fn ignore(self) {}

    #[track_caller]
    pub fn none(self) {
        assert_eq!(self.0, [], "nothing was to be done");
    }

    pub fn sent(&self) -> Vec<Sent<W>> {
        let sent = self.0.iter().filter_map(|act| match act {
            Act::Sent(sent) => Some(*sent),
            Act::Other(_) => None,
        });
        sent.collect()
    }

    pub fn messages(&self) -> Vec<Message<'static, W>> {
        self.sent().into_iter().map(|sent| sent.message).collect()
    }

    pub fn notes(&self) -> Vec<Note> {
        let notes = self.0.iter().filter_map(|act| match act {
            Act::Other(Effect::Note(note)) => Some(*note),
            _ => None,
        });
        notes.collect()
    }

    pub fn has(&self, effect: Effect<'static, W>) -> bool {
        self.position(effect).is_some()
    }

    pub fn position(&self, effect: Effect<'static, W>) -> Option<usize> {
        self.0.iter().position(|act| *act == Act::Other(effect))
    }

    /// Where in the order of things the first datagram left.
    pub fn first_sent(&self) -> Option<usize> {
        self.0.iter().position(|act| matches!(act, Act::Sent(_)))
    }

    /// The one broadcast: whom it names, and what it says.
    #[track_caller]
    pub fn broadcast(&self) -> (Vec<u8>, Message<'static, W>) {
        let sent = self.sent();
        let [Sent { to: Destination::All, envelope, message, .. }] = sent[..] else {
            panic!("one broadcast, not {sent:?}")
        };
        let Envelope::Broadcast { awaited } = envelope else { panic!("{envelope:?}") };
        (awaited.iter().map(NodeId::get).collect(), message)
    }

    /// The one datagram to one node: who it is, and what it says.
    #[track_caller]
    pub fn unicast(&self) -> (u8, Message<'static, W>) {
        let sent = self.sent();
        let [Sent { to: Destination::Node(to), message, .. }] = sent[..] else {
            panic!("one datagram to one node, not {sent:?}")
        };
        (to.get(), message)
    }

    /// The one save, which nothing waits for.
    #[track_caller]
    pub fn save(&self) -> Ticket {
        let saves = self.0.iter().filter_map(|act| match act {
            Act::Other(Effect::SaveState { ticket, wait: false }) => Some(*ticket),
            _ => None,
        });
        let saves: Vec<_> = saves.collect();
        let [ticket] = saves[..] else { panic!("one save, not {saves:?}") };
        ticket
    }

    /// The one request to the application: for which group, and for whom.
    #[track_caller]
    pub fn reorganize(&self) -> (GroupId, Vec<u8>) {
        let asked = self.0.iter().filter_map(|act| match act {
            Act::Other(Effect::Reorganize { group, members }) => Some((*group, *members)),
            _ => None,
        });
        let asked: Vec<_> = asked.collect();
        let [(group, members)] = asked[..] else { panic!("asked once, not {asked:?}") };
        (group, members.iter().map(NodeId::get).collect())
    }

    pub fn failed(&self) -> Option<FailCause> {
        self.0.iter().find_map(|act| match act {
            Act::Other(Effect::FailSelf(cause)) => Some(*cause),
            _ => None,
        })
    }

    pub fn stops(&self) -> bool {
        self.has(Effect::StopApplication)
    }

    pub fn starts(&self) -> bool {
        self.has(Effect::StartApplication)
    }
}

impl<const W: usize> Node<W> {
    pub fn station(&self) -> &Station<W> {
        &self.turn.node
    }
}

/// A node with the clock, the network and the storage in the hands of a test.
#[derive(Debug)]
pub struct Bench<const W: usize> {
    pub node: Node<W>,
    pub now: Instant,
    /// The call number of the latest request that a peer sent.
    pub peer_call: u32,
    /// The sequence number of the latest datagram that a peer made.
    pub peer_sequence: Cell<u32>,
    /// The boots of the peers, of those that have rebooted.
    peer_boots: BTreeMap<u8, u32>,
    /// The Hellos of the node. They are the link's affair: its tests look at them here.
    pub hellos: Vec<Sent<W>>,
    /// The versions of the datagrams of the last step.
    pub versions: Vec<u8>,
    last_tick: Instant,
}

impl<const W: usize> Bench<W> {
    /// Power is still off.
    pub fn off(config: Config<W>) -> Self {
        Self {
            node: Node::new(config, keys(), INSTANCE).expect("a good configuration"),
            now: Instant(1_000_000),
            peer_call: 100,
            peer_sequence: Cell::new(0),
            peer_boots: BTreeMap::new(),
            hellos: Vec::new(),
            versions: Vec::new(),
            last_tick: Instant(0),
        }
    }

    /// The node has booted, its epoch is durable, all others have answered its greeting, and that is
    /// over; also what it did then.
    pub fn booted(config: Config<W>) -> (Self, Acts<W>) {
        let (mut bench, mut acts) = Self::waking(config);
        if bench.due_in(Timer::Greeting).is_some_and(|wait| wait < bench.timing().tp) {
            acts = bench.fire(Timer::Greeting);
        }
        for other in bench.node.config().others().iter() {
            acts.none();
            acts = bench.request(other.get(), Self::answer_to_greeting());
        }
        if bench.due_in(Timer::Greeting).is_some() {
            acts.none();
            acts = bench.fire(Timer::Greeting);
        }
        (bench, acts)
    }

    /// The node has booted and its epoch is durable.
    pub fn waking(config: Config<W>) -> (Self, Acts<W>) {
        let mut bench = Self::off(config);
        let boot = bench.step(Event::Boot { stored_epoch: Some(STORED_EPOCH) });
        assert_eq!(boot.0, [Act::Other(Effect::SaveEpoch(BOOT))]);
        let acts = bench.step(Event::EpochSaved { read_back: Some(BOOT) });
        (bench, acts)
    }

    /// What a node that is awake says to one that is not proven to it yet.
    pub fn answer_to_greeting() -> Message<'static, W> {
        let echoes = Echoes::NONE;
        Message::Hello { asks: true, waking: false, uptime_ms: 9, instance: 0, echoes }
    }

    pub fn step(&mut self, event: Event<'_>) -> Acts<W> {
        if matches!(event, Event::Boot { .. } | Event::Tick) {
            self.last_tick = self.now;
        }
        let effects = self.node.step(self.now, event);
        assert_eq!(effects.overflowed(), 0, "effects were lost");
        let version = |effect| match effect {
            Effect::Send { datagram, .. } => datagram.first().copied(),
            _ => None,
        };
        self.versions = effects.iter().filter_map(version).collect();
        let mut acts: Vec<_> = effects.iter().map(decoded).collect();
        acts.retain(|act| match act {
            Act::Sent(sent) if sent.message.kind() == Kind::Hello => {
                self.hellos.push(*sent);
                false
            }
            _ => true,
        });
        Acts(acts)
    }

    // --- looking at the node ----------------------------------------------------------------

    /// Until when the datagrams of the last step may leave.
    pub fn leaves_by(&self) -> Option<Instant> {
        self.node.effects().leaves_by()
    }

    pub fn state(&self) -> &StateVector<W> {
        self.node.state_vector()
    }

    pub fn status(&self) -> Status {
        self.state().status
    }

    pub fn coordinator(&self) -> Option<u8> {
        self.state().coordinator.map(NodeId::get)
    }

    pub fn up(&self) -> Vec<u8> {
        self.state().up.iter().map(NodeId::get).collect()
    }

    pub fn definition(&self) -> Option<&[u8]> {
        self.state().definition.as_ref().map(|definition| definition.as_bytes())
    }

    pub fn timing(&self) -> Timing {
        self.node.config().timing
    }

    pub fn rejected(&self, reason: Reject) -> u32 {
        self.node.counters().rejected(reason)
    }

    /// How long until this timer is due.
    pub fn due_in(&self, timer: Timer) -> Option<Duration> {
        self.node.turn.node.timers.deadline(timer).map(|at| at.since(self.now))
    }

    pub fn station_mut(&mut self) -> &mut Station<W> {
        &mut self.node.turn.node
    }

    // --- time -------------------------------------------------------------------------------

    /// Lets time pass with its ticks and nothing else.
    fn run_to(&mut self, then: Instant) {
        let quarter = self.timing().tp.fraction(1, 4);
        while self.last_tick + quarter <= then {
            self.now = self.last_tick + quarter;
            self.step(Event::Tick).none();
        }
        self.now = then.max(self.now);
    }

    /// Time passes up to the next deadline, whose timer fires.
    pub fn next(&mut self) -> Acts<W> {
        let deadline = self.node.next_deadline().expect("a deadline");
        self.run_to(deadline);
        self.step(Event::Timer)
    }

    /// Time passes, and the timers that are due on the way fire; all that was done.
    pub fn pass(&mut self, span: Duration) -> Acts<W> {
        let end = self.now + span;
        let mut all = Vec::new();
        while self.node.next_deadline().is_some_and(|at| at <= end) {
            all.extend(self.next().0);
        }
        self.run_to(end);
        Acts(all)
    }

    /// Time passes until this timer fires; what that alone did.
    #[track_caller]
    pub fn fire(&mut self, timer: Timer) -> Acts<W> {
        for _ in 0..1000 {
            assert!(self.due_in(timer).is_some(), "{timer:?} is not set");
            let deadline = self.node.next_deadline().expect("a deadline");
            let first = self.node.turn.node.timers.clone().take_due(deadline);
            let acts = self.next();
            if first == Some(timer) {
                return acts;
            }
        }
        panic!("{timer:?} is put off for ever")
    }

    /// Time passes while nothing happens, however late timers get.
    pub fn sleep(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    // --- datagrams --------------------------------------------------------------------------

    pub fn receive(&mut self, bytes: &[u8]) -> Acts<W> {
        self.receive_late(self.now, bytes)
    }

    /// A datagram that has waited since `received`.
    pub fn receive_late(&mut self, received: Instant, bytes: &[u8]) -> Acts<W> {
        self.step(Event::Datagram { received, bytes: &mut bytes.to_vec() })
    }

    /// From now on the datagrams of this peer are of another boot of it.
    pub fn reboot_peer(&mut self, peer: u8) {
        *self.peer_boots.entry(peer).or_insert(PEER_BOOT) += 2;
    }

    /// A new broadcast of a peer that names `awaited`.
    pub fn hear(&mut self, from: u8, awaited: &[u8], message: Message<'_, W>) -> Acts<W> {
        self.peer_call += 1;
        self.hear_again(from, awaited, message)
    }

    /// The same broadcast again, or another one under the same call number.
    pub fn hear_again(&mut self, from: u8, awaited: &[u8], message: Message<'_, W>) -> Acts<W> {
        let awaited = set(awaited.iter().copied());
        let envelope = Envelope::Broadcast { awaited };
        let bytes = self.datagram(from, Destination::All, self.peer_call, envelope, message);
        self.receive(&bytes)
    }

    /// A new request of a peer to this node alone.
    pub fn request(&mut self, from: u8, message: Message<'_, W>) -> Acts<W> {
        self.peer_call += 1;
        self.request_again(from, message)
    }

    /// The same request again, or another one under the same call number.
    pub fn request_again(&mut self, from: u8, message: Message<'_, W>) -> Acts<W> {
        let to = Destination::Node(self.node.config().id);
        let bytes = self.datagram(from, to, self.peer_call, Envelope::Request, message);
        self.receive(&bytes)
    }

    /// A reply of a peer to the open round.
    pub fn reply(&mut self, from: u8, message: Message<'_, W>) -> Acts<W> {
        let bytes = self.reply_datagram(from, message);
        self.receive(&bytes)
    }

    pub fn reply_datagram(&self, from: u8, message: Message<'_, W>) -> Vec<u8> {
        let to = Destination::Node(self.node.config().id);
        let call = self.node.turn.node.call.number();
        let envelope = Envelope::Reply { requester_boot: self.node.boot_epoch() };
        self.datagram(from, to, call, envelope, message)
    }

    pub fn datagram(
        &self,
        from: u8,
        destination: Destination,
        call: u32,
        envelope: Envelope<W>,
        message: Message<'_, W>,
    ) -> Vec<u8> {
        self.peer_sequence.set(self.peer_sequence.get() + 1);
        let header = self.header(from, destination, message.kind());
        let numbers = (call, self.node.boot_epoch());
        let mut room = [0; DATAGRAM_BYTES_MAX];
        let key = &keys().send.key;
        let len = seal::seal(&header, key, numbers, &envelope, &message, &mut room);
        room[..len.expect("it fits")].to_vec()
    }

    /// The header of a peer's latest datagram.
    pub fn header(&self, from: u8, destination: Destination, kind: Kind) -> Header {
        Header {
            kind,
            network: self.node.config().network,
            source: id(from),
            destination,
            boot: self.peer_boots.get(&from).copied().unwrap_or(PEER_BOOT),
            sequence: self.peer_sequence.get(),
            key: 1,
        }
    }

    // --- storage and application ------------------------------------------------------------

    pub fn saved(&mut self, ticket: Ticket) -> Acts<W> {
        self.step(Event::Saved(ticket))
    }

    pub fn reorganized(&mut self, group: GroupId, definition: &[u8]) -> Acts<W> {
        self.step(Event::Reorganized { group, definition })
    }
}

fn decoded<const W: usize>(effect: Effect<'_, W>) -> Act<W> {
    Act::Other(match effect {
        Effect::Send { to, kind, datagram } => {
            assert!(datagram.len() <= DATAGRAM_BYTES_MAX);
            // Kept for ever, so that a test can hold on to the message. Tests end soon.
            let datagram: &'static mut [u8] = Box::leak(datagram.into());
            let opened = look_into(&keys(), datagram).expect("a datagram that can be opened");
            let frame = opened.frame;
            let (envelope, message) = Message::parse(&frame).expect("a message");
            assert_eq!((frame.kind, frame.destination), (kind, to));
            let (call, receiver) = (frame.call, opened.receiver);
            return Act::Sent(Sent { to, call, receiver, envelope, message });
        }
        Effect::SaveEpoch(epoch) => Effect::SaveEpoch(epoch),
        Effect::SaveState { ticket, wait } => Effect::SaveState { ticket, wait },
        Effect::StopApplication => Effect::StopApplication,
        Effect::Reorganize { group, members } => Effect::Reorganize { group, members },
        Effect::StartApplication => Effect::StartApplication,
        Effect::FailSelf(cause) => Effect::FailSelf(cause),
        Effect::Note(note) => Effect::Note(note),
        Effect::Election(group) => Effect::Election(group),
    })
}
