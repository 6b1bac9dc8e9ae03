//! Plays a scenario from its first boot to its last expectation.

use bellwether_scenario::{NodeEvent, Run, Scenario, Step, Watch, judge};

use super::{CannotPlay, settings};
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
