//! A save that finds the flash in the middle of an erase: the answer to Ready waits, within Ts.

use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

use bellwether_scenario::{Action, Algorithm, Scenario};

use crate::display::settled;
use crate::flash;
use crate::flock::Flock;
use crate::probe::Image;

type Test = fn(&Arc<Image>) -> Result<String, String>;

pub const TESTS: [(&str, Test); 2] = [
    ("a Ready in the middle of an erase (bully)", |image| {
        ready_during_erase(image, Algorithm::Bully)
    }),
    ("a Ready in the middle of an erase (invitation)", |image| {
        ready_during_erase(image, Algorithm::Invitation)
    }),
];

/// From the boot of node 1 to its first idle flash work (src/shell/member.rs), and a little more:
/// the erase of one sector of each region, a second each, has begun.
const UNTIL_ERASE: Duration = Duration::from_millis(5_400 + 200);
/// A save that waits for nothing takes a tenth of this.
const WAITED_US: u64 = 150_000;

fn ready_during_erase(image: &Arc<Image>, algorithm: Algorithm) -> Result<String, String> {
    let mut scenario = Scenario::undisturbed(algorithm, 3, 0);
    (scenario.tm_us, scenario.tp_us) = (40_000, 100_000);
    let mut flock = Flock::prepare(&scenario, from_ref(image), None)?;
    flash::age(&flock.flash_of(1), &scenario, 1)?;
    flock.begin();
    flock.boot(1..=3)?;
    let mut killed = None;
    let mut kill_at = None;
    let mut waited_us = 0;
    let end = flock.now() + Duration::from_secs(20);
    while flock.now() < end {
        let Some(said) = flock.listen_for(Duration::from_millis(20)) else {
            flock.look_after()?;
            if kill_at.is_some_and(|at| flock.now() >= at) {
                kill_at = None;
                // Node 2 must now form a group with node 1, whose flash is busy.
                flock.act(&Action::Kill { nodes: vec![3] })?;
                killed = Some(flock.now());
            }
            if waited_us > 0 && settled(flock.watch.seen()) == Some(2) {
                return Ok(format!("its save took {} ms", waited_us / 1000));
            }
            continue;
        };
        match said.line.word.as_str() {
            "boot" if said.node == 1 => kill_at = Some(flock.now() + UNTIL_ERASE),
            "start" if said.line.get("cause") != Some("power") => {
                return Err(format!("node {} was reset: {}", said.node, said.line.text()));
            }
            "save" if said.node == 1 && killed.is_some() => {
                let us = said.line.number("us").unwrap_or(0);
                if us > WAITED_US {
                    waited_us = us;
                }
            }
            _ => {}
        }
    }
    if waited_us == 0 {
        return Err("no save of node 1 had to wait for an erase".into());
    }
    Err("nodes 1 and 2 did not settle after it".into())
}
