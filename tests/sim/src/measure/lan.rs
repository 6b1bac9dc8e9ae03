//! The profile `lan`: a fast switched network, and what is promised there.

use bellwether::config::{Algorithm, Timing};
use bellwether::time::Duration;
use serde_json::{Value, json};

use super::sample::{self, Recovery};
use super::table::{Spread, Table};
use super::{ALGORITHMS, Options, all, for_seeds, with_capacity};
use crate::flash::FlashSettings;
use crate::random::algorithm_name;
use crate::settings::Settings;

const LOSS: f64 = 0.1;

/// One-way delay uniform 1 to 5 ms, Tm = 5, Tp = 3, saves of 2 ms, no handling cost.
fn settings(nodes: u8, algorithm: Algorithm, seed: u64) -> Settings {
    let ms = Duration::from_millis;
    let mut timing = Timing::derive(ms(5), ms(3), ms(3)).with_t(ms(20));
    timing.check = ms(1000);
    let mut settings = Settings::new(nodes, algorithm, timing, seed);
    settings.base_delay_us = (1000, 5000);
    settings.flash = FlashSettings::fixed((2000, 2000));
    settings.handling_us = 0;
    settings.reorganize_us = (0, 0);
    settings
}

/// What the profile promises: a number that must not be exceeded.
struct Promise {
    what: &'static str,
    value: f64,
    most: f64,
}

fn worst(samples: &[Recovery], value: fn(&Recovery) -> f64) -> Spread {
    Spread::of(samples.iter().map(value))
}

fn promises(algorithm: Algorithm, nodes: u8, seeds: u64) -> Option<Vec<Promise>> {
    let settings = |seed| settings(nodes, algorithm, seed);
    let failover = all(for_seeds(seeds, |seed| with_capacity!(failover, settings(seed), 0.0)))?;
    let merge = all(for_seeds(seeds, |seed| with_capacity!(merge, settings(seed), 0.0)))?;
    let lossy = all(for_seeds(seeds, |seed| with_capacity!(failover, settings(seed), LOSS)))?;
    let cold = all(for_seeds(seeds, |seed| with_capacity!(cold_start, settings(seed), LOSS)))?;
    let few = seeds.div_ceil(10);
    let calm = all(for_seeds(few, |seed| with_capacity!(quiet, settings(seed), 0.0, 10_000_000)))?;
    let minutes = seeds.div_ceil(2);
    let noisy =
        all(for_seeds(minutes, |seed| with_capacity!(quiet, settings(seed), LOSS, 60_000_000)))?;
    let total = |r: &Recovery| r.total_us as f64 / 1000.0;
    let sent = |r: &Recovery| r.datagrams as f64;
    let n = f64::from(nodes);
    // The ring: three laps of up to 5 ms a hop, a save of 2 ms at each node, and the suspicion.
    let laps = 17.0 * n + 60.0;
    let (failover_ms, merge_ms, most_sent) = match algorithm {
        Algorithm::Bully => (100.0, f64::INFINITY, (4.0 * n).max(3.0 * n + 8.0)),
        Algorithm::Invitation => (80.0, 80.0, 4.0 * n),
        // Half of the round trips are longer than the T/4 after which a hop is repeated.
        Algorithm::Ring => (laps, laps, 12.0 * (n - 1.0) + 8.0),
    };
    let (lossy_ms, cold_ms) = match algorithm {
        Algorithm::Bully | Algorithm::Invitation => (300.0, 2000.0),
        // A token that misses somebody costs another run. Who was missed at the start finds out
        // after n T, and a Hello that was lost on the way costs half as much again.
        Algorithm::Ring => (3.0 * laps, 30.0 * n + laps),
    };
    let merge_sent = if algorithm == Algorithm::Invitation { most_sent } else { f64::INFINITY };
    let promise = |what, value, most| Promise { what, value, most };
    Some(vec![
        promise("failover, worst (ms)", worst(&failover, total).worst, failover_ms),
        promise("failover, worst (datagrams)", worst(&failover, sent).worst, most_sent),
        promise("merge after heal, worst (ms)", worst(&merge, total).worst, merge_ms),
        promise("merge after heal, worst (datagrams)", worst(&merge, sent).worst, merge_sent),
        promise(
            "saves per node and failover, worst",
            worst(&failover, |r| r.saves as f64).worst,
            1.0,
        ),
        promise(
            "steady state (datagrams per node and second)",
            Spread::of(calm.iter().map(|q| q.mean)).worst,
            20.0,
        ),
        promise(
            "steady state, coordinator (datagrams per second)",
            Spread::of(calm.iter().map(|q| q.coordinator)).worst,
            100.0,
        ),
        promise(
            "needless elections per minute, 10 % loss, mean",
            Spread::of(noisy.iter().map(|q| q.elections)).mean,
            0.1,
        ),
        promise("failover, p99, 10 % loss (ms)", worst(&lossy, total).p99, lossy_ms),
        promise("cold start, worst, 10 % loss (ms)", worst(&cold, total).worst, cold_ms),
    ])
}

/// Measures and prints; `false` if a promise was not kept.
pub fn profile(options: &Options) -> (bool, Vec<Value>) {
    let mut table = Table::new(&["algorithm", "nodes", "what", "measured", "promised", "kept"]);
    let mut rows = Vec::new();
    let mut kept = true;
    for algorithm in ALGORITHMS {
        for nodes in [5, 16, 64] {
            let Some(promises) = promises(algorithm, nodes, options.seeds) else {
                println!("{} with {nodes} nodes did not settle", algorithm_name(algorithm));
                kept = false;
                continue;
            };
            for Promise { what, value, most } in promises {
                let holds = value <= most;
                kept &= holds;
                let promised = if most.is_finite() { format!("{most:.1}") } else { "-".into() };
                let verdict = if holds { "yes" } else { "NO" };
                table.row(&[
                    algorithm_name(algorithm).into(),
                    nodes.to_string(),
                    what.into(),
                    format!("{value:.2}"),
                    promised,
                    verdict.into(),
                ]);
                let most = most.is_finite().then_some(most);
                rows.push(json!({
                    "algorithm": algorithm_name(algorithm), "nodes": nodes, "what": what,
                    "measured": value, "promised": most, "kept": holds,
                }));
            }
        }
    }
    if !options.json {
        println!(
            "one-way delay 1 to 5 ms, Tm = 5 ms, Tp = 3 ms, T = 20 ms, save 2 ms, no handling cost;"
        );
        println!("worst of {} seeds", options.seeds);
        table.print();
    }
    (kept, rows)
}
