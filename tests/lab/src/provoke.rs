//! Failures that are asked for: each must end in a reset with its cause, and in a board that is back.

use std::sync::Arc;
use std::time::Duration;

use bellwether_scenario::{Algorithm, Scenario};

use crate::boards::Board;
use crate::flock::Flock;
use crate::tools;

/// What is asked for (boards/common/src/provoke.rs), the cause that must follow, and what the record of
/// a panic must say. The last one is for boards with a watchdog: nothing else ends it.
const FAILURES: [(&str, u32, &str, Option<&str>); 5] = [
    ("a hang inside a critical section", 1, "deadline", None),
    ("a task that never yields", 2, "deadline", None),
    ("a panic", 3, "panic", Some("panic")),
    ("a stack overflow", 4, "panic", Some("stack overflow")),
    ("a hang with all interrupts off", 6, "watchdog", None),
];

/// A panic: what is asked for again and again until resets are rationed.
const PANIC: (u32, &str) = (3, "panic");
/// So many resets in a row, and how long the last of them makes the board wait at least: the pause begins
/// with the fourth at 250 ms and doubles with each (boards/common/src/bring_up.rs). Half of that is asked
/// for, because times of boards are only known within some milliseconds.
const IN_A_ROW: usize = 6;
const PAUSE_US: u64 = 500_000;

/// Provokes every failure on one board, one after the other, and then more: resets are rationed.
pub fn run(board: &'static Board) -> Result<String, String> {
    let image = Arc::new(tools::provoked(board)?);
    let mut scenario = Scenario::undisturbed(Algorithm::Invitation, 1, 0);
    (scenario.tm_us, scenario.tp_us) = (40_000, 100_000);
    let mut flock = Flock::prepare(&scenario, &[image], None)?;
    flock.begin();
    flock.boot([1])?;
    wait_for(&mut flock, "boot", None).map_err(|why| format!("at first: {why}"))?;
    let mut pauses = Vec::new();
    let mut seen = Vec::new();
    let failures = FAILURES.into_iter().filter(|failure| failure.2 != "watchdog" || board.watchdog);
    for (name, order, cause, record) in failures {
        let failed = |why: String| format!("{name}: {why}");
        if let Some(probe) = flock.probe(1) {
            probe.provoke(order);
        }
        let asked = flock.now();
        let began = wait_for(&mut flock, "start", Some(("cause", cause))).map_err(failed)?;
        seen.push(format!("{name} {} ms", flock.now().since(asked).as_millis()));
        if let Some(what) = record {
            wait_for(&mut flock, "last", Some(("what", what))).map_err(failed)?;
        }
        let up = wait_for(&mut flock, "boot", Some(("cause", cause))).map_err(failed)?;
        pauses.push(up.saturating_sub(began));
    }
    while pauses.len() < IN_A_ROW {
        let (order, cause) = PANIC;
        if let Some(probe) = flock.probe(1) {
            probe.provoke(order);
        }
        let began = wait_for(&mut flock, "start", Some(("cause", cause)))?;
        let up = wait_for(&mut flock, "boot", Some(("cause", cause)))?;
        pauses.push(up.saturating_sub(began));
    }
    match pauses.last() {
        Some(pause) if *pause >= PAUSE_US => {
            seen.push(format!("after {IN_A_ROW} in a row a pause of {} ms", pause / 1000));
            Ok(seen.join(", "))
        }
        _ => Err(format!("resets are not rationed: pauses of {pauses:?} us")),
    }
}

/// Waits for a line, and says when it came; one with another value under its key is wrong.
fn wait_for(flock: &mut Flock, word: &str, value: Option<(&str, &str)>) -> Result<u64, String> {
    let end = flock.now() + Duration::from_secs(12);
    while let Some(said) = flock.listen(end) {
        flock.look_after()?;
        if said.line.word != word {
            continue;
        }
        let text = said.line.text();
        return match value {
            Some((key, wanted)) if !text.contains(&format!("{key}={wanted}")) => {
                // Texts are shown in quotes.
                let quoted = text.contains(&format!("{key}=b\"{wanted}"));
                if quoted { Ok(said.at_us) } else { Err(format!("it says {word} {text}")) }
            }
            _ => Ok(said.at_us),
        };
    }
    Err(format!("no line {word} came"))
}
