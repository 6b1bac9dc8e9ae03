//! The flash file of a board: provisioned on the host through the same cells that the board reads.

use std::fs::File;
use std::future::Future;
use std::io::Write;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bellwether::cells::{BootEpoch, Layout, Store, Which};
use bellwether::config::{Config, Durability, Timing};
use bellwether::id::NodeId;
use bellwether::provision::{BYTES_MAX, FORMAT, Provision};
use bellwether::time::Duration;
use bellwether_scenario::Scenario;
use embedded_storage_async::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};

/// The part of the board, and where its cells lie in it (boards/sf2/src/main.rs).
const CAPACITY_BYTES: u64 = 16 << 20;
const SECTOR_BYTES: u32 = 64 << 10;
const USED_BYTES: usize = 8 * SECTOR_BYTES as usize;
const LAYOUT: Layout = Layout { a: 0..4 * SECTOR_BYTES, b: 4 * SECTOR_BYTES..8 * SECTOR_BYTES };
/// What the board can promise for a save behind a running erase; it refuses less.
const TS: Duration = Duration::from_millis(1_500);
pub const PORT: u16 = 4711;
pub const NETWORK: u16 = 1;

/// The flash in the host's memory.
#[derive(Debug)]
struct Image(Vec<u8>);

#[derive(Debug)]
struct Outside;

impl NorFlashError for Outside {
    fn kind(&self) -> NorFlashErrorKind {
        NorFlashErrorKind::OutOfBounds
    }
}

impl ErrorType for Image {
    type Error = Outside;
}

impl ReadNorFlash for Image {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Outside> {
        let at = offset as usize;
        bytes.copy_from_slice(self.0.get(at..at + bytes.len()).ok_or(Outside)?);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }
}

impl NorFlash for Image {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = SECTOR_BYTES as usize;

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Outside> {
        let at = offset as usize;
        let old = self.0.get_mut(at..at + bytes.len()).ok_or(Outside)?;
        old.iter_mut().zip(bytes).for_each(|(old, new)| *old &= new);
        Ok(())
    }

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), Outside> {
        self.0.get_mut(from as usize..to as usize).ok_or(Outside)?.fill(0xff);
        Ok(())
    }
}

/// Nothing on an image in memory ever waits.
fn now<T>(future: impl Future<Output = T>) -> Result<T, String> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Err("the flash image waited for something".into()),
    }
}

/// The spans of time of a scenario on this board, or why it cannot be played.
pub fn timing(scenario: &Scenario) -> Result<Timing, String> {
    let settings = bellwether_sim::play::settings(scenario).map_err(|error| error.to_string())?;
    let mut timing = Timing { ts: TS, ..settings.timing };
    if settings.durability == Durability::Strict {
        let derived = Timing::derive(Duration(scenario.tm_us), Duration(scenario.tp_us), TS);
        timing = derived.strict(scenario.nodes.into());
    }
    // Answers to one question are spread, so that the asker's buffers bear them.
    let most = timing.tp.0 / 2 / u64::from(scenario.nodes);
    timing.answer_spacing = Duration(most.min(300));
    Ok(timing)
}

/// The record of one node.
fn record(scenario: &Scenario, id: u8) -> Result<Vec<u8>, String> {
    let settings = bellwether_sim::play::settings(scenario).map_err(|error| error.to_string())?;
    let node = NodeId::new(id).ok_or("node ids start at 1")?;
    let mut config =
        Config::<1>::new(node, settings.algorithm, settings.durability, timing(scenario)?);
    config.network = NETWORK;
    let preference = |id: u8| scenario.preference.get(&id).copied().unwrap_or(0);
    for member in 1..=scenario.nodes {
        config.add_member(member, preference(member)).map_err(|error| error.to_string())?;
    }
    let [_, network] = NETWORK.to_be_bytes();
    let provision = Provision {
        config,
        address: [10, 66, network, id],
        port: PORT,
        keyed: false,
        accept_version_1: false,
    };
    let mut room = [0; BYTES_MAX];
    let len = provision.encode(&mut room).ok_or("a span of time does not fit into the record")?;
    Ok(room[..len].to_vec())
}

/// Writes the flash file of one node.
pub fn prepare(path: &Path, scenario: &Scenario, id: u8) -> Result<(), String> {
    write(path, &record(scenario, id)?, FORMAT, id)
}

/// What can be wrong with a flash file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Never provisioned.
    Blank,
    /// Provisioned for a firmware that knows more.
    NewerFormat,
    /// A save takes longer than the configuration allows.
    TsTooShort,
}

/// Writes a flash file of node 1 that its board must refuse.
pub fn spoil(path: &Path, scenario: &Scenario, flaw: Flaw) -> Result<(), String> {
    let mut record = record(scenario, 1)?;
    match flaw {
        Flaw::Blank => write_file(path, &[0xff; USED_BYTES]),
        Flaw::NewerFormat => write(path, &record, FORMAT + 1, 1),
        Flaw::TsTooShort => {
            record[20..24].copy_from_slice(&5_000u32.to_le_bytes());
            write(path, &record, FORMAT, 1)
        }
    }
}

/// Writes the flash file of a node that has lived long: its first idle moment has sectors to erase.
pub fn age(path: &Path, scenario: &Scenario, id: u8) -> Result<(), String> {
    prepare(path, scenario, id)?;
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut bytes = std::fs::read(path).map_err(failed)?;
    bytes.truncate(USED_BYTES);
    let image = Image(bytes);
    let aged = now(async {
        let (mut store, _) = Store::<_, 4, 704>::open(image, &LAYOUT).await?;
        let state = [0; 400];
        while Which::BOTH.iter().any(|which| !store.needs_preparing(*which)) {
            store.save_election(1, &state, &[], bellwether::cells::Path::Answer, false).await?;
        }
        Ok::<_, bellwether::cells::Error>(store.into_flash())
    })?;
    let image = aged.map_err(|error| format!("the flash of node {id}: {error}"))?;
    write_file(path, &image.0)
}

fn write(path: &Path, record: &[u8], format: u8, id: u8) -> Result<(), String> {
    let image = Image(vec![0xff; USED_BYTES]);
    let written = now(async {
        let (mut store, _) = Store::<_, 4, 704>::open(image, &LAYOUT).await?;
        store.stage_chunk(0, format, record).await?;
        store.commit_configuration(1).await?;
        store.complete_provisioning(1, BootEpoch(0)).await?;
        Ok::<_, bellwether::cells::Error>(store.into_flash())
    })?;
    let image = written.map_err(|error| format!("the flash of node {id}: {error}"))?;
    write_file(path, &image.0)
}

/// A file of the part's size; what the cells do not use is a hole that takes no room.
fn write_file(path: &Path, used: &[u8]) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut file = File::create(path).map_err(failed)?;
    file.write_all(used).and_then(|()| file.set_len(CAPACITY_BYTES)).map_err(failed)
}
