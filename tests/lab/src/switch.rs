//! The Ethernet switch: every frame of a board comes here, and here its fate is drawn.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bellwether_scenario::{Action, LinkQuality};

use crate::machine::Files;
use crate::pcap::Pcap;

const FRAME_BYTES_MAX: usize = 2048;
const RETRY: Duration = Duration::from_millis(1);

struct Delayed {
    due: Instant,
    order: u64,
    to: usize,
    frame: Vec<u8>,
    /// A board whose input is full is tried again until then.
    give_up: Option<Instant>,
}

impl PartialEq for Delayed {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}
impl Eq for Delayed {}
impl PartialOrd for Delayed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Delayed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.order).cmp(&(other.due, other.order))
    }
}

struct State {
    nodes: usize,
    /// The id of the board at each port.
    hosts: Vec<u8>,
    links: Vec<LinkQuality>,
    side: Vec<usize>,
    plugged: Vec<bool>,
    powered: Vec<bool>,
    rng: fastrand::Rng,
    delayed: BinaryHeap<Reverse<Delayed>>,
    order: u64,
    pcap: Option<Pcap>,
    /// What an attacker has seen, if one listens.
    recorded: Option<Vec<Vec<u8>>>,
    /// When a frame to a powered node was lost or held back longer than Tm: the promises of a
    /// synchronous network did not hold then. (Order is none of them.)
    broken: Vec<Instant>,
    /// When the latest frame of each pair is due that kept its place.
    latest_in_order: Vec<Option<Instant>>,
    tm: Duration,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    sockets: Vec<UnixDatagram>,
    /// Sends without waiting: a paused board must not hold up the others.
    out: UnixDatagram,
    nics: Vec<PathBuf>,
    stop: AtomicBool,
    frames: AtomicU64,
    /// Microseconds by which a held back frame left too late, at most.
    late_us: AtomicU64,
}

/// The running switch. Dropping it ends its threads.
pub struct Switch {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    shared.state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Switch {
    pub fn start(
        files: &[Files],
        tm: Duration,
        seed: u64,
        pcap: Option<&Path>,
    ) -> Result<Self, String> {
        let nodes = files.len();
        let mut sockets = Vec::new();
        for file in files {
            let socket = UnixDatagram::bind(file.port()).map_err(|error| error.to_string())?;
            let timeout = Some(Duration::from_millis(200));
            socket.set_read_timeout(timeout).map_err(|error| error.to_string())?;
            sockets.push(socket);
        }
        let out = UnixDatagram::unbound().map_err(|error| error.to_string())?;
        out.set_nonblocking(true).map_err(|error| error.to_string())?;
        let mut state = State::new(nodes, tm, seed);
        state.pcap = pcap.map(Pcap::create).transpose()?;
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            sockets,
            out,
            nics: files.iter().map(Files::nic).collect(),
            stop: AtomicBool::new(false),
            frames: AtomicU64::new(0),
            late_us: AtomicU64::new(0),
        });
        let mut threads = Vec::new();
        for node in 0..nodes {
            let shared = Arc::clone(&shared);
            threads.push(std::thread::spawn(move || shared.listen(node)));
        }
        let delayer = Arc::clone(&shared);
        threads.push(std::thread::spawn(move || delayer.deliver_delayed()));
        Ok(Self { shared, threads })
    }

    pub fn set_power(&self, node: usize, on: bool) {
        lock(&self.shared).powered[node] = on;
    }

    /// Carries out the part of an action that concerns the network.
    pub fn act(&self, action: &Action) {
        let index = |id: &u8| usize::from(*id) - 1;
        let mut state = lock(&self.shared);
        match action {
            Action::Partition { sets } => {
                for node in 0..state.nodes {
                    let set = sets.iter().position(|set| set.iter().map(index).any(|n| n == node));
                    state.side[node] = set.unwrap_or(sets.len() + node);
                }
            }
            Action::Link { from, to, quality } => {
                for from in from.iter().map(index) {
                    for to in to.iter().map(index).filter(|to| *to != from) {
                        let at = from * state.nodes + to;
                        state.links[at] = *quality;
                    }
                }
            }
            Action::Heal => {
                state.links.fill(LinkQuality::default());
                state.side.fill(0);
            }
            Action::Unplug { nodes } => {
                nodes.iter().map(index).for_each(|node| state.plugged[node] = false);
            }
            Action::Plug { nodes } => {
                nodes.iter().map(index).for_each(|node| state.plugged[node] = true);
            }
            Action::Kill { .. }
            | Action::Boot { .. }
            | Action::Pause { .. }
            | Action::Resume { .. }
            | Action::Leave { .. }
            | Action::Reset { .. } => {}
        }
    }

    /// When frames were lost or late since the last call.
    pub fn take_broken(&self) -> Vec<Instant> {
        std::mem::take(&mut lock(&self.shared).broken)
    }

    /// The board at the place of node `port` has another id.
    pub fn set_host(&self, port: u8, id: u8) {
        lock(&self.shared).hosts[usize::from(port) - 1] = id;
    }

    /// From now on every frame is kept.
    pub fn record(&self) {
        lock(&self.shared).recorded = Some(Vec::new());
    }

    pub fn recorded(&self) -> Vec<Vec<u8>> {
        lock(&self.shared).recorded.clone().unwrap_or_default()
    }

    /// A port from which anything can be sent to anybody.
    pub fn injector(&self) -> Injector {
        Injector(Arc::clone(&self.shared))
    }

    pub fn frames(&self) -> u64 {
        self.shared.frames.load(Ordering::Relaxed)
    }

    /// How late the switch itself was at most.
    pub fn late(&self) -> Duration {
        Duration::from_micros(self.shared.late_us.load(Ordering::Relaxed))
    }
}

/// Somebody else on the wire.
pub struct Injector(Arc<Shared>);

impl Injector {
    /// Whether there was room for it.
    pub fn send(&self, to: usize, frame: &[u8]) -> bool {
        self.0.out.send_to(frame, &self.0.nics[to]).is_ok()
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        if let Some(pcap) = &mut lock(&self.shared).pcap {
            pcap.flush();
        }
    }
}

impl Shared {
    fn listen(&self, from: usize) {
        let mut room = [0; FRAME_BYTES_MAX];
        while !self.stop.load(Ordering::Relaxed) {
            let Ok(len) = self.sockets[from].recv(&mut room) else { continue };
            self.frames.fetch_add(1, Ordering::Relaxed);
            self.carry(from, &room[..len]);
        }
    }

    fn carry(&self, from: usize, frame: &[u8]) {
        let now = Instant::now();
        let mut at_once = Vec::new();
        {
            let mut state = lock(self);
            if let Some(pcap) = &mut state.pcap {
                pcap.write(frame);
            }
            if let Some(recorded) = &mut state.recorded {
                recorded.push(frame.to_vec());
            }
            for to in (0..state.nodes).filter(|to| *to != from) {
                // Frames for one node are not shown to the others, as in any switch.
                if addressed_to(frame).is_none_or(|id| id == state.hosts[to]) {
                    state.draw(now, from, to, frame, &mut at_once);
                }
            }
        }
        self.changed.notify_one();
        for to in at_once {
            self.deliver(to, frame, None);
        }
    }

    fn deliver(&self, to: usize, frame: &[u8], give_up: Option<Instant>) {
        let Err(error) = self.out.send_to(frame, &self.nics[to]) else { return };
        // A board without power has no socket: the frame is gone, as on a real cable.
        if error.kind() != ErrorKind::WouldBlock {
            return;
        }
        let now = Instant::now();
        let mut state = lock(self);
        let give_up = give_up.unwrap_or(now + state.tm);
        if now >= give_up {
            if state.powered[to] {
                state.broken.push(now);
            }
            return;
        }
        state.hold_back(now + RETRY, to, frame, Some(give_up));
        drop(state);
        self.changed.notify_one();
    }

    fn deliver_delayed(&self) {
        let mut state = lock(self);
        while !self.stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            match state.delayed.peek().map(|Reverse(next)| next.due) {
                Some(due) if due <= now => {
                    let Some(Reverse(next)) = state.delayed.pop() else { continue };
                    drop(state);
                    let late = now.duration_since(due).as_micros() as u64;
                    self.late_us.fetch_max(late, Ordering::Relaxed);
                    self.deliver(next.to, &next.frame, next.give_up);
                    state = lock(self);
                }
                due => {
                    let wait = due.map_or(Duration::from_millis(200), |due| due - now);
                    let waited = self.changed.wait_timeout(state, wait);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }
}

/// Multicast groups of nodes end in the node's id (see the shell); 0 and all else is for everybody.
fn addressed_to(frame: &[u8]) -> Option<u8> {
    match frame.first_chunk::<6>()? {
        [0x01, 0x00, 0x5e, 0x40, _, id] => Some(*id).filter(|id| *id != 0),
        _ => None,
    }
}

impl State {
    /// Perfect links between boards without power.
    fn new(nodes: usize, tm: Duration, seed: u64) -> Self {
        Self {
            nodes,
            hosts: (1..=nodes as u8).collect(),
            links: vec![LinkQuality::default(); nodes * nodes],
            side: vec![0; nodes],
            plugged: vec![true; nodes],
            powered: vec![false; nodes],
            rng: fastrand::Rng::with_seed(seed),
            delayed: BinaryHeap::new(),
            order: 0,
            pcap: None,
            recorded: None,
            broken: Vec::new(),
            latest_in_order: vec![None; nodes * nodes],
            tm,
        }
    }

    fn draw(
        &mut self,
        now: Instant,
        from: usize,
        to: usize,
        frame: &[u8],
        at_once: &mut Vec<usize>,
    ) {
        let pair = from * self.nodes + to;
        let link = self.links[pair];
        let cut = self.side[from] != self.side[to] || !self.plugged[from] || !self.plugged[to];
        if cut || self.happens(link.loss) {
            if self.powered[to] {
                self.broken.push(now);
            }
            return;
        }
        let copies = 1 + usize::from(self.happens(link.duplicate));
        let dues: Vec<Instant> = (0..copies).map(|_| self.due(now, pair, &link)).collect();
        if dues.iter().any(|due| *due > now + self.tm) {
            self.broken.push(now);
        }
        for due in dues {
            if due <= now {
                at_once.push(to);
            } else {
                self.hold_back(due, to, frame, None);
            }
        }
    }

    /// When a frame arrives that leaves now. Only jitter and reordering break the order of a link.
    fn due(&mut self, now: Instant, pair: usize, link: &LinkQuality) -> Instant {
        let due = now + Duration::from_micros(link.delay_us);
        if link.jitter_us > 0 {
            return due + Duration::from_micros(self.rng.u64(0..=link.jitter_us));
        }
        if self.happens(link.reorder) {
            return due + self.tm.mul_f64(self.rng.f64() / 2.0);
        }
        let latest = &mut self.latest_in_order[pair];
        let due = latest.map_or(due, |latest| due.max(latest));
        *latest = Some(due);
        due
    }

    fn hold_back(&mut self, due: Instant, to: usize, frame: &[u8], give_up: Option<Instant>) {
        self.order += 1;
        let (order, frame) = (self.order, frame.to_vec());
        self.delayed.push(Reverse(Delayed { due, order, to, frame, give_up }));
    }

    fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.rng.f64() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TM: Duration = Duration::from_millis(40);
    const FRAMES: usize = 10_000;

    /// Many frames from node 1 to node 2 over a link of this quality, a millisecond apart.
    fn carried(quality: LinkQuality) -> Carried {
        let mut state = State::new(2, TM, 7);
        state.powered.fill(true);
        state.links[1] = quality;
        let began = Instant::now();
        let (mut at_once, mut delays, mut overtaken) = (0, Vec::new(), 0);
        let mut latest = began;
        for index in 0..FRAMES {
            let now = began + Duration::from_millis(index as u64);
            let mut to = Vec::new();
            state.draw(now, 0, 1, &[0; 20], &mut to);
            assert!(to.iter().all(|to| *to == 1));
            at_once += to.len();
            let dues: Vec<_> = state.delayed.drain().map(|Reverse(held)| held.due).collect();
            let earliest = if to.is_empty() { dues.iter().min().copied() } else { Some(now) };
            overtaken += usize::from(earliest.is_some_and(|earliest| earliest < latest));
            latest = earliest.map_or(latest, |earliest| earliest.max(latest));
            delays.extend(dues.iter().map(|due| *due - now));
        }
        Carried { at_once, delays, overtaken, broken: state.broken.len() }
    }

    struct Carried {
        at_once: usize,
        delays: Vec<Duration>,
        /// How many frames overtook one before them.
        overtaken: usize,
        broken: usize,
    }

    fn about(count: usize, share: f64) -> bool {
        (count as f64 / FRAMES as f64 - share).abs() < 0.02
    }

    #[test]
    fn a_perfect_link_hands_over_at_once() {
        let carried = carried(LinkQuality::default());
        assert_eq!((carried.at_once, carried.delays.len(), carried.broken), (FRAMES, 0, 0));
    }

    #[test]
    fn losses_are_as_frequent_as_asked_for_and_noted() {
        let carried = carried(LinkQuality { loss: 0.2, ..LinkQuality::default() });
        assert!(about(carried.at_once, 0.8) && carried.delays.is_empty());
        assert_eq!(carried.broken, FRAMES - carried.at_once);
    }

    #[test]
    fn a_delay_is_kept_and_noted_only_beyond_tm() {
        for (delay, broken) in [(TM, 0), (TM + Duration::from_millis(1), FRAMES)] {
            let delay_us = delay.as_micros() as u64;
            let carried = carried(LinkQuality { delay_us, ..LinkQuality::default() });
            assert!(carried.delays.len() == FRAMES && carried.at_once == 0);
            assert!(carried.delays.iter().all(|is| *is == delay));
            assert_eq!(carried.broken, broken);
        }
    }

    #[test]
    fn jitter_lies_within_its_bounds_and_is_noted_only_beyond_tm() {
        let quality = LinkQuality { delay_us: 2000, jitter_us: 10_000, ..LinkQuality::default() };
        let carried = carried(quality);
        let ms = Duration::from_millis;
        assert!(carried.delays.iter().all(|is| (ms(2)..=ms(12)).contains(is)));
        assert!(carried.delays.iter().any(|is| *is < ms(4)));
        assert!(carried.delays.iter().any(|is| *is > ms(10)));
        assert!(carried.overtaken > FRAMES / 2, "{}", carried.overtaken);
        assert_eq!(carried.broken, 0);
        // Less than the time between two frames: nothing is overtaken.
        let quality = LinkQuality { jitter_us: 900, ..LinkQuality::default() };
        assert_eq!(self::carried(quality).overtaken, 0);
        let quality = LinkQuality { jitter_us: 80_000, ..LinkQuality::default() };
        assert!(about(self::carried(quality).broken, 0.5), "half of the jitter is beyond Tm");
    }

    #[test]
    fn duplicates_come_twice() {
        let carried = carried(LinkQuality { duplicate: 0.25, ..LinkQuality::default() });
        assert!(about(carried.at_once - FRAMES, 0.25) && carried.broken == 0);
    }

    #[test]
    fn a_frame_that_is_held_back_is_overtaken() {
        let carried = carried(LinkQuality { reorder: 0.1, ..LinkQuality::default() });
        assert!(about(carried.at_once, 0.9) && about(carried.delays.len(), 0.1));
        assert!(carried.delays.iter().all(|is| *is <= TM / 2));
        assert!(carried.overtaken > FRAMES / 4, "{}", carried.overtaken);
        assert_eq!(carried.broken, 0);
    }

    #[test]
    fn a_link_that_gets_faster_keeps_its_order() {
        let mut state = State::new(2, TM, 7);
        let (now, mut at_once) = (Instant::now(), Vec::new());
        state.links[1].delay_us = 20_000;
        state.draw(now, 0, 1, &[1], &mut at_once);
        state.links[1].delay_us = 0;
        state.draw(now + Duration::from_millis(1), 0, 1, &[2], &mut at_once);
        assert!(at_once.is_empty() && state.broken.is_empty());
        let mut frames = std::iter::from_fn(|| state.delayed.pop());
        assert!(frames.by_ref().map(|Reverse(held)| held.frame[0]).eq([1, 2]));
    }

    #[test]
    fn what_a_cut_loses_is_noted_if_somebody_was_there() {
        for (powered, broken) in [(true, 1), (false, 0)] {
            let mut state = State::new(2, TM, 7);
            state.powered[1] = powered;
            state.plugged[0] = false;
            let mut at_once = Vec::new();
            state.draw(Instant::now(), 0, 1, &[0], &mut at_once);
            assert_eq!((at_once.len(), state.broken.len()), (0, broken));
        }
    }
}
