//! What sealing and opening a datagram costs a Cortex-M3, in instructions.

use std::sync::Arc;
use std::time::Duration;

use bellwether_scenario::{Algorithm, Scenario};

use crate::boards;
use crate::flock::Flock;
use crate::tools;

/// See boards/common/src/provoke.rs.
const MEASURE: u32 = 5;

/// Measures on one emulated board whose clock counts instructions.
pub fn run() -> Result<String, String> {
    let image = Arc::new(tools::provoked(boards::default())?);
    let mut scenario = Scenario::undisturbed(Algorithm::Invitation, 1, 0);
    (scenario.tm_us, scenario.tp_us) = (40_000, 500_000);
    let mut flock = Flock::prepare(&scenario, &[image], None)?;
    flock.counted = true;
    flock.begin();
    flock.boot([1])?;
    let end = flock.now() + Duration::from_secs(30);
    while let Some(said) = flock.listen(end) {
        flock.look_after()?;
        match said.line.word.as_str() {
            // The board clears its orders before it takes part.
            "state" if said.line.get("status") == Some("Normal") => {
                if let Some(probe) = flock.probe(1) {
                    probe.provoke(MEASURE);
                }
            }
            "cost" if said.line.get("good") == Some("true") => {
                let number = |key| said.line.number(key).unwrap_or(0);
                let (bytes, seal, open) = (number("bytes"), number("seal"), number("open"));
                return Ok(format!(
                    "a message of {bytes} bytes: {seal} instructions to seal, {open} to open"
                ));
            }
            "cost" => return Err(format!("what was sealed did not open: {}", said.line.text())),
            _ => {}
        }
    }
    Err("the board measured nothing".into())
}
