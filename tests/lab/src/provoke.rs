//! Failures that are asked for: each must end in a reset with its cause, and in a board that is back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bellwether_scenario::{Algorithm, Scenario};

use crate::flock::Flock;
use crate::probe::Image;
use crate::tools;

/// What is asked for (boards/sf2/src/provoke.rs), the cause that must follow, and what the record of
/// a panic must say.
const FAILURES: [(&str, u32, &str, Option<&str>); 4] = [
    ("a hang inside a critical section", 1, "deadline", None),
    ("a task that never yields", 2, "deadline", None),
    ("a panic", 3, "panic", Some("panic")),
    ("a stack overflow", 4, "panic", Some("stack overflow")),
];

/// Provokes every failure on one board, one after the other.
pub fn run() -> Result<String, String> {
    let image = Arc::new(Image::read(&tools::build_provoked()?)?);
    let mut scenario = Scenario::undisturbed(Algorithm::Invitation, 1, 0);
    (scenario.tm_us, scenario.tp_us) = (40_000, 100_000);
    let mut flock = Flock::prepare(&scenario, image, None)?;
    flock.begin();
    flock.boot(1)?;
    wait_for(&mut flock, "boot", None).map_err(|why| format!("at first: {why}"))?;
    let mut seen = Vec::new();
    for (name, order, cause, record) in FAILURES {
        let failed = |why: String| format!("{name}: {why}");
        // The board clears its mailbox after the boot line.
        std::thread::sleep(Duration::from_millis(300));
        flock.order(1, order);
        let asked = Instant::now();
        wait_for(&mut flock, "start", Some(("cause", cause))).map_err(failed)?;
        seen.push(format!("{name} {} ms", asked.elapsed().as_millis()));
        if let Some(what) = record {
            wait_for(&mut flock, "last", Some(("what", what))).map_err(failed)?;
        }
        wait_for(&mut flock, "boot", Some(("cause", cause))).map_err(failed)?;
    }
    Ok(seen.join(", "))
}

/// Waits for a line; one with another value under its key is wrong.
fn wait_for(flock: &mut Flock, word: &str, value: Option<(&str, &str)>) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(8);
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
                if quoted { Ok(()) } else { Err(format!("it says {word} {text}")) }
            }
            _ => Ok(()),
        };
    }
    Err(format!("no line {word} came"))
}
