//! Plays a scenario file.

use bellwether::config::{Algorithm, Detector, Durability, Timing};
use bellwether::time::Duration;
use bellwether_scenario::{self as scenario, NodeEvent, Run, Scenario, Step, Watch, judge};

use crate::report::Totals;
use crate::settings::Settings;
use crate::world::World;

/// How a scenario went.
#[derive(Debug)]
pub struct Played {
    pub run: Run,
    /// What the trace holds, if it was asked for.
    pub trace: Vec<NodeEvent>,
    /// Every expectation that was not met and every assertion that did not hold.
    pub failures: Vec<String>,
    pub totals: Totals,
}

/// Why a scenario cannot be played although its file is in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CannotPlay(pub String);

impl std::fmt::Display for CannotPlay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What the core calls a scenario's detector.
pub const fn detector(of: scenario::Detector) -> Detector {
    match of {
        scenario::Detector::Reliable => Detector::Reliable,
        scenario::Detector::Heartbeat => Detector::Heartbeat,
        scenario::Detector::Adaptive => Detector::Adaptive,
        scenario::Detector::Indirect => Detector::Indirect,
    }
}

/// The spans of time of a scenario whose nodes save within `ts`.
pub fn timing(scenario: &Scenario, ts: Duration) -> Timing {
    let tm = Duration::from_us(scenario.tm_us);
    let mut timing = Timing::derive(tm, Duration::from_us(scenario.tp_us), ts);
    if scenario.durability == scenario::Durability::Strict {
        timing = timing.strict(scenario.nodes.into());
    }
    if let Some(t) = scenario.t_us {
        // The file's T knows nothing of drift and tick.
        timing = timing.with_t(Duration::from_us(t).max(timing.t_min()));
    }
    if let Some(check) = scenario.check_us {
        timing.check = Duration::from_us(check).max(timing.t);
    }
    if let Some(quiet) = scenario.quiet_us {
        timing.quiet = Duration::from_us(quiet);
        timing.beat = timing.beat.min(Duration::from_us(quiet).minus(tm).fraction(1, 2));
    }
    timing
}

/// The settings of a scenario. A node's own configuration check has the last word on them.
pub fn settings(scenario: &Scenario) -> Result<Settings, CannotPlay> {
    let algorithm = match scenario.algorithm {
        scenario::Algorithm::Bully => Algorithm::Bully,
        scenario::Algorithm::Invitation => Algorithm::Invitation,
        scenario::Algorithm::Ring => Algorithm::Ring,
    };
    let durability = match scenario.durability {
        scenario::Durability::Group => Durability::Group,
        scenario::Durability::Strict => Durability::Strict,
    };
    let timing = timing(scenario, Duration::from_millis(5));
    let mut settings = Settings::new(scenario.nodes, algorithm, timing, scenario.seed);
    settings.durability = durability;
    settings.detector = detector(scenario.detector);
    settings.quiet_max_us = scenario.quiet_max_us;
    settings.preempt = scenario.preempt;
    settings.hold_off_us = scenario.hold_off_us.unwrap_or(0);
    settings.observers = scenario.observers.iter().map(|id| usize::from(*id) - 1).collect();
    for (id, preference) in &scenario.preference {
        settings.preference[usize::from(*id) - 1] = *preference;
    }
    World::<4>::try_configuration(&settings).map_err(|error| CannotPlay(error.to_string()))?;
    Ok(settings)
}

/// Plays a scenario from its first boot to its last expectation.
pub fn play(scenario: &Scenario, trace: bool) -> Result<Played, CannotPlay> {
    play_with(scenario, settings(scenario)?, trace)
}

/// Plays a scenario with settings that its file cannot express.
pub fn play_with(
    scenario: &Scenario,
    settings: Settings,
    trace: bool,
) -> Result<Played, CannotPlay> {
    let settings = Settings { trace: true, ..settings };
    Ok(if scenario.nodes <= 64 {
        play_in::<1>(scenario, settings, trace)
    } else {
        play_in::<4>(scenario, settings, trace)
    })
}

fn play_in<const W: usize>(scenario: &Scenario, settings: Settings, keep_trace: bool) -> Played {
    let run = Run {
        algorithm: scenario.algorithm,
        nodes: scenario.nodes,
        tm_us: scenario.tm_us,
        tp_us: scenario.tp_us,
        factor: 1.0,
    };
    let mut world = World::<W>::new(settings);
    let mut watch = Watch::new(scenario);
    let mut trace = Vec::new();
    let mut failures = Vec::new();
    let mut follow = |world: &mut World<W>, watch: &mut Watch| {
        for event in world.trace.drain(..) {
            watch.note(&event);
            if keep_trace {
                trace.push(event);
            }
        }
    };
    for id in &scenario.boot {
        world.power_on(usize::from(*id) - 1);
    }
    for step in scenario.timeline() {
        world.run_until(step.at_us(), |_| false);
        follow(&mut world, &mut watch);
        match step {
            Step::Act(timed) => {
                world.act(&timed.action);
                watch.act(&timed.action);
                follow(&mut world, &mut watch);
            }
            Step::Judge(expectation) => {
                if let Err(unmet) = judge(expectation, watch.seen()) {
                    let ms = expectation.at_us as f64 / 1000.0;
                    failures.push(format!("line {}, at {ms} ms: {}", unmet.line, unmet.sentence));
                }
            }
        }
    }
    world.run_until(scenario.duration_us, |_| false);
    follow(&mut world, &mut watch);
    for violation in &world.checker.violations {
        let ms = violation.at as f64 / 1000.0;
        failures.push(format!("at {ms} ms: {}: {}", violation.rule, violation.what));
    }
    let mut totals = Totals::of(&world);
    totals.violations = failures.len() as u64;
    Played { run, trace, failures, totals }
}
