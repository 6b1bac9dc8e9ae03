//! `cargo verify`: every check, and a closing line `N passed, N failed`.
//!
//! Each step runs as a process of its own; its output goes to `target/verify/NAME.log` and is shown
//! only if the step fails. A step that runs a test harness counts each of its tests.
//!
//! Much of the time goes into builds that keep one core busy at their end, so steps that build in
//! folders of their own run beside the others: in a second process of this program, whose report
//! follows when both are done. Emulated boards come last, when nothing else runs.

mod boards;
mod checks;
mod run;
mod steps;

use std::io;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use clap::Parser;
use run::Verdict;
use steps::{Lane, Step};

#[derive(Debug, Parser)]
#[command(name = "cargo verify", about = "Every check of the project")]
struct Arguments {
    /// More seeds: takes hours instead of minutes
    #[arg(long)]
    deep: bool,
    /// Only the steps whose name contains this, one after another
    #[arg(long)]
    only: Option<String>,
    /// List the steps and stop
    #[arg(long)]
    list: bool,
    /// Only the steps that run beside the others
    #[arg(long, hide = true)]
    beside: bool,
}

/// What came out so far, and which steps failed.
#[derive(Default)]
struct Report {
    total: Verdict,
    failed: Vec<String>,
}

impl Report {
    fn run(&mut self, step: &Step) {
        println!("---- {}", step.name);
        let began = Instant::now();
        let verdict = step.run();
        let seconds = began.elapsed().as_secs();
        let outcome = if verdict.failed == 0 { "ok" } else { "FAILED" };
        println!("     {outcome}: {} in {seconds} s", verdict.describe());
        self.total.add(&verdict);
        if verdict.failed > 0 {
            self.failed.push(step.name.clone());
        }
    }

    /// Waits for the steps that ran beside these, and adds what they found.
    fn join(&mut self, beside: io::Result<Child>) {
        let output = beside.and_then(Child::wait_with_output);
        let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let said = said.unwrap_or_else(|error| format!("     | not started: {error}\n"));
        print!("{said}");
        match said.lines().last().and_then(Verdict::read) {
            Some(verdict) => self.total.add(&verdict),
            // It ended before it could say how.
            None => self.total.failed += 1,
        }
        let failed = said.lines().filter_map(|line| line.strip_prefix(FAILED));
        self.failed.extend(failed.map(|rest| rest.split(", see ").next().unwrap_or(rest).into()));
    }
}

/// How a failed step is told at the end.
const FAILED: &str = "FAILED: ";

/// This program once more, for the steps that run beside the others.
fn start_beside(deep: bool) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--beside").args(deep.then_some("--deep"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let steps = steps::all(arguments.deep);
    let mut report = Report::default();
    let of = |lane| steps.iter().filter(move |step| step.lane == lane);
    if arguments.list {
        steps.iter().for_each(|step| println!("{}", step.name));
        return ExitCode::SUCCESS;
    } else if let Some(only) = &arguments.only {
        steps.iter().filter(|step| step.name.contains(only)).for_each(|step| report.run(step));
    } else if arguments.beside {
        of(Lane::Beside).for_each(|step| report.run(step));
    } else {
        of(Lane::Before).for_each(|step| report.run(step));
        let beside = start_beside(arguments.deep);
        of(Lane::First).for_each(|step| report.run(step));
        report.join(beside);
        of(Lane::Alone).for_each(|step| report.run(step));
    }
    // Once more where everybody looks first: at the end.
    for name in &report.failed {
        println!("{FAILED}{name}, see {}", run::log_file(name).display());
        for line in run::telling_lines(name) {
            println!("        {line}");
        }
    }
    println!("{}", report.total.describe());
    if report.total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
