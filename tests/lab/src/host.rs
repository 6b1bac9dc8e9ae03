//! How late the host itself is: on every core a thread sleeps and looks how long it slept.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::clock::{Clock, Moment};

const NAP: Duration = Duration::from_millis(3);
/// Less is everyday.
const NOTED: Duration = Duration::from_millis(2);

/// A core that came late: which, when, and by how much.
type Late = (usize, Moment, Duration);
type Moments = Arc<Mutex<Vec<Late>>>;

pub struct Lateness {
    moments: Moments,
    stop: Arc<AtomicBool>,
}

impl Lateness {
    pub fn watch(clock: Clock) -> Self {
        let (moments, stop) = (Moments::default(), Arc::new(AtomicBool::new(false)));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for core in 0..cores {
            let (clock, moments, stop) = (clock.clone(), Arc::clone(&moments), Arc::clone(&stop));
            std::thread::spawn(move || watch_core(core, &clock, &moments, &stop));
        }
        Self { moments, stop }
    }

    fn moments(&self) -> Vec<Late> {
        self.moments.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn most(&self) -> Duration {
        self.moments().into_iter().map(|(_, _, late)| late).max().unwrap_or_default()
    }

    /// How long the host was away in all in this stretch of time, on the core where that was longest.
    pub fn between(&self, from: Moment, to: Moment) -> Duration {
        longest(&self.moments(), from, to)
    }
}

fn longest(moments: &[Late], from: Moment, to: Moment) -> Duration {
    let mut by_core = BTreeMap::<usize, Duration>::new();
    for (core, at, late) in moments {
        if *at >= from && *at - *late <= to {
            *by_core.entry(*core).or_default() += *late;
        }
    }
    by_core.into_values().max().unwrap_or_default()
}

fn watch_core(core: usize, clock: &Clock, moments: &Moments, stop: &AtomicBool) {
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
            moments.push((core, clock.now(), late));
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
        let ms = Duration::from_millis;
        let zero = Clock::host().now() + ms(1000);
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
