//! `cargo sim measure --policies`: what leaving on purpose costs, and what hold-off saves.

use bellwether::config::Algorithm;
use bellwether::state::Status;
use serde_json::{Value, json};

use super::sample::settled;
use super::table::{Spread, Table};
use super::{ALGORITHMS, Options, all, default_settings, for_seeds};
use crate::clock::Time;
use crate::random::algorithm_name;
use crate::settings::Settings;
use crate::settings::node_id;
use crate::world::World;

const NODES: u8 = 5;

/// From the request to leave until all others are Normal in a group without the leaver.
pub fn leaving_us(settings: Settings, coordinator_leaves: bool) -> Option<Time> {
    let mut world = settled::<1>(settings, 0.0)?;
    let nodes: Vec<usize> = (0..world.machines.len()).collect();
    let leaver = nodes.iter().find(|node| world.is_coordinator(**node) == coordinator_leaves)?;
    let id = node_id(*leaver);
    let began = world.now;
    world.leave(*leaver);
    let without = |world: &World<1>| {
        let others = nodes.iter().filter(|node| *node != leaver);
        world.is_settled(&nodes)
            && others.filter_map(|node| world.summary(*node)).all(|state| !state.up.contains(id))
    };
    let mut found = false;
    world.run_until(began + 100 * world.timing().t.us(), |world| {
        found = without(world);
        found
    });
    found.then(|| world.now - began)
}

/// What is promised: two rounds of T and three round trips, and no detection.
pub fn leaving_promised_us(settings: &Settings) -> Time {
    2 * settings.timing.t.us() + 3 * 2 * settings.base_delay_us.1
}

fn leaving_row(
    algorithm: Algorithm,
    coordinator_leaves: bool,
    seeds: u64,
) -> Option<(Vec<String>, Value)> {
    let settings = |seed| default_settings(NODES, algorithm, seed, 50);
    let times = all(for_seeds(seeds, |seed| leaving_us(settings(seed), coordinator_leaves)))?;
    let mut spread = Spread::of(times.into_iter().map(|us| us as f64));
    let unit = settings(1).timing.t.us() as f64;
    spread.scale(1.0 / unit);
    let promised = leaving_promised_us(&settings(1)) as f64 / unit;
    let who = if coordinator_leaves { "coordinator" } else { "member" };
    let cells = vec![
        algorithm_name(algorithm).into(),
        format!("{who} leaves"),
        format!("{:.2} T", spread.mean),
        format!("{:.2} T", spread.worst),
        format!("{promised:.2} T"),
    ];
    let json = json!({
        "algorithm": algorithm_name(algorithm), "leaves": who, "settled_t": spread.json(),
        "promised_t": promised, "kept": spread.worst <= promised,
    });
    Some((cells, json))
}

/// The share of time in which all others are Normal while the highest node is up for 3 T and down
/// for 3 T, again and again.
pub fn normal_share(settings: Settings, cycles: u64) -> Option<f64> {
    let mut world = settled::<1>(settings, 0.0)?;
    let nodes = world.machines.len();
    let top = (0..nodes).find(|node| world.is_coordinator(*node))?;
    let span = 3 * world.timing().t.us();
    let all_normal = |world: &World<1>| {
        let mut others = (0..nodes).filter(|node| *node != top);
        others.all(|node| world.checker.view(node).status == Status::Normal)
    };
    let began = world.now;
    let (mut since, mut normal, mut total) = (began, all_normal(&world), 0);
    let mut follow = |world: &World<1>| {
        let now_normal = all_normal(world);
        if normal {
            total += world.now - since;
        }
        (since, normal) = (world.now, now_normal);
        false
    };
    for _ in 0..cycles {
        world.kill(top);
        world.run_until(world.now + span, &mut follow);
        world.power_on(top);
        world.run_until(world.now + span, &mut follow);
    }
    Some(total as f64 / (world.now - began) as f64)
}

/// Hold-off for the flapping node of [`normal_share`].
pub fn hold_off_us(settings: &Settings) -> Time {
    20 * settings.timing.t.us()
}

fn flapping_row(algorithm: Algorithm, held: bool, seeds: u64) -> Option<(Vec<String>, Value)> {
    let settings = |seed| {
        let mut settings = default_settings(NODES, algorithm, seed, 50);
        settings.hold_off_us = if held { hold_off_us(&settings) } else { 0 };
        settings
    };
    let shares = all(for_seeds(seeds.div_ceil(10), |seed| normal_share(settings(seed), 50)))?;
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let mean = Spread::of(shares.into_iter()).mean;
    let policy = if held { "20 T" } else { "none" };
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let cells =
        vec![algorithm_name(algorithm).into(), policy.into(), percent(mean), percent(least)];
    let json = json!({
        "algorithm": algorithm_name(algorithm), "hold_off": policy, "normal_mean": mean,
        "normal_least": least, "kept": !held || least >= 0.9,
    });
    Some((cells, json))
}

/// Measures and prints; `false` if a flock did not settle or a promise was not kept.
pub fn command(options: &Options) -> (bool, Vec<Value>) {
    let mut table = Table::new(&["algorithm", "what", "settled mean", "worst", "promised"]);
    let mut flapping =
        Table::new(&["algorithm", "hold-off", "others Normal, mean", "least of all seeds"]);
    let mut rows = Vec::new();
    let mut kept = true;
    for algorithm in ALGORITHMS {
        for held in [false, true] {
            match flapping_row(algorithm, held, options.seeds) {
                Some((cells, json)) => {
                    kept &= json["kept"] == true;
                    flapping.row(&cells);
                    rows.push(json);
                }
                None => kept = false,
            }
        }
        for coordinator_leaves in [true, false] {
            match leaving_row(algorithm, coordinator_leaves, options.seeds) {
                Some((cells, json)) => {
                    kept &= json["kept"] == true;
                    table.row(&cells);
                    rows.push(json);
                }
                None => kept = false,
            }
        }
    }
    if !options.json {
        println!("{NODES} nodes, Tm = 20 ms, Tp = 10 ms; {} seeds", options.seeds);
        table.print();
        println!("the highest node is up for 3 T and down for 3 T, 50 times in each seed");
        flapping.print();
    }
    (kept, rows)
}
