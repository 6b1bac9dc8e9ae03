//! A silence that follows what was seen: the period of Beats and D, where D is the mean lateness of
//! Beats and four times its mean deviation, at least 2 Tm and at most what the configuration allows.
//!
//! Both averages are exponential and in integers, as those of TCP for its retransmissions. The
//! deviation grows faster than it shrinks: a worse network must be learned of within a few Beats, and
//! a few good Beats are no reason to become nervous.

use super::FailureDetector;
use crate::config::Config;
use crate::id::{GroupId, NodeId};
use crate::time::{Duration, Instant};

/// The averages are kept in sixteenths of a microsecond, so that small differences are not lost. Four
/// minutes fit.
const FINE: u32 = 4;
const LATE_MAX: Duration = Duration(u32::MAX >> FINE);
const MEAN_SHIFT: u32 = 4;
const DEVIATION_GROWS_SHIFT: u32 = 2;
const DEVIATION_SHRINKS_SHIFT: u32 = 5;
/// Four deviations.
const DEVIATIONS_SHIFT: u32 = 2;

#[derive(Debug, Clone, Copy, Default)]
pub struct Adaptive {
    mean: u32,
    deviation: u32,
    /// The latest sign of life, and of which group.
    last: Option<(GroupId, Instant)>,
}

/// Moves an average towards a sample.
fn moved(average: u32, sample: u32, shift: u32) -> u32 {
    if sample >= average {
        average + ((sample - average) >> shift)
    } else {
        average - ((average - sample) >> shift)
    }
}

impl Adaptive {
    /// One more sign of life came this much later than a period after the one before.
    fn learn(&mut self, late: Duration) {
        let sample = late.min(LATE_MAX).0 << FINE;
        let off = sample.abs_diff(self.mean);
        let shift =
            if off > self.deviation { DEVIATION_GROWS_SHIFT } else { DEVIATION_SHRINKS_SHIFT };
        self.deviation = moved(self.deviation, off, shift);
        self.mean = moved(self.mean, sample, MEAN_SHIFT);
    }
}

impl<const W: usize> FailureDetector<W> for Adaptive {
    fn heard(&mut self, now: Instant, (_, group): (NodeId, GroupId), config: &Config<W>) {
        if let Some((_, before)) = self.last.filter(|(of, _)| *of == group) {
            let (since, beat) = (now.since(before), config.timing.beat);
            // Signs of life between two Beats are early, not late; a question that is repeated again and again
            // says nothing of the Beats. An outage counts only so much.
            if since >= beat.fraction(1, 2) {
                self.learn(since.minus(beat).min(config.quiet_max));
            }
        }
        self.last = Some((group, now));
    }

    fn patience(&self, config: &Config<W>) -> Duration {
        let timing = &config.timing;
        let deviations = self.deviation >> (FINE - DEVIATIONS_SHIFT);
        let lateness = Duration((self.mean >> FINE) + deviations);
        (timing.beat + lateness.max(timing.tm.times(2))).min(config.quiet_max)
    }
}
