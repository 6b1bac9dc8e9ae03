//! When datagrams arrived.
//!
//! embassy-net hands a datagram on without the time at which the interrupt took it in. This table
//! knows it by a digest of the payload. Of two datagrams with the same bytes the older time counts: a
//! node may think that it is later than it is, never earlier. Only frames that the door takes for a
//! member's have a place here, so that nobody else can push them out; should so many of those arrive at
//! once that a time was overwritten, the oldest one that is left stands for it.

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

/// FNV-1a.
pub(crate) fn digest(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Notes when a frame arrived. 0: it is no member's, and nobody will ask.
pub fn note(frame: &[u8], time_us: u64) {
    if let Some((_, payload)) = door::payload(frame).filter(|_| time_us != 0) {
        let digest = digest(payload);
        critical_section::with(|section| {
            let mut table = TABLE.borrow_ref_mut(section);
            let next = table.next;
            table.entries[next] = (digest, time_us);
            table.next = (next + 1) % ENTRIES;
        });
    }
}

/// When a datagram arrived.
pub fn of(datagram: &[u8]) -> Option<Instant> {
    let digest = digest(datagram);
    critical_section::with(|section| {
        let mut table = TABLE.borrow_ref_mut(section);
        let (mut oldest, mut found) = (u64::MAX, None);
        for (index, (known, time)) in
            table.entries.iter().enumerate().filter(|entry| entry.1.1 != 0)
        {
            oldest = oldest.min(*time);
            if *known == digest && found.is_none_or(|(_, earlier)| *time < earlier) {
                found = Some((index, *time));
            }
        }
        let Some((index, found)) = found else {
            return (oldest != u64::MAX).then_some(Instant(oldest));
        };
        table.entries[index].1 = 0;
        // Datagrams are asked for in their order: what is older was dropped by the stack.
        for (_, time) in table.entries.iter_mut().filter(|(_, time)| *time < found) {
            *time = 0;
        }
        Some(Instant(found))
    })
}
