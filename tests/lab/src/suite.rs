//! The system tests: the runs that every change of the firmware has to pass.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bellwether_scenario::{
    Action, Algorithm, Detector, Durability, Expectation, Scenario, TimedAction,
};

use crate::attack;
use crate::boards;
use crate::budget;
use crate::clash;
use crate::cost;
use crate::display::Printer;
use crate::erase;
use crate::host::Lateness;
use crate::labs;
use crate::mute;
use crate::numbers;
use crate::play::{self, Outcome, Times};
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

/// A coordinator that nobody answers any more gives up its members with the fourth Check, 40 T later:
/// that must be over when the file looks at it.
const CABLE_FACTOR: f64 = 1.8;

/// How long the attacker uses each weapon.
const FLOOD: Duration = Duration::from_secs(6);
const FLOOD_DEEP: Duration = Duration::from_secs(60);
/// More than this excuses a failed test that is no scenario: half of the Tp that they use.
const HOST_LATE_MAX: Duration = Duration::from_millis(50);

/// In what a test says that could not be carried out as it should: the host was too slow for it.
pub const INCONCLUSIVE: &str = "inconclusive: ";

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

fn file(name: &str, algorithm: Algorithm) -> Result<Scenario, String> {
    let path = tools::root().join(format!("tests/scenarios/{name}-{algorithm}.toml"));
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{shown}: {error}"))?;
    Scenario::parse(&shown, &text).map_err(|error| error.to_string())
}

type Play = (Scenario, Times, Vec<Arc<Image>>);

/// Detectors other than the default, and policies.
fn choices() -> Result<Vec<(Scenario, Times)>, String> {
    let files = [
        ("leaving", Algorithm::Ring),
        ("no-preemption", Algorithm::Bully),
        ("observers", Algorithm::Invitation),
        ("broken-link", Algorithm::Ring),
        ("five-percent-loss", Algorithm::Invitation),
    ];
    let mut all = Vec::new();
    for (name, algorithm) in files {
        all.push((file(name, algorithm)?, TIMES));
    }
    for detector in [Detector::Adaptive, Detector::Reliable] {
        let mut scenario = file("coordinator-crash-and-return", Algorithm::Bully)?;
        scenario.detector = detector;
        scenario.name += &format!(", detector {}", detector.name());
        all.push((scenario, TIMES));
    }
    // A node that is up and down for 3 T in the file must be so for more than T here.
    let mut flapping = file("hold-off", Algorithm::Bully)?;
    shorten(&mut flapping, 9_000_000);
    all.push((flapping, Times { factor: Some(2.5), ..TIMES }));
    Ok(all)
}

/// Ends a scenario sooner; what is expected at its end is expected then.
fn shorten(scenario: &mut Scenario, duration_us: u64) {
    scenario.duration_us = duration_us;
    for expectation in scenario.expectations.iter_mut().filter(|wanted| wanted.at_end) {
        expectation.at_us = duration_us;
    }
}

/// Two boards of one kind and three of another lose their coordinator, and get it back.
fn mixed(one: &Arc<Image>, other: &Arc<Image>) -> Result<Vec<Play>, String> {
    let flock = [one, one, other, other, other].map(Arc::clone);
    let play = |algorithm| {
        let mut scenario = file("coordinator-crash-and-return", algorithm)?;
        scenario.name = format!("mixed flock of {} and {}", one.board.name, other.board.name);
        Ok((scenario, TIMES, flock.to_vec()))
    };
    [Algorithm::Bully, Algorithm::Invitation].into_iter().map(play).collect()
}

fn scenarios() -> Result<Vec<(Scenario, Times)>, String> {
    let mut all = Vec::new();
    for algorithm in [Algorithm::Bully, Algorithm::Invitation, Algorithm::Ring] {
        // A pause, a cable and a reset pin are the board's affair, not the algorithm's.
        let files = if algorithm == Algorithm::Ring { &FILES[..3] } else { &FILES[..] };
        for name in files {
            let cable = (*name == "pulled-cable").then_some(CABLE_FACTOR);
            all.push((file(name, algorithm)?, Times { factor: cable, ..TIMES }));
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
    all.extend(choices()?);
    Ok(all)
}

/// What a suite asks for beside the expectations of a scenario: no line of the log is lost, and boards
/// whose cable was pulled and put back have noticed both.
fn beside_the_point(scenario: &Scenario, outcome: &Outcome) -> Vec<String> {
    let mut failures = Vec::new();
    if outcome.lines_lost > 0 {
        // One of them may have been what a checker waits for.
        failures.push(format!("{} lines of the log were lost", outcome.lines_lost));
    }
    for timed in &scenario.actions {
        let (nodes, up) = match &timed.action {
            Action::Unplug { nodes } => (nodes, false),
            Action::Plug { nodes } => (nodes, true),
            _ => continue,
        };
        for node in nodes.iter().filter(|node| !outcome.cables.contains(&(**node, up))) {
            failures.push(format!("node {node} did not say link up={up}"));
        }
    }
    failures
}

fn play_one(
    scenario: &Scenario,
    times: Times,
    images: &[Arc<Image>],
    stop: &AtomicBool,
) -> Verdict {
    let (scenario, factor) = play::choose_times(scenario, times);
    let began = Instant::now();
    let played = play::until_conclusive(factor, stop, |factor| {
        let mut outcome =
            play::play(&scenario, factor, images, None, stop, &mut Printer::new(true))?;
        outcome.failures.extend(beside_the_point(&scenario, &outcome));
        Ok(outcome)
    });
    let name = name_of(&scenario);
    let outcome = match played {
        Ok(outcome) => outcome,
        Err(why) => {
            println!("FAILED  {name}: {why}");
            return Verdict::Failed;
        }
    };
    let (verdict, word) = match (outcome.failures.is_empty(), outcome.is_inconclusive()) {
        _ if stop.load(Ordering::Relaxed) => (Verdict::Failed, "STOPPED"),
        (true, _) => (Verdict::Passed, "ok     "),
        (false, true) => (Verdict::Inconclusive, "unsure "),
        (false, false) => (Verdict::Failed, "FAILED "),
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

/// As it is printed, and as a filter finds it.
fn name_of(scenario: &Scenario) -> String {
    format!("{} ({})", scenario.name, scenario.algorithm)
}

/// A test that says by itself what it saw. Its times are real too: a host that was away excuses it.
fn check_one(name: &str, test: impl Fn() -> Result<String, String>) -> Verdict {
    let began = Instant::now();
    let took = || format!("{:.0} s", began.elapsed().as_secs_f64());
    for tried in 1.. {
        let lateness = Lateness::watch();
        let why = match test() {
            Ok(seen) => {
                let colon = if seen.is_empty() { "" } else { ": " };
                println!("ok      {name}, {}{colon}{seen}", took());
                return Verdict::Passed;
            }
            Err(why) => why,
        };
        let late = lateness.most();
        let shown = format!("the host was {:.0} ms late", late.as_secs_f64() * 1000.0);
        match after_failure(tried, late > HOST_LATE_MAX || why.contains(INCONCLUSIVE)) {
            None => println!("once more, {shown}: {name}: {why}"),
            Some(Verdict::Inconclusive) => {
                println!("unsure  {name}, {}, {shown} in the last of {tried} tries: {why}", took());
                break;
            }
            Some(verdict) => {
                println!("FAILED  {name}, {}: {why}", took());
                return verdict;
            }
        }
    }
    Verdict::Inconclusive
}

/// What a failed try means; `None`: it is tried once more. `excused`: the host was too late or too slow.
fn after_failure(tried: i32, excused: bool) -> Option<Verdict> {
    match (excused, tried < play::TRIES) {
        (false, _) => Some(Verdict::Failed),
        (true, true) => None,
        (true, false) => Some(Verdict::Inconclusive),
    }
}

type Test<'a> = (&'a str, Box<dyn Fn() -> Result<String, String> + 'a>);

/// Everything that is not a scenario.
fn checks<'a>(image: &'a Arc<Image>, deep: bool) -> Vec<Test<'a>> {
    let mut tests: Vec<Test<'a>> = vec![(
        "budget",
        Box::new(|| {
            let sizes = budget::measure(image)?;
            Ok(format!("{} bytes of flash, {} of memory", sizes.flash, sizes.memory))
        }),
    )];
    let flood = if deep { FLOOD_DEEP } else { FLOOD };
    for (name, test) in mute::TESTS {
        tests.push((name, Box::new(move || test(image).map(|()| String::new()))));
    }
    for (name, test) in labs::TESTS {
        tests.push((name, Box::new(test)));
    }
    tests.push(("two boards with one id", Box::new(|| clash::run(image))));
    tests.push(("cost of a seal", Box::new(cost::run)));
    tests.push(("provoked failures, sf2", Box::new(|| provoke::run(&boards::ALL[0]))));
    tests.push(("provoked failures, mps2-an385", Box::new(|| provoke::run(&boards::ALL[1]))));
    for (name, weapon) in attack::TESTS {
        // Once more with twice the times, as scenarios are.
        let times = Cell::new(1);
        let test = move || attack::run(image, weapon, flood, times.replace(2 * times.get()));
        tests.push((name, Box::new(test)));
    }
    for (name, test) in erase::TESTS.into_iter().chain(rekey::TESTS).chain(numbers::TESTS) {
        tests.push((name, Box::new(move || test(image))));
    }
    tests
}

/// Runs all system tests; the exit code of the lab.
pub fn run(filter: Option<&str>, deep: bool, stop: &AtomicBool) -> Result<u8, String> {
    let image = &Arc::new(tools::firmware(boards::default())?);
    let other = &Arc::new(tools::firmware(&boards::ALL[1])?);
    let one_kind = |all: Vec<(Scenario, Times)>| {
        all.into_iter().map(|(scenario, times)| (scenario, times, vec![Arc::clone(image)]))
    };
    let mut scenarios: Vec<_> = one_kind(scenarios()?).collect();
    scenarios.extend(mixed(image, other)?);
    tools::prefer_lab();
    let wanted = |name: &str| {
        filter.is_none_or(|filter| name.contains(filter)) && !stop.load(Ordering::Relaxed)
    };
    let mut verdicts = Vec::new();
    for (name, test) in checks(image, deep) {
        if wanted(name) {
            verdicts.push(check_one(name, test));
        }
    }
    for (scenario, times, images) in &scenarios {
        if wanted(&name_of(scenario)) {
            verdicts.push(play_one(scenario, *times, images, stop));
        }
    }
    let count = |wanted: Verdict| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let (failed, unsure) = (count(Verdict::Failed), count(Verdict::Inconclusive));
    println!("{} passed, {failed} failed, {unsure} inconclusive", count(Verdict::Passed));
    Ok(match (failed, unsure) {
        (0, 0) => 0,
        (0, _) => 3,
        _ => 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_late_host_excuses_a_failure_and_never_makes_it_one() {
        for tried in 1..=play::TRIES {
            assert_eq!(after_failure(tried, false), Some(Verdict::Failed));
        }
        assert_eq!(after_failure(1, true), None);
        assert_eq!(after_failure(play::TRIES, true), Some(Verdict::Inconclusive));
    }

    #[test]
    fn every_scenario_of_the_suite_can_be_played() {
        let mut names = Vec::new();
        for (scenario, times) in scenarios().unwrap() {
            let (chosen, factor) = play::choose_times(&scenario, times);
            crate::flash::timing(&chosen.stretched(factor)).unwrap();
            names.push(name_of(&scenario));
        }
        let unique: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "{names:?}");
    }
}
