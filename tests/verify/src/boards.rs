//! The system tests on emulated boards, and what must have been proven by them.
//!
//! Their times are real: a test whose host was too late in all its tries proves nothing. It is named, and
//! counts neither way. What every change has to prove is tried once more at the end.

use std::fs;

use crate::run::{Ran, Verdict, root, run_program, show};

const LAB: &str = "bellwether-lab";

/// The files that each algorithm must have passed: `tests/scenarios/FILE-ALGORITHM.toml`.
const FILES: [&str; 3] = ["cold-start", "coordinator-crash-and-return", "partition-and-heal"];
const ALGORITHMS: [&str; 3] = ["bully", "invitation", "ring"];

/// The exit code of `cargo lab` when nothing failed and something was inconclusive.
const INCONCLUSIVE: i32 = 3;

/// How the suite says that a test went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Passed,
    Failed,
    Unsure,
    Nothing,
}

fn told(line: &str) -> Told {
    match line.split(' ').next() {
        Some("ok") => Told::Passed,
        Some("FAILED" | "STOPPED") => Told::Failed,
        Some("unsure") => Told::Unsure,
        _ => Told::Nothing,
    }
}

fn told_of(output: &str, test: &str) -> Told {
    let lines = output.lines().filter(|line| line.contains(test));
    lines.map(told).find(|told| *told != Told::Nothing).unwrap_or(Told::Nothing)
}

fn count(ran: &Ran) -> Verdict {
    let count = |wanted| ran.output.lines().filter(|line| told(line) == wanted).count() as u64;
    let mut verdict = Verdict { passed: count(Told::Passed), failed: count(Told::Failed) };
    let in_order = ran.ok || ran.code == Some(INCONCLUSIVE);
    if !in_order || verdict.passed + count(Told::Unsure) == 0 {
        // It ended before it could say what failed, or tried nothing.
        verdict.failed = verdict.failed.max(1);
    }
    verdict
}

/// The names of the required tests, as the suite prints them.
fn required() -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for algorithm in ALGORITHMS {
        for file in FILES {
            let path = root().join(format!("tests/scenarios/{file}-{algorithm}.toml"));
            let text = fs::read_to_string(&path).unwrap_or_default();
            let name = text.lines().find_map(|line| line.strip_prefix("name = \""));
            let name = name.and_then(|rest| rest.strip_suffix('"'));
            let name = name.ok_or_else(|| format!("{}: no name", path.display()))?;
            names.push(format!("{name} ({algorithm})"));
        }
    }
    Ok(names)
}

/// The firmware on emulated boards. Nothing else may run meanwhile.
pub fn system_tests(name: &str, deep: bool) -> Verdict {
    let all = ["suite", "--deep"];
    let arguments = if deep { &all[..] } else { &all[..1] };
    let ran = run_program(name, LAB, arguments);
    let mut verdict = count(&ran);
    if verdict.failed > 0 {
        show(&ran.output);
    }
    for line in ran.output.lines().filter(|line| told(line) == Told::Unsure) {
        println!("     inconclusive, the host was too late in every try: {line}");
    }
    match required() {
        Ok(tests) => tests.iter().for_each(|test| {
            verdict.add(&prove(name, test, told_of(&ran.output, test)));
        }),
        Err(why) => {
            println!("     | {why}");
            verdict.failed += 1;
        }
    }
    verdict
}

/// What a required test adds to the verdict, with what the suite said of it.
fn prove(name: &str, test: &str, told: Told) -> Verdict {
    match told {
        // Counted already.
        Told::Passed | Told::Failed => Verdict::default(),
        Told::Nothing => {
            println!("     | NEVER PROVEN: {test} is required, and the suite does not know it");
            Verdict::of(false)
        }
        Told::Unsure => {
            let again = run_program(&format!("{name}, once more"), LAB, &["suite", test]);
            let verdict = count(&again);
            match told_of(&again.output, test) {
                Told::Passed => println!("     proven at last: {test}"),
                Told::Unsure => println!("     INCONCLUSIVE, NOT PROVEN: {test}"),
                Told::Failed | Told::Nothing => show(&again.output),
            }
            verdict
        }
    }
}

/// The drivers on the emulated boards themselves.
pub fn drivers(name: &str) -> Verdict {
    let ran = run_program(name, LAB, &["boards"]);
    let verdict = count(&ran);
    if verdict.failed > 0 {
        show(&ran.output);
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "   Compiling ok v1.0\n\
        ok      budget, 0 s\n\
        once more, the host was 90 ms late: cold start (ring): no\n\
        ok      cold start (ring), 12 s, host late 3 ms\n\
        unsure  partition (ring), 40 s, host late 70 ms\n\
        FAILED  crash (ring), 9 s, host late 1 ms\n        at 4 s FAILED to settle\n";

    fn counted(code: i32, output: &str) -> (u64, u64) {
        let verdict = count(&Ran { ok: code == 0, code: Some(code), output: output.into() });
        (verdict.passed, verdict.failed)
    }

    #[test]
    fn lines_of_the_suite_are_counted() {
        assert_eq!(counted(1, OUTPUT), (2, 1));
        assert_eq!(told_of(OUTPUT, "cold start (ring)"), Told::Passed);
        assert_eq!(told_of(OUTPUT, "partition (ring)"), Told::Unsure);
        assert_eq!(told_of(OUTPUT, "crash (ring)"), Told::Failed);
        assert_eq!(told_of(OUTPUT, "crash (bully)"), Told::Nothing);
    }

    #[test]
    fn a_suite_that_did_not_come_to_its_end_has_failed() {
        assert_eq!(counted(101, "ok      budget, 0 s\n"), (1, 1));
        assert_eq!(counted(0, "0 passed, 0 failed, 0 inconclusive\n"), (0, 1));
        assert_eq!(counted(INCONCLUSIVE, "unsure  cold start (ring), 12 s\n"), (0, 0));
        assert_eq!(counted(0, "ok      budget, 0 s\n"), (1, 0));
    }

    #[test]
    fn what_is_required_is_there() {
        let names = required().unwrap();
        assert_eq!(names.len(), 9);
        assert!(names.contains(&"coordinator dies and comes back (ring)".into()), "{names:?}");
    }

    #[test]
    fn what_was_never_tried_is_a_failure() {
        assert_eq!(prove("x", "cold start (ring)", Told::Nothing).failed, 1);
        assert_eq!(prove("x", "cold start (ring)", Told::Passed).failed, 0);
    }
}
