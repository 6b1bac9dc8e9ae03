//! What the failure detectors are for, in numbers.

#![allow(clippy::expect_used)] // a test may fail where it stands

use bellwether::config::{Algorithm, Detector, Timing};
use bellwether::time::Duration;
use bellwether_sim::measure::detectors::{adaptive_and_fixed, broken_links, tenth_kept};
use bellwether_sim::settings::Settings;

const ALL: [Algorithm; 3] = [Algorithm::Bully, Algorithm::Invitation, Algorithm::Ring];

/// Long enough for the coordinator to count a silent member as gone, twice.
const SPAN_US: u64 = 5_000_000;

fn five(algorithm: Algorithm, detector: Detector, seed: u64) -> Settings {
    let ms = Duration::from_millis;
    let timing = Timing::derive(ms(20), ms(10), ms(5));
    Settings { detector, ..Settings::new(5, algorithm, timing, seed) }
}

/// Every link between two of five nodes: one way, the other way, both ways.
fn single_links() -> Vec<Vec<(usize, usize)>> {
    let mut links = Vec::new();
    for one in 0..5 {
        for other in 0..one {
            links.push(vec![(one, other)]);
            links.push(vec![(other, one)]);
            links.push(vec![(one, other), (other, one)]);
        }
    }
    links
}

#[test]
fn adaptive_a_tenth_of_the_wrong_suspicions_when_delays_double() {
    for algorithm in ALL {
        let (adaptive, fixed) = adaptive_and_fixed(algorithm, 20).expect("all settle");
        let apart = (adaptive.detection_us - fixed.detection_us).abs() / fixed.detection_us;
        assert!(apart < 0.02, "equal before the change: {adaptive:?}, {fixed:?}");
        assert!(fixed.wrong > 50, "the change is felt: {fixed:?}");
        assert!(tenth_kept(&adaptive, &fixed), "{adaptive:?}, {fixed:?}");
        assert!(!tenth_kept(&fixed, &adaptive), "it can be broken");
    }
}

#[test]
fn indirect_no_election_on_a_single_broken_link() {
    for algorithm in ALL {
        for (seed, links) in (1..).zip(single_links()) {
            let (elections, settled) =
                broken_links(five(algorithm, Detector::Indirect, seed), &links, SPAN_US);
            assert_eq!((elections, settled), (0, true), "{algorithm:?}, {links:?}");
        }
    }
}

#[test]
fn heartbeat_calls_elections_on_a_broken_link_to_the_coordinator() {
    for algorithm in ALL {
        for links in [[(4, 2)], [(2, 4)]] {
            let (elections, _) =
                broken_links(five(algorithm, Detector::Heartbeat, 1), &links, SPAN_US);
            assert!(elections > 0, "{algorithm:?}, {links:?}");
        }
    }
}
