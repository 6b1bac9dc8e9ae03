//! The flash file of a board: the same images that `cargo flock make` writes.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use bellwether::cells::{self, BootEpoch, Store, Which};
use bellwether::config::{Config, Timing};
use bellwether::id::NodeId;
use bellwether::key::Keys;
use bellwether::provision::{FORMAT, Provision};
use bellwether::time::Duration;
use bellwether_flash::{Nor, until_cut};
use bellwether_flock::board::{ALL as BOARDS, Board};
use bellwether_flock::file::Flock;
use bellwether_flock::image::Contents;
use bellwether_scenario::Scenario;

/// The board (boards/sf2), and the size of its flash part.
const BOARD: &Board = &BOARDS[0];
const CAPACITY_BYTES: u64 = 16 << 20;
/// More than what both emulated boards need for a save behind a running erase; they refuse less than that.
const TS: Duration = Duration::from_millis(1_500);
/// The least Tp that the emulated boards can keep.
pub const TP_US_MIN: u64 = BOARD.tp_us_min;
pub const PORT: u16 = bellwether_flock::file::PORT;
pub const NETWORK: u16 = 1;

/// The keys of the lab's flock; anybody may know them.
pub fn keys() -> Result<Keys, String> {
    let text = include_str!("../flock.toml");
    let flock = Flock::parse("tests/lab/flock.toml", text).map_err(|error| error.to_string())?;
    flock.link_keys()
}

/// The spans of time of a scenario on this board, or why it cannot be played.
pub fn timing(scenario: &Scenario) -> Result<Timing, String> {
    // A node's own configuration check has the last word.
    bellwether_sim::play::settings(scenario).map_err(|error| error.to_string())?;
    let mut timing = bellwether_sim::play::timing(scenario, TS);
    if scenario.tp_us < BOARD.tp_us_min {
        return Err(format!(
            "Tp would be {} ms; allowed: at least {} ms, what boards/{} can keep",
            scenario.tp_us as f64 / 1000.0,
            BOARD.tp_us_min as f64 / 1000.0,
            BOARD.name
        ));
    }
    // Answers to one question are spread, so that the asker's buffers bear them.
    let most = timing.tp.us() / 2 / u64::from(scenario.nodes);
    timing.answer_spacing = Duration::from_us(most.min(300));
    Ok(timing)
}

/// What one node is told.
fn contents(scenario: &Scenario, id: u8) -> Result<Contents, String> {
    let settings = bellwether_sim::play::settings(scenario).map_err(|error| error.to_string())?;
    let node = NodeId::new(id).ok_or("node ids start at 1")?;
    let mut config =
        Config::<1>::new(node, settings.algorithm, settings.durability, timing(scenario)?);
    config.network = NETWORK;
    config.detector = settings.detector;
    config.quiet_max = settings.quiet_max_us.map_or(config.quiet_max, Duration::from_us);
    config.preempt = settings.preempt;
    config.hold_off = Duration::from_us(settings.hold_off_us);
    config.observers = scenario.observers.iter().copied().filter_map(NodeId::new).collect();
    for member in 1..=scenario.nodes {
        let preference = scenario.preference.get(&member).copied().unwrap_or(0);
        config.add_member(member, preference).map_err(|error| error.to_string())?;
    }
    let [network, _] = NETWORK.to_le_bytes();
    let provision = Provision { config, address: [10, 66, network, id], port: PORT, keyed: true };
    // A flock of the lab is new in every run, so that its epochs may start at 0.
    Ok(Contents { provision, keys: Some(keys()?), incarnation: 1, first_epoch: BootEpoch(0) })
}

/// Writes the flash file of one node.
pub fn prepare(path: &Path, scenario: &Scenario, id: u8) -> Result<(), String> {
    write_file(path, &contents(scenario, id)?.image(BOARD)?)
}

/// What can be wrong with a flash file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Never provisioned.
    Blank,
    /// Provisioned for a firmware that knows more.
    NewerFormat,
    /// Provisioned for another network.
    OtherNetwork,
    /// A save takes longer than the configuration allows.
    TsTooShort,
    /// Provisioned before boards had keys.
    NoKeys,
}

/// Writes a flash file of node 1 that its board must refuse.
pub fn spoil(path: &Path, scenario: &Scenario, flaw: Flaw) -> Result<(), String> {
    let mut contents = contents(scenario, 1)?;
    let mut record = contents.record()?;
    let image = match flaw {
        Flaw::Blank => return blank(path),
        Flaw::NewerFormat => contents.image_of(BOARD, record, FORMAT + 1)?,
        Flaw::OtherNetwork => {
            record[4..6].copy_from_slice(&(NETWORK + 1).to_le_bytes());
            contents.image_of(BOARD, record, FORMAT)?
        }
        Flaw::NoKeys => {
            contents.keys = None;
            contents.image(BOARD)?
        }
        Flaw::TsTooShort => {
            record[20..24].copy_from_slice(&5_000u32.to_le_bytes());
            contents.image_of(BOARD, record, FORMAT)?
        }
    };
    write_file(path, &image)
}

/// Writes the flash file of a node that has lived long: its first idle moment has sectors to erase.
pub fn age(path: &Path, scenario: &Scenario, id: u8) -> Result<(), String> {
    let image = BOARD.image(contents(scenario, id)?.image(BOARD)?)?;
    let mut flash = Nor::<4, { 64 << 10 }>::from_bytes(&image.bytes);
    let aged = until_cut(async {
        let (mut store, _) = Store::<_, 4, 704>::open(&mut flash, &image.layout).await?;
        let state = [0; 400];
        while Which::BOTH.iter().any(|which| !store.needs_preparing(*which)) {
            store.save_election(1, &state, &[], cells::Path::Answer, false).await?;
        }
        Ok::<_, cells::Error>(())
    });
    aged.ok_or("the flash image waited for something")?
        .map_err(|error| format!("the flash of node {id}: {error}"))?;
    write_file(path, flash.bytes())
}

/// Writes a flash file that was never used.
pub fn blank(path: &Path) -> Result<(), String> {
    write_file(path, &vec![0xff; BOARD.image_bytes()])
}

/// A file of the part's size; what the cells do not use is a hole that takes no room.
fn write_file(path: &Path, used: &[u8]) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut file = File::create(path).map_err(failed)?;
    file.write_all(used).and_then(|()| file.set_len(CAPACITY_BYTES)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use bellwether_scenario::{Algorithm, Durability};

    use super::*;

    #[test]
    fn the_spans_of_the_file_count_for_strict_durability_too() {
        for durability in [Durability::Group, Durability::Strict] {
            let mut scenario = Scenario::undisturbed(Algorithm::Bully, 3, 0);
            scenario.durability = durability;
            scenario.tp_us = BOARD.tp_us_min;
            let derived = timing(&scenario).unwrap();
            assert_eq!(derived.ts, TS);
            scenario.t_us = Some(30_000_000);
            scenario.check_us = Some(600_000_000);
            scenario.quiet_us = Some(90_000_000);
            let given = timing(&scenario).unwrap();
            let spans = (given.t.us(), given.check.us(), given.quiet.us());
            assert_eq!(spans, (30_000_000, 600_000_000, 90_000_000), "{derived:?}");
        }
    }

    #[test]
    fn a_tp_that_no_board_keeps_is_refused() {
        let mut scenario = Scenario::undisturbed(Algorithm::Bully, 3, 0);
        scenario.tp_us = BOARD.tp_us_min;
        assert!(timing(&scenario).is_ok());
        scenario.tp_us -= 1;
        let why = timing(&scenario).unwrap_err();
        assert!(why.ends_with("at least 18 ms, what boards/sf2 can keep"), "{why}");
    }
}
