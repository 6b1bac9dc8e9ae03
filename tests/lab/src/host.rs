//! How late the host itself is: on every core a thread sleeps and looks how long it slept.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

const NAP: Duration = Duration::from_millis(3);
/// Less is everyday.
const NOTED: Duration = Duration::from_millis(2);

/// A moment at which a core came late, and by how much.
type Moments = Arc<Mutex<Vec<(Instant, Duration)>>>;

pub struct Lateness {
    moments: Moments,
    stop: Arc<AtomicBool>,
}

impl Lateness {
    pub fn watch() -> Self {
        let (moments, stop) = (Moments::default(), Arc::new(AtomicBool::new(false)));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for core in 0..cores {
            let (moments, stop) = (Arc::clone(&moments), Arc::clone(&stop));
            std::thread::spawn(move || watch_core(core, &moments, &stop));
        }
        Self { moments, stop }
    }

    fn moments(&self) -> Vec<(Instant, Duration)> {
        self.moments.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn most(&self) -> Duration {
        self.moments().into_iter().map(|(_, late)| late).max().unwrap_or_default()
    }

    /// How long the host was away in all in this stretch of time, on the core that was away longest
    /// or on all of them together: a board can have been on any.
    pub fn between(&self, from: Instant, to: Instant) -> Duration {
        let during = |at: &Instant, late: &Duration| *at >= from && *at - *late <= to;
        self.moments().into_iter().filter(|(at, late)| during(at, late)).map(|(_, late)| late).sum()
    }
}

fn watch_core(core: usize, moments: &Moments, stop: &AtomicBool) {
    let mut only = CpuSet::new();
    only.set(core);
    // Where the host forbids it the thread watches whatever core it is on.
    let _ = sched_setaffinity(None, &only);
    while !stop.load(Ordering::Relaxed) {
        let before = Instant::now();
        std::thread::sleep(NAP);
        let late = before.elapsed().saturating_sub(NAP);
        if late > NOTED {
            let mut moments = moments.lock().unwrap_or_else(PoisonError::into_inner);
            moments.push((Instant::now(), late));
        }
    }
}

impl Drop for Lateness {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
