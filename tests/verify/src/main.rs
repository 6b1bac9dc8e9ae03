//! `cargo verify`: every check, one after another, and a closing line `N passed, N failed`.
//!
//! Each step runs as a process of its own; its output goes to `target/verify/NAME.log` and is shown
//! only if the step fails. A step that runs a test harness counts each of its tests.

mod boards;
mod run;
mod steps;

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use run::Verdict;

#[derive(Debug, Parser)]
#[command(name = "cargo verify", about = "Every check of the project")]
struct Arguments {
    /// More seeds: takes hours instead of minutes
    #[arg(long)]
    deep: bool,
    /// Only the steps whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// List the steps and stop
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut total = Verdict::default();
    for step in steps::all(arguments.deep) {
        let wanted = arguments.only.as_ref().is_none_or(|only| step.name.contains(only.as_str()));
        if arguments.list {
            println!("{}", step.name);
        } else if wanted {
            println!("---- {}", step.name);
            let began = Instant::now();
            let verdict = step.run();
            let seconds = began.elapsed().as_secs();
            let outcome = if verdict.failed == 0 { "ok" } else { "FAILED" };
            println!("     {outcome}: {} in {seconds} s", verdict.describe());
            total.add(&verdict);
        }
    }
    if !arguments.list {
        println!("{} passed, {} failed", total.passed, total.failed);
    }
    if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
