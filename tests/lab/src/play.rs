//! Plays a scenario on emulated boards and judges what happened.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bellwether_scenario::{
    Action, Algorithm, NodeEvent, ResetCause, Run, Scenario, Step, What, judge_trace,
};

use crate::checks;
use crate::display::{Display, Wish, settled};
use crate::flash;
use crate::flock::Flock;
use crate::probe::Image;
use crate::recovery;

/// The least Tm and Tp at which a run on an ordinary host means something: see the README.
pub const TM_MIN_US: u64 = 40_000;
pub const TP_MIN_US: u64 = 40_000;

/// The times of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    pub tm_ms: Option<u64>,
    pub tp_ms: Option<u64>,
    pub factor: Option<f64>,
}

impl Times {
    /// The lab's own Tm and Tp; nothing is stretched.
    pub const OWN: Self =
        Self { tm_ms: Some(TM_MIN_US / 1000), tp_ms: Some(TP_MIN_US / 1000), factor: None };
}

/// The scenario with Tm and Tp as the command line has them, and the factor by which all of its
/// times are stretched.
pub fn choose_times(scenario: &Scenario, times: Times) -> (Scenario, f64) {
    let mut chosen = scenario.clone();
    chosen.tm_us = times.tm_ms.map_or(scenario.tm_us, |ms| ms * 1000);
    chosen.tp_us = times.tp_ms.map_or(scenario.tp_us, |ms| ms * 1000);
    chosen.t_us = chosen.t_us.map(|t| t.max(2 * chosen.tm_us + chosen.tp_us));
    let needed = |least: u64, given: Option<u64>, us: u64| match given {
        Some(_) => 1.0, // who names a value means it
        None => least as f64 / us.max(1) as f64,
    };
    let factor = times.factor.unwrap_or_else(|| {
        let tm = needed(TM_MIN_US, times.tm_ms, chosen.tm_us);
        let tp = needed(TP_MIN_US, times.tp_ms, chosen.tp_us);
        tm.max(tp).max(1.0)
    });
    (chosen, factor)
}

/// How a run went.
#[derive(Debug)]
pub struct Outcome {
    pub run: Run,
    pub events: Vec<NodeEvent>,
    /// What did not hold.
    pub failures: Vec<String>,
    /// How late the host was at most.
    pub host_late: Duration,
    /// Deadlines that boards missed although nobody had paused them, while the host was away.
    pub deadlines_excused: usize,
    pub lines_lost: u64,
    pub cpu: Duration,
    pub lasted: Duration,
    pub frames: u64,
    pub interrupted: bool,
}

impl Outcome {
    /// The host was so late that a failure proves nothing.
    pub fn is_inconclusive(&self) -> bool {
        !self.failures.is_empty() && self.host_late.as_micros() as u64 > self.run.tp_us / 2
    }
}

/// How often a run is tried whose failure may be the host's; each time with twice the times.
pub const TRIES: i32 = 3;

/// Plays a scenario until it proves something, [`TRIES`] times at most. `attempt` plays it with a
/// factor; `Err` is for what no other try would change.
pub fn until_conclusive(
    factor: f64,
    stop: &AtomicBool,
    mut attempt: impl FnMut(f64) -> Result<Outcome, String>,
) -> Result<Outcome, String> {
    let mut tried = 1;
    loop {
        let outcome = attempt(factor * f64::powi(2.0, tried - 1))?;
        if tried == TRIES || !outcome.is_inconclusive() || stop.load(Ordering::Relaxed) {
            return Ok(outcome);
        }
        println!(
            "inconclusive: the host was {:.1} ms late, more than Tp/2; once more with twice the times",
            outcome.host_late.as_secs_f64() * 1000.0
        );
        tried += 1;
    }
}

/// Plays the scenario, stretched by `factor`, in real time.
pub fn play(
    scenario: &Scenario,
    factor: f64,
    image: &Arc<Image>,
    pcap: Option<&Path>,
    stop: &AtomicBool,
    display: &mut dyn Display,
) -> Result<Outcome, String> {
    let stretched = scenario.stretched(factor);
    let timing = flash::timing(&stretched)?;
    let mut flock = Flock::prepare(&stretched, Arc::clone(image), pcap)?;
    flock.begin();
    for id in &stretched.boot {
        flock.boot(*id)?;
    }
    let mut steps = stretched.timeline().into_iter().peekable();
    let end = flock.zero + Duration::from_micros(stretched.duration_us);
    loop {
        let due = |step: &Step<'_>| flock.zero + Duration::from_micros(step.at_us());
        let next = steps.peek().map_or(end, due).min(end);
        let now = Instant::now();
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if next <= now {
            match steps.next() {
                Some(Step::Act(timed)) => {
                    display.acts(flock.now_us(), &timed.action);
                    flock.act(&timed.action)?;
                }
                Some(Step::Judge(_)) => {} // from the whole trace, at the end
                None => break,
            }
            continue;
        }
        if let Some(said) = flock.listen(next.min(now + Duration::from_millis(50))) {
            display.said(&said);
        }
        for wish in display.look(&flock) {
            match wish {
                Wish::Quit => stop.store(true, Ordering::Relaxed),
                Wish::Act(action) => {
                    display.acts(flock.now_us(), &action);
                    flock.act(&action)?;
                }
            }
        }
        flock.look_after()?;
    }
    // What happened before the end may be read a little after it.
    let rest = Instant::now() + Duration::from_millis(60);
    while let Some(said) = flock.listen(rest) {
        display.said(&said);
    }
    display.look(&flock);
    flock.look_after()?;
    let run = Run {
        algorithm: stretched.algorithm,
        nodes: stretched.nodes,
        tm_us: stretched.tm_us,
        tp_us: stretched.tp_us,
        factor,
    };
    let events = flock.chronicle.events();
    let mut failures: Vec<String> =
        judge_trace(scenario, &run, &events).iter().map(ToString::to_string).collect();
    let broken = &flock.broken;
    failures.extend(checks::violations(&stretched, &timing, &events, &flock.actions, broken));
    failures.extend(recovery::overdue(&stretched, &timing, &events, &flock.actions)?);
    let mut deadlines_excused = 0;
    for (node, at_us) in unprovoked_resets(&events, &flock.actions) {
        let at = flock.zero + Duration::from_micros(at_us);
        let tp = Duration::from_micros(stretched.tp_us);
        // The reset is logged by the next boot, which follows at once.
        let away = flock.lateness.between(at - 2 * tp, at + tp);
        if away > tp / 4 {
            deadlines_excused += 1;
        } else {
            let (at, away) = (at_us as f64 / 1e6, away.as_secs_f64() * 1e3);
            failures.push(format!(
                "at {at:.3} s node {node} missed a deadline, and the host was late by {away:.0} ms only"
            ));
        }
    }
    Ok(Outcome {
        run,
        events,
        failures,
        host_late: flock.lateness.most().max(flock.switch.late()),
        deadlines_excused,
        lines_lost: flock.chronicle.lines_lost,
        cpu: flock.cpu(),
        lasted: flock.zero.elapsed(),
        frames: flock.switch.frames(),
        interrupted: stop.load(Ordering::Relaxed),
    })
}

/// Deadlines that boards missed although nobody had paused them: who, and when. They are the host's
/// fault only if it was away at that moment.
fn unprovoked_resets(events: &[NodeEvent], actions: &[(u64, Action)]) -> Vec<(u8, u64)> {
    let paused = |node: u8, at_us: u64| {
        actions.iter().any(|(when, action)| match action {
            // A board finds out at once when it goes on; a second is for the log.
            Action::Pause { nodes } | Action::Resume { nodes } => {
                nodes.contains(&node) && (*when..when + 1_000_000).contains(&at_us)
            }
            _ => false,
        })
    };
    let cause = What::Reset { cause: ResetCause::Deadline };
    let late = events.iter().filter(|event| event.what == cause);
    let unprovoked = late.filter(|event| !paused(event.node, event.at_us));
    unprovoked.map(|event| (event.node, event.at_us)).collect()
}

/// When the flock was first settled, and how long each loss of it took to heal, from a trace.
pub fn settle_times(nodes: u8, events: &[NodeEvent]) -> Vec<(u64, u8)> {
    let mut watch =
        bellwether_scenario::Watch::new(&Scenario::undisturbed(Algorithm::Bully, nodes, 0));
    let mut times = Vec::new();
    let mut last = None;
    for event in events.iter().filter(|event| !matches!(event.what, What::Send { .. })) {
        watch.note(event);
        let now = settled(watch.seen());
        if now != last {
            last = now;
            times.extend(now.map(|coordinator| (event.at_us, coordinator)));
        }
    }
    times
}
