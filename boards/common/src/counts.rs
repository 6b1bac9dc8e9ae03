//! What is counted since the boot.

use core::sync::atomic::{AtomicU32, Ordering};

use bellwether::shell::TurnedAway;

/// A counter with one writer at a time: a task, or the interrupts of one priority.
pub struct Count(AtomicU32);

impl Count {
    /// Two steps, because a Cortex-M0 has no single one.
    pub fn add(&self) {
        self.0.store(self.get().saturating_add(1), Ordering::Relaxed);
    }

    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Page programs and sector erases.
pub static PROGRAMS: Count = Count(AtomicU32::new(0));
pub static ERASES: Count = Count(AtomicU32::new(0));
/// Frames that were turned away at the door.
pub static NOISE: Count = Count(AtomicU32::new(0));
pub static CROWDED: Count = Count(AtomicU32::new(0));

pub fn turned_away() -> TurnedAway {
    TurnedAway { noise: NOISE.get(), crowded: CROWDED.get() }
}
