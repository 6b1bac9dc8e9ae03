//! Frames between the interrupt that takes them in and the stack that reads them, with the time of
//! their arrival. A queue of bytes, because most frames are far shorter than the longest.
//!
//! The interrupt copies what the MAC took in and gives the buffer back at once: a few buffers then
//! bear a burst of many frames. What the door turns away takes no room.

use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Waker;

use bellwether::shell::{Door, Guest};
use critical_section::Mutex;
use embassy_sync::waitqueue::AtomicWaker;
use embassy_time::Instant;

use crate::counts;

const BYTES: usize = 2560;
const HEAD_BYTES: usize = 10;

static INBOX: Mutex<RefCell<Inbox>> =
    Mutex::new(RefCell::new(Inbox { queue: Queue::EMPTY, door: None }));
static WAKER: AtomicWaker = AtomicWaker::new();
static LINK_DOWN: AtomicBool = AtomicBool::new(false);

pub struct Inbox {
    queue: Queue,
    door: Option<Door>,
}

impl Inbox {
    /// Takes a frame in, or turns it away.
    pub fn receive(&mut self, frame: &[u8]) {
        let guest = self.door.as_ref().map_or(Guest::Passing, |door| door.look(frame));
        let kept = match guest {
            Guest::Passing => true,
            Guest::Noise => {
                counts::NOISE.add();
                true
            }
            // Strangers must leave room for the flock.
            Guest::Stranger => self.queue.used < BYTES / 8 && self.queue.push(0, frame),
            // And questions for the answers to one's own.
            Guest::Request if self.queue.used > BYTES / 4 * 3 => false,
            Guest::Request | Guest::Answer => {
                self.queue.push(Instant::now().as_micros().max(1), frame)
            }
        };
        if !kept {
            counts::CROWDED.add();
        }
    }
}

/// For the interrupt of the MAC: `take` hands every frame that is there to the inbox.
pub fn fill(take: impl FnOnce(&mut Inbox)) {
    critical_section::with(|section| take(&mut INBOX.borrow_ref_mut(section)));
    WAKER.wake();
}

/// Frames may come in from now on.
pub fn open(door: Door) {
    critical_section::with(|section| INBOX.borrow_ref_mut(section).door = Some(door));
}

/// The oldest frame: when it came (0: it is no member's, and it does not matter) and how long it is.
pub fn pop(room: &mut [u8]) -> Option<(u64, usize)> {
    critical_section::with(|section| INBOX.borrow_ref_mut(section).queue.pop(room))
}

/// Who is to be woken by a frame or by the cable.
pub fn register(waker: &Waker) {
    WAKER.register(waker);
}

/// For the one who looks after the cable.
pub fn set_link(up: bool) {
    // Two steps, because a Cortex-M0 has no single one; nobody else writes.
    if link_is_up() != up {
        LINK_DOWN.store(!up, Ordering::Relaxed);
        WAKER.wake();
    }
}

pub fn link_is_up() -> bool {
    !LINK_DOWN.load(Ordering::Relaxed)
}

struct Queue {
    bytes: [u8; BYTES],
    start: usize,
    used: usize,
}

impl Queue {
    const EMPTY: Self = Self { bytes: [0; BYTES], start: 0, used: 0 };

    /// Keeps a frame; `false` if there is no room.
    fn push(&mut self, time_us: u64, frame: &[u8]) -> bool {
        if HEAD_BYTES + frame.len() > BYTES - self.used {
            return false;
        }
        self.put(&time_us.to_le_bytes());
        self.put(&(frame.len() as u16).to_le_bytes());
        self.put(frame);
        true
    }

    /// Moves the oldest frame into `room` and says when it arrived and how long it is.
    fn pop(&mut self, room: &mut [u8]) -> Option<(u64, usize)> {
        if self.used == 0 {
            return None;
        }
        let (mut time, mut len) = ([0; 8], [0; 2]);
        self.get(&mut time);
        self.get(&mut len);
        let len = usize::from(u16::from_le_bytes(len)).min(room.len());
        self.get(room.get_mut(..len)?);
        Some((u64::from_le_bytes(time), len))
    }

    fn put(&mut self, bytes: &[u8]) {
        let at = (self.start + self.used) % BYTES;
        let first = bytes.len().min(BYTES - at);
        self.bytes[at..at + first].copy_from_slice(&bytes[..first]);
        self.bytes[..bytes.len() - first].copy_from_slice(&bytes[first..]);
        self.used += bytes.len();
    }

    fn get(&mut self, bytes: &mut [u8]) {
        let first = bytes.len().min(BYTES - self.start);
        bytes[..first].copy_from_slice(&self.bytes[self.start..self.start + first]);
        let len = bytes.len();
        bytes[first..].copy_from_slice(&self.bytes[..len - first]);
        self.start = (self.start + len) % BYTES;
        self.used -= len;
    }
}
