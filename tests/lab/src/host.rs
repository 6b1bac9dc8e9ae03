//! How late the host itself is: on every core a thread sleeps and looks how long it slept.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

const NAP: Duration = Duration::from_millis(3);
/// Less is everyday.
const NOTED: Duration = Duration::from_millis(2);

/// A core that came late: which, when, and by how much.
type Moment = (usize, Instant, Duration);
type Moments = Arc<Mutex<Vec<Moment>>>;

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

    fn moments(&self) -> Vec<Moment> {
        self.moments.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn most(&self) -> Duration {
        self.moments().into_iter().map(|(_, _, late)| late).max().unwrap_or_default()
    }

    /// How long the host was away in all in this stretch of time, on the core where that was longest.
    pub fn between(&self, from: Instant, to: Instant) -> Duration {
        longest(&self.moments(), from, to)
    }
}

fn longest(moments: &[Moment], from: Instant, to: Instant) -> Duration {
    let mut by_core = BTreeMap::<usize, Duration>::new();
    for (core, at, late) in moments {
        if *at >= from && *at - *late <= to {
            *by_core.entry(*core).or_default() += *late;
        }
    }
    by_core.into_values().max().unwrap_or_default()
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
            moments.push((core, Instant::now(), late));
        }
    }
}

impl Drop for Lateness {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_that_was_away_longest_counts() {
        let (zero, ms) = (Instant::now() + Duration::from_secs(1), Duration::from_millis);
        let moments = [
            (0, zero + ms(10), ms(4)),
            (1, zero + ms(11), ms(5)),
            (0, zero + ms(40), ms(3)),
            (1, zero + ms(300), ms(50)),
        ];
        assert_eq!(longest(&moments, zero, zero + ms(100)), ms(7));
        assert_eq!(longest(&moments, zero, zero + ms(260)), ms(55));
        assert_eq!(longest(&moments, zero + ms(20), zero + ms(30)), ms(0));
    }
}
