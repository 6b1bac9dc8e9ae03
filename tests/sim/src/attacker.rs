//! An attacker on the wire: it hears every datagram, keeps many, and puts in its own.
//!
//! It replays what it heard (also long after, also to a node that has just rebooted), reflects it to
//! its sender, cuts it, changes bits, rewrites headers, and seals with a key of its own. It has not
//! got the key of the flock. What it must not be blamed for is delay: a datagram to a node that never
//! reached this boot of it is only late when it is played, as on a slow network.
//!
//! Its choices come from a generator of its own, and its frames take neither room in the receive
//! queue nor time. So what they do to a node is all that they do to a run: the node may say Hello to
//! somebody who is not there. Everything else is checked at once, on the node that was hit.

use std::collections::BTreeSet;
use std::rc::Rc;

use bellwether::id::NodeId;
use bellwether::key::{KEY_BYTES, LinkKey};
use bellwether::link::seal::{self, Header};
use bellwether::node::{Event, Node};
use bellwether::state::Status;
use bellwether::timers::Timer;
use bellwether::wire::{Destination, Envelope, Kind, Message};

use crate::clock::Time;
use crate::machine::Packet;
use crate::world::{Happening, World};

/// How many datagrams the attacker keeps; later ones take the place of any. A run of a large flock has
/// some ten thousand: what is kept is then a sample of all of it, the first boots included.
const RECORDED_MAX: usize = 4096;

/// A datagram that was on the wire.
#[derive(Debug, Clone)]
struct Recorded {
    packet: Rc<Packet>,
    sent: Time,
}

/// Which datagram something is an exact copy of.
type CopyOf = Option<Recorded>;

#[derive(Debug)]
pub struct Attacker {
    rng: fastrand::Rng,
    recorded: Vec<Recorded>,
    /// Datagrams that it put in.
    pub frames: u64,
}

impl Attacker {
    pub fn new(seed: u64) -> Self {
        Self { rng: fastrand::Rng::with_seed(seed), recorded: Vec::new(), frames: 0 }
    }

    pub fn hear(&mut self, packet: &Rc<Packet>, sent: Time) {
        let recorded = Recorded { packet: Rc::clone(packet), sent };
        if self.recorded.len() < RECORDED_MAX {
            self.recorded.push(recorded);
        } else {
            let place = self.rng.usize(0..RECORDED_MAX);
            self.recorded[place] = recorded;
        }
    }

    /// What to say next: the bytes, and which datagram they are a copy of.
    fn choose(&mut self) -> Option<(Vec<u8>, CopyOf)> {
        if self.recorded.is_empty() {
            return None;
        }
        let rng = &mut self.rng;
        let recorded = &self.recorded[rng.usize(0..self.recorded.len())];
        let packet = &recorded.packet;
        let mut bytes = packet.bytes.to_vec();
        match rng.u8(0..8) {
            0..=2 => return Some((bytes, Some(recorded.clone()))),
            3 => bytes.truncate(rng.usize(0..bytes.len())),
            4 => bytes.push(rng.u8(..)),
            5 => {
                for _ in 0..rng.usize(1..4) {
                    let bit = rng.usize(0..bytes.len() * 8);
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
            }
            // Kind, source, destination, boot epoch, sequence or key.
            6 => {
                let place = [1, 4, 5, 6, 7, 9, 10, 13, 14][rng.usize(0..9)];
                bytes[place] = bytes[place].wrapping_add(rng.u8(1..4));
            }
            _ => return forged(rng, &bytes).map(|bytes| (bytes, None)),
        }
        (bytes != *packet.bytes).then_some((bytes, None))
    }
}

/// A Halt, a Beat or a question in the name of a member, of its next boot or of its next datagrams,
/// under another key.
fn forged(rng: &mut fastrand::Rng, model: &[u8]) -> Option<Vec<u8>> {
    let model = Header::new_checked(model).ok()?;
    let group = bellwether::id::GroupId { coordinator: model.source, number: 99 << 32 };
    let message: Message<'_, 4> = match rng.u8(0..3) {
        0 => Message::Halt { group, binding: true },
        1 => Message::Beat { group, normal: true },
        _ => Message::AreYouThere { group: None, status: Status::Down },
    };
    let awaited = (1..=255).filter_map(NodeId::new).collect();
    let header = Header {
        kind: message.kind(),
        destination: Destination::All,
        boot: model.boot + if rng.bool() { 2 } else { 0 },
        sequence: model.sequence.saturating_add(rng.u32(1..100_000)),
        ..model
    };
    let key = LinkKey::new(std::array::from_fn::<_, KEY_BYTES, _>(|_| rng.u8(..)));
    let envelope = Envelope::Broadcast { awaited };
    let mut room = [0; 200];
    let len = seal::seal(&header, &key, (1, 0), &envelope, &message, &mut room)?;
    Some(room[..len].to_vec())
}

/// A node without the link's own bookkeeping: what no datagram of an attacker may change. If a node is
/// printed otherwise than is thought here, all of it is compared, and every attack is reported.
fn essence<const W: usize>(node: &Node<W>) -> String {
    let text = format!("{node:?}");
    without_bookkeeping(&text).unwrap_or(text)
}

/// Leaves out the link, the time, the count of refusals, and the timers of the link: a Hello may be owed.
fn without_bookkeeping(text: &str) -> Option<String> {
    let mut text = text.to_owned();
    for field in ["link: Link {", " now: Instant(", "rejected: ["] {
        let from = text.find(field)?;
        let open = from + field.len() - 1;
        let mut depth = 0;
        let close = text.as_bytes()[open..].iter().position(|letter| {
            match letter {
                b'{' | b'(' | b'[' => depth += 1,
                b'}' | b')' | b']' => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        text.replace_range(from..=open + close, "");
    }
    let from = text.find("deadlines: [")? + "deadlines: [".len();
    let to = from + text[from..].find(']')?;
    let deadlines = text[from..to].split(", ").enumerate();
    let own = [Timer::Greeting as usize, Timer::Hello as usize];
    let others: Vec<&str> =
        deadlines.filter(|(index, _)| !own.contains(index)).map(|(_, deadline)| deadline).collect();
    let others = others.join(", ");
    text.replace_range(from..to, &others);
    Some(text)
}

/// Sender and addressee (0: all), which stand in the clear.
fn parties(bytes: &[u8]) -> Option<(u8, u8)> {
    bytes.get(4).copied().zip(bytes.get(5).copied())
}

/// Whether two runs ended in the same groups, given the coordinator that each live node follows. Faults
/// look at the flock before they strike, at its coordinator or at a node that is up: where they struck
/// another node, so that others live at the end, there is nothing to compare. Without preemption a
/// coordinator keeps a role that chance gave it: then only the sizes of the groups are the same.
pub fn same_groups(one: &[Option<u8>], other: &[Option<u8>], preempt: bool) -> bool {
    let sizes = |ending: &[Option<u8>]| {
        let groups: BTreeSet<u8> = ending.iter().flatten().copied().collect();
        let size = |group| ending.iter().filter(|followed| **followed == Some(group)).count();
        let mut sizes: Vec<usize> = groups.into_iter().map(size).collect();
        sizes.sort_unstable();
        sizes
    };
    let alive = |ending: &[Option<u8>]| ending.iter().map(Option::is_some).collect::<Vec<_>>();
    alive(one) != alive(other) || one == other || !preempt && sizes(one) == sizes(other)
}

impl<const W: usize> World<W> {
    /// Lets an attacker on the wire.
    pub fn attack(&mut self, seed: u64) {
        self.attacker = Some(Attacker::new(seed));
        self.schedule(self.now + 1, Happening::Attack);
    }

    /// One datagram of the attacker, and the time of the next.
    pub(crate) fn attacked(&mut self) {
        let Some(mut attacker) = self.attacker.take() else { return };
        let target = self.victim(&mut attacker.rng);
        if let Some((bytes, copy_of)) = attacker.choose()
            && self.is_hit(target, &copy_of)
        {
            attacker.frames += 1;
            self.put_in(target, bytes, copy_of.is_some());
        }
        let pause = attacker.rng.u64(0..2 * self.timing().t.us());
        self.schedule(self.now + pause.max(1), Happening::Attack);
        self.attacker = Some(attacker);
    }

    /// Any node, but often the one that knows least: the last that woke.
    fn victim(&self, rng: &mut fastrand::Rng) -> usize {
        let running = (0..self.machines.len()).filter(|node| self.is_running(*node));
        match running.max_by_key(|node| self.machines[*node].woke_at) {
            Some(newest) if rng.u8(0..3) == 0 => newest,
            _ => rng.usize(0..self.machines.len()),
        }
    }

    /// Whether the node takes frames at all, and this one is no mere delay.
    fn is_hit(&self, target: usize, copy_of: &CopyOf) -> bool {
        let machine = &self.machines[target];
        let me = target as u8 + 1;
        let meant = |packet: &Packet| {
            parties(&packet.bytes).is_some_and(|(from, to)| from != me && (to == 0 || to == me))
        };
        let late = |Recorded { packet, sent }: &Recorded| {
            *sent >= machine.woke_at && meant(packet) && !machine.handled.contains(&packet.id)
        };
        self.is_running(target) && !machine.blocked && !copy_of.as_ref().is_some_and(late)
    }

    fn put_in(&mut self, target: usize, mut bytes: Vec<u8>, copy: bool) {
        let look = |world: &Self| {
            let node = world.machines[target].node.as_ref()?;
            Some((node.counters().datagrams_accepted, essence(node)))
        };
        let received = self.machines[target].clock.local(self.now);
        let kind = bytes.get(1).copied().and_then(|byte| {
            Kind::ALL.into_iter().find(|kind| *kind as u8 == byte).map(Kind::name)
        });
        self.give_ticks(target);
        let before = look(self);
        self.step(target, Event::Datagram { received, bytes: &mut bytes });
        if look(self) != before {
            let what = format!("node {}: {kind:?}, a copy: {copy}", target + 1);
            self.checker.violation(self.now, "an attacker's datagram was accepted", what);
        }
        self.run_machine(target);
    }
}
