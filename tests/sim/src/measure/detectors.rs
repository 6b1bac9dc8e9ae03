//! `cargo sim measure --detectors`: how soon, how surely and at what cost a failure is noticed.

use bellwether::config::{Algorithm, Detector, Timing};
use bellwether::time::Duration;
use bellwether_scenario::LinkQuality;
use serde_json::{Value, json};

use super::sample::{self, await_settled, settled};
use super::table::{Spread, Table};
use super::{ALGORITHMS, Options, all, default_settings, for_seeds, with_capacity};
use crate::clock::Time;
use crate::random::{algorithm_name, detector_name};
use crate::settings::Settings;
use crate::world::World;

const NODES: u8 = 16;
const LOSS: f64 = 0.1;
const MINUTE_US: Time = 60_000_000;

pub const DETECTORS: [Detector; 4] =
    [Detector::Reliable, Detector::Heartbeat, Detector::Adaptive, Detector::Indirect];

/// The reliable detector is for Bully alone.
pub fn fits(algorithm: Algorithm, detector: Detector) -> bool {
    detector != Detector::Reliable || algorithm == Algorithm::Bully
}

/// What one network did to one detector.
#[derive(Debug, Clone, Copy)]
pub struct Doubling {
    /// From the death of the coordinator to the first suspicion, on the network as it was before.
    pub detection_us: f64,
    /// Suspicions of a coordinator that was alive, while the delays were twice as long.
    pub wrong: u64,
}

/// A network that is worse than Tm says (delays 1 to 10 ms, Tm = 5 ms), and doubles its delays.
fn doubling_settings(algorithm: Algorithm, detector: Detector, seed: u64) -> Settings {
    let ms = Duration::from_millis;
    // T has room for what the delays become: a probe is answered, and no round fails.
    let timing = Timing::derive(ms(5), ms(5), ms(5)).with_t(ms(60));
    let mut settings = Settings::new(5, algorithm, timing, seed);
    settings.base_delay_us = (1_000, 10_000);
    settings.detector = detector;
    settings
}

/// Learns the network for a while, before it is put to the test.
fn warmed_up(settings: Settings) -> Option<World<1>> {
    let mut world = settled::<1>(settings, 0.0)?;
    world.run_for(5_000_000);
    await_settled(&mut world, &[])?;
    Some(world)
}

fn detection_us(settings: Settings) -> Option<f64> {
    let mut world = warmed_up(settings)?;
    let coordinator = (0..world.machines.len()).find(|node| world.is_coordinator(*node))?;
    let began = world.now;
    world.tally.first_suspicion = None;
    world.kill(coordinator);
    await_settled(&mut world, &[])?;
    world.tally.first_suspicion.map(|at| (at - began) as f64)
}

fn wrong_after_doubling(settings: Settings, span_us: Time) -> Option<u64> {
    let (low, high) = settings.base_delay_us;
    let mut world = warmed_up(settings)?;
    world.network.set_base_delay(2 * low..=2 * high);
    let before = world.tally.suspicions_of_live;
    world.run_for(span_us);
    Some(world.tally.suspicions_of_live - before)
}

/// Puts a detector on that network; `quiet`: the silence that it goes by, if that is fixed.
pub fn doubling(
    algorithm: Algorithm,
    detector: Detector,
    quiet: Option<Duration>,
    seeds: u64,
) -> Option<Doubling> {
    let settings = |seed| {
        let mut settings = doubling_settings(algorithm, detector, seed);
        settings.timing.quiet = quiet.unwrap_or(settings.timing.quiet);
        settings
    };
    let detections = all(for_seeds(seeds, |seed| detection_us(settings(seed))))?;
    let wrong = all(for_seeds(seeds, |seed| wrong_after_doubling(settings(seed), MINUTE_US / 3)))?;
    Some(Doubling {
        detection_us: Spread::of(detections.into_iter()).mean,
        wrong: wrong.into_iter().sum(),
    })
}

/// The adaptive detector, and a fixed one that before the change detects as soon as it.
pub fn adaptive_and_fixed(algorithm: Algorithm, seeds: u64) -> Option<(Doubling, Doubling)> {
    let adaptive = doubling(algorithm, Detector::Adaptive, None, seeds)?;
    // Detection is the silence and something that does not depend on it.
    let some = doubling_settings(algorithm, Detector::Heartbeat, 1).timing.quiet;
    let with_some = doubling(algorithm, Detector::Heartbeat, Some(some), seeds)?.detection_us;
    let quiet = some.us() as f64 + adaptive.detection_us - with_some;
    let quiet = Duration::from_us(quiet.round() as u64);
    let fixed = doubling(algorithm, Detector::Heartbeat, Some(quiet), seeds)?;
    Some((adaptive, fixed))
}

/// Elections after the frames of these links began to be lost, and whether the flock is settled.
pub fn broken_links(settings: Settings, links: &[(usize, usize)], span_us: Time) -> (u64, bool) {
    let Some(mut world) = settled::<1>(settings, 0.0) else { return (0, false) };
    for (from, to) in links {
        let quality = LinkQuality { loss: 1.0, ..LinkQuality::default() };
        world.network.set_link(*from, *to, quality);
    }
    let before = world.tally.elections;
    world.run_for(span_us);
    let nodes: Vec<usize> = (0..world.machines.len()).collect();
    (world.tally.elections - before, world.is_settled(&nodes))
}

fn row(algorithm: Algorithm, detector: Detector, seeds: u64) -> Option<(Vec<String>, Value)> {
    let settings = |seed| {
        let mut settings = default_settings(NODES, algorithm, seed, 50);
        settings.detector = detector;
        settings
    };
    let unit = settings(1).timing.t.us() as f64;
    let failover = all(for_seeds(seeds, |seed| with_capacity!(failover, settings(seed), 0.0)))?;
    let few = seeds.div_ceil(10);
    let quiet = |loss| {
        let minute = move |seed| with_capacity!(quiet, settings(seed), loss, MINUTE_US);
        all(for_seeds(few, minute))
    };
    let (calm, lossy) = (quiet(0.0)?, quiet(LOSS)?);
    let detect = Spread::of(failover.iter().map(|r| r.detection_us as f64 / unit));
    let total = Spread::of(failover.iter().map(|r| r.total_us as f64 / unit));
    let sent = Spread::of(calm.iter().map(|q| q.mean)).mean;
    let wrong = Spread::of(lossy.iter().map(|q| q.wrong_suspicions)).mean;
    // The highest member does not hear the coordinator. `indirect` promises that nobody minds.
    let link = [(usize::from(NODES) - 1, usize::from(NODES) - 2)];
    let elections = for_seeds(few, |seed| broken_links(settings(seed), &link, MINUTE_US).0);
    let elections = Spread::of(elections.into_iter().map(|count| count as f64)).mean;
    let cells = vec![
        algorithm_name(algorithm).into(),
        detector_name(detector).into(),
        format!("{:.2} T", detect.mean),
        format!("{:.2} T", detect.worst),
        format!("{:.2} T", total.worst),
        format!("{sent:.2}"),
        format!("{wrong:.2}"),
        format!("{elections:.1}"),
    ];
    let json = json!({
        "algorithm": algorithm_name(algorithm), "detector": detector_name(detector), "nodes": NODES,
        "detection_t": detect.json(), "failover_t": total.json(),
        "datagrams_per_node_and_second": sent, "wrong_suspicions_per_minute": wrong,
        "elections_per_minute_on_a_broken_link": elections,
        "kept": detector != Detector::Indirect || elections == 0.0,
    });
    Some((cells, json))
}

/// Whether the adaptive detector was wrong at most a tenth as often as a fixed one that is as fast.
pub fn tenth_kept(adaptive: &Doubling, fixed: &Doubling) -> bool {
    adaptive.wrong * 10 <= fixed.wrong
}

/// Measures and prints; `false` if a flock did not settle or a promise was not kept.
pub fn command(options: &Options) -> (bool, Vec<Value>) {
    let mut table = Table::new(&[
        "algorithm",
        "detector",
        "detect mean",
        "worst",
        "failover worst",
        "datagrams",
        "wrong, 10 % loss",
        "elections, broken link",
    ]);
    let mut doublings =
        Table::new(&["algorithm", "detector", "detect mean", "wrong, delays doubled"]);
    let mut rows = Vec::new();
    let mut kept = true;
    for algorithm in ALGORITHMS {
        for detector in DETECTORS.into_iter().filter(|detector| fits(algorithm, *detector)) {
            match row(algorithm, detector, options.seeds) {
                Some((cells, json)) => {
                    kept &= json["kept"] == true;
                    table.row(&cells);
                    rows.push(json);
                }
                None => kept = false,
            }
        }
        let Some((adaptive, fixed)) = adaptive_and_fixed(algorithm, options.seeds) else {
            kept = false;
            continue;
        };
        kept &= tenth_kept(&adaptive, &fixed);
        for (who, Doubling { detection_us, wrong }) in
            [("adaptive", adaptive), ("heartbeat", fixed)]
        {
            let detect = format!("{:.1} ms", detection_us / 1000.0);
            doublings.row(&[
                algorithm_name(algorithm).into(),
                who.into(),
                detect,
                wrong.to_string(),
            ]);
            rows.push(json!({
                "algorithm": algorithm_name(algorithm), "detector": who, "network": "delays doubled",
                "detection_ms": detection_us / 1000.0, "wrong_suspicions": wrong,
            }));
        }
    }
    if !options.json {
        println!("{NODES} nodes, Tm = 20 ms, Tp = 10 ms; {} seeds", options.seeds);
        println!(
            "detect: death of the coordinator to the first suspicion; failover: to all Normal;"
        );
        println!("datagrams: per node and second; wrong: suspicions of a live node a minute;");
        println!("broken link: coordinator to its highest member, elections a minute");
        table.print();
        println!("5 nodes, delays 1 to 10 ms, then twice that for 20 s in each seed;");
        println!("heartbeat with the silence that gives it the adaptive one's detection time");
        doublings.print();
    }
    (kept, rows)
}
