//! `cargo sim measure`: what a failure costs, in units of T, datagrams, bytes and saves.
//!
//! All times are simulated, so that the same command prints the same table everywhere.

pub mod detectors;
mod lan;
pub mod members;
pub mod policies;
pub(crate) mod sample;
pub(crate) mod table;
pub mod timers;

use std::sync::atomic::{AtomicUsize, Ordering};

use bellwether::config::{Algorithm, Timing};
use bellwether::time::Duration;
use serde_json::{Value, json};

use crate::random::algorithm_name;
use crate::settings::Settings;
use sample::Recovery;
use table::{Spread, Table};

/// What is measured.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// default: Tm = 20 ms, Tp = 10 ms, an ordinary board; lan: Tm = 5 ms, Tp = 3 ms, T = 20 ms
    #[arg(long, default_value = "default")]
    pub profile: Profile,
    /// How many seeds per row
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// How long a node is busy with one datagram (profile default)
    #[arg(long, default_value_t = 50)]
    pub handling_us: u64,
    /// Compare the failure detectors
    #[arg(long)]
    pub detectors: bool,
    /// Measure what the policies are for
    #[arg(long, conflicts_with = "detectors")]
    pub policies: bool,
    /// Measure how the death of a member is noticed that does not coordinate
    #[arg(long, conflicts_with_all = ["detectors", "policies"])]
    pub members: bool,
    /// Print the rows as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Profile {
    Default,
    Lan,
}

pub(crate) use crate::random::ALGORITHMS;

/// Measures and prints; `false` if a flock did not settle or a promise was not kept.
pub fn command(options: &Options) -> bool {
    let (kept, rows) = match options.profile {
        _ if options.detectors => detectors::command(options),
        _ if options.policies => policies::command(options),
        _ if options.members => members::command(options),
        Profile::Default => default_profile(options),
        Profile::Lan => lan::profile(options),
    };
    if options.json {
        let profile = format!("{:?}", options.profile).to_lowercase();
        println!("{}", json!({ "profile": profile, "seeds": options.seeds, "rows": rows }));
    }
    kept
}

/// Runs a measurement for each seed on all cores; the results are in order of the seeds.
fn for_seeds<T: Send>(seeds: u64, measure: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for_seeds_on(cores, seeds, measure)
}

/// The same on so many threads.
pub(crate) fn for_seeds_on<T: Send>(
    cores: usize,
    seeds: u64,
    measure: impl Fn(u64) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let mut results: Vec<(usize, T)> = std::thread::scope(|scope| {
        let work = || {
            let mut mine = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index as u64 >= seeds {
                    return mine;
                }
                mine.push((index, measure(index as u64 + 1)));
            }
        };
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| match worker.join() {
                Ok(results) => results,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A measurement that needs the right capacity for the number of nodes.
macro_rules! with_capacity {
    ($measure:ident, $settings:expr $(, $more:expr)*) => {{
        let settings = $settings;
        if settings.nodes <= 64 {
            sample::$measure::<1>(settings $(, $more)*)
        } else {
            sample::$measure::<4>(settings $(, $more)*)
        }
    }};
}
use with_capacity;

fn default_settings(nodes: u8, algorithm: Algorithm, seed: u64, handling_us: u64) -> Settings {
    let ms = Duration::from_millis;
    let timing = Timing::derive(ms(20), ms(10), ms(5));
    Settings { handling_us, ..Settings::new(nodes, algorithm, timing, seed) }
}

/// The longest election that is promised when nobody else fails, in microseconds.
fn promised_election_us(settings: &Settings) -> u64 {
    let timing = &settings.timing;
    let round_trip = 2 * settings.base_delay_us.1;
    match settings.algorithm {
        Algorithm::Bully => 2 * timing.t.us() + 3 * round_trip + settings.flash.save_us_max(),
        Algorithm::Invitation => 3 * timing.t.us() + timing.check.us() + timing.accept.us(),
        // The probe, then the laps.
        Algorithm::Ring => timing.t.us() + laps_us(settings),
    }
}

/// The longest three laps of a ring that has lost one node. Every node saves once.
pub fn laps_us(settings: &Settings) -> u64 {
    let hop = settings.base_delay_us.1 + settings.handling_us;
    let live = u64::from(settings.nodes) - 1;
    live * (3 * hop + settings.flash.save_us_max()) + settings.reorganize_us.1
}

fn default_profile(options: &Options) -> (bool, Vec<Value>) {
    let mut table = Table::new(&[
        "algorithm",
        "nodes",
        "detect",
        "elect mean",
        "p99",
        "worst",
        "promised",
        "total p99",
        "worst",
        "merge mean",
        "worst",
        "datagrams",
        "bytes",
        "saves/node",
    ]);
    let mut rows = Vec::new();
    let mut kept = true;
    let unit = default_settings(2, Algorithm::Bully, 1, 0).timing.t.us() as f64;
    for algorithm in ALGORITHMS {
        for nodes in [3, 5, 8, 16, 32, 64, 128] {
            let settings = |seed| default_settings(nodes, algorithm, seed, options.handling_us);
            let seeds = if nodes > 64 { options.seeds.div_ceil(4) } else { options.seeds };
            let failovers = for_seeds(seeds, |seed| with_capacity!(failover, settings(seed), 0.0));
            let merges = for_seeds(seeds, |seed| with_capacity!(merge, settings(seed), 0.0));
            let (Some(failovers), Some(merges)) = (all(failovers), all(merges)) else {
                println!("{} with {nodes} nodes did not settle", algorithm_name(algorithm));
                kept = false;
                continue;
            };
            let spread =
                |samples: &[Recovery], f: fn(&Recovery) -> f64| Spread::of(samples.iter().map(f));
            let in_t = |mut spread: Spread| {
                spread.scale(1.0 / unit);
                spread
            };
            let detect = in_t(spread(&failovers, |r| r.detection_us as f64));
            let elect = in_t(spread(&failovers, |r| r.election_us as f64));
            let total = in_t(spread(&failovers, |r| r.total_us as f64));
            let merged = in_t(spread(&merges, |r| r.total_us as f64));
            let datagrams = spread(&failovers, |r| r.datagrams as f64);
            let bytes = spread(&failovers, |r| r.bytes as f64);
            let saves = spread(&failovers, |r| r.saves as f64);
            let promised = promised_election_us(&settings(1)) as f64 / unit;
            kept &= elect.worst <= promised;
            table.row(&[
                algorithm_name(algorithm).into(),
                nodes.to_string(),
                format!("{:.2} T", detect.mean),
                format!("{:.2} T", elect.mean),
                format!("{:.2} T", elect.p99),
                format!("{:.2} T", elect.worst),
                format!("{promised:.2} T"),
                format!("{:.2} T", total.p99),
                format!("{:.2} T", total.worst),
                format!("{:.2} T", merged.mean),
                format!("{:.2} T", merged.worst),
                format!("{:.0}", datagrams.worst),
                format!("{:.0}", bytes.worst),
                format!("{:.0}", saves.worst),
            ]);
            rows.push(json!({
                "algorithm": algorithm_name(algorithm), "nodes": nodes, "t_ms": unit / 1000.0,
                "promised_election_t": promised, "detection_t": detect.json(), "election_t": elect.json(),
                "failover_t": total.json(), "merge_t": merged.json(),
                "datagrams": datagrams.json(), "bytes": bytes.json(), "saves_per_node": saves.json(),
            }));
        }
    }
    if !options.json {
        println!(
            "Tm = 20 ms, Tp = 10 ms, T = {:.2} ms, P = 10 T, {} us per datagram; {} seeds",
            unit / 1000.0,
            options.handling_us,
            options.seeds
        );
        println!(
            "detect: death to first suspicion; elect: from there to all Normal; merge: heal to one group;"
        );
        println!("datagrams and bytes: from the first suspicion to all Normal, worst seed");
        table.print();
    }
    (kept, rows)
}

fn all<T>(samples: Vec<Option<T>>) -> Option<Vec<T>> {
    samples.into_iter().collect()
}
