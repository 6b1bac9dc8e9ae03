//! What the steps do where one command is not enough.

use std::fs;
use std::path::{Path, PathBuf};

use crate::flat::Flat;
use crate::options::Depth;
use crate::run::{Ran, Verdict, root, run, run_in, run_program, show};

/// The targets of all boards.
const TARGETS: [&str; 3] =
    ["thumbv7m-none-eabi", "thumbv7em-none-eabihf", "thumbv8m.main-none-eabihf"];

/// Features that exist only in builds made for tests of tests.
const SWITCHES: [&str; 3] = ["errata", "sabotage", "open-link"];
/// Features of boards that no image has that is used.
const BOARD_SWITCHES: [&str; 2] = ["provoke", "suite"];

pub fn succeeded(ran: &Ran) -> Verdict {
    if !ran.ok {
        show(&ran.output);
    }
    Verdict::of(ran.ok)
}

pub fn failed(why: &str) -> Verdict {
    println!("     | {why}");
    Verdict::of(false)
}

/// Targets are not fetched by themselves everywhere, so ask for them.
pub fn install_targets(name: &str) -> Verdict {
    let installed = run(name, "rustup", &["target", "list", "--installed"], &[]);
    let is_there = |target: &&str| installed.output.lines().any(|line| line.trim() == *target);
    if installed.ok && TARGETS.iter().all(is_there) {
        return Verdict::of(true);
    }
    succeeded(&run(name, "rustup", &[&["target", "add"], &TARGETS[..]].concat(), &[]))
}

/// The firmware of every board builds, takes no more than it may, and lies where it should.
pub fn build_firmware(name: &str) -> Verdict {
    let ran = run_program(name, "bellwether-lab", &["size"]);
    // The table begins with its header; before it stands what was built.
    for line in ran.output.lines().filter(|line| line.contains(" |")) {
        println!("     {line}");
    }
    succeeded(&ran)
}

/// The core has no `cfg` but for tests and for the errors that tests put in.
pub fn only_known_switches(_name: &str) -> Verdict {
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

/// Neither the core by itself nor the programs that users run nor a firmware are built with a switch for
/// tests of tests.
pub fn no_test_switches(name: &str) -> Verdict {
    const TREE: [&str; 7] =
        ["tree", "--edges", "normal", "--prefix", "none", "--format", "{p} [{f}]"];
    let mut verdict = Verdict::default();
    let mut check = |folder: &Path, more: &[&str]| {
        let ran = run_in(folder, name, "cargo", &[&TREE, more].concat(), &[]);
        verdict.add(&match (ran.ok, switched_on(&ran.output)) {
            (true, None) => Verdict::of(true),
            (true, Some(line)) => failed(line),
            (false, _) => succeeded(&ran),
        });
    };
    for package in ["bellwether"].into_iter().chain(PROGRAMS) {
        check(&root(), &["--package", package]);
    }
    for board in board_folders() {
        check(&board, &[]);
    }
    verdict
}

/// The programs that users start.
const PROGRAMS: [&str; 4] =
    ["bellwether-sim", "bellwether-flash", "bellwether-flock", "bellwether-lab"];

/// Users build each program alone, with fewer features than all of them have together.
pub fn check_programs(name: &str) -> Verdict {
    let mut verdict = Verdict::default();
    for program in PROGRAMS {
        let arguments = ["check", "--release", "--quiet", "--package", program];
        verdict.add(&succeeded(&run(name, "cargo", &arguments, &[])));
    }
    verdict
}

/// A line `NAME VERSION (PLACE) [FEATURE,FEATURE]` of one of our crates with a switch in it.
fn switched_on(tree: &str) -> Option<&str> {
    let is_switch = |feature| SWITCHES.contains(&feature) || BOARD_SWITCHES.contains(&feature);
    tree.lines().filter(|line| line.starts_with("bellwether")).find(|line| {
        let features = line.rsplit_once(" [").and_then(|(_, rest)| rest.split_once(']'));
        features.is_some_and(|(features, _)| features.split(',').any(is_switch))
    })
}

/// The folders of boards with a firmware: each is a workspace of its own.
fn board_folders() -> Vec<PathBuf> {
    let folders = fs::read_dir(root().join("boards")).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.join("Cargo.lock").is_file());
    folders.sort();
    folders
}

/// What boards are made of, with all that they share: `cargo clippy` would leave out crates that are no
/// members of the board's workspace, so clippy stands in for the compiler.
pub fn lint_boards(name: &str) -> Verdict {
    const LINTS: [(&str, &str); 2] = [
        ("RUSTC_WRAPPER", "clippy-driver"),
        // As `cargo clippy -- -D warnings` hands it over.
        ("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings"),
    ];
    let mut verdict = Verdict::default();
    let folders = board_folders();
    if folders.is_empty() {
        return failed("there are no boards");
    }
    for folder in folders {
        // With what the board takes from the folders beside it.
        let formatted = run_in(&folder, name, "cargo", &["fmt", "--all", "--check"], &[]);
        verdict.add(&succeeded(&formatted));
        let check = ["check", "--release", "--quiet", "--target-dir", "../target/clippy"];
        verdict.add(&succeeded(&run_in(&folder, name, "cargo", &check, &LINTS)));
    }
    verdict
}

/// Every scenario file, with a trace.
pub fn play_scenarios(name: &str) -> Verdict {
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
        // The one of the file before says nothing of this one.
        let _ = fs::remove_file(&trace);
        let ran = run_program(name, "bellwether-sim", &[&file, "--trace", &trace]);
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
pub fn attacked_runs(name: &str, seeds: &str) -> Verdict {
    let ran = run_program(name, "bellwether-sim", &["--attack", "--seeds", seeds, "--json"]);
    let Some(said) = Flat::last_of(&ran.output) else {
        show(&ran.output);
        return failed("the last line is not JSON");
    };
    let hostile = said.number("hostile_datagrams");
    println!("     {hostile} hostile datagrams in {seeds} runs");
    let mut verdict = succeeded(&ran);
    let held = said.number("violations") == 0.0 && hostile > 10.0 * said.number("runs");
    verdict.add(&Verdict::of(held));
    verdict
}

/// Small flocks are compared again: every row must be as it is in `tests/sim/compare.json`, of which the
/// README is made.
pub fn compared(name: &str) -> Verdict {
    let rows = root().join("target/verify/compare.json");
    let shown = rows.display().to_string();
    let arguments = ["compare", "--nodes-max", "8", "--rows", &shown];
    let _ = fs::remove_file(&rows);
    let ran = run_program(name, "bellwether-sim", &arguments);
    let kept = fs::read_to_string(root().join("tests/sim/compare.json")).unwrap_or_default();
    let again = fs::read_to_string(&rows).unwrap_or_default();
    let mut verdict = succeeded(&ran);
    for (field, least) in [("detector", 300), ("messages", 30)] {
        verdict.add(&rows_hold(&again, &kept, field, least));
    }
    verdict
}

/// Every row is a line; those of a table have a field of their own. At least so many must be there, and
/// each of them kept.
fn rows_hold(again: &str, kept: &str, field: &str, least: usize) -> Verdict {
    let field = format!("\"{field}\":");
    let rows = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.contains(&field));
        lines.map(|line| line.trim_end_matches(',').to_owned()).collect()
    };
    let (again, kept) = (rows(again), rows(kept));
    let stale: Vec<_> = again.iter().filter(|row| !kept.contains(row)).collect();
    if let Some(first) = stale.first() {
        println!("     | not as in tests/sim/compare.json: {} rows, such as {first}", stale.len());
        println!(
            "     | renew it: cargo sim compare --rows tests/sim/compare.json --svg tests/sim/compare.svg"
        );
    }
    if again.len() < least {
        println!("     | {} rows with {field}, of at least {least}", again.len());
    }
    Verdict::of(stale.is_empty() && again.len() >= least)
}

/// Random faults; no violation, and for Bully and the ring Assertion 1 on trial at least half of the
/// time.
pub fn random_runs(name: &str, algorithm: &str, seeds: &str, depth: Depth) -> Verdict {
    let arguments = ["--algorithm", algorithm, "--seeds", seeds, "--json"];
    let ran = run_program(name, "bellwether-sim", &arguments);
    let Some(said) = Flat::last_of(&ran.output) else {
        show(&ran.output);
        return failed("the last line is not JSON");
    };
    let mut verdict = succeeded(&ran);
    verdict.add(&Verdict::of(said.number("violations") == 0.0));
    if algorithm != "invitation" {
        let share = said.number("assertion1_seconds") / said.number("sim_seconds");
        println!("     Assertion 1 was checked {:.0} % of the time", share * 100.0);
        verdict.add(&Verdict::of(share >= 0.5));
    }
    // A bound that is more than three times the worst that was seen hides defects. A few hundred runs
    // do not come near the worst.
    let least = if depth == Depth::Quick { 0.0 } else { 1.0 / 3.0 };
    for (cause, share) in said.ending("_worst_of_bound") {
        let tight = (least..=1.0).contains(&share);
        if !tight {
            println!("     | {cause}: the worst was {share:.2} of its bound");
        }
        verdict.add(&Verdict::of(tight));
    }
    println!("     {seeds} runs in {:.0} s", said.number("wall_seconds"));
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_found_wherever_it_is_on() {
        let used = "bellwether-sf2 v0.1.0 (/x/boards/sf2) []\n\
                    bellwether v0.1.0 (/x) [shell]\nsuite v1.0.0 [suite]\n";
        assert_eq!(switched_on(used), None);
        let board = "bellwether-board v0.1.0 (/x/boards/common) [clock,provoke] (*)";
        assert_eq!(switched_on(&format!("{used}{board}\n")), Some(board));
        let core = "bellwether v0.1.0 (/x) [errata]";
        assert_eq!(switched_on(core), Some(core));
    }

    #[test]
    fn a_row_that_is_not_kept_is_stale() {
        let kept = "{\"rows\":[\n{\"a\":1,\"b\":2},\n{\"a\":2,\"b\":2}\n],\"t\":[\n{\"c\":1}\n]}\n";
        let held = |again: &str, least| rows_hold(again, kept, "a", least).failed == 0;
        assert!(held("{\"rows\":[\n{\"a\":2,\"b\":2},\n", 1));
        assert!(!held("{\"a\":2,\"b\":3}\n]\n", 1));
        assert!(!held("{\"a\":2,\"b\":2},\n", 2));
        assert!(!held("", 1));
    }

    #[test]
    fn every_board_is_looked_at() {
        let folders = board_folders();
        for board in ["sf2", "mps2-an385", "nucleo-h563zi"] {
            assert!(folders.iter().any(|folder| folder.ends_with(board)), "{folders:?}");
        }
    }
}
