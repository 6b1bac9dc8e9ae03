//! What nodes measure of their network, what follows for Tm and Tp, and its replay.

#![allow(clippy::expect_used, clippy::unwrap_used)] // a test may fail where it stands

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use bellwether::advice::{Advice, BUCKETS, Histogram, advise};
use bellwether::config::{Algorithm, Timing};
use bellwether::time::Duration;
use bellwether_scenario::{Delays, Distribution};
use bellwether_sim::clock::Time;
use bellwether_sim::compare::row::Document;
use bellwether_sim::settings::Settings;
use bellwether_sim::world::World;

const ALGORITHMS: [Algorithm; 3] = [Algorithm::Bully, Algorithm::Invitation, Algorithm::Ring];
const TM_US: Time = 20_000;
const TP_US: Time = 10_000;

fn settings(algorithm: Algorithm) -> Settings {
    let timing = Timing::derive(
        Duration::from_us(TM_US),
        Duration::from_us(TP_US),
        Duration::from_millis(5),
    );
    Settings::new(8, algorithm, timing, 3)
}

/// A flock that lives for a while, and loses its coordinator twice.
fn lived(settings: Settings) -> World<1> {
    let mut world = World::<1>::new(settings);
    for node in 0..world.machines.len() {
        world.power_on(node);
    }
    for highest in [7, 6] {
        world.run_for(5_000_000);
        world.kill(highest);
    }
    world.run_for(5_000_000);
    assert_eq!(world.checker.violations, []);
    world
}

fn of_all(world: &World<1>, which: fn(&bellwether::node::Node<1>) -> &Histogram) -> Distribution {
    let nodes = || world.machines.iter().filter_map(|machine| machine.node.as_ref()).map(which);
    let longest = nodes().map(|times| u64::from(times.max_us())).max().unwrap();
    let bucket = |index| {
        let below = nodes().next().unwrap().below_us(index).unwrap_or(u64::MAX);
        (below, nodes().map(|times| u64::from(times.counts()[index])).sum())
    };
    Distribution::new((0..BUCKETS).map(bucket), longest).expect("something was measured")
}

fn measured(world: &World<1>) -> Delays {
    Delays {
        tm_us: TM_US,
        tp_us: TP_US,
        trips: of_all(world, bellwether::node::Node::round_trips),
        handling: of_all(world, bellwether::node::Node::handling),
    }
}

fn judged(delays: &Delays) -> Advice {
    let [trip, handling] =
        [&delays.trips, &delays.handling].map(|d| Duration::from_us(d.longest_us()));
    advise(Duration::from_us(delays.tm_us), Duration::from_us(delays.tp_us), trip, handling)
}

#[test]
fn a_network_that_keeps_its_bounds_is_safe_and_a_slower_one_is_not() {
    for algorithm in ALGORITHMS {
        let usual = measured(&lived(settings(algorithm)));
        assert!(usual.trips.samples() > 40, "{algorithm:?}: {}", usual.trips.samples());
        let advice = judged(&usual);
        assert!(advice.tm_safe && advice.tp_safe, "{algorithm:?}: {advice:?}");
        // Ways of up to Tm/2: a round trip is at most Tm, and what is advised is near that.
        assert!((10_000..20_000).contains(&advice.tm.us()), "{algorithm:?}: {advice:?}");

        let mut slower = settings(algorithm);
        slower.base_delay_us = (TM_US / 20, 2 * TM_US);
        let slower = measured(&lived(slower));
        let advice = judged(&slower);
        assert!(!advice.tm_safe, "{algorithm:?}: {advice:?}, {slower:?}");
        assert!(advice.tm.us() > TM_US, "{algorithm:?}: {advice:?}");
    }
}

/// Where no answer comes in time nothing ever settles, and the round after the one that is answered is open
/// already: that network must not go without a verdict.
#[test]
fn a_network_far_slower_than_t_is_called_unsafe() {
    for algorithm in ALGORITHMS {
        let mut slow = settings(algorithm);
        slow.base_delay_us = (3 * TM_US, 4 * TM_US);
        let t = slow.timing.t.us();
        assert!(2 * slow.base_delay_us.0 > 2 * t, "no answer within two T");
        let mut world = World::<1>::new(slow);
        for node in 0..world.machines.len() {
            world.power_on(node);
        }
        world.run_for(20_000_000);
        let delays = measured(&world);
        let advice = judged(&delays);
        assert!(!advice.tm_safe, "{algorithm:?}: {advice:?}, {delays:?}");
        assert!(advice.tm.us() >= 3 * TM_US, "{algorithm:?}: {advice:?}");
    }
}

#[test]
fn a_processor_that_needs_nearly_all_of_tp_is_not_safe() {
    let mut slow = settings(Algorithm::Bully);
    slow.handling_us = 1_100;
    let mut delays = measured(&lived(slow));
    let longest = delays.handling.longest_us();
    assert!(judged(&delays).tp_safe, "{delays:?}");
    assert!((TP_US / 2..TP_US).contains(&longest), "{longest} us");
    // The same on a board whose Tp is only just enough.
    delays.tp_us = longest + 1;
    let advice = judged(&delays);
    assert!(advice.tm_safe && !advice.tp_safe && advice.tp.us() > longest, "{advice:?}");
}

/// Nodes on the replayed network measure what was measured: no bucket is new, and the longest trip is
/// that of two longest ways.
#[test]
fn a_replayed_network_looks_like_the_one_that_was_measured() {
    let first = measured(&lived(settings(Algorithm::Bully)));
    let mut again = settings(Algorithm::Bully);
    again.replay(&Arc::new(first.clone()));
    let again = measured(&lived(again));
    assert!(judged(&again).tm_safe);
    let (longest, before) = (again.trips.longest_us(), first.trips.longest_us());
    assert!(longest <= before + TP_US && longest > before / 2, "{longest} us, before {before} us");
    let middle = |delays: &Delays| delays.trips.quantile_us(0.5) as f64;
    assert!((middle(&again) / middle(&first) - 1.0).abs() < 0.35, "{again:?}, before {first:?}");
}

// --- the command ----------------------------------------------------------------------------

fn sim(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellwether-sim"));
    command.args(arguments).output().expect("the simulator starts")
}

fn file(name: &str, text: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).expect("a file can be written");
    path.display().to_string()
}

const MEASURED: &str = "format = 1\ntm_ms = 20\ntp_ms = 10\n[trips]\nbelow_ms = [2, 4, 9.5]\n\
                        counts = [5, 90, 5]\n[handling]\nbelow_ms = [1]\ncounts = [100]\n";

#[test]
fn scenarios_random_runs_and_comparisons_replay_a_file() {
    let delays = file("delays.toml", MEASURED);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let scenario = folder.join("coordinator-crash-and-return-bully.toml").display().to_string();
    let trace = |name: &str, more: &[&str]| {
        let path = file(name, "");
        let output = sim(&[&[&scenario[..], "--trace", &path], more].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        fs::read(&path).expect("the trace is there")
    };
    let replayed = trace("replayed.jsonl", &["--delays", &delays]);
    assert_ne!(replayed, trace("usual.jsonl", &[]));
    assert_eq!(replayed, trace("replayed-again.jsonl", &["--delays", &delays]));

    let output = sim(&["--delays", &delays, "--seeds", "10"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    let small = ["compare", "--nodes-max", "3", "--seeds", "1", "--json", "--delays", &delays];
    let output = sim(&small);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let document: Document = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert!(document.rows.len() >= 15);
    assert!(document.rows.iter().all(|row| row.delays == "measured"));
    assert_eq!(document.tm_ms, 20.0);
}

#[test]
fn a_bad_file_exits_2_with_one_line_that_says_why() {
    let bad = file("bad-delays.toml", &MEASURED.replace("[2, 4, 9.5]", "[2, 4]"));
    for command in [&["--delays"][..], &["compare", "--delays"]] {
        for (file, wanted) in [(&bad[..], "2 bounds and 3 counts"), ("no/such.toml", "No such")] {
            let output = sim(&[command, &[file]].concat());
            assert_eq!(output.status.code(), Some(2), "{output:?}");
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(message.lines().count(), 1, "{message}");
            assert!(message.starts_with(file) && message.contains(wanted), "{message}");
        }
    }
}
