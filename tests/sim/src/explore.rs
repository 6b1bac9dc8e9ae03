//! `cargo sim explore`: all runs of a small flock with up to so many deviations, none left out.
//!
//! Random runs try a little of everything; this tries everything of a little. All clocks are the same and
//! every frame takes the same time, but for the deviations: in a window of time after a disturbance every
//! frame may be slow (all of Tm, and overtaken) or lost, and every node may lose its power after any of its acts, and
//! have it back at once or at the end of the window. Then all nodes have power, and the flock must settle
//! within its bound; the checker looks at every change, as ever.
//!
//! A crash is tried only after steps that have effects: one after a step that has none cannot be told
//! from one before it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bellwether::config::{Algorithm, Timing};
use bellwether::errata::Errata;
use bellwether::time::Duration;
use clap::Args;

use crate::choices::{Choices, Point, Script};
use crate::liveness::{Cause, bound_us};
use crate::random::{ALGORITHMS, algorithm_name};
use crate::settings::Settings;
use crate::world::World;

/// What disturbs the flock.
pub const SITUATIONS: [Cause; 3] = [Cause::ColdStart, Cause::Crash, Cause::Return];
/// So many failures of a case are told.
const TOLD: usize = 5;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// One algorithm only: bully, invitation or ring
    #[arg(long, value_parser = named_algorithm)]
    pub algorithm: Option<Algorithm>,
    /// One situation only: cold-start, crash or return
    #[arg(long, value_parser = named_situation)]
    pub situation: Option<Cause>,
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=8))]
    pub nodes: u8,
    /// How many deviations a run may have
    #[arg(long, default_value_t = 2)]
    pub deviations: usize,
    /// One run only, with these deviations, as a failure names them
    #[arg(long, requires = "algorithm", requires = "situation")]
    pub script: Option<Script>,
}

fn named_algorithm(name: &str) -> Result<Algorithm, String> {
    let known = ALGORITHMS.into_iter().find(|known| algorithm_name(*known) == name);
    known.ok_or_else(|| "allowed: bully, invitation, ring".into())
}

fn situation_name(cause: Cause) -> String {
    cause.name().replace(' ', "-")
}

fn named_situation(name: &str) -> Result<Cause, String> {
    let known = SITUATIONS.into_iter().find(|known| situation_name(*known) == name);
    known.ok_or_else(|| "allowed: cold-start, crash, return".into())
}

/// One flock and what disturbs it.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub algorithm: Algorithm,
    pub situation: Cause,
    pub nodes: u8,
    pub errata: Errata,
}

/// What all runs of a case came to.
#[derive(Debug, Default)]
pub struct Explored {
    pub runs: u64,
    /// Of the run without deviations.
    pub points: usize,
    /// Scripts of runs that failed, with what they failed on.
    pub failed: Vec<(Script, String)>,
}

impl Case {
    fn settings(&self) -> Settings {
        let ms = Duration::from_millis;
        let timing = Timing::derive(ms(20), ms(10), ms(5));
        let mut settings = Settings::new(self.nodes, self.algorithm, timing, 1);
        let usual = timing.tm.us() / 10;
        settings.base_delay_us = (usual, usual);
        settings.reorganize_us = (200, 200);
        settings.errata = self.errata;
        settings.overtakes = true;
        settings
    }

    /// Brings the flock to the moment of the disturbance, and disturbs it.
    fn disturb(&self, world: &mut World<1>) {
        let nodes = world.machines.len();
        if self.situation != Cause::ColdStart {
            (0..nodes).for_each(|node| world.power_on(node));
            let bound = bound_us(&world.settings, Cause::ColdStart);
            world.run_for(2 * bound);
            world.kill(nodes - 1);
        }
        match self.situation {
            Cause::ColdStart => (0..nodes).for_each(|node| world.power_on(node)),
            Cause::Return => {
                let bound = bound_us(&world.settings, Cause::Crash);
                world.run_for(2 * bound);
                world.power_on(nodes - 1);
            }
            _ => {}
        }
    }

    /// One run: the points that it came to, and what was wrong with it.
    pub fn run(&self, script: Script) -> (Vec<Point>, Option<String>) {
        let mut world = World::<1>::new(self.settings());
        self.disturb(&mut world);
        let window = bound_us(&world.settings, self.situation);
        let end = world.now + window;
        world.choices = Some(Choices::new(script, end));
        world.run_until(end, |_| false);
        let met = world.choices.take().map(|choices| choices.met).unwrap_or_default();
        let nodes: Vec<usize> = (0..world.machines.len()).collect();
        nodes.iter().for_each(|node| world.power_on(*node));
        settle(&mut world, &nodes);
        if let Some(violation) = world.checker.violations.first() {
            let at_ms = violation.at / 1000;
            return (met, Some(format!("at {at_ms} ms: {}: {}", violation.rule, violation.what)));
        }
        let settled = world.is_settled(&nodes);
        let views = || nodes.iter().map(|node| *world.checker.view(*node)).collect::<Vec<_>>();
        let wrong = (!settled).then(|| format!("assertions 2 and 4: not settled: {:?}", views()));
        (met, wrong)
    }

    /// All runs that go the way of this script and have up to `more` deviations more.
    fn descend(&self, script: &Script, more: usize, explored: &mut Explored) {
        let (met, wrong) = self.run(script.clone());
        explored.runs += 1;
        if let Some(what) = wrong {
            explored.failed.push((script.clone(), what));
        }
        if more > 0 {
            for next in branches(script, &met) {
                self.descend(&next, more - 1, explored);
            }
        }
    }

    /// All runs with up to so many deviations, on all cores.
    pub fn explore(&self, deviations: usize) -> Explored {
        let usual = Script::default();
        let (met, wrong) = self.run(usual.clone());
        let mut first = Explored { runs: 1, points: met.len(), failed: Vec::new() };
        first.failed.extend(wrong.map(|what| (usual.clone(), what)));
        let firsts: Vec<Script> =
            if deviations > 0 { branches(&usual, &met).collect() } else { Vec::new() };
        let (next, total) = (AtomicUsize::new(0), Mutex::new(first));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..cores {
                scope.spawn(|| {
                    let mut mine = Explored::default();
                    while let Some(script) = firsts.get(next.fetch_add(1, Ordering::Relaxed)) {
                        self.descend(script, deviations - 1, &mut mine);
                    }
                    let mut total = total.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    total.runs += mine.runs;
                    total.failed.append(&mut mine.failed);
                });
            }
        });
        let mut explored = total.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        explored.failed.sort_by_key(|(script, _)| (script.0.len(), script.end()));
        explored
    }
}

/// Waits until the flock is settled and has been for a Check and more, or its bound is over.
fn settle(world: &mut World<1>, nodes: &[usize]) {
    let bound = bound_us(&world.settings, Cause::Anything);
    let enough = (world.timing().check + world.timing().t.times(2)).us();
    let mut since = None;
    world.run_until(world.now + bound, |world| {
        since = if world.is_settled(nodes) { since.or(Some(world.now)) } else { None };
        since.is_some_and(|since| world.now - since >= enough)
    });
}

/// The scripts that differ from this one at one point behind all of its own.
fn branches<'a>(script: &'a Script, met: &'a [Point]) -> impl Iterator<Item = Script> + 'a {
    let behind = met.iter().enumerate().skip(script.end());
    behind.flat_map(move |(point, kind)| {
        kind.deviations().into_iter().map(move |deviation| script.and(point, deviation))
    })
}

/// Prints a line per case and what failed; whether nothing did.
pub fn command(options: &Options) -> bool {
    let mut held = true;
    let nodes = options.nodes;
    if options.script.is_none() {
        println!(
            "{:<11} {:<11} {:>7} {:>9} {:>7}",
            "algorithm", "situation", "points", "runs", "failed"
        );
    }
    for algorithm in ALGORITHMS {
        for situation in SITUATIONS {
            let wanted = options.algorithm.is_none_or(|only| only == algorithm)
                && options.situation.is_none_or(|only| only == situation);
            if !wanted {
                continue;
            }
            let case = Case { algorithm, situation, nodes, errata: Errata::default() };
            if let Some(script) = &options.script {
                let (met, wrong) = case.run(script.clone());
                println!("{} points; {}", met.len(), wrong.as_deref().unwrap_or("all held"));
                return wrong.is_none();
            }
            let began = Instant::now();
            let explored = case.explore(options.deviations);
            println!(
                "{:<11} {:<11} {:>7} {:>9} {:>7}  {:.0} s",
                algorithm_name(algorithm),
                situation_name(situation),
                explored.points,
                explored.runs,
                explored.failed.len(),
                began.elapsed().as_secs_f64()
            );
            for (script, what) in explored.failed.iter().take(TOLD) {
                println!("{script}: {what}");
                println!(
                    "replay: cargo sim explore --algorithm {} --situation {} --nodes {nodes} --script {script}",
                    algorithm_name(algorithm),
                    situation_name(situation),
                );
            }
            held &= explored.failed.is_empty();
        }
    }
    held
}
