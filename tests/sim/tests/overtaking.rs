//! A network that overtakes within Tm breaks no promise.

#![allow(clippy::expect_used)] // a test may fail where it stands

use std::path::Path;

use bellwether_scenario::{Action, Scenario};
use bellwether_sim::play::play;

/// With a link that takes only what is newer, 19 and 20 show two coordinators.
const SEEDS: std::ops::RangeInclusive<u64> = 11..=20;

fn scenario(algorithm: &str, jitter_us: u64) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let file = folder.join(format!("overtaking-{algorithm}.toml"));
    let text = std::fs::read_to_string(&file).expect("the scenario is there");
    let mut scenario = Scenario::parse(&file.display().to_string(), &text).expect("it is good");
    for timed in &mut scenario.actions {
        if let Action::Link { quality, .. } = &mut timed.action {
            quality.jitter_us = jitter_us;
        }
    }
    scenario
}

/// Plays it with ten seeds, and says for which share of the time Assertion 1 was checked.
fn checked(algorithm: &str, jitter_us: u64) -> f64 {
    let (mut checked_us, mut all_us) = (0, 0);
    for seed in SEEDS {
        let scenario = Scenario { seed, ..scenario(algorithm, jitter_us) };
        let played = play(&scenario, false).expect("it can be played");
        assert_eq!(played.failures, [] as [String; 0], "{algorithm}, {jitter_us} us, seed {seed}");
        checked_us += played.totals.assertion_1_us;
        all_us += played.totals.sim_us;
    }
    checked_us as f64 / all_us as f64
}

#[test]
fn overtaking_within_tm_suspends_no_check_and_breaks_nothing() {
    for algorithm in ["bully", "ring"] {
        assert_eq!(checked(algorithm, 9000), 1.0, "{algorithm}");
    }
    checked("invitation", 9000);
}

/// Then frames are late, too, and only what must hold always must hold.
#[test]
fn beyond_tm_all_settle_and_the_check_is_suspended() {
    for algorithm in ["bully", "ring", "invitation"] {
        assert!(checked(algorithm, 15_000) < 0.5, "{algorithm}");
    }
}
