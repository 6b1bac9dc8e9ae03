//! The system tests on emulated boards, and what must have been proven by them.
//!
//! The boards live on the lab's own clock, which stands still while the host is busy elsewhere: so they run
//! beside other steps, once each.

use std::fs;

use crate::run::{Ran, Verdict, root, run_program, show};

const LAB: &str = "bellwether-lab";

/// The files that each algorithm must have passed: `tests/scenarios/FILE-ALGORITHM.toml`.
const FILES: [&str; 3] = ["cold-start", "coordinator-crash-and-return", "partition-and-heal"];
const ALGORITHMS: [&str; 3] = ["bully", "invitation", "ring"];

/// How the suite says that a test went: one that proved nothing (`unsure`, on the host's clock) has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Passed,
    Failed,
}

fn told(line: &str) -> Option<Told> {
    match line.split(' ').next() {
        Some("ok") => Some(Told::Passed),
        Some("FAILED" | "STOPPED" | "unsure") => Some(Told::Failed),
        _ => None,
    }
}

fn told_of(output: &str, test: &str) -> Option<Told> {
    output.lines().filter(|line| line.contains(test)).find_map(told)
}

fn count(ran: &Ran) -> Verdict {
    let count = |wanted| ran.output.lines().filter(|line| told(line) == Some(wanted)).count();
    let (passed, failed) = (count(Told::Passed) as u64, count(Told::Failed) as u64);
    // It may have ended before it could say what failed, or have tried nothing.
    let in_order = ran.ok && passed > 0;
    Verdict { passed, failed: if in_order { failed } else { failed.max(1) } }
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

/// The firmware on emulated boards.
pub fn system_tests(name: &str, deep: bool) -> Verdict {
    let all = ["suite", "--deep"];
    let arguments = if deep { &all[..] } else { &all[..1] };
    let ran = run_program(name, LAB, arguments);
    let mut verdict = count(&ran);
    if verdict.failed > 0 {
        show(&ran.output);
    }
    match required() {
        Ok(tests) => tests.iter().for_each(|test| verdict.add(&prove(&ran.output, test))),
        Err(why) => {
            println!("     | {why}");
            verdict.failed += 1;
        }
    }
    verdict
}

/// What a required test adds to the verdict: a failure if the suite says nothing of it.
fn prove(output: &str, test: &str) -> Verdict {
    if told_of(output, test).is_some() {
        return Verdict::default(); // counted already
    }
    println!("     | NEVER PROVEN: {test} is required, and the suite does not know it");
    Verdict::of(false)
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
        ok      cold start (ring), 12 s: clock held back 3.0 %\n\
        unsure  partition (ring), 40 s: host late 70 ms\n\
        FAILED  crash (ring), 9 s: clock held back 1.0 %\n        at 4 s FAILED to settle\n";

    fn counted(code: i32, output: &str) -> (u64, u64) {
        let verdict = count(&Ran { ok: code == 0, code: Some(code), output: output.into() });
        (verdict.passed, verdict.failed)
    }

    #[test]
    fn lines_of_the_suite_are_counted() {
        assert_eq!(counted(1, OUTPUT), (2, 2));
        assert_eq!(told_of(OUTPUT, "cold start (ring)"), Some(Told::Passed));
        assert_eq!(told_of(OUTPUT, "partition (ring)"), Some(Told::Failed));
        assert_eq!(told_of(OUTPUT, "crash (ring)"), Some(Told::Failed));
        assert_eq!(told_of(OUTPUT, "crash (bully)"), None);
    }

    #[test]
    fn a_suite_that_did_not_come_to_its_end_has_failed() {
        assert_eq!(counted(101, "ok      budget, 0 s\n"), (1, 1));
        assert_eq!(counted(0, "0 passed, 0 failed, 3 s\n"), (0, 1));
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
        assert_eq!(prove(OUTPUT, "crash (bully)").failed, 1);
        assert_eq!(prove(OUTPUT, "cold start (ring)").failed, 0);
    }
}
