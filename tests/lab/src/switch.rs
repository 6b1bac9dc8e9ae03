//! The Ethernet switch: every frame of a board comes here, and here its fate is drawn.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bellwether_scenario::{Action, LinkQuality};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::clock::{Clock, Moment};
use crate::machine::Files;
use crate::pcap::Pcap;

const FRAME_BYTES_MAX: usize = 2048;
const RETRY: Duration = Duration::from_millis(1);
/// How long the switch sleeps at most: so soon it sees that it is to end.
const LOOK: Duration = Duration::from_millis(100);

struct Delayed {
    due: Moment,
    order: u64,
    to: usize,
    frame: Vec<u8>,
    /// A board whose input is full is tried again until then.
    give_up: Option<Moment>,
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
    broken: Vec<Moment>,
    /// When the latest frame of each pair is due that kept its place.
    latest_in_order: Vec<Option<Moment>>,
    tm: Duration,
}

struct Shared {
    state: Mutex<State>,
    clock: Clock,
    sockets: Vec<UnixDatagram>,
    /// Sends without waiting: a paused board must not hold up the others.
    out: UnixDatagram,
    nics: Vec<PathBuf>,
    stop: AtomicBool,
    frames: AtomicU64,
    /// Microseconds by which a held back frame left too late, at most.
    late_us: AtomicU64,
}

/// The running switch. Dropping it ends its thread.
pub struct Switch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    shared.state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Switch {
    pub fn start(
        files: &[Files],
        clock: Clock,
        tm: Duration,
        seed: u64,
        pcap: Option<&Path>,
    ) -> Result<Self, String> {
        let nodes = files.len();
        let mut sockets = Vec::new();
        for file in files {
            let socket = UnixDatagram::bind(file.port()).map_err(|error| error.to_string())?;
            socket.set_nonblocking(true).map_err(|error| error.to_string())?;
            sockets.push(socket);
        }
        let out = UnixDatagram::unbound().map_err(|error| error.to_string())?;
        out.set_nonblocking(true).map_err(|error| error.to_string())?;
        let mut state = State::new(nodes, tm, seed);
        state.pcap = pcap.map(|path| Pcap::create(path, clock.now())).transpose()?;
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            clock,
            sockets,
            out,
            nics: files.iter().map(Files::nic).collect(),
            stop: AtomicBool::new(false),
            frames: AtomicU64::new(0),
            late_us: AtomicU64::new(0),
        });
        let switching = Arc::clone(&shared);
        let thread = Some(std::thread::spawn(move || switching.run()));
        Ok(Self { shared, thread })
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
    pub fn take_broken(&self) -> Vec<Moment> {
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
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Some(pcap) = &mut lock(&self.shared).pcap {
            pcap.flush();
        }
    }
}

impl Shared {
    /// One thread does it all: the clock of the run waits for it when it waits for a core.
    fn run(&self) {
        let _followed = self.clock.follow_this_thread();
        let mut room = [0; FRAME_BYTES_MAX];
        while !self.stop.load(Ordering::Relaxed) {
            let wait = self.deliver_delayed().min(LOOK);
            let wait = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
            let mut ready: Vec<PollFd<'_>> =
                self.sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
            if !poll(&mut ready, Some(&wait)).is_ok_and(|ready| ready > 0) {
                continue;
            }
            let ready = ready.iter().map(|socket| !socket.revents().is_empty());
            for (from, _) in ready.enumerate().filter(|(_, ready)| *ready) {
                // One frame of each in turn, so that no board shuts out the others.
                if let Ok(len) = self.sockets[from].recv(&mut room) {
                    self.frames.fetch_add(1, Ordering::Relaxed);
                    self.carry(from, &room[..len]);
                }
            }
        }
    }

    fn carry(&self, from: usize, frame: &[u8]) {
        let now = self.clock.now();
        let mut at_once = Vec::new();
        {
            let mut state = lock(self);
            if let Some(pcap) = &mut state.pcap {
                pcap.write(now, frame);
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
        for to in at_once {
            self.deliver(to, frame, None);
        }
    }

    fn deliver(&self, to: usize, frame: &[u8], give_up: Option<Moment>) {
        let Err(error) = self.out.send_to(frame, &self.nics[to]) else { return };
        // A board without power has no socket: the frame is gone, as on a real cable.
        if error.kind() != ErrorKind::WouldBlock {
            return;
        }
        let now = self.clock.now();
        let mut state = lock(self);
        let give_up = give_up.unwrap_or(now + state.tm);
        if now >= give_up {
            if state.powered[to] {
                state.broken.push(now);
            }
            return;
        }
        state.hold_back(now + RETRY, to, frame, Some(give_up));
    }

    /// Hands over what is due; how long it is until something else is.
    fn deliver_delayed(&self) -> Duration {
        loop {
            let mut state = lock(self);
            let now = self.clock.now();
            match state.delayed.peek().map(|Reverse(next)| next.due) {
                Some(due) if due <= now => {
                    let Some(Reverse(next)) = state.delayed.pop() else { continue };
                    drop(state);
                    self.late_us.fetch_max(now.since(due).as_micros() as u64, Ordering::Relaxed);
                    self.deliver(next.to, &next.frame, next.give_up);
                }
                due => return due.map_or(LOOK, |due| due.since(now)),
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
        now: Moment,
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
        let dues: Vec<Moment> = (0..copies).map(|_| self.due(now, pair, &link)).collect();
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
    fn due(&mut self, now: Moment, pair: usize, link: &LinkQuality) -> Moment {
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

    fn hold_back(&mut self, due: Moment, to: usize, frame: &[u8], give_up: Option<Moment>) {
        self.order += 1;
        let (order, frame) = (self.order, frame.to_vec());
        self.delayed.push(Reverse(Delayed { due, order, to, frame, give_up }));
    }

    fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.rng.f64() < probability
    }
}

#[cfg(test)]
mod tests;
