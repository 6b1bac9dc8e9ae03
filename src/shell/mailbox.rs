//! Orders by way of the debug probe: words that a host writes into the memory of a running board.
//!
//! Whoever holds the probe can read and write everything anyway, so nothing is asked of it. The host
//! writes the content first and the order last; the node looks at every tick and empties the box.

use core::sync::atomic::{AtomicU32, Ordering};

use zeroize::Zeroize;

use crate::key::{KEY_BYTES, Keys, LinkKey, Slot};

/// An id and a key, each in whole words.
const SLOT_WORDS: usize = 1 + KEY_BYTES / 4;
const CONTENT_WORDS: usize = 2 * SLOT_WORDS;

/// What can be ordered.
#[derive(Debug, Clone)]
pub enum Order {
    /// Put these keys into force. Content: the id and the words of the key to send with, then of the
    /// other one; id 0: there is none.
    SetKeys(Keys),
    /// Leave the flock until the next boot. No content.
    StepDown,
}

const SET_KEYS: u32 = 1;
const STEP_DOWN: u32 = 2;

/// A board has one, under the name `BELLWETHER_MAILBOX`.
#[derive(Debug)]
#[repr(C)]
pub struct Mailbox {
    order: AtomicU32,
    content: [AtomicU32; CONTENT_WORDS],
}

impl Mailbox {
    // Boards make one static of it; nobody borrows the constant itself.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const EMPTY: Self =
        Self { order: AtomicU32::new(0), content: [const { AtomicU32::new(0) }; CONTENT_WORDS] };

    /// Orders the node to leave the flock, from the board itself: what a button does. While another
    /// order waits it is ignored.
    pub fn step_down(&self) {
        if self.order.load(Ordering::Acquire) == 0 {
            self.order.store(STEP_DOWN, Ordering::Release);
        }
    }

    /// Takes out what is there. An order that makes no sense is gone, too.
    pub fn take(&self) -> Option<Order> {
        let order = self.order.load(Ordering::Acquire);
        if order == 0 {
            return None;
        }
        let taken = match order {
            SET_KEYS => self.keys().map(Order::SetKeys),
            STEP_DOWN => Some(Order::StepDown),
            _ => None,
        };
        for word in &self.content {
            word.store(0, Ordering::Relaxed);
        }
        self.order.store(0, Ordering::Release);
        taken
    }

    fn keys(&self) -> Option<Keys> {
        let keys = Keys { send: self.slot(0)?, other: self.slot(SLOT_WORDS) };
        keys.are_distinct().then_some(keys)
    }

    fn slot(&self, at: usize) -> Option<Slot> {
        let (id, words) = self.content.get(at..at + SLOT_WORDS)?.split_first()?;
        let id = u8::try_from(id.load(Ordering::Relaxed)).ok().filter(|id| *id != 0)?;
        let mut bytes = [0; KEY_BYTES];
        for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *bytes = word.load(Ordering::Relaxed).to_le_bytes();
        }
        let slot = Slot { id, key: LinkKey::new(bytes) };
        bytes.zeroize();
        Some(slot)
    }
}
