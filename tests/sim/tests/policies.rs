//! What the policies are for, in numbers.

#![allow(clippy::expect_used)] // a test may fail where it stands

use bellwether::config::{Algorithm, Timing};
use bellwether::time::Duration;
use bellwether_sim::measure::laps_us;
use bellwether_sim::measure::policies::{
    hold_off_us, leaving_promised_us, leaving_us, normal_share,
};
use bellwether_sim::settings::Settings;

const ALL: [Algorithm; 3] = [Algorithm::Bully, Algorithm::Invitation, Algorithm::Ring];

fn flock(nodes: u8, algorithm: Algorithm, seed: u64) -> Settings {
    let ms = Duration::from_millis;
    Settings::new(nodes, algorithm, Timing::derive(ms(20), ms(10), ms(5)), seed)
}

fn five(algorithm: Algorithm, seed: u64) -> Settings {
    flock(5, algorithm, seed)
}

#[track_caller]
fn leaving_is_kept(settings: Settings, coordinator_leaves: bool) {
    let promised = leaving_promised_us(&settings);
    let what =
        format!("{:?}, {} nodes, seed {}", settings.algorithm, settings.nodes, settings.seed);
    let took = leaving_us(settings, coordinator_leaves).expect("all settle");
    assert!(took <= promised, "{what}: {took} us of {promised}");
}

#[test]
fn who_leaves_on_purpose_is_not_waited_for() {
    for algorithm in ALL {
        for coordinator_leaves in [true, false] {
            for seed in 1..=40 {
                leaving_is_kept(five(algorithm, seed), coordinator_leaves);
            }
        }
    }
}

/// A Beat or an answer that its farewell has overtaken must not bring it back.
#[test]
fn nor_where_frames_overtake_each_other() {
    for algorithm in ALL {
        for coordinator_leaves in [true, false] {
            for seed in 1..=40 {
                let settings = Settings { overtakes: true, ..five(algorithm, seed) };
                leaving_is_kept(settings, coordinator_leaves);
            }
        }
    }
}

/// A ring takes its three laps: three hops and a save for each node that is left.
#[test]
fn in_a_large_ring_leaving_costs_three_laps() {
    for (nodes, seeds) in [(16, 10), (64, 3)] {
        for (seed, coordinator_leaves) in (1..=seeds).flat_map(|seed| [(seed, true), (seed, false)])
        {
            let settings = flock(nodes, Algorithm::Ring, seed);
            let most = laps_us(&settings);
            let took = leaving_us(settings, coordinator_leaves).expect("all settle");
            assert!(took <= most, "{nodes} nodes, seed {seed}: {took} us of {most}");
        }
    }
}

/// Not so the others.
#[test]
fn nor_in_large_flocks_of_bully_and_invitation() {
    for algorithm in [Algorithm::Bully, Algorithm::Invitation] {
        for (nodes, seeds) in [(16, 10), (64, 3)] {
            for (seed, coordinator_leaves) in
                (1..=seeds).flat_map(|seed| [(seed, true), (seed, false)])
            {
                leaving_is_kept(flock(nodes, algorithm, seed), coordinator_leaves);
            }
        }
    }
}

#[test]
fn hold_off_keeps_the_others_at_work_while_the_highest_node_flaps() {
    for algorithm in ALL {
        for seed in 1..=20 {
            let free = five(algorithm, seed);
            let held = Settings { hold_off_us: hold_off_us(&free), ..free.clone() };
            let free = normal_share(free, 50).expect("it settles");
            let held = normal_share(held, 50).expect("it settles");
            assert!(held >= 0.9, "{algorithm:?}, seed {seed}: {held} with hold-off");
            assert!(free < 0.9, "{algorithm:?}, seed {seed}: {free} without");
        }
    }
}
