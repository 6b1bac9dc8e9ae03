//! A node's own clock: it starts anywhere and runs a little fast or slow.

use bellwether::time::Instant;

/// Simulated time, in microseconds since the start of the run.
pub type Time = u64;

const MILLION: i64 = 1_000_000;

#[derive(Debug, Clone, Copy)]
pub struct Clock {
    offset_us: i64,
    drift_ppm: i64,
}

impl Clock {
    pub fn new(offset_us: u32, drift_ppm: i32) -> Self {
        Self { offset_us: i64::from(offset_us), drift_ppm: i64::from(drift_ppm) }
    }

    /// What the node's clock shows at `time`.
    pub fn local(self, time: Time) -> Instant {
        let time = time as i64;
        let whole = time / MILLION * self.drift_ppm;
        let rest = time % MILLION * self.drift_ppm / MILLION;
        Instant((self.offset_us + time + whole + rest).max(0) as u64)
    }

    /// The first moment at which the node's clock shows `instant` or more.
    pub fn global(self, instant: Instant) -> Time {
        let shown = instant.0.min(i64::MAX as u64 / 4) as i64 - self.offset_us;
        let guess = i128::from(shown) * i128::from(MILLION) / i128::from(MILLION + self.drift_ppm);
        let mut time = (guess as i64 - 2).max(0) as Time;
        while self.local(time) < instant {
            time += 1;
        }
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn global_is_the_first_moment_that_shows_local() {
        for (offset, drift) in [(0, 0), (5, 100), (1_000_000, -100), (77, 999), (3, -1000)] {
            let clock = Clock::new(offset, drift);
            for local in [2_000_000, 2_000_001, 9_999_999, 123_456_789] {
                let time = clock.global(Instant(local));
                assert!(clock.local(time) >= Instant(local));
                assert!(clock.local(time - 1) < Instant(local), "{offset} {drift} {local}");
            }
        }
    }
}
