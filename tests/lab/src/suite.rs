//! The system tests: the runs that every change of the firmware has to pass.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bellwether_scenario::{Action, Algorithm, Expectation, Scenario, TimedAction};

use crate::budget;
use crate::display::Printer;
use crate::erase;
use crate::mute;
use crate::play::{self, Times};
use crate::probe::Image;
use crate::provoke;
use crate::tools;

const FILES: [&str; 5] = [
    "cold-start",
    "coordinator-crash-and-return",
    "partition-and-heal",
    "pause-above-tp",
    "pulled-cable",
];
const KILLS: u64 = 20;
/// How often a run is tried whose failure may be the host's.
const TRIES: u32 = 3;

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    Inconclusive,
}

/// Power cuts at moments that nobody chose, all of them survived: 20 of them, on any board, in the
/// middle of boots and elections too.
fn random_kills(algorithm: Algorithm, seed: u64) -> Scenario {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut scenario = Scenario::undisturbed(algorithm, 5, 0);
    scenario.name = format!("{KILLS} power cuts at random moments, {algorithm}");
    scenario.seed = seed;
    let mut at_us = 2_000_000;
    let mut line = 0;
    for _ in 0..KILLS {
        let nodes = vec![rng.u8(1..=scenario.nodes)];
        at_us += rng.u64(100_000..900_000);
        line += 1;
        let kill = Action::Kill { nodes: nodes.clone() };
        scenario.actions.push(TimedAction { at_us, line, action: kill });
        at_us += rng.u64(20_000..700_000);
        line += 1;
        scenario.actions.push(TimedAction { at_us, line, action: Action::Boot { nodes } });
    }
    scenario.duration_us = at_us + 12_000_000;
    scenario.expectations.push(Expectation {
        at_us: scenario.duration_us,
        at_end: true,
        line: line + 1,
        nodes: (1..=scenario.nodes).collect(),
        settled: Some(true),
        coordinator: Some(scenario.nodes),
        resets: None,
        elections: None,
    });
    scenario
}

fn scenarios() -> Result<Vec<(Scenario, Times)>, String> {
    let mut all = Vec::new();
    for algorithm in [Algorithm::Bully, Algorithm::Invitation] {
        for name in FILES {
            let path = tools::root().join(format!("tests/scenarios/{name}-{algorithm}.toml"));
            let text = std::fs::read_to_string(&path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            let shown = path.display().to_string();
            let scenario = Scenario::parse(&shown, &text).map_err(|error| error.to_string())?;
            all.push((scenario, Times::default()));
        }
        // Power cuts know no Tm: only Tm and Tp are the lab's, the moments stay as they are.
        all.push((random_kills(algorithm, 7), Times::OWN));
    }
    Ok(all)
}

fn play_one(
    (scenario, times): &(Scenario, Times),
    image: &Arc<Image>,
    stop: &AtomicBool,
) -> Verdict {
    let (scenario, factor) = play::choose_times(scenario, *times);
    let mut verdict = Verdict::Inconclusive;
    for _ in 0..TRIES {
        let began = Instant::now();
        let mut printer = Printer::new(true);
        let outcome = match play::play(&scenario, factor, image, None, stop, &mut printer) {
            Ok(outcome) => outcome,
            Err(why) => {
                println!("FAILED  {} ({}): {why}", scenario.name, scenario.algorithm);
                return Verdict::Failed;
            }
        };
        let late = outcome.host_late.as_secs_f64() * 1000.0;
        let about = format!(
            "{} ({}), {:.0} s, host late {late:.0} ms, {} unprovoked deadlines",
            scenario.name,
            scenario.algorithm,
            began.elapsed().as_secs_f64(),
            outcome.deadlines_missed
        );
        if stop.load(Ordering::Relaxed) {
            return Verdict::Failed;
        }
        if outcome.failures.is_empty() {
            println!("ok      {about}");
            return Verdict::Passed;
        }
        verdict = if outcome.is_inconclusive() { Verdict::Inconclusive } else { Verdict::Failed };
        println!("{}  {about}", if verdict == Verdict::Failed { "FAILED" } else { "unsure" });
        for failure in outcome.failures.iter().take(4) {
            println!("        {failure}");
        }
        if verdict == Verdict::Failed {
            break;
        }
    }
    verdict
}

/// Runs all system tests; the exit code of the lab.
pub fn run(image_path: &Path, image: &Arc<Image>, filter: Option<&str>, stop: &AtomicBool) -> u8 {
    let mut verdicts = Vec::new();
    let wanted = |name: &str| filter.is_none_or(|filter| name.contains(filter));
    if wanted("budget") {
        verdicts.push(match budget::measure(image_path) {
            Ok(sizes) => {
                println!(
                    "ok      budget: {} bytes of flash, {} of memory",
                    sizes.flash, sizes.memory
                );
                Verdict::Passed
            }
            Err(why) => {
                println!("FAILED  budget: {why}");
                Verdict::Failed
            }
        });
    }
    for (name, tested) in mute::TESTS {
        if wanted(name) {
            verdicts.push(match tested(image) {
                Ok(()) => {
                    println!("ok      {name}");
                    Verdict::Passed
                }
                Err(why) => {
                    println!("FAILED  {name}: {why}");
                    Verdict::Failed
                }
            });
        }
    }
    if wanted("provoked failures") && !stop.load(Ordering::Relaxed) {
        verdicts.push(match provoke::run() {
            Ok(what) => {
                println!("ok      provoked failures: {what}");
                Verdict::Passed
            }
            Err(why) => {
                println!("FAILED  provoked failures: {why}");
                Verdict::Failed
            }
        });
    }
    for (name, tested) in erase::TESTS {
        if wanted(name) && !stop.load(Ordering::Relaxed) {
            verdicts.push(match tested(image) {
                Ok(what) => {
                    println!("ok      {name}: {what}");
                    Verdict::Passed
                }
                Err(why) => {
                    println!("FAILED  {name}: {why}");
                    Verdict::Failed
                }
            });
        }
    }
    match scenarios() {
        Ok(all) => {
            for one in &all {
                let name = format!("{} {}", one.0.name, one.0.algorithm);
                if wanted(&name) && !stop.load(Ordering::Relaxed) {
                    verdicts.push(play_one(one, image, stop));
                }
            }
        }
        Err(why) => {
            println!("FAILED  {why}");
            verdicts.push(Verdict::Failed);
        }
    }
    let count = |wanted: Verdict| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let (failed, unsure) = (count(Verdict::Failed), count(Verdict::Inconclusive));
    println!("{} passed, {failed} failed, {unsure} inconclusive", count(Verdict::Passed));
    match (failed, unsure) {
        (0, 0) => 0,
        (0, _) => 3,
        _ => 1,
    }
}
