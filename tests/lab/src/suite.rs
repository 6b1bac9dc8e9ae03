//! The system tests: the runs that every change of the firmware has to pass.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bellwether_scenario::{Action, Algorithm, Durability, Expectation, Scenario, TimedAction};

use crate::attack;
use crate::budget;
use crate::clash;
use crate::cost;
use crate::display::Printer;
use crate::erase;
use crate::host::Lateness;
use crate::mute;
use crate::play::{self, Times};
use crate::probe::Image;
use crate::provoke;
use crate::rekey;
use crate::tools;

const FILES: [&str; 6] = [
    "cold-start",
    "coordinator-crash-and-return",
    "partition-and-heal",
    "pause-above-tp",
    "pulled-cable",
    "reset-pin",
];
const KILLS: u64 = 20;
/// Tm and Tp of the runs: hosts that share their cores with others are away for tens of milliseconds
/// now and then. The moments of the files stay as they are.
const TIMES: Times = Times { tm_ms: Some(40), tp_ms: Some(100), factor: None };

/// How long the attacker uses each weapon.
const FLOOD: Duration = Duration::from_secs(6);
/// More than this excuses a failed test that is no scenario: half of the Tp that they use.
const HOST_LATE_MAX: Duration = Duration::from_millis(50);

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
    let top = scenario.nodes;
    expect_settled(&mut scenario, top);
    scenario
}

/// A cold start of many boards, or of boards that save every change before they speak.
fn cold_start(
    name: &str,
    algorithm: Algorithm,
    nodes: u8,
    durability: Durability,
    seconds: u64,
) -> Scenario {
    let mut scenario = Scenario::undisturbed(algorithm, nodes, 0);
    scenario.name = name.into();
    scenario.durability = durability;
    scenario.duration_us = seconds * 1_000_000;
    expect_settled(&mut scenario, nodes);
    scenario
}

/// All are settled under this node at the end.
fn expect_settled(scenario: &mut Scenario, coordinator: u8) {
    scenario.expectations.push(Expectation {
        at_us: scenario.duration_us,
        at_end: true,
        line: scenario.actions.len() + 1,
        nodes: (1..=scenario.nodes).collect(),
        settled: Some(true),
        coordinator: Some(coordinator),
        resets: None,
        elections: None,
    });
}

fn scenarios() -> Result<Vec<(Scenario, Times)>, String> {
    let mut all = Vec::new();
    for algorithm in [Algorithm::Bully, Algorithm::Invitation, Algorithm::Ring] {
        // A pause, a cable and a reset pin are the board's affair, not the algorithm's.
        let files = if algorithm == Algorithm::Ring { &FILES[..3] } else { &FILES[..] };
        for name in files {
            let path = tools::root().join(format!("tests/scenarios/{name}-{algorithm}.toml"));
            let text = std::fs::read_to_string(&path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            let shown = path.display().to_string();
            let scenario = Scenario::parse(&shown, &text).map_err(|error| error.to_string())?;
            all.push((scenario, TIMES));
        }
        if algorithm == Algorithm::Ring {
            continue;
        }
        all.push((random_kills(algorithm, 7), TIMES));
        let strict = "every change saved before anything leaves";
        // Every wait contains the saves of all nodes, with an erase each.
        all.push((cold_start(strict, algorithm, 3, Durability::Strict, 40), TIMES));
        let many = "sixteen boards start together";
        let slower = Times { tp_ms: Some(300), ..TIMES };
        all.push((cold_start(many, algorithm, 16, Durability::Group, 15), slower));
    }
    Ok(all)
}

fn play_one(
    (scenario, times): &(Scenario, Times),
    image: &Arc<Image>,
    stop: &AtomicBool,
) -> Verdict {
    let (scenario, factor) = play::choose_times(scenario, *times);
    let began = Instant::now();
    let played = play::until_conclusive(factor, stop, |factor| {
        play::play(&scenario, factor, image, None, stop, &mut Printer::new(true))
    });
    let name = format!("{} ({})", scenario.name, scenario.algorithm);
    let outcome = match played {
        Ok(outcome) => outcome,
        Err(why) => {
            println!("failed  {name}: {why}");
            return Verdict::Failed;
        }
    };
    let (verdict, word) = match (outcome.failures.is_empty(), outcome.is_inconclusive()) {
        _ if stop.load(Ordering::Relaxed) => (Verdict::Failed, "stopped"),
        (true, _) => (Verdict::Passed, "ok     "),
        (false, true) => (Verdict::Inconclusive, "unsure "),
        (false, false) => (Verdict::Failed, "failed "),
    };
    println!(
        "{word} {name}, {:.0} s, host late {:.0} ms, {} deadlines missed while it was away",
        began.elapsed().as_secs_f64(),
        outcome.host_late.as_secs_f64() * 1000.0,
        outcome.deadlines_excused
    );
    for failure in outcome.failures.iter().take(4) {
        println!("        {failure}");
    }
    verdict
}

/// A test that says by itself what it saw. Its times are real too: a host that was away excuses it.
fn check_one(name: &str, test: impl Fn() -> Result<String, String>) -> Verdict {
    for tried in 1..=play::TRIES {
        let lateness = Lateness::watch();
        match test() {
            Ok(seen) if seen.is_empty() => println!("ok      {name}"),
            Ok(seen) => println!("ok      {name}: {seen}"),
            Err(why) if lateness.most() > HOST_LATE_MAX && tried < play::TRIES => {
                println!("once more, the host was late: {name}: {why}");
                continue;
            }
            Err(why) => {
                println!("FAILED  {name}: {why}");
                return Verdict::Failed;
            }
        }
        return Verdict::Passed;
    }
    Verdict::Inconclusive
}

type Test<'a> = (&'a str, Box<dyn Fn() -> Result<String, String> + 'a>);

/// Everything that is not a scenario.
fn checks<'a>(image_path: &'a Path, image: &'a Arc<Image>) -> Vec<Test<'a>> {
    let mut tests: Vec<Test<'a>> = vec![(
        "budget",
        Box::new(|| {
            let sizes = budget::measure(image_path)?;
            Ok(format!("{} bytes of flash, {} of memory", sizes.flash, sizes.memory))
        }),
    )];
    for (name, test) in mute::TESTS {
        tests.push((name, Box::new(move || test(image).map(|()| String::new()))));
    }
    tests.push(("a false expectation is found out", Box::new(|| false_expectation(image))));
    tests.push(("two boards with one id", Box::new(|| clash::run(image))));
    tests.push(("cost of a seal", Box::new(cost::run)));
    tests.push(("provoked failures", Box::new(provoke::run)));
    tests.push(("an attacker on the wire", Box::new(|| attack::run(image, FLOOD))));
    for (name, test) in erase::TESTS.into_iter().chain(rekey::TESTS) {
        tests.push((name, Box::new(move || test(image))));
    }
    tests
}

/// The judge must be able to say no.
fn false_expectation(image: &Arc<Image>) -> Result<String, String> {
    let mut scenario = Scenario::undisturbed(Algorithm::Bully, 2, 4_000_000);
    expect_settled(&mut scenario, 1);
    let (scenario, factor) = play::choose_times(&scenario, TIMES);
    let stop = AtomicBool::new(false);
    let outcome = play::play(&scenario, factor, image, None, &stop, &mut Printer::new(true))?;
    match outcome.failures.first() {
        Some(failure) if failure.contains("coordinator") => Ok(String::new()),
        Some(failure) => Err(failure.clone()),
        None => Err("the lower of two boards was expected to win, and nobody objected".into()),
    }
}

/// Runs all system tests; the exit code of the lab.
pub fn run(image_path: &Path, image: &Arc<Image>, filter: Option<&str>, stop: &AtomicBool) -> u8 {
    let scenarios = match scenarios() {
        Ok(scenarios) => scenarios,
        Err(why) => {
            println!("FAILED  {why}");
            return 1;
        }
    };
    let wanted = |name: &str| {
        filter.is_none_or(|filter| name.contains(filter)) && !stop.load(Ordering::Relaxed)
    };
    let mut verdicts = Vec::new();
    for (name, test) in checks(image_path, image) {
        if wanted(name) {
            verdicts.push(check_one(name, test));
        }
    }
    for one in &scenarios {
        if wanted(&format!("{} {}", one.0.name, one.0.algorithm)) {
            let mut verdict = play_one(one, image, stop);
            // Once no and once yes is neither: it is named, and proves nothing.
            if verdict == Verdict::Failed && play_one(one, image, stop) == Verdict::Passed {
                println!("unsure  {} failed once and passed once", one.0.name);
                verdict = Verdict::Inconclusive;
            }
            verdicts.push(verdict);
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
