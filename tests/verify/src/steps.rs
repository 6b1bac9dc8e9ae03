//! The steps, in the order in which a mistake is cheapest to find.

use crate::boards;
use crate::checks::{
    attacked_runs, build_firmware, compared, failed, fuzz, install_targets, lint_boards,
    no_test_switches, only_known_switches, play_scenarios, random_runs, succeeded,
};
use crate::run::{Ran, Verdict, count_tests, run, show};

/// The target of the default board.
const TARGET: &str = "thumbv7m-none-eabi";

/// When a step runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Before all others.
    Before,
    /// One after another.
    First,
    /// Beside those: it builds in a folder of its own.
    Beside,
    /// At the end, when nothing else runs: it depends on real time.
    Alone,
}

/// A check with a name.
pub struct Step {
    pub name: String,
    pub lane: Lane,
    work: Box<dyn Fn(&str) -> Verdict>,
}

impl Step {
    fn new(name: impl Into<String>, work: impl Fn(&str) -> Verdict + 'static) -> Self {
        Self { name: name.into(), lane: Lane::First, work: Box::new(work) }
    }

    fn on(self, lane: Lane) -> Self {
        Self { lane, ..self }
    }

    pub fn run(&self) -> Verdict {
        (self.work)(&self.name)
    }

    /// A cargo command that must succeed.
    fn cargo(name: &str, arguments: &'static [&'static str]) -> Self {
        Self::new(name, move |name| succeeded(&run(name, "cargo", arguments, &[])))
    }

    /// A cargo command that runs tests; each counts.
    fn tests(name: &str, arguments: &'static [&'static str]) -> Self {
        Self::new(name, move |name| counted(&run(name, "cargo", arguments, &[])))
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

pub fn all(deep: bool) -> Vec<Step> {
    let mut steps = vec![
        Step::new("targets of the boards", install_targets).on(Lane::Before),
        Step::cargo("format", &["fmt", "--all", "--check"]),
        Step::cargo(
            "lints",
            &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"],
        ),
        Step::cargo(
            "lints of the shell",
            &[
                "clippy",
                "--quiet",
                "--package",
                "bellwether",
                "--features",
                "shell",
                "--target",
                TARGET,
                "--",
                "-D",
                "warnings",
            ],
        ),
        // Without the shell: the core needs none of its crates.
        Step::cargo(
            "core for the default board",
            &["check", "--quiet", "--package", "bellwether", "--target", TARGET],
        ),
        Step::new("firmware of all boards, and what it takes", build_firmware).on(Lane::Beside),
        Step::new("format and lints of the boards", lint_boards).on(Lane::Beside),
        Step::new("documentation", |name| {
            let arguments = ["doc", "--workspace", "--no-deps", "--quiet"];
            succeeded(&run(name, "cargo", &arguments, &[("RUSTDOCFLAGS", "-D warnings")]))
        }),
        Step::new("switches of the core", only_known_switches),
        Step::new("no test switches in what users run", no_test_switches),
        Step::new("tshark for the dissector", |_| {
            match bellwether_flock::install::ensure("tshark") {
                Ok(()) => Verdict::of(true),
                Err(what) => failed(&what),
            }
        }),
        // With the crates that the programs are built of, which are there already or needed soon.
        Step::tests("unit and property tests", &["test", "--release", "--workspace", "--quiet"]),
        Step::cargo(
            "example task",
            &["run", "--release", "--quiet", "--package", "bellwether-sim", "--example", "watch"],
        ),
        Step::new("scenarios", play_scenarios),
    ];
    steps.extend(flash_steps(deep));
    let seeds = if deep { "100000" } else { "3000" };
    for algorithm in ["bully", "invitation", "ring"] {
        let name = format!("random runs, {algorithm}");
        steps.push(Step::new(name, move |name| random_runs(name, algorithm, seeds)));
    }
    // No preemption is drawn for one run in five; Assertion 1 of Bully has to rest on more.
    steps.push(Step::cargo(
        "random runs, bully without preemption",
        &["sim", "--algorithm", "bully", "--preempt", "false", "--seeds", "1000"],
    ));
    steps.push(Step::new("the comparison in the README still holds", compared));
    let seeds = if deep { "10000" } else { "2000" };
    steps.push(Step::new("attacker", move |name| attacked_runs(name, seeds)));
    steps.push(Step::cargo(
        "all runs of three nodes with a few deviations",
        if deep { &["sim", "explore", "--deviations", "3"] } else { &["sim", "explore"] },
    ));
    steps.push(Step::cargo(
        "promises on a switched network",
        if deep {
            &["sim", "measure", "--profile", "lan", "--seeds", "1000"]
        } else {
            &["sim", "measure", "--profile", "lan", "--seeds", "40"]
        },
    ));
    steps.extend([
        switched("a spoilt store is found out", "flash", "sabotage", "shown_to_fail"),
        switched("an attacker who gets through is seen", "sim", "open-link", "attacker"),
        switched("errata put back", "sim", "errata", "errata"),
        Step::new("fuzzing", move |name| fuzz(name, deep)).on(Lane::Beside),
        Step::new("drivers of the emulated boards", boards::drivers).on(Lane::Alone),
        Step::new("system tests on emulated boards", move |name| boards::system_tests(name, deep))
            .on(Lane::Alone),
    ]);
    steps
}

/// Tests that must find out what a feature spoils. They share a folder, away from what users run.
fn switched(name: &str, package: &'static str, feature: &'static str, test: &'static str) -> Step {
    let step = Step::new(name, move |name| {
        let package = format!("bellwether-{package}");
        let what = ["--package", &package, "--features", feature, "--test", test];
        let how = ["test", "--release", "--quiet", "--target-dir", "target/switched"];
        counted(&run(name, "cargo", &[&how[..], &what].concat(), &[]))
    });
    step.on(Lane::Beside)
}

/// The cell store under power cuts, torn erases and wear; the same commands run deeper.
fn flash_steps(deep: bool) -> Vec<Step> {
    let flash = |name: &str, arguments: &'static [&'static str]| {
        Step::new(name, move |name| {
            let command = ["run", "--release", "--quiet", "--package", "bellwether-flash", "--"];
            let ran = run(name, "cargo", &[&command, arguments].concat(), &[]);
            // What was tried belongs to the report.
            for line in
                ran.output.lines().filter(|line| line.contains("cuts") || line.contains("saves of"))
            {
                println!("     {line}");
            }
            succeeded(&ran)
        })
    };
    vec![
        flash("power cuts in flash", if deep { &["cuts", "--deep"] } else { &["cuts"] }),
        flash("torn erases", if deep { &["torn"] } else { &["torn", "--count", "20000"] }),
        flash("even wear of flash", &["wear"]),
        flash("life of flash", &["life"]),
    ]
}
