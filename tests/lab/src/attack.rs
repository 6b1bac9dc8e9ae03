//! An attacker on the wire: garbage, forgeries and replays, ten thousand frames a second.
//!
//! It has no key. It sees every frame, and sends whatever it likes to whomever it likes.

use std::collections::BTreeMap;
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bellwether_scenario::{Algorithm, Scenario, What};

use crate::clock::Clock;
use crate::display::settled;
use crate::flash::{NETWORK, PORT};
use crate::flock::Flock;
use crate::probe::Image;
use crate::switch::Injector;

/// For the whole flock together.
const FRAMES_PER_SECOND: u64 = 10_000;
/// Each millisecond or so.
const FRAMES_AT_ONCE_MAX: u64 = 40;
/// A host that cannot send as many has not made the attack that was asked for.
const FRAMES_PER_SECOND_MIN: f64 = 9_500.0;
const NODES: u8 = 5;
/// The boards report what they refused once a second.
const REPORTED: Duration = Duration::from_millis(2_500);
/// Between two looks at the boards.
const LOOK: Duration = Duration::from_millis(50);
const HEADERS_BYTES: usize = 14 + 20 + 8;

/// What the attacker sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weapon {
    /// Datagrams to the right port with random content, and frames that are no datagrams at all.
    Garbage,
    /// Datagrams whose clear part looks right: known sender, living boot, number to come.
    Forgery,
    /// Frames that were on the wire before, as they were.
    Replay,
}

/// What the tests are called, and what is used in them.
pub const TESTS: [(&str, Weapon); 3] = [
    ("an attacker on the wire: garbage", Weapon::Garbage),
    ("an attacker on the wire: forgeries", Weapon::Forgery),
    ("an attacker on the wire: replays", Weapon::Replay),
];

/// Attacks a settled flock with a weapon for this long. Nothing may change: no state, no reset, no
/// election. Says what the boards refused, and why.
pub fn run(image: &Arc<Image>, weapon: Weapon, lasting: Duration) -> Result<String, String> {
    let mut scenario = Scenario::undisturbed(Algorithm::Bully, NODES, 0);
    (scenario.tm_us, scenario.tp_us) = (100_000, 200_000);
    let mut flock = Flock::prepare(&scenario, from_ref(image), None)?;
    flock.switch.record();
    flock.begin();
    flock.boot(1..=NODES)?;
    let end = flock.now() + Duration::from_secs(20);
    while settled(flock.watch.seen()) != Some(NODES) {
        flock.look_after()?;
        if flock.now() > end {
            return Err("the flock did not settle before the attack".into());
        }
        flock.listen_for(Duration::from_millis(20));
    }
    // The attacker learns what ordinary traffic looks like.
    let mut refused = Refused::default();
    quiet(&mut flock, Duration::from_secs(3), &mut refused)?;
    refused.begin();
    let attack = {
        let (injector, recorded) = (flock.switch.injector(), flock.switch.recorded());
        Attack::begin(injector, weapon, recorded, flock.clock.clone())
    };
    let mut held = quiet(&mut flock, lasting, &mut refused);
    let sent = attack.end();
    if held.is_ok() {
        held = quiet(&mut flock, REPORTED, &mut refused);
    }
    let rate = sent as f64 / lasting.as_secs_f64();
    let seen = format!("Tp {} ms; refused: {}", scenario.tp_us / 1000, refused.since());
    let failed = |why: String| format!("{why}; {seen}");
    held.map_err(failed)?;
    if rate < FRAMES_PER_SECOND_MIN {
        return Err(failed(format!("only {rate:.0} frames a second could be sent")));
    }
    if let Some(node) = (1..=NODES).find(|node| refused.of(*node, weapon.reason()) == 0) {
        return Err(failed(format!("node {node} counts no {}", weapon.reason())));
    }
    Ok(format!("{} s, {rate:.0} frames a second, {seen}", lasting.as_secs()))
}

/// For so long nothing may happen but refusals.
fn quiet(flock: &mut Flock, span: Duration, refused: &mut Refused) -> Result<(), String> {
    let until = flock.now() + span;
    while flock.now() < until {
        flock.look_after()?;
        let Some(said) = flock.listen(until.min(flock.now() + LOOK)) else {
            continue;
        };
        for key in ["noise", "crowded"].iter().filter(|_| said.line.word == "door") {
            refused.note(said.node, (*key).to_owned(), said.line.number(key).unwrap_or(0));
        }
        if said.line.word == "reject" {
            let reason = said.line.get("reason").unwrap_or("?").to_owned();
            refused.note(said.node, reason, said.line.number("count").unwrap_or(0));
        }
        for event in &said.events {
            match &event.what {
                What::Send { .. } => {}
                other => return Err(format!("node {}: {other:?}", event.node)),
            }
        }
    }
    Ok(())
}

/// The counters of the boards: as they were when the weapon was drawn, and as they are.
#[derive(Default)]
struct Refused {
    before: BTreeMap<(u8, String), u64>,
    now: BTreeMap<(u8, String), u64>,
}

impl Refused {
    fn begin(&mut self) {
        self.before = self.now.clone();
    }

    fn note(&mut self, node: u8, reason: String, count: u64) {
        self.now.insert((node, reason), count);
    }

    /// How many of a kind one node has refused since then.
    fn of(&self, node: u8, reason: &str) -> u64 {
        let key = (node, reason.to_owned());
        let count = |counts: &BTreeMap<_, u64>| counts.get(&key).copied().unwrap_or(0);
        count(&self.now).saturating_sub(count(&self.before))
    }

    fn since(&self) -> String {
        let mut by_reason = BTreeMap::<&str, u64>::new();
        for (node, reason) in self.now.keys() {
            *by_reason.entry(reason).or_default() += self.of(*node, reason);
        }
        let shown = by_reason.iter().filter(|(_, count)| **count > 0);
        shown.map(|(reason, count)| format!("{reason}={count}")).collect::<Vec<_>>().join(" ")
    }
}

/// A thread that sends until it is told to stop.
struct Attack {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: std::thread::JoinHandle<()>,
}

impl Attack {
    fn begin(injector: Injector, weapon: Weapon, recorded: Vec<Vec<u8>>, clock: Clock) -> Self {
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&sent));
        let thread = std::thread::spawn(move || {
            let mut rng = fastrand::Rng::with_seed(7);
            let datagrams: Vec<Vec<u8>> =
                recorded.into_iter().filter(|frame| is_datagram(frame)).collect();
            let began = clock.now();
            let mut made = 0;
            while !stopped.load(Ordering::Relaxed) {
                let due =
                    clock.now().since(began).as_micros() as u64 * FRAMES_PER_SECOND / 1_000_000;
                // What a host that was away owes is made up for little by little: all at once would be
                // another attack.
                let due = due.min(made + FRAMES_AT_ONCE_MAX);
                while made < due {
                    let to = rng.usize(0..usize::from(NODES));
                    let frame = weapon.frame(&datagrams, to, &mut rng);
                    count.fetch_add(u64::from(injector.send(to, &frame)), Ordering::Relaxed);
                    made += 1;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { stop, sent, thread }
    }

    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
        self.sent.load(Ordering::Relaxed)
    }
}

impl Weapon {
    /// What every node must have counted.
    fn reason(self) -> &'static str {
        match self {
            Self::Garbage => "noise",
            Self::Forgery => "forged",
            Self::Replay => "replayed",
        }
    }

    fn frame(self, datagrams: &[Vec<u8>], to: usize, rng: &mut fastrand::Rng) -> Vec<u8> {
        match self {
            Self::Garbage => {
                // No wire carries less than a header, and to QEMU an empty frame ends the cable.
                let len = rng.usize(14..200);
                let payload: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
                if rng.bool() { datagram(to, rng, &payload) } else { payload }
            }
            Self::Replay => datagrams[rng.usize(0..datagrams.len())].clone(),
            Self::Forgery => {
                let frame = &datagrams[rng.usize(0..datagrams.len())];
                let mut payload = frame[HEADERS_BYTES..].to_vec();
                // The number of a sealed datagram: far above all that its sender has used.
                if let Some(sequence) = payload.get_mut(10..14) {
                    let number = rng.u32(100_000..1_000_000);
                    sequence.copy_from_slice(&number.to_le_bytes());
                }
                let last = payload.len() - 1;
                payload[last] ^= rng.u8(1..);
                datagram(to, rng, &payload)
            }
        }
    }
}

fn is_datagram(frame: &[u8]) -> bool {
    frame.len() > HEADERS_BYTES + 15 && frame[12..14] == [8, 0] && frame[23] == 17
}

/// A frame of the flock: to the group of one node, from some node's address.
fn datagram(to: usize, rng: &mut fastrand::Rng, payload: &[u8]) -> Vec<u8> {
    let [_, network] = NETWORK.to_be_bytes();
    let (from, to) = (rng.u8(1..=NODES), to as u8 + 1);
    let mut frame = vec![0x01, 0x00, 0x5e, 0x40, network, to];
    frame.extend([0x02, 0, 0, 0, 0, from, 0x08, 0x00]);
    let total = (20 + 8 + payload.len()) as u16;
    let mut ip =
        [0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 66, network, from, 239, 192, network, to];
    ip[2..4].copy_from_slice(&total.to_be_bytes());
    let sum = ip.as_chunks::<2>().0.iter().map(|pair| u32::from(u16::from_be_bytes(*pair))).sum();
    ip[10..12].copy_from_slice(&checksum(sum).to_be_bytes());
    frame.extend(ip);
    let len = (8 + payload.len()) as u16;
    // A UDP checksum of 0: none.
    for word in [PORT, PORT, len, 0] {
        frame.extend(word.to_be_bytes());
    }
    frame.extend(payload);
    frame
}

fn checksum(sum: u32) -> u16 {
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}
