//! A flock moves to another key while it runs.

use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

use bellwether::key::{KEY_BYTES, Keys, LinkKey, Slot};
use bellwether_scenario::{Action, Algorithm, Scenario, What};

use crate::display::settled;
use crate::flash;
use crate::flock::Flock;
use crate::probe::Image;

const NODES: u8 = 4;
/// Off while the others move.
const ABSENT: u8 = 1;
/// All memory of the board (memory.x).
const MEMORY: (u64, u64) = (0x2000_0000, 64 << 10);
/// Old keys are wiped in idle moments, sector by sector.
const WIPED: Duration = Duration::from_secs(60);

type Test = fn(&Arc<Image>) -> Result<String, String>;

pub const TESTS: [(&str, Test); 2] = [
    ("a flock moves to a new key, and who was away joins by grace", |image| {
        move_flock(image, false)
    }),
    ("a flock moves to a new key, and who was away too long is refused loudly", |image| {
        move_flock(image, true)
    }),
];

/// All boards learn the new key, then send with it, then forget the old one, which must not be found
/// anywhere on them then. One board learns it and
/// is off from then on; it comes back before or after the old key is forgotten.
fn move_flock(image: &Arc<Image>, too_late: bool) -> Result<String, String> {
    let mut scenario = Scenario::undisturbed(Algorithm::Invitation, NODES, 0);
    (scenario.tm_us, scenario.tp_us) = (40_000, 100_000);
    let mut flock = Flock::prepare(&scenario, from_ref(image), None)?;
    flock.begin();
    flock.boot(1..=NODES)?;
    wait_settled(&mut flock, NODES)?;
    let old = flash::keys()?.send;
    let new = Slot { id: 2, key: LinkKey::new([0x17; KEY_BYTES]) };
    let both = Keys { send: old.clone(), other: Some(new.clone()) };
    let switched = Keys { send: new.clone(), other: Some(old.clone()) };
    let only_new = Keys { send: new, other: None };
    give(&mut flock, 1..=NODES, &both)?;
    flock.act(&Action::Kill { nodes: vec![ABSENT] })?;
    wait_settled(&mut flock, NODES)?;
    let others = ABSENT + 1..=NODES;
    give(&mut flock, others.clone(), &switched)?;
    if too_late {
        give(&mut flock, others, &only_new)?;
    }
    flock.act(&Action::Boot { nodes: vec![ABSENT] })?;
    if !too_late {
        wait_settled(&mut flock, NODES)?;
        return Ok("settled with it".into());
    }
    let end = flock.now() + Duration::from_secs(10);
    while let Some(said) = flock.listen(end) {
        flock.look_after()?;
        let refusal = said.line.get("reason").filter(|reason| *reason == "key");
        if said.line.word == "reject" && refusal.is_some() && said.node != ABSENT {
            let members = flock.watch.seen().nodes.iter().filter(|node| node.id != ABSENT);
            let whole = members.clone().all(|node| node.up.len() == usize::from(NODES) - 2);
            if !whole {
                return Err("the others suffered".into());
            }
            wait_wiped(&mut flock, NODES, &old.key)?;
            return Ok("refused; the old key is nowhere on a board that moved".into());
        }
    }
    Err("nobody says that it refuses the old key".into())
}

fn wait_settled(flock: &mut Flock, coordinator: u8) -> Result<(), String> {
    let end = flock.now() + Duration::from_secs(20);
    while flock.now() < end {
        flock.look_after()?;
        let live = (1..=NODES).filter(|id| flock.has_power(*id)).count();
        let seen = flock.watch.seen();
        let whole =
            seen.nodes.iter().filter(|node| node.alive).all(|node| node.up.len() + 1 == live);
        if settled(seen) == Some(coordinator) && whole {
            return Ok(());
        }
        flock.listen_for(Duration::from_millis(20));
    }
    Err("the flock did not settle".into())
}

/// Waits until neither the memory nor the flash of a board holds the key, nor a half of it.
fn wait_wiped(flock: &mut Flock, id: u8, key: &LinkKey) -> Result<(), String> {
    let halves = key.bytes().as_chunks::<16>().0;
    let find =
        |bytes: &[u8]| bytes.windows(16).position(|here| halves.iter().any(|half| half == here));
    let end = flock.now() + WIPED;
    loop {
        flock.look_after()?;
        let path = flock.flash_of(id);
        let flash = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let probe = flock.probe(id).ok_or("the board has no probe")?;
        let memory = probe.memory(MEMORY.0, MEMORY.1)?;
        let (in_flash, in_memory) = (find(&flash), find(&memory));
        if in_flash.is_none() && in_memory.is_none() {
            return Ok(());
        }
        if flock.now() > end {
            let place = |at: Option<usize>, base: u64| {
                at.map_or("nowhere".into(), |at| format!("at {:#x}", base + at as u64))
            };
            return Err(format!(
                "the old key is left in flash {}, in memory {}",
                place(in_flash, 0),
                place(in_memory, MEMORY.0)
            ));
        }
        flock.listen_for(Duration::from_millis(200));
    }
}

/// Gives boards other keys, one after the other, and sees that each takes them and none is disturbed.
fn give(flock: &mut Flock, ids: std::ops::RangeInclusive<u8>, keys: &Keys) -> Result<(), String> {
    for id in ids {
        flock.set_keys(id, keys);
        let end = flock.now() + Duration::from_secs(5);
        let mut taken = false;
        while !taken {
            let Some(said) = flock.listen(end) else {
                return Err(format!("node {id} does not take its keys"));
            };
            flock.look_after()?;
            taken = said.node == id && said.line.word == "keys";
            let quiet = |what: &What| matches!(what, What::Send { .. });
            if let Some(event) = said.events.iter().find(|event| !quiet(&event.what)) {
                return Err(format!("node {}: {:?}", event.node, event.what));
            }
        }
    }
    Ok(())
}
