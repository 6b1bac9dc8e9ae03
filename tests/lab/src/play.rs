//! Plays a scenario on emulated boards and judges what happened.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether_scenario::{Algorithm, NodeEvent, Run, Scenario, Step, What, judge_trace};
use rustix::time::{ClockId, clock_gettime};

use crate::checks;
use crate::clock;
use crate::conduct::{Conduct, unprovoked_resets};
use crate::display::{Display, Wish, settled};
use crate::flash;
use crate::flock::Flock;
use crate::host::Lateness;
use crate::measured::Measured;
use crate::probe::Image;
use crate::recovery;

/// The times of a run that somebody names.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    pub tm_ms: Option<u64>,
    pub tp_ms: Option<u64>,
    pub factor: Option<f64>,
}

impl Times {
    /// For the eye: a crash, the suspicion, the election and the recovery take about half a second.
    pub const OWN: Self = Self { tm_ms: Some(40), tp_ms: Some(40), factor: None };
}

/// The least Tm and Tp of a run.
#[derive(Debug, Clone, Copy)]
pub struct Floors {
    tm_us: u64,
    tp_us: u64,
}

impl Floors {
    /// What the emulated boards can keep.
    pub const BOARDS: Self = Self { tm_us: 1_000, tp_us: flash::TP_US_MIN };
    /// What an ordinary host can, if the boards go by its clock.
    pub const HOST: Self = Self { tm_us: 40_000, tp_us: 40_000 };

    /// Those of the clock that was chosen.
    pub fn in_force() -> Self {
        if clock::is_hosts() { Self::HOST } else { Self::BOARDS }
    }
}

/// The scenario with Tm and Tp as the command line has them, and the factor by which all of its
/// times are stretched: as far as the floors demand. A Tm or Tp that somebody names is meant as it is: the
/// factor leaves it so.
pub fn choose_times(scenario: &Scenario, times: Times, floors: Floors) -> (Scenario, f64) {
    let needed = |least: u64, given: Option<u64>, us: u64| match given {
        Some(_) => 1.0,
        None => least as f64 / us.max(1) as f64,
    };
    let factor = times.factor.unwrap_or_else(|| {
        let tm = needed(floors.tm_us, times.tm_ms, scenario.tm_us);
        let tp = needed(floors.tp_us, times.tp_ms, scenario.tp_us);
        tm.max(tp).max(1.0)
    });
    let named = |ms: u64| ((ms * 1000) as f64 / factor).round() as u64;
    let mut chosen = scenario.clone();
    chosen.tm_us = times.tm_ms.map_or(scenario.tm_us, named);
    chosen.tp_us = times.tp_ms.map_or(scenario.tp_us, named);
    chosen.t_us = chosen.t_us.map(|t| t.max(2 * chosen.tm_us + chosen.tp_us));
    (chosen, factor)
}

/// How a run went.
#[derive(Debug)]
pub struct Outcome {
    pub run: Run,
    pub events: Vec<NodeEvent>,
    /// What did not hold.
    pub failures: Vec<String>,
    /// Some of it no late host explains: panics, faults, boot epochs.
    pub certain: bool,
    /// The share of the time for which the lab's clock stood still.
    pub held_back: Option<f64>,
    /// On the host's clock: how late the host was at most.
    pub host_late: Option<Duration>,
    /// Deadlines that boards missed although nobody had paused them, while the host was away and its clock
    /// was theirs.
    pub deadlines_excused: usize,
    pub lines_lost: u64,
    pub cpu: Duration,
    /// Processor time of the lab itself.
    pub own_cpu: Duration,
    pub lasted: Duration,
    pub frames: u64,
    pub measured: Measured,
    /// Cables that boards have noticed: who, and whether it was put in.
    pub cables: Vec<(u8, bool)>,
    pub interrupted: bool,
}

impl Outcome {
    /// On the host's clock, and the host was so late that a failure proves nothing.
    pub fn is_inconclusive(&self) -> bool {
        let late = self.host_late.is_some_and(|late| late.as_micros() as u64 > self.run.tp_us / 2);
        !self.failures.is_empty() && !self.certain && late
    }

    /// What is to be said of the clock.
    pub fn of_the_clock(&self) -> String {
        match (self.held_back, self.host_late) {
            (Some(share), _) => format!("clock held back {:.1} %", share * 100.0),
            (None, late) => format!(
                "host late {:.1} ms at most, {} deadlines missed while it was away",
                late.unwrap_or_default().as_secs_f64() * 1000.0,
                self.deadlines_excused
            ),
        }
    }
}

/// How often a run is tried whose failure may be the host's; each time with twice the times.
const TRIES: i32 = 3;

/// Plays a scenario. On the host's clock it is played until it proves something, [`TRIES`] times at most.
/// `attempt` plays it with a factor; `Err` is for what no other try would change.
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
            outcome.host_late.unwrap_or_default().as_secs_f64() * 1000.0
        );
        tried += 1;
    }
}

/// Plays the scenario, stretched by `factor`.
pub fn play(
    scenario: &Scenario,
    factor: f64,
    images: &[Arc<Image>],
    pcap: Option<&Path>,
    stop: &AtomicBool,
    display: &mut dyn Display,
) -> Result<Outcome, String> {
    let stretched = scenario.stretched(factor);
    let timing = flash::timing(&stretched)?;
    let own_cpu_before = own_cpu();
    let mut flock = Flock::prepare(&stretched, images, pcap)?;
    let mut measured = Measured::new(stretched.nodes, stretched.tm_us, stretched.tp_us);
    let mut conduct = Conduct::new(stretched.nodes);
    flock.begin();
    flock.boot(stretched.boot.iter().copied())?;
    let mut steps = stretched.timeline().into_iter().peekable();
    let end = flock.zero + Duration::from_micros(stretched.duration_us);
    loop {
        let due = |step: &Step<'_>| flock.zero + Duration::from_micros(step.at_us());
        let next = steps.peek().map_or(end, due).min(end);
        let now = flock.now();
        if stop.load(Ordering::Relaxed) || conduct.is_hopeless() {
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
            measured.hear(&said);
            conduct.hear(&said);
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
    let end_us = flock.now_us();
    let rest = flock.now() + Duration::from_millis(60);
    while let Some(said) = flock.listen(rest) {
        measured.hear(&said);
        conduct.hear(&said);
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
    let mut failures = conduct.failures.clone();
    let mut deadlines_excused = 0;
    if conduct.is_hopeless() {
        failures.push("a board panicked again and again: the run was ended".into());
    } else {
        let unmet = judge_trace(scenario, &run, &events);
        failures.extend(unmet.iter().map(ToString::to_string));
        let (broken, actions) = (&flock.broken, &flock.actions);
        failures.extend(checks::violations(&stretched, &timing, &events, actions, broken)?);
        failures.extend(recovery::overdue(&stretched, &timing, &events, actions, end_us)?);
        let late = late_boards(&flock, &events, Duration::from_micros(stretched.tp_us));
        deadlines_excused = late.iter().filter(|late| late.is_none()).count();
        failures.extend(late.into_iter().flatten());
    }
    Ok(Outcome {
        run,
        events,
        failures,
        certain: !conduct.failures.is_empty(),
        held_back: flock.clock.held_back(),
        host_late: flock.lateness.as_ref().map(|late| late.most().max(flock.switch.late())),
        deadlines_excused,
        lines_lost: flock.chronicle.lines_lost,
        cpu: flock.cpu(),
        own_cpu: own_cpu().saturating_sub(own_cpu_before),
        lasted: flock.now().since(flock.zero),
        frames: flock.switch.frames(),
        measured,
        cables: conduct.cables,
        interrupted: stop.load(Ordering::Relaxed),
    })
}

/// Processor time that this process has used so far.
pub fn own_cpu() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

/// What to say of each board that was reset for being late; `None` if the host was away then, and its
/// clock was the boards'.
fn late_boards(flock: &Flock, events: &[NodeEvent], tp: Duration) -> Vec<Option<String>> {
    let judged = |(node, at_us, cause)| {
        let at = flock.zero + Duration::from_micros(at_us);
        // The reset is logged by the next boot, which follows at once.
        let away = |late: &Lateness| late.between(at - 2 * tp, at + tp);
        let away = flock.lateness.as_ref().map_or(Duration::ZERO, away);
        let at = at_us as f64 / 1e6;
        (away <= tp / 4).then(|| {
            format!("at {at:.3} s node {node} missed a deadline ({cause}): nobody paused it")
        })
    };
    unprovoked_resets(events, &flock.actions).into_iter().map(judged).collect()
}

/// All live nodes are in one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    pub at_us: u64,
    pub coordinator: u8,
    pub members: Vec<u8>,
}

/// Every time that the flock settled, from a trace.
pub fn settlements(nodes: u8, events: &[NodeEvent]) -> Vec<Settlement> {
    let mut watch =
        bellwether_scenario::Watch::new(&Scenario::undisturbed(Algorithm::Bully, nodes, 0));
    let mut found = Vec::new();
    let mut last = None;
    for event in events.iter().filter(|event| !matches!(event.what, What::Send { .. })) {
        watch.note(event);
        let now = settled(watch.seen());
        if now != last {
            last = now;
            let live = watch.seen().nodes.iter().filter(|view| view.alive);
            let members: Vec<u8> = live.map(|view| view.id).collect();
            let at_us = event.at_us;
            found.extend(now.map(|coordinator| Settlement { at_us, coordinator, members }));
        }
    }
    found
}

/// How often boards reset themselves, by node and cause.
pub fn resets(events: &[NodeEvent]) -> BTreeMap<(u8, &'static str), usize> {
    let mut resets = BTreeMap::new();
    for event in events {
        if let What::Reset { cause } = &event.what {
            *resets.entry((event.node, cause.name())).or_default() += 1;
        }
    }
    resets
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tm and Tp of the run in milliseconds, and the factor.
    fn chosen(tm_ms: Option<u64>, tp_ms: Option<u64>, factor: Option<f64>) -> (u64, u64, f64) {
        let mut scenario = Scenario::undisturbed(Algorithm::Bully, 3, 1_000_000);
        (scenario.tm_us, scenario.tp_us) = (20_000, 10_000);
        let times = Times { tm_ms, tp_ms, factor };
        let (scenario, factor) = choose_times(&scenario, times, Floors::HOST);
        let run = scenario.stretched(factor);
        (run.tm_us / 1000, run.tp_us / 1000, factor)
    }

    #[test]
    fn a_time_that_is_named_stays_as_it_is() {
        assert_eq!(chosen(None, None, None), (80, 40, 4.0));
        assert_eq!(chosen(Some(50), None, None), (50, 40, 4.0));
        assert_eq!(chosen(None, Some(100), None), (40, 100, 2.0));
        assert_eq!(chosen(Some(50), Some(100), None), (50, 100, 1.0));
        assert_eq!(chosen(Some(50), None, Some(2.5)), (50, 25, 2.5));
    }
}
