//! The scenarios that every change of the firmware has to pass on boards.

use std::sync::Arc;

use bellwether_scenario::{
    Action, Algorithm, Detector, Durability, Expectation, Scenario, TimedAction,
};

use crate::play::{Outcome, Times};
use crate::probe::Image;
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
/// As short as the emulated boards can keep; the moments of the files stay as they are.
pub const TIMES: Times = Times { tm_ms: Some(20), tp_ms: Some(20), factor: None };
/// On the host's clock, which is away for tens of milliseconds now and then.
pub const HOST_TIMES: Times = Times { tm_ms: Some(40), tp_ms: Some(100), factor: None };

/// A run of the suite. Boards of the flock in order of the ids; they begin again if they are fewer.
pub struct Play {
    pub scenario: Scenario,
    pub times: Times,
    pub images: Vec<Arc<Image>>,
    /// The flock settles in the same way every time: nothing in it is drawn by lot.
    pub repeats: bool,
}

impl Play {
    /// As it is printed, and as a filter finds it.
    pub fn name(&self) -> String {
        format!("{} ({})", self.scenario.name, self.scenario.algorithm)
    }
}

/// All of them. `one` is the default board, `other` another one.
pub fn all(one: &Arc<Image>, other: &Arc<Image>, times: Times) -> Result<Vec<Play>, String> {
    let files: Vec<String> = FILES
        .iter()
        .map(|name| file(name, Algorithm::Bully).map(|scenario| scenario.name))
        .collect::<Result<_, _>>()?;
    let alone = |(scenario, times): (Scenario, Times)| {
        let repeats = files.contains(&scenario.name);
        Play { scenario, times, images: vec![Arc::clone(one)], repeats }
    };
    let mut all: Vec<Play> = scenarios(times)?.into_iter().map(alone).collect();
    all.extend(mixed(one, other, times)?);
    Ok(all)
}

/// Power cuts at moments that nobody chose, all of them survived: 20 of them, on any board, in the
/// middle of boots and elections too.
fn random_kills(algorithm: Algorithm, seed: u64) -> Scenario {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut scenario = Scenario::undisturbed(algorithm, 5, 0);
    scenario.name = format!("{KILLS} power cuts at random moments, {algorithm}");
    scenario.seed = seed;
    let mut at_us = 1_500_000;
    let mut line = 0;
    for _ in 0..KILLS {
        let nodes = vec![rng.u8(1..=scenario.nodes)];
        at_us += rng.u64(50_000..600_000);
        line += 1;
        let kill = Action::Kill { nodes: nodes.clone() };
        scenario.actions.push(TimedAction { at_us, line, action: kill });
        at_us += rng.u64(20_000..500_000);
        line += 1;
        scenario.actions.push(TimedAction { at_us, line, action: Action::Boot { nodes } });
    }
    scenario.duration_us = at_us + 5_000_000;
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

/// Detectors other than the default, and policies.
fn choices(times: Times) -> Result<Vec<(Scenario, Times)>, String> {
    let files = [
        ("leaving", Algorithm::Ring),
        ("observers", Algorithm::Invitation),
        ("broken-link", Algorithm::Ring),
        ("five-percent-loss", Algorithm::Invitation),
    ];
    let mut all = Vec::new();
    for (name, algorithm) in files {
        all.push((file(name, algorithm)?, times));
    }
    // Without preemption whoever is up first coordinates: T is longer than the boots of boards differ.
    all.push((file("no-preemption", Algorithm::Bully)?, HOST_TIMES));
    for detector in [Detector::Adaptive, Detector::Reliable] {
        let mut scenario = file("coordinator-crash-and-return", Algorithm::Bully)?;
        scenario.detector = detector;
        scenario.name += &format!(", detector {}", detector.name());
        all.push((scenario, times));
    }
    // A node that is up and down for 3 T in the file must be so for longer than a QEMU takes to start.
    let mut flapping = file("hold-off", Algorithm::Bully)?;
    shorten(&mut flapping, 9_000_000);
    all.push((flapping, Times { factor: Some(2.5), ..times }));
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
fn mixed(one: &Arc<Image>, other: &Arc<Image>, times: Times) -> Result<Vec<Play>, String> {
    let flock = [one, one, other, other, other].map(Arc::clone);
    let play = |algorithm| {
        let mut scenario = file("coordinator-crash-and-return", algorithm)?;
        scenario.name = format!("mixed flock of {} and {}", one.board.name, other.board.name);
        Ok(Play { scenario, times, images: flock.to_vec(), repeats: false })
    };
    [Algorithm::Bully, Algorithm::Invitation].into_iter().map(play).collect()
}

fn scenarios(times: Times) -> Result<Vec<(Scenario, Times)>, String> {
    let mut all = Vec::new();
    for algorithm in [Algorithm::Bully, Algorithm::Invitation, Algorithm::Ring] {
        // A pause, a cable and a reset pin are the board's affair, not the algorithm's.
        let files = if algorithm == Algorithm::Ring { &FILES[..3] } else { &FILES[..] };
        for name in files {
            all.push((file(name, algorithm)?, times));
        }
        if algorithm == Algorithm::Ring {
            continue;
        }
        all.push((random_kills(algorithm, 7), times));
        let strict = "every change saved before anything leaves";
        // Every wait contains the saves of all nodes, with an erase each.
        all.push((cold_start(strict, algorithm, 3, Durability::Strict, 40), times));
        let many = "sixteen boards start together";
        all.push((cold_start(many, algorithm, 16, Durability::Group, 8), times));
    }
    all.extend(choices(times)?);
    Ok(all)
}

/// What the suite asks for beside the expectations of a scenario: no line of the log is lost, and boards
/// whose cable was pulled and put back have noticed both.
pub fn beside_the_point(scenario: &Scenario, outcome: &Outcome) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::play::{Floors, choose_times};

    #[test]
    fn every_scenario_of_the_suite_can_be_played() {
        for (times, floors) in [(TIMES, Floors::BOARDS), (HOST_TIMES, Floors::HOST)] {
            let mut names = Vec::new();
            for (scenario, times) in scenarios(times).unwrap() {
                let (chosen, factor) = choose_times(&scenario, times, floors);
                crate::flash::timing(&chosen.stretched(factor)).unwrap();
                names.push(format!("{} ({})", scenario.name, scenario.algorithm));
            }
            let unique: std::collections::BTreeSet<_> = names.iter().collect();
            assert_eq!(unique.len(), names.len(), "a filter must be able to tell them apart");
        }
    }
}
