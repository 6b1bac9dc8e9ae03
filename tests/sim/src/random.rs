//! Random runs: every seed another flock, another network, another mix of faults.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bellwether::config::{Algorithm, Detector, Durability, Timing};
use bellwether::errata::Errata;
use bellwether::link::Gaps;
use bellwether::time::Duration;
use bellwether_flash::Tear;
use bellwether_scenario::{self as scenario, Delays, NodeEvent, Run};

use crate::attacker::same_groups;
use crate::checker::View;
use crate::clock::Time;
use crate::faults::{Faults, Mix};
use crate::flash::FlashSettings;
use crate::liveness::{Cause, bound_us};
use crate::report::Totals;
use crate::settings::Settings;
use crate::world::World;

/// A random run lasts at least this long.
const RUN_US_MIN: Time = 20_000_000;

/// What the caller fixes; the rest is drawn.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub algorithm: Option<Algorithm>,
    pub nodes: Option<u8>,
    pub detector: Option<Detector>,
    pub preempt: Option<bool>,
    pub trace: bool,
    pub errata: Errata,
    /// An attacker is on the wire.
    pub attack: bool,
    pub gaps: Gaps,
    /// Delays are drawn from those of this file, and Tm and Tp are as it says.
    pub delays: Option<(String, Arc<Delays>)>,
}

/// How one seed went.
#[derive(Debug)]
pub struct Outcome {
    pub seed: u64,
    pub algorithm: Algorithm,
    pub totals: Totals,
    pub failures: Vec<String>,
    /// How long it took to settle, and the bound.
    pub settling: Vec<(Cause, Time, Time)>,
    /// The groups at the end: the coordinator that each live node follows.
    pub ending: Vec<Option<u8>>,
    /// Who coordinates depends on the members alone, not on what came before.
    pub preempt: bool,
    /// Nodes that fell silent because their flash is worn out.
    pub muted: u64,
    pub trace: Option<(Run, Vec<NodeEvent>)>,
}

/// The slowest settling of a cause.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slowest {
    pub times: u64,
    /// Of its bound.
    pub share: f64,
    pub seed: u64,
}

/// How all seeds went.
#[derive(Debug, Default)]
pub struct Summary {
    pub totals: Totals,
    /// Seeds that failed, with what they failed on.
    pub failed: BTreeMap<u64, (Algorithm, Vec<String>)>,
    pub slowest: BTreeMap<(&'static str, Cause), Slowest>,
    pub trace: Option<(Run, Vec<NodeEvent>)>,
}

pub const ALGORITHMS: [Algorithm; 3] = [Algorithm::Bully, Algorithm::Invitation, Algorithm::Ring];

/// The names of the algorithms on command lines and in tables.
pub const fn algorithm_name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Bully => "bully",
        Algorithm::Invitation => "invitation",
        Algorithm::Ring => "ring",
    }
}

/// The names of the detectors on command lines and in tables.
pub const fn detector_name(detector: Detector) -> &'static str {
    match detector {
        Detector::Reliable => "reliable",
        Detector::Heartbeat => "heartbeat",
        Detector::Adaptive => "adaptive",
        Detector::Indirect => "indirect",
    }
}

/// Half of the runs use the default.
fn draw_detector(rng: &mut fastrand::Rng, algorithm: Algorithm) -> Detector {
    match rng.u8(0..8) {
        0 | 1 => Detector::Adaptive,
        2 => Detector::Indirect,
        3 if algorithm == Algorithm::Bully => Detector::Reliable,
        3 => Detector::Indirect,
        _ => Detector::Heartbeat,
    }
}

/// Draws the flock and its network.
fn draw_settings(seed: u64, rng: &mut fastrand::Rng, options: &Options) -> Settings {
    let drawn = ALGORITHMS[rng.usize(0..ALGORITHMS.len())];
    let algorithm = options.algorithm.unwrap_or(drawn);
    let drawn = rng.u8(2..=16);
    let nodes = options.nodes.unwrap_or(drawn);
    let strict = rng.f64() < 0.08;
    let durability = if strict { Durability::Strict } else { Durability::Group };
    let handling_us = [0, 20, 50, 100][rng.usize(0..4)];
    let mut tm = rng.u64(10_000..=50_000);
    let mut tp = rng.u64(5_000..=25_000);
    if let Some((_, delays)) = &options.delays {
        // What random runs promise, they promise of frames that keep to Tm.
        tm = delays.tm_us.max(delays.way_us(1.0));
        tp = delays.tp_us;
    }
    // Tp has room for the datagrams that may wait before the one that is answered.
    tp = tp.max(4 * handling_us * u64::from(nodes));
    let flash = FlashSettings {
        program_us: rng.u64(30..=400),
        erase_us: [3_000, 10_000, 45_000][rng.usize(0..3)],
        fixed_save_us: None,
        tear: Tear::ALL[rng.usize(0..Tear::ALL.len())],
        flicker: rng.bool(),
    };
    let ts = Duration::from_us(flash.save_us_max());
    let mut timing = Timing::derive(Duration::from_us(tm), Duration::from_us(tp), ts);
    if strict {
        timing = timing.strict(nodes.into());
    }
    if rng.bool() {
        timing = timing.with_t(timing.t.fraction(rng.u64(100..=160) as u32, 100));
    }
    let mut settings = Settings::new(nodes, algorithm, timing, seed);
    settings.durability = durability;
    settings.flash = flash;
    settings.handling_us = handling_us;
    settings.base_delay_us =
        [(tm / 20, tm / 2), (tm / 20, tm), (tm / 2, tm), (tm / 20, tm / 10)][rng.usize(0..4)];
    if let Some((_, delays)) = &options.delays {
        settings.replay(delays);
    }
    settings.overtakes = rng.bool();
    settings.drift_ppm = [0, 50, 100][rng.usize(0..3)];
    if rng.f64() < 0.25 {
        settings.preference.fill_with(|| rng.u8(0..3));
    }
    settings.detector = options.detector.unwrap_or(draw_detector(rng, algorithm));
    let drawn = rng.f64() >= 0.2;
    settings.preempt = options.preempt.unwrap_or(drawn);
    if rng.f64() < 0.15 {
        settings.hold_off_us = settings.timing.t.us() * rng.u64(5..30);
    }
    if rng.f64() < 0.2 {
        settings.observers = (0..nodes.into()).filter(|_| rng.u8(0..4) == 0).collect();
        settings.observers.truncate(usize::from(nodes) - 1);
    }
    settings.errata = options.errata;
    settings.gaps = options.gaps;
    settings.trace = options.trace;
    settings
}

/// Runs one seed from cold to the end.
pub fn run_seed(seed: u64, options: &Options) -> Outcome {
    let mut rng = fastrand::Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let settings = draw_settings(seed, &mut rng, options);
    if settings.nodes <= 64 {
        run_in::<1>(seed, settings, rng, options.attack)
    } else {
        run_in::<4>(seed, settings, rng, options.attack)
    }
}

fn run_in<const W: usize>(
    seed: u64,
    settings: Settings,
    mut rng: fastrand::Rng,
    attack: bool,
) -> Outcome {
    let inside = settings.promises_assertion_1() && rng.f64() < 0.65;
    let t = settings.timing.t.us();
    let run = Run {
        algorithm: match settings.algorithm {
            Algorithm::Bully => scenario::Algorithm::Bully,
            Algorithm::Invitation => scenario::Algorithm::Invitation,
            Algorithm::Ring => scenario::Algorithm::Ring,
        },
        nodes: settings.nodes,
        tm_us: settings.timing.tm.us(),
        tp_us: settings.timing.tp.us(),
        factor: 1.0,
    };
    let mut world = World::<W>::new(settings);
    if attack {
        world.attack(seed);
    }
    let nodes = world.machines.len();
    let together = rng.bool();
    for node in 0..nodes {
        if !together {
            world.run_for(rng.u64(0..4 * t));
        }
        world.power_on(node);
    }
    let mix = Mix::draw(&mut rng, t, inside);
    let end_of_faults = rng.u64(6_000_000..12_000_000);
    Faults::new(mix, rng.fork()).play(&mut world, end_of_faults);
    let mut run_in = RunInProgress { world, rng, settling: Vec::new() };
    run_in.settle_after_faults(inside);
    run_in.disturb_once();
    let RunInProgress { mut world, settling, .. } = run_in;
    world.run_until(RUN_US_MIN.max(world.now), |_| false);
    let mut failures: Vec<String> = world
        .checker
        .violations
        .iter()
        .map(|v| format!("at {} ms: {}: {}", v.at as f64 / 1000.0, v.rule, v.what))
        .collect();
    failures.truncate(5);
    Outcome {
        seed,
        algorithm: world.settings.algorithm,
        totals: Totals::of(&world),
        failures,
        settling,
        preempt: world.settings.preempt,
        muted: world.tally.muted,
        ending: (0..nodes).map(|node| followed(world.checker.view(node))).collect(),
        trace: world.settings.trace.then(|| (run, std::mem::take(&mut world.trace))),
    }
}

/// The coordinator of a live node.
fn followed(view: &View) -> Option<u8> {
    view.coordinator.filter(|_| view.live)
}

/// The same run without the attacker must end in the same groups. Their numbers may differ: a Hello
/// that the attacker provoked is one more frame, and every draw after it another. Then a worn-out
/// flash may give up in one run and not in the other: those two cannot be compared.
fn compare_with_peace(outcome: &mut Outcome, options: &Options) {
    let peace = run_seed(outcome.seed, &Options { attack: false, ..options.clone() });
    let same = same_groups(&peace.ending, &outcome.ending, outcome.preempt);
    if !same && peace.muted == outcome.muted {
        let (with, without) = (&outcome.ending, &peace.ending);
        let what = format!("an attacker changed the end: {with:?}, without it {without:?}");
        outcome.failures.push(what);
        outcome.totals.violations += 1;
    }
}

struct RunInProgress<const W: usize> {
    world: World<W>,
    rng: fastrand::Rng,
    settling: Vec<(Cause, Time, Time)>,
}

impl<const W: usize> RunInProgress<W> {
    /// Faults have stopped. Some nodes may stay without power, and the network may stay divided:
    /// then each side by itself must settle.
    fn settle_after_faults(&mut self, whole: bool) {
        let nodes = self.world.machines.len();
        let all: Vec<usize> = (0..nodes).collect();
        let mut sides = vec![all];
        if !whole && self.rng.f64() < 0.3 {
            sides = vec![Vec::new(), Vec::new()];
            for node in 0..nodes {
                sides[self.rng.usize(0..2)].push(node);
            }
            self.world.network.partition(&sides);
        }
        for node in 0..nodes {
            if self.rng.f64() < 0.7 {
                self.world.power_on(node);
            }
        }
        self.await_settled(Cause::Anything, &sides);
        self.world.network.heal();
        for node in 0..nodes {
            self.world.power_on(node);
        }
        if sides.len() > 1 {
            self.rest();
        }
    }

    /// Long enough for everything to come to rest.
    fn rest(&mut self) {
        let bound = bound_us(&self.world.settings, Cause::Anything);
        self.world.run_for(bound);
    }

    /// One disturbance of a settled flock.
    fn disturb_once(&mut self) {
        let nodes = self.world.machines.len();
        let all: Vec<usize> = (0..nodes).collect();
        self.rest();
        let mut cause = Cause::ALL[self.rng.usize(1..Cause::ALL.len())];
        match cause {
            Cause::Anything => {}
            Cause::Crash => {
                let coordinator = all.iter().find(|node| self.world.is_coordinator(**node));
                if let Some(coordinator) = coordinator {
                    self.world.kill(*coordinator);
                }
            }
            Cause::ColdStart => {
                for node in &all {
                    self.world.kill(*node);
                }
                let t = self.world.timing().t.us();
                self.world.run_for(t);
                for node in &all {
                    self.world.power_on(*node);
                }
            }
            Cause::Heal => {
                let (one, other) = all.split_at(self.rng.usize(1..nodes.max(2)).min(nodes));
                self.world.network.partition(&[one.to_vec(), other.to_vec()]);
                self.rest();
                self.world.network.heal();
            }
            Cause::Return => {
                let node = self.rng.usize(0..nodes);
                self.world.kill(node);
                self.rest();
                // Observers alone are not settled: their runs go on and come to nothing, and may cost
                // the one that returns its first.
                if !self.world.checker.has_candidate(all.iter().copied()) {
                    cause = Cause::Anything;
                }
                self.world.power_on(node);
            }
        }
        self.await_settled(cause, &[all]);
    }

    /// Waits out the bound; at its end every side must be settled, and have been for a while.
    fn await_settled(&mut self, cause: Cause, sides: &[Vec<usize>]) {
        let began = self.world.now;
        let before = self.world.tally;
        // A node that wakes greets silent members for a whole T. In a ring each of them then costs the
        // T of a hop, if the first of the run knows nothing of it; in Bully they cost a coordinator
        // that asks them before it takes a node in one T together.
        let silent = self.world.silent_nodes() as Time;
        let silent = match self.world.settings.algorithm {
            Algorithm::Ring if silent > 0 => silent + 1,
            Algorithm::Bully => silent.min(1),
            Algorithm::Ring | Algorithm::Invitation => 0,
        } * self.world.timing().t.us();
        let bound = bound_us(&self.world.settings, cause) + silent;
        let settled = |world: &World<W>| sides.iter().all(|side| world.is_settled(side));
        let mut settled_since = settled(&self.world).then_some(began);
        self.world.run_until(began + bound, |world| {
            match (settled(world), settled_since) {
                (true, None) => settled_since = Some(world.now),
                (false, Some(_)) => settled_since = None,
                _ => {}
            }
            false
        });
        // A worn-out flash that gives up now, or a frame for which a node had no room, is one more
        // failure, which the bound of a single one does not cover.
        let tally = &self.world.tally;
        let disturbed = (before.muted, before.overflows) != (tally.muted, tally.overflows);
        match settled_since {
            Some(since) => self.settling.push((cause, since - began, bound)),
            None if disturbed && cause != Cause::Anything => {
                self.await_settled(Cause::Anything, sides);
            }
            None => {
                let views: Vec<_> =
                    (0..self.world.machines.len()).map(|n| self.world.checker.view(n)).collect();
                let what =
                    format!("{} ms after {}: {views:?}", bound as f64 / 1000.0, cause.name());
                let now = self.world.now;
                self.world.checker.violation(now, "assertions 2 and 4: settled in time", what);
            }
        }
    }
}

/// Runs `seeds` seeds on all cores.
pub fn run_seeds(first: u64, seeds: u64, options: &Options) -> Summary {
    let next = AtomicU64::new(first);
    let end = first.saturating_add(seeds);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut summary = Summary::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return summary;
            }
            let mut outcome = run_seed(seed, options);
            if options.attack {
                compare_with_peace(&mut outcome, options);
            }
            summary.add(outcome);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let mut total = Summary::default();
        for worker in workers {
            match worker.join() {
                Ok(summary) => total.merge(summary),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        total
    })
}

impl Summary {
    pub fn add(&mut self, outcome: Outcome) {
        self.totals.add(&outcome.totals);
        for (cause, observed, bound) in &outcome.settling {
            let key = (algorithm_name(outcome.algorithm), *cause);
            let share = *observed as f64 / *bound as f64;
            let slowest = self.slowest.entry(key).or_default();
            slowest.times += 1;
            if share > slowest.share || slowest.times == 1 {
                (slowest.share, slowest.seed) = (share, outcome.seed);
            }
        }
        if !outcome.failures.is_empty() {
            self.failed.insert(outcome.seed, (outcome.algorithm, outcome.failures));
        }
        if outcome.trace.is_some() {
            self.trace = outcome.trace;
        }
    }

    fn merge(&mut self, other: Self) {
        self.totals.add(&other.totals);
        self.failed.extend(other.failed);
        for (key, theirs) in other.slowest {
            let ours = self.slowest.entry(key).or_default();
            let times = ours.times + theirs.times;
            let tie = theirs.share == ours.share && theirs.seed < ours.seed;
            if theirs.share > ours.share || tie {
                *ours = theirs;
            }
            ours.times = times;
        }
        self.trace = self.trace.take().or(other.trace);
    }

    /// What a person wants to know.
    pub fn print(&self, options: &Options) {
        println!(
            "{:<11} {:<11} {:>6} {:>14}  bound",
            "algorithm", "cause", "runs", "worst / bound"
        );
        for ((name, cause), slowest) in &self.slowest {
            let known = ALGORITHMS.into_iter().find(|known| algorithm_name(*known) == *name);
            println!(
                "{name:<11} {:<11} {:>6} {:>14.2}  {} (seed {})",
                cause.name(),
                slowest.times,
                slowest.share,
                known.map_or("", |algorithm| cause.formula(algorithm)),
                slowest.seed
            );
        }
        for (seed, (algorithm, failures)) in self.failed.iter().take(10) {
            for failure in failures {
                println!("seed {seed}: {failure}");
            }
            let nodes = options.nodes.map_or(String::new(), |nodes| format!(" --nodes {nodes}"));
            let algorithm = algorithm_name(*algorithm);
            let detector = options.detector.map_or(String::new(), |detector| {
                format!(" --detector {}", detector_name(detector))
            });
            let preempt =
                options.preempt.map_or(String::new(), |preempt| format!(" --preempt {preempt}"));
            let attack = if options.attack { " --attack" } else { "" };
            let delays = &options.delays;
            let delays =
                delays.as_ref().map_or(String::new(), |(file, _)| format!(" --delays {file}"));
            println!(
                "replay: cargo sim --seed {seed} --algorithm {algorithm}\
                 {nodes}{detector}{preempt}{attack}{delays}"
            );
        }
        let totals = &self.totals;
        println!(
            "{} runs, {} failed, {} violations, {:.0} s simulated",
            totals.runs,
            self.failed.len(),
            totals.violations,
            totals.sim_us as f64 / 1e6
        );
    }

    pub fn json(&self, wall_seconds: f64) -> serde_json::Value {
        let mut json = self.totals.json(wall_seconds);
        for ((algorithm, cause), slowest) in &self.slowest {
            let key = format!("{algorithm}_{}_worst_of_bound", cause.name().replace(' ', "_"));
            json[key] = serde_json::json!(slowest.share);
        }
        json
    }
}
