//! The steps, in the order in which they are to begin: what others wait for, then what takes long.

use crate::boards;
use crate::checks::{
    attacked_runs, build_firmware, check_programs, compared, failed, install_targets, lint_boards,
    no_test_switches, only_known_switches, play_scenarios, random_runs, succeeded,
};
use crate::fuzz;
use crate::install;
use crate::options::Depth;
use crate::run::{Ran, Verdict, count_tests, run, run_program, show};

/// The target of the default board.
const TARGET: &str = "thumbv7m-none-eabi";

/// When a step runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Before all others.
    First,
    /// Beside others.
    Together,
}

/// A check with a name.
pub struct Step {
    pub name: String,
    pub when: When,
    /// The folder that it builds in; cargo lets only one at a time build there.
    pub builds_in: Option<&'static str>,
    /// The step that builds what this one runs.
    pub needs: Option<&'static str>,
    quick: bool,
    work: Box<dyn Fn(&str) -> Verdict + Sync>,
}

impl Step {
    pub fn new(name: impl Into<String>, work: impl Fn(&str) -> Verdict + Sync + 'static) -> Self {
        Self {
            name: name.into(),
            when: When::Together,
            builds_in: None,
            needs: None,
            quick: false,
            work: Box::new(work),
        }
    }

    pub fn on(self, when: When) -> Self {
        Self { when, ..self }
    }

    pub fn building(self, folder: &'static str) -> Self {
        Self { builds_in: Some(folder), ..self }
    }

    pub fn needing(self, step: &'static str) -> Self {
        Self { needs: Some(step), ..self }
    }

    /// It is part of the quick run.
    fn quick(self) -> Self {
        Self { quick: true, ..self }
    }

    pub fn run(&self) -> Verdict {
        (self.work)(&self.name)
    }

    /// A cargo command that must succeed. It builds in the folder of the programs.
    fn cargo(name: &str, arguments: &'static [&'static str]) -> Self {
        let work = move |name: &str| succeeded(&run(name, "cargo", arguments, &[]));
        Self::new(name, work).building("target")
    }

    /// A command of one of the programs that must succeed.
    fn program(name: &str, program: &'static str, arguments: &'static [&'static str]) -> Self {
        let work = move |name: &str| succeeded(&run_program(name, program, arguments));
        Self::new(name, work).needing(PROGRAMS)
    }
}

/// Every test counts.
fn counted(ran: &Ran) -> Verdict {
    let verdict = count_tests(ran);
    if verdict.failed > 0 {
        show(&ran.output);
    }
    verdict
}

/// The step that builds the tests and the programs that they run, which are those that users run. All
/// steps run what is built here: for each program alone cargo would choose other features of what all
/// use, and build most of it again.
const PROGRAMS: &str = "programs and tests";
const TESTS: [&str; 4] = ["test", "--release", "--workspace", "--quiet"];

pub fn all(depth: Depth) -> Vec<Step> {
    let mut steps = host_steps();
    steps.extend(board_steps(depth));
    steps.extend(switched_steps());
    steps
        .push(Step::new("fuzzing", move |name| fuzz::run_all(name, depth)).building("target/fuzz"));
    steps.extend(simulation_steps(depth));
    steps.extend(flash_steps(depth));
    steps.retain(|step| depth != Depth::Quick || step.quick);
    steps
}

/// What is built for the host. Its crates are built once: all in one profile.
fn host_steps() -> Vec<Step> {
    let build = Step::new(PROGRAMS, |name| {
        succeeded(&run(name, "cargo", &[&TESTS[..], &["--no-run"]].concat(), &[]))
    });
    vec![
        Step::new("targets of the boards", install_targets).on(When::First),
        Step::new("tshark for the dissector", |_| match install::ensure("tshark") {
            Ok(()) => Verdict::of(true),
            Err(what) => failed(&what),
        })
        .on(When::First)
        .quick(),
        Step::cargo("format", &["fmt", "--all", "--check"]).on(When::First).quick(),
        Step::new("switches of the core", only_known_switches).on(When::First).quick(),
        build.building("target").quick(),
        Step::cargo(
            "lints",
            &[
                "clippy",
                "--release",
                "--workspace",
                "--all-targets",
                "--quiet",
                "--",
                "-D",
                "warnings",
            ],
        )
        .quick(),
        // Which runs what the first step built.
        Step::new("unit and property tests", |name| counted(&run(name, "cargo", &TESTS, &[])))
            .building("target")
            .needing(PROGRAMS)
            .quick(),
        // Without the shell: the core needs none of its crates.
        Step::cargo(
            "core for the default board",
            &["check", "--release", "--quiet", "--package", "bellwether", "--target", TARGET],
        ),
        Step::new("documentation", |name| {
            let arguments = ["doc", "--release", "--workspace", "--no-deps", "--quiet"];
            succeeded(&run(name, "cargo", &arguments, &[("RUSTDOCFLAGS", "-D warnings")]))
        })
        .building("target"),
        Step::new("no test switches in what users run", no_test_switches),
        Step::new("each program by itself", check_programs).building("target"),
    ]
}

fn board_steps(depth: Depth) -> [Step; 4] {
    // Emulated boards sleep most of the time, and their clock waits for them when others are busy: they run
    // beside what computes.
    let system = Step::new("system tests on emulated boards", move |name| {
        boards::system_tests(name, depth == Depth::Deep)
    });
    let firmware = Step::new("firmware of all boards, and what it takes", build_firmware);
    let drivers = Step::new("drivers of the emulated boards", boards::drivers);
    let [firmware, drivers, system] =
        [firmware, drivers, system].map(|step| step.building("boards/target").needing(PROGRAMS));
    // With all that they are made of: the shell of the root crate too.
    let lints = Step::new("format and lints of the boards and the shell", lint_boards)
        .building("boards/target/clippy");
    [lints, firmware, drivers, system]
}

/// The simulator: every scenario, random faults, an attacker, all runs of a small flock.
fn simulation_steps(depth: Depth) -> Vec<Step> {
    let mut steps = vec![
        Step::new("scenarios", play_scenarios).needing(PROGRAMS).quick(),
        Step::program("example task", "examples/watch", &[]),
    ];
    let seeds = depth.pick("300", "2000", "100000");
    for algorithm in ["bully", "invitation", "ring"] {
        let name = format!("random runs, {algorithm}");
        let work = move |name: &str| random_runs(name, algorithm, seeds, depth);
        steps.push(Step::new(name, work).needing(PROGRAMS).quick());
    }
    let attacked = depth.pick("0", "500", "10000");
    steps.extend([
        // No preemption is drawn for one run in five; Assertion 1 of Bully has to rest on more.
        Step::program(
            "random runs, bully without preemption",
            "bellwether-sim",
            &["--algorithm", "bully", "--preempt", "false", "--seeds", "1000"],
        ),
        Step::new("attacker", move |name| attacked_runs(name, attacked)).needing(PROGRAMS),
        Step::new("the comparison in the README still holds", compared).needing(PROGRAMS),
        Step::program(
            "all runs of three nodes with a few deviations",
            "bellwether-sim",
            depth.pick(&[], &["explore"], &["explore", "--deviations", "3"]),
        ),
        Step::program(
            "promises on a switched network",
            "bellwether-sim",
            depth.pick(
                &[],
                &["measure", "--profile", "lan", "--seeds", "40"],
                &["measure", "--profile", "lan", "--seeds", "1000"],
            ),
        ),
    ]);
    steps
}

/// Tests that must find out what a feature spoils: the cell store, the link, the algorithms. All three
/// features are in one build; each test spoils one thing.
fn switched_steps() -> [Step; 2] {
    const BUILD: &str = "programs with errors that can be put back";
    let build = Step::new(BUILD, |name| succeeded(&run_switched(name, &["--no-run"])));
    let tests = Step::new("errors put back are found out: store, link, algorithms", |name| {
        let ran = run_switched(name, &[]);
        let mut verdict = counted(&ran);
        // A file without its feature has no such tests, and nobody would see that.
        if ran.ok && tests_of_files(&ran.output).iter().filter(|tests| **tests > 1).count() != 3 {
            verdict.add(&failed("not all three files have tests in them"));
        }
        verdict
    });
    [build.building("target").needing(PROGRAMS), tests.needing(BUILD)]
}

/// What users run lies elsewhere; only what it is made of is shared.
fn run_switched(name: &str, more: &[&str]) -> Ran {
    let how = ["test", "--release", "--workspace", "--quiet", "--target-dir", "target/switched"];
    let features = "bellwether-flash/sabotage,bellwether-sim/errata,bellwether-sim/open-link";
    let tests = ["--test", "shown_to_fail", "--test", "attacker", "--test", "errata"];
    let arguments = [&how[..], &["--features", features], &tests, more].concat();
    run(name, "cargo", &arguments, &[("CARGO_BUILD_BUILD_DIR", "target")])
}

/// How many tests passed in each file, or in what else cargo ran.
fn tests_of_files(output: &str) -> Vec<u64> {
    let ran = |line: &str| Ran { ok: true, code: Some(0), output: line.into() };
    let lines = output.lines().filter(|line| line.starts_with("test result:"));
    lines.map(|line| count_tests(&ran(line)).passed).collect()
}

/// The cell store under power cuts, torn erases and wear; the same commands run deeper.
fn flash_steps(depth: Depth) -> Vec<Step> {
    let deep = depth == Depth::Deep;
    let flash = |name: &str, arguments: &'static [&'static str]| {
        let work = move |name: &str| {
            let ran = run_program(name, "bellwether-flash", arguments);
            // What was tried belongs to the report.
            for line in
                ran.output.lines().filter(|line| line.contains("cuts") || line.contains("saves of"))
            {
                println!("     {line}");
            }
            succeeded(&ran)
        };
        Step::new(name, work).needing(PROGRAMS)
    };
    vec![
        flash("power cuts in flash", if deep { &["cuts", "--deep"] } else { &["cuts"] }),
        flash("torn erases", if deep { &["torn"] } else { &["torn", "--count", "20000"] }),
        flash("even wear of flash", &["wear"]),
        flash("life of flash", &["life"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_depths_differ_only_where_they_should() {
        let names = |depth| all(depth).into_iter().map(|step| step.name).collect::<Vec<_>>();
        let usual = names(Depth::Usual);
        let mut sorted = usual.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), usual.len());
        assert_eq!(names(Depth::Deep), usual);
        let quick = names(Depth::Quick);
        assert!(quick.len() < usual.len() && quick.iter().all(|name| usual.contains(name)));
    }

    #[test]
    fn what_a_step_needs_is_there_before_it() {
        for depth in [Depth::Quick, Depth::Usual, Depth::Deep] {
            let steps = all(depth);
            let at = |name: &str| steps.iter().position(|step| step.name == name);
            for (index, step) in steps.iter().enumerate() {
                let needed = step.needs.map(|needed| (needed, at(needed)));
                assert!(needed.is_none_or(|(_, at)| at.is_some_and(|at| at < index)), "{needed:?}");
            }
        }
    }

    #[test]
    fn a_file_without_tests_is_seen() {
        let output = "test result: ok. 3 passed; 0 failed; 0 ignored\n\
                      test result: ok. 0 passed; 0 failed; 0 ignored\n";
        assert_eq!(tests_of_files(output), [3, 0]);
    }
}
