//! Boards whose flash is not in order: they must say so, and nothing else.

use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

use bellwether_scenario::{Algorithm, Scenario};

use crate::flash::{self, Flaw};
use crate::flock::Flock;
use crate::probe::Image;

type Test = fn(&Arc<Image>) -> Result<(), String>;

pub const TESTS: [(&str, Test); 5] = [
    ("an unprovisioned board stays mute", |image| stays_mute(image, Flaw::Blank, "blank")),
    ("a board of a newer format stays mute", |image| {
        stays_mute(image, Flaw::NewerFormat, "newer-format")
    }),
    ("a board of another network stays mute", |image| {
        stays_mute(image, Flaw::OtherNetwork, "other-network")
    }),
    ("a board whose Ts is below its own stays mute", |image| {
        stays_mute(image, Flaw::TsTooShort, "ts-below-board")
    }),
    ("a board without keys stays mute", |image| stays_mute(image, Flaw::NoKeys, "keys-missing")),
];

fn stays_mute(image: &Arc<Image>, flaw: Flaw, reason: &str) -> Result<(), String> {
    let mut scenario = Scenario::undisturbed(Algorithm::Bully, 1, 0);
    (scenario.tm_us, scenario.tp_us) = (40_000, 40_000);
    let mut flock = Flock::prepare(&scenario, from_ref(image), None)?;
    flash::spoil(&flock.flash_of(1), &scenario, flaw)?;
    flock.begin();
    flock.boot([1])?;
    let end = flock.now() + Duration::from_secs(6);
    let mut said_so = false;
    while let Some(said) = flock.listen(end) {
        flock.look_after()?;
        match said.line.word.as_str() {
            "mute" if said.line.get("reason") == Some(reason) => {
                said_so = true;
                break;
            }
            "mute" => return Err(format!("it says {}", said.line.text())),
            "send" => return Err("it sends".into()),
            _ => {}
        }
    }
    if !said_so {
        return Err("it does not say why".into());
    }
    // Nothing may follow.
    let silence = flock.now() + Duration::from_millis(700);
    match flock.listen(silence) {
        Some(said) => Err(format!("after that it says {} {}", said.line.word, said.line.text())),
        None if flock.switch.frames() > 0 => Err("it sends frames".into()),
        None => Ok(()),
    }
}
