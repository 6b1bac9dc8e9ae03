//! `cargo verify`: every check, and a closing line `N passed, N failed`.
//!
//! Each step runs in a process of its own: this program once more, with `--step NAME`. What its
//! commands print goes to `target/verify/NAME.log` and is shown only if the step fails. A step that
//! runs a test harness counts each of its tests.
//!
//! Two steps run at a time ([`schedule`]): a build keeps only one core busy at its end. The end says where the
//! time went ([`time`]).

mod boards;
mod checks;
mod flat;
mod fuzz;
// What the programs use too; taken as a file, so that nothing else has to be built first.
#[path = "../../flock/src/install.rs"]
mod install;
mod options;
mod run;
mod schedule;
mod steps;
mod time;

use std::process::ExitCode;
use std::time::Instant;

use options::{Asked, Options};
use run::Verdict;

/// The exit code of a command line that is not understood.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(what) => {
            eprintln!("{what}");
            return ExitCode::from(BAD_INPUT);
        }
    };
    let mut steps = steps::all(options.depth);
    match &options.asked {
        Asked::Help => {
            println!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Asked::List => {
            steps.iter().for_each(|step| println!("{}", step.name));
            return ExitCode::SUCCESS;
        }
        Asked::Step(name) => return one(&steps, name),
        Asked::Only(part) => steps = schedule::only(steps, part),
        Asked::All => {}
    }
    let goal = time::Goal::of(options.depth, &options.asked);
    let began = Instant::now();
    let done = schedule::run(&steps, options.depth, schedule::in_a_process);
    let total = began.elapsed();
    let mut sum = Verdict::default();
    done.iter().for_each(|done| sum.add(&done.verdict));
    print!("{}", time::table(&done, total, goal));
    // Once more where everybody looks first: at the end.
    for done in done.iter().filter(|done| done.verdict.failed > 0) {
        if !done.begun {
            println!("FAILED: {}, not run", done.name);
            continue;
        }
        println!("FAILED: {}, see {}", done.name, run::log_file(&done.name).display());
        for line in run::telling_lines(&done.name) {
            println!("        {line}");
        }
    }
    if done.is_empty() {
        println!("no step has such a name; `cargo verify --list` names them");
        sum.failed += 1;
    }
    println!("{}", sum.describe());
    if sum.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a step here. The last two lines are for the process that started this one.
fn one(steps: &[steps::Step], name: &str) -> ExitCode {
    let Some(step) = steps.iter().find(|step| step.name == name) else {
        eprintln!("there is no step {name:?}");
        return ExitCode::from(BAD_INPUT);
    };
    let verdict = step.run();
    println!("{}", time::describe_cpu(time::own_cpu()));
    println!("{}", verdict.describe());
    ExitCode::SUCCESS
}
