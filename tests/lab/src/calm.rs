//! A flock that nobody disturbs, on a host that has other things to do.

use std::process::{Child, Command, Stdio};
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bellwether_scenario::{Algorithm, Scenario};
use clap::Args;

use crate::boards;
use crate::display::Printer;
use crate::play::{self, Floors, Outcome, Times};
use crate::tools;

const NODES: u8 = 5;
/// Of one core: all boards together, and the lab itself.
pub const BOARDS_SHARE_MAX: f64 = 0.25;
pub const LAB_SHARE_MAX: f64 = 0.25;
/// For how much of the time the clock may stand still, on an idle host and beside others.
pub const HELD_BACK_MAX: f64 = 0.05;
const HELD_BACK_BUSY_MAX: f64 = 0.25;

#[derive(Debug, Args)]
pub struct Options {
    /// How long
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
    /// How many processes compute beside it without a break
    #[arg(long, default_value_t = 2)]
    busy: usize,
}

/// A process that takes what it can get of a core, until it is dropped.
struct BusyLoop(Child);

impl BusyLoop {
    fn start() -> Result<Self, String> {
        Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "sh", "-c", "while :; do :; done"])
            .stdin(Stdio::null())
            .spawn()
            .map(Self)
            .map_err(|error| format!("setpriv (of util-linux) could not be started: {error}"))
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Watches; the exit code of the lab.
pub fn run(options: &Options, stop: &AtomicBool) -> Result<u8, String> {
    let image = Arc::new(tools::firmware(boards::default())?);
    // Before the lab is preferred to others: these are the others.
    let loops: Result<Vec<BusyLoop>, String> =
        (0..options.busy).map(|_| BusyLoop::start()).collect();
    let _loops = loops?;
    tools::prefer_lab();
    let duration_us = options.minutes * 60_000_000;
    let scenario = Scenario::undisturbed(Algorithm::Invitation, NODES, duration_us);
    let (scenario, factor) = play::choose_times(&scenario, Times::OWN, Floors::in_force());
    let mut display = Printer::new(true);
    let outcome = play::play(&scenario, factor, from_ref(&image), None, stop, &mut display)?;
    crate::report(&outcome);
    let wrong = judge(&outcome, options.busy > 0);
    wrong.iter().for_each(|what| println!("{what}"));
    Ok(if wrong.is_empty() { 0 } else { crate::FAILED })
}

/// What was not calm.
fn judge(outcome: &Outcome, busy: bool) -> Vec<String> {
    let mut wrong = outcome.failures.clone();
    if outcome.interrupted {
        wrong.push("it was stopped before its end".into());
    }
    let settled = play::settlements(outcome.run.nodes, &outcome.events).len();
    if settled != 1 {
        wrong.push(format!("the flock settled {settled} times; allowed: once"));
    }
    let share = |cpu: std::time::Duration| cpu.as_secs_f64() / outcome.lasted.as_secs_f64();
    let held_back_max = if busy { HELD_BACK_BUSY_MAX } else { HELD_BACK_MAX };
    for (what, share, most) in [
        ("the boards took", share(outcome.cpu), BOARDS_SHARE_MAX),
        ("the lab took", share(outcome.own_cpu), LAB_SHARE_MAX),
        ("the clock was held back", outcome.held_back.unwrap_or(0.0), held_back_max),
    ] {
        if share > most {
            wrong.push(format!("{what} {:.1} %; allowed: {:.0} %", share * 100.0, most * 100.0));
        }
    }
    wrong
}
