//! The steps, in the order in which a mistake is cheapest to find.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::run::{Ran, Verdict, count_tests, root, run, show};

/// The target of the default board.
const TARGET: &str = "thumbv7m-none-eabi";

/// Features that exist only in builds made for tests of tests.
const SWITCHES: [&str; 3] = ["errata", "sabotage", "open-link"];

/// A check with a name.
pub struct Step {
    pub name: String,
    work: Box<dyn Fn(&str) -> Verdict>,
}

impl Step {
    fn new(name: impl Into<String>, work: impl Fn(&str) -> Verdict + 'static) -> Self {
        Self { name: name.into(), work: Box::new(work) }
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
        Self::new(name, move |name| {
            let ran = run(name, "cargo", arguments, &[]);
            let verdict = count_tests(&ran);
            if verdict.failed > 0 {
                show(&ran.output);
            }
            verdict
        })
    }
}

fn succeeded(ran: &Ran) -> Verdict {
    if !ran.ok {
        show(&ran.output);
    }
    Verdict::of(ran.ok)
}

fn failed(why: &str) -> Verdict {
    println!("     | {why}");
    Verdict::of(false)
}

pub fn all(deep: bool) -> Vec<Step> {
    let mut steps = vec![
        Step::new("target for the default board", install_target),
        Step::cargo("format", &["fmt", "--all", "--check"]),
        Step::cargo(
            "lints",
            &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"],
        ),
        Step::cargo(
            "core for the default board",
            &["build", "--release", "--quiet", "--package", "bellwether", "--target", TARGET],
        ),
        Step::new("firmware of the default board", build_firmware),
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
        Step::tests("unit and property tests", &["test", "--workspace", "--quiet"]),
        Step::cargo(
            "example task",
            &["run", "--release", "--quiet", "--package", "bellwether-sim", "--example", "watch"],
        ),
        Step::new("scenarios", play_scenarios),
    ];
    steps.extend(flash_steps(deep));
    let seeds = if deep { "100000" } else { "10000" };
    for algorithm in ["bully", "invitation", "ring"] {
        let name = format!("random runs, {algorithm}");
        steps.push(Step::new(name, move |name| random_runs(name, algorithm, seeds)));
    }
    steps.push(Step::new("attacker", move |name| attacked_runs(name, seeds)));
    steps.push(Step::tests(
        "an attacker who gets through is seen",
        &[
            "test",
            "--release",
            "--quiet",
            "--package",
            "bellwether-sim",
            "--features",
            "open-link",
            "--target-dir",
            "target/open-link",
            "--test",
            "attacker",
        ],
    ));
    steps.push(Step::cargo(
        "promises on a switched network",
        if deep {
            &["sim", "measure", "--profile", "lan", "--seeds", "1000"]
        } else {
            &["sim", "measure", "--profile", "lan"]
        },
    ));
    steps.push(Step::new("fuzzing", move |name| fuzz(name, deep)));
    steps.push(Step::new("system tests on emulated boards", system_tests));
    steps.push(Step::tests(
        "errata put back",
        &[
            "test",
            "--release",
            "--quiet",
            "--package",
            "bellwether-sim",
            "--features",
            "errata",
            "--target-dir",
            "target/errata",
            "--test",
            "errata",
        ],
    ));
    steps
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
        Step::tests(
            "a spoilt store is found out",
            &[
                "test",
                "--release",
                "--quiet",
                "--package",
                "bellwether-flash",
                "--features",
                "sabotage",
                "--target-dir",
                "target/sabotage",
                "--test",
                "shown_to_fail",
            ],
        ),
    ]
}

/// Targets are not fetched by themselves everywhere, so ask for this one.
fn install_target(name: &str) -> Verdict {
    let installed = run(name, "rustup", &["target", "list", "--installed"], &[]);
    if installed.ok && installed.output.lines().any(|line| line.trim() == TARGET) {
        return Verdict::of(true);
    }
    succeeded(&run(name, "rustup", &["target", "add", TARGET], &[]))
}

/// What reads from outside, under a fuzzer, for a moment. That needs a nightly compiler and cargo-fuzz;
/// where they are missing the step says so.
fn fuzz(name: &str, deep: bool) -> Verdict {
    let with =
        |arguments: &[&str]| run(name, "cargo", &[&["+nightly", "fuzz"], arguments].concat(), &[]);
    let here = with(&["list", "--fuzz-dir", "tests/fuzz"]);
    if !here.ok {
        println!("     not fuzzed: there is no nightly compiler with cargo-fuzz here");
        return Verdict::default();
    }
    let runs = format!("-runs={}", if deep { 10_000_000 } else { 20_000 });
    let mut verdict = Verdict::default();
    for target in here.output.lines().map(str::trim).filter(|line| !line.contains(' ')) {
        // Without the sanitizer: there is no unsafe code, and panics are what is looked for.
        let run = ["run", "--fuzz-dir", "tests/fuzz", "-O", "-s", "none", target, "--", &runs];
        verdict.add(&succeeded(&with(&run)));
    }
    verdict
}

/// The firmware builds, takes no more than it may, and lies where it should.
fn build_firmware(name: &str) -> Verdict {
    let ran = run(name, "cargo", &["lab", "size"], &[]);
    if let Some(size) = ran.output.lines().find(|line| line.contains("static memory")) {
        println!("     {size}");
    }
    succeeded(&ran)
}

/// The firmware on emulated boards. Nothing else may run meanwhile: its times are real. A test whose
/// host was too late in all its tries proves nothing and is only named.
fn system_tests(name: &str) -> Verdict {
    let ran = run(name, "cargo", &["lab", "suite"], &[]);
    let begins = |word: &str| ran.output.lines().filter(|line| line.starts_with(word)).count();
    for line in ran.output.lines().filter(|line| line.starts_with("unsure")) {
        println!("     inconclusive, the host was too late: {line}");
    }
    let inconclusive_at_worst = ran.ok || ran.code == Some(3);
    let failed = if inconclusive_at_worst { 0 } else { begins("FAILED") + begins("failed") };
    let verdict = Verdict { passed: begins("ok ") as u64, failed: failed as u64 };
    if verdict.failed > 0 || !inconclusive_at_worst || verdict.passed == 0 {
        show(&ran.output);
        return Verdict { failed: verdict.failed.max(1), ..verdict };
    }
    verdict
}

/// The core has no `cfg` but for tests and for the errors that tests put in.
fn only_known_switches(_name: &str) -> Verdict {
    fn visit(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                visit(&path, found);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            for (index, line) in text.lines().enumerate() {
                let switch = |name: &&str| line.contains(&format!("feature = \"{name}\""));
                // The shell is a part of the crate that the core does without.
                let shell = path.ends_with("src/lib.rs") && switch(&"shell");
                let known = line.contains("cfg(test)") || SWITCHES.iter().any(switch) || shell;
                if line.contains("cfg") && line.contains("#[") && !known {
                    found.push(format!("{}:{}: {line}", path.display(), index + 1));
                }
            }
        }
    }
    let mut found = Vec::new();
    visit(&root().join("src"), &mut found);
    if found.is_empty() { Verdict::of(true) } else { failed(&found.join("\n     | ")) }
}

/// Neither the core by itself nor the programs that users run are built with a switch for tests of
/// tests.
fn no_test_switches(name: &str) -> Verdict {
    let mut verdict = Verdict::default();
    for package in ["bellwether", "bellwether-sim", "bellwether-flash"] {
        let arguments =
            ["tree", "--package", package, "--edges", "features,normal", "--prefix", "none"];
        let ran = run(name, "cargo", &arguments, &[]);
        let has = SWITCHES.iter().any(|name| ran.output.contains(&format!("feature \"{name}\"")));
        verdict.add(&if ran.ok && !has {
            Verdict::of(true)
        } else {
            show(&ran.output);
            Verdict::of(false)
        });
    }
    verdict
}

/// Every scenario file, with a trace.
fn play_scenarios(name: &str) -> Verdict {
    let mut verdict = Verdict::default();
    let folder = root().join("tests/scenarios");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    if files.is_empty() {
        return failed("there are no scenarios");
    }
    let trace = root().join("target/verify/trace.jsonl");
    for file in files {
        let (file, trace) = (file.display().to_string(), trace.display().to_string());
        let ran = run(name, "cargo", &["sim", &file, "--trace", &trace], &[]);
        let first = fs::read_to_string(&trace).unwrap_or_default();
        let traced =
            first.starts_with("{\"event\":\"run\"") && first.contains("\"event\":\"state\"");
        if ran.ok && traced {
            verdict.passed += 1;
        } else {
            verdict.add(&failed(&format!("{file} (exit {:?}, traced: {traced})", ran.code)));
            show(&ran.output);
        }
    }
    verdict
}

/// Random runs with an attacker on the wire: nothing that it puts in is accepted, and the runs end as
/// they do without it.
fn attacked_runs(name: &str, seeds: &str) -> Verdict {
    let ran = run(name, "cargo", &["sim", "--attack", "--seeds", seeds, "--json"], &[]);
    let last = ran.output.lines().last().unwrap_or_default();
    let Ok(json) = serde_json::from_str::<Value>(last) else {
        show(&ran.output);
        return failed("the last line is not JSON");
    };
    let number = |key: &str| json[key].as_f64().unwrap_or(f64::NAN);
    let hostile = number("hostile_datagrams");
    println!("     {hostile} hostile datagrams in {seeds} runs");
    let mut verdict = succeeded(&ran);
    verdict.add(&Verdict::of(number("violations") == 0.0 && hostile > 10.0 * number("runs")));
    verdict
}

/// Random faults; no violation, and for Bully and the ring Assertion 1 on trial at least half of the
/// time.
fn random_runs(name: &str, algorithm: &str, seeds: &str) -> Verdict {
    let arguments = ["sim", "--algorithm", algorithm, "--seeds", seeds, "--json"];
    let ran = run(name, "cargo", &arguments, &[]);
    let last = ran.output.lines().last().unwrap_or_default();
    let Ok(json) = serde_json::from_str::<Value>(last) else {
        show(&ran.output);
        return failed("the last line is not JSON");
    };
    let number = |key: &str| json[key].as_f64().unwrap_or(f64::NAN);
    let mut verdict = succeeded(&ran);
    verdict.add(&Verdict::of(number("violations") == 0.0));
    if algorithm != "invitation" {
        let share = number("assertion1_seconds") / number("sim_seconds");
        println!("     Assertion 1 was checked {:.0} % of the time", share * 100.0);
        verdict.add(&Verdict::of(share >= 0.5));
    }
    // A bound that is more than three times the worst that was seen hides defects.
    for (key, share) in json.as_object().into_iter().flatten() {
        if let Some(cause) = key.strip_suffix("_worst_of_bound") {
            let share = share.as_f64().unwrap_or(0.0);
            let tight = (1.0 / 3.0..=1.0).contains(&share);
            if !tight {
                println!("     | {cause}: the worst was {share:.2} of its bound");
            }
            verdict.add(&Verdict::of(tight));
        }
    }
    println!("     {seeds} runs in {:.0} s", number("wall_seconds"));
    verdict
}
