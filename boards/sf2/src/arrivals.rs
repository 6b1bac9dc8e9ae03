//! When datagrams arrived.
//!
//! embassy-net hands a datagram on without the time at which the interrupt took it in. This table
//! knows it by a digest of the payload. Of two datagrams with the same bytes the older time counts:
//! a node may think that it is later than it is, never earlier.

use core::cell::RefCell;

use bellwether::shell::door;
use bellwether::time::Instant;
use critical_section::Mutex;

const ENTRIES: usize = 32;

struct Table {
    entries: [(u32, u64); ENTRIES],
    next: usize,
}

static TABLE: Mutex<RefCell<Table>> =
    Mutex::new(RefCell::new(Table { entries: [(0, 0); ENTRIES], next: 0 }));

fn digest(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Notes when a frame arrived, if it is one that somebody will ask for.
pub fn note(frame: &[u8], time_us: u64) {
    if let Some((_, payload)) = door::payload(frame) {
        let digest = digest(payload);
        critical_section::with(|section| {
            let mut table = TABLE.borrow_ref_mut(section);
            let next = table.next;
            table.entries[next] = (digest, time_us.max(1));
            table.next = (next + 1) % ENTRIES;
        });
    }
}

/// When a datagram arrived.
pub fn of(datagram: &[u8]) -> Option<Instant> {
    let digest = digest(datagram);
    critical_section::with(|section| {
        let mut table = TABLE.borrow_ref_mut(section);
        let found = table
            .entries
            .iter_mut()
            .filter(|(known, time)| *known == digest && *time != 0)
            .min_by_key(|(_, time)| *time)?;
        let time = core::mem::replace(&mut found.1, 0);
        Some(Instant(time))
    })
}
