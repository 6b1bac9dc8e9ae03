//! What a run is made of, and what it counts.

use std::sync::Arc;

use bellwether::config::{Algorithm, Config, ConfigError, Detector, Durability, Timing};
use bellwether::errata::Errata;
use bellwether::id::NodeId;
use bellwether::key::{KEY_BYTES, Keys, LinkKey};
use bellwether::link::Gaps;
use bellwether::node::Node;
use bellwether::time::Duration;
use bellwether_scenario::Delays;

use crate::clock::Time;
use crate::flash::FlashSettings;

/// The id of the node with this index.
pub(crate) fn node_id(index: usize) -> NodeId {
    NodeId::new(index as u8 + 1).unwrap_or(const { NodeId::new(1).unwrap() })
}

/// What a run is made of.
#[derive(Debug, Clone)]
pub struct Settings {
    pub nodes: u8,
    pub algorithm: Algorithm,
    pub durability: Durability,
    pub timing: Timing,
    pub detector: Detector,
    /// The longest silence that the adaptive detector bears, where it is not the node's default.
    pub quiet_max_us: Option<Time>,
    pub preference: Vec<u8>,
    pub preempt: bool,
    pub hold_off_us: Time,
    /// Indices of the nodes that never coordinate.
    pub observers: Vec<usize>,
    pub errata: Errata,
    /// What the links do not check.
    pub gaps: Gaps,
    /// The keys of the flock.
    pub keys: Keys,
    pub seed: u64,
    /// The delay of a perfect link is drawn from this range.
    pub base_delay_us: (Time, Time),
    /// Or else, if there are any, from these.
    pub measured: Option<Arc<Delays>>,
    /// Frames of a perfect link overtake each other, within their delays.
    pub overtakes: bool,
    pub flash: FlashSettings,
    /// How long a node is busy with one datagram.
    pub handling_us: Time,
    /// How many frames wait at a busy node; more are lost.
    pub queue_frames: usize,
    /// From power to the first event.
    pub boot_us: Time,
    pub reorganize_us: (Time, Time),
    /// Every clock is off by up to this.
    pub drift_ppm: i32,
    /// Collect a trace.
    pub trace: bool,
}

impl Settings {
    /// A quiet network: the base delay of INTERFACES, small saves, an ordinary board.
    pub fn new(nodes: u8, algorithm: Algorithm, timing: Timing, seed: u64) -> Self {
        let tm = timing.tm.us();
        Self {
            nodes,
            algorithm,
            durability: Durability::Group,
            timing,
            detector: Detector::default(),
            quiet_max_us: None,
            preference: vec![0; nodes.into()],
            preempt: true,
            hold_off_us: 0,
            observers: Vec::new(),
            errata: Errata::default(),
            gaps: Gaps::default(),
            keys: Keys::one(1, LinkKey::new([0x5a; KEY_BYTES])),
            seed,
            base_delay_us: (tm / 20, tm / 2),
            measured: None,
            overtakes: false,
            flash: FlashSettings::fixed((1000.min(timing.ts.us()), 2000.min(timing.ts.us()))),
            handling_us: 50,
            queue_frames: 16,
            boot_us: 2000,
            reorganize_us: (100, 500),
            drift_ppm: 0,
            trace: false,
        }
    }

    /// Draws the delays of perfect links from what was measured on some network.
    pub fn replay(&mut self, measured: &Arc<Delays>) {
        self.base_delay_us = (measured.way_us(0.0), measured.way_us(1.0));
        self.measured = Some(Arc::clone(measured));
    }

    /// Whether Assertion 1 is promised, as long as its assumptions hold.
    pub fn promises_assertion_1(&self) -> bool {
        matches!(self.algorithm, Algorithm::Bully | Algorithm::Ring)
    }

    /// The timing of a node: answers are spread so that each finds the asker free.
    pub fn node_timing(&self) -> Timing {
        let most = self.timing.tp.us() / 2 / u64::from(self.nodes);
        let answer_spacing = Duration::from_us(self.handling_us.min(most));
        Timing { answer_spacing, ..self.timing }
    }

    /// What a node is told.
    pub fn configuration<const W: usize>(&self, node: usize) -> Result<Config<W>, ConfigError> {
        let timing = self.node_timing();
        let mut config = Config::new(node_id(node), self.algorithm, self.durability, timing);
        config.errata = self.errata;
        config.gaps = self.gaps;
        config.accept_version_1 = self.errata.needs_the_clear();
        config.detector = self.detector;
        config.preempt = self.preempt;
        config.hold_off = Duration::from_us(self.hold_off_us);
        config.observers = self.observers.iter().map(|node| node_id(*node)).collect();
        if let Some(most) = self.quiet_max_us {
            config.quiet_max = Duration::from_us(most);
        }
        for (index, preference) in self.preference.iter().enumerate() {
            config.add_member(index as u8 + 1, *preference)?;
        }
        config.check_save_time(Duration::from_us(self.flash.save_us_max()))?;
        Ok(config)
    }

    /// Whether nodes would accept these settings, or why not.
    pub fn check(&self) -> Result<(), ConfigError> {
        Node::<4>::new(self.configuration(0)?, self.keys.clone(), 0).map(|_| ())
    }

    /// How long a coordinator may be silent before its highest member acts.
    pub fn patience_us(&self) -> Time {
        let timing = &self.timing;
        let (quiet, t) = (timing.quiet.us(), timing.t.us());
        match self.detector {
            Detector::Reliable | Detector::Heartbeat => quiet,
            Detector::Adaptive => self.quiet_max_us.unwrap_or(4 * quiet),
            // The others may have heard one Beat more, and are asked for up to T.
            Detector::Indirect => quiet + timing.beat.us() + t,
        }
    }

    /// After a lost or late frame: so long it can take until a node acts because of it.
    pub fn grace_us(&self) -> Time {
        let timing = &self.timing;
        self.patience_us() + timing.stagger.us() * u64::from(self.nodes) + 3 * timing.t.us()
    }
}

/// What a run counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub datagrams: u64,
    pub bytes: u64,
    pub elections: u64,
    pub suspicions: u64,
    pub suspicions_wrong: u64,
    /// Suspicions of nodes that were running, as only the simulator can tell.
    pub suspicions_of_live: u64,
    pub overflows: u64,
    pub saves: u64,
    /// Power cuts (and resets) that hit a program or an erase.
    pub writes_cut: u64,
    /// Nodes that fell silent because their flash is worn out.
    pub muted: u64,
    /// Boots that had to repair a region.
    pub flash_repairs: u64,
    /// Saves that found no room, or a torn word in their way, and were done again.
    pub saves_retried: u64,
    pub resets: u64,
    /// Tokens of the ring, and acknowledgements of them, that say again what was said before.
    pub hops_repeated: u64,
    /// When a node last suspected its coordinator for the first time since this was cleared.
    pub first_suspicion: Option<Time>,
    /// Datagrams handed to the network when that was.
    pub datagrams_at_suspicion: u64,
    pub bytes_at_suspicion: u64,
}
