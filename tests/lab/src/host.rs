//! How late the host itself is: a thread that sleeps and looks how long it slept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const NAP: Duration = Duration::from_millis(3);

pub struct Lateness {
    most_us: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Lateness {
    pub fn watch() -> Self {
        let (most_us, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (most, stopped) = (Arc::clone(&most_us), Arc::clone(&stop));
        std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let before = Instant::now();
                std::thread::sleep(NAP);
                let late = before.elapsed().saturating_sub(NAP).as_micros() as u64;
                most.fetch_max(late, Ordering::Relaxed);
            }
        });
        Self { most_us, stop }
    }

    pub fn most(&self) -> Duration {
        Duration::from_micros(self.most_us.load(Ordering::Relaxed))
    }
}

impl Drop for Lateness {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
