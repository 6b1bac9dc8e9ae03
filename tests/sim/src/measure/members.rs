//! `cargo sim measure --members`: how soon a dead member is noticed, how surely, and at what cost.

use bellwether::config::{Algorithm, Detector, Timing};
use bellwether::time::Duration;
use serde_json::{Value, json};

use super::detectors::{DETECTORS, fits};
use super::sample::{self, MemberLoss};
use super::table::{Spread, Table};
use super::{ALGORITHMS, Options, all, for_seeds, with_capacity};
use crate::clock::Time;
use crate::random::{algorithm_name, detector_name};
use crate::settings::Settings;

const LOSS: f64 = 0.1;
const MINUTE_US: Time = 60_000_000;

/// The lab's default times.
pub fn settings(nodes: u8, algorithm: Algorithm, detector: Detector, seed: u64) -> Settings {
    let ms = Duration::from_millis;
    let timing = Timing::derive(ms(40), ms(40), ms(5));
    Settings { detector, ..Settings::new(nodes, algorithm, timing, seed) }
}

/// One-way delays: the usual ones, and the longest that Tm allows.
const DELAYS: [(&str, (u64, u64)); 2] = [("Tm/20..Tm/2", (20, 2)), ("Tm/2..Tm", (2, 1))];

struct Case {
    algorithm: Algorithm,
    detector: Detector,
    nodes: u8,
    delays: (&'static str, (u64, u64)),
}

impl Case {
    fn settings(&self, seed: u64) -> Settings {
        let mut settings = settings(self.nodes, self.algorithm, self.detector, seed);
        let (tm, (low, high)) = (settings.timing.tm.us(), self.delays.1);
        settings.base_delay_us = (tm / low, tm / high);
        settings
    }

    fn row(&self, seeds: u64) -> Option<(Vec<String>, Value)> {
        let losses =
            all(for_seeds(seeds, |seed| with_capacity!(member_loss, self.settings(seed))))?;
        let in_ms = |time: fn(&MemberLoss) -> Time| {
            Spread::of(losses.iter().map(|loss| time(loss) as f64 / 1000.0))
        };
        let (noticed, settled) = (in_ms(|loss| loss.noticed_us), in_ms(|loss| loss.settled_us));
        let minute = |loss| {
            let seeds = seeds.div_ceil(4);
            all(for_seeds(seeds, |seed| {
                with_capacity!(quiet, self.settings(seed), loss, MINUTE_US)
            }))
        };
        let (calm, lossy) = (minute(0.0)?, minute(LOSS)?);
        let sent = Spread::of(calm.iter().map(|quiet| quiet.mean)).mean;
        let sent_without_one = Spread::of(losses.iter().map(|loss| loss.sent_afterwards)).mean;
        let sent_lossy = Spread::of(lossy.iter().map(|quiet| quiet.mean)).mean;
        let wrong = Spread::of(lossy.iter().map(|quiet| quiet.wrong_suspicions)).mean;
        let elections = Spread::of(lossy.iter().map(|quiet| quiet.elections)).mean;
        let wrong_per_node = wrong / f64::from(self.nodes);
        let promised = promised_us(&self.settings(1)) as f64 / 1000.0;
        let names = (algorithm_name(self.algorithm), detector_name(self.detector));
        let mut cells =
            vec![names.0.into(), names.1.into(), self.nodes.to_string(), self.delays.0.into()];
        for spread in [noticed, settled] {
            cells.extend([spread.p50, spread.p99, spread.worst].map(|ms| format!("{ms:.0} ms")));
        }
        cells.extend([sent, sent_without_one, sent_lossy].map(|rate| format!("{rate:.2}")));
        cells.extend([wrong_per_node, elections].map(|rate| format!("{rate:.3}")));
        let json = json!({
            "algorithm": names.0, "detector": names.1, "nodes": self.nodes, "delays": self.delays.0,
            "noticed_ms": noticed.json(), "settled_ms": settled.json(),
            "datagrams_per_node_and_second": sent,
            "datagrams_per_node_and_second_without_one": sent_without_one,
            "datagrams_per_node_and_second_lossy": sent_lossy,
            "wrong_suspicions_per_node_and_minute_lossy": wrong_per_node,
            "elections_per_minute_lossy": elections,
            "promised_ms": promised, "kept": noticed.worst <= promised,
        });
        Some((cells, json))
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for algorithm in ALGORITHMS {
        for detector in DETECTORS.into_iter().filter(|detector| fits(algorithm, *detector)) {
            cases.push(Case { algorithm, detector, nodes: 8, delays: DELAYS[0] });
        }
        let detector = Detector::Heartbeat;
        cases.push(Case { algorithm, detector, nodes: 8, delays: DELAYS[1] });
        cases.push(Case { algorithm, detector, nodes: 32, delays: DELAYS[0] });
    }
    cases
}

/// What is promised, in microseconds: P + 9/4 T, or P + 3 T where others are asked before.
pub fn promised_us(settings: &Settings) -> Time {
    let timing = &settings.timing;
    let wait = match settings.detector {
        Detector::Indirect => timing.t.times(3),
        _ => timing.roll_call(),
    };
    (timing.check + wait).us()
}

/// Measures and prints; `false` if a flock did not settle or a death was noticed too late.
pub fn command(options: &Options) -> (bool, Vec<Value>) {
    let mut table = Table::new(&[
        "algorithm",
        "detector",
        "nodes",
        "delays",
        "noticed p50",
        "p99",
        "worst",
        "settled p50",
        "p99",
        "worst",
        "sent",
        "without it",
        "10 % loss",
        "wrong",
        "elections",
    ]);
    let mut rows = Vec::new();
    let mut kept = true;
    for case in cases() {
        match case.row(options.seeds) {
            Some((cells, json)) => {
                kept &= json["kept"] == true;
                table.row(&cells);
                rows.push(json);
            }
            None => kept = false,
        }
    }
    if !options.json {
        let timing = settings(2, Algorithm::Bully, Detector::Heartbeat, 1).timing;
        let in_ms = |span: Duration| span.us() as f64 / 1000.0;
        let (t, check) = (in_ms(timing.t), in_ms(timing.check));
        println!("Tm = Tp = 40 ms, T = {t:.2} ms, P = {check:.1} ms; {} seeds", options.seeds);
        println!(
            "noticed: death of a member that does not coordinate to the election, merge or run"
        );
        println!(
            "without it; settled: to all others Normal; sent: datagrams per node and second, at"
        );
        println!(
            "rest, then without the dead one, then at 10 % loss; wrong: suspicions of a live node"
        );
        println!("per node and minute at 10 % loss; elections: a minute, needless, at 10 % loss");
        table.print();
    }
    (kept, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_member_is_noticed_within_what_is_promised() {
        for algorithm in ALGORITHMS {
            for detector in DETECTORS.into_iter().filter(|detector| fits(algorithm, *detector)) {
                let settings = |seed| settings(5, algorithm, detector, seed);
                let losses = for_seeds(60, |seed| with_capacity!(member_loss, settings(seed)));
                let losses = all(losses).unwrap_or_default();
                let worst = losses.iter().map(|loss| loss.noticed_us).max().unwrap_or_default();
                let promised = promised_us(&settings(1));
                assert!(worst <= promised, "{algorithm:?}, {detector:?}: {worst} of {promised} us");
                assert!(worst > promised * 4 / 5, "{algorithm:?}, {detector:?}: {worst} us");
                assert!(detector == Detector::Indirect || promised <= 1_500_000, "{promised} us");
            }
        }
    }
}
