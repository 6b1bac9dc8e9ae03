//! How long calls and their handling take on this network, and whether Tm and Tp are right for it.
//!
//! A node counts two kinds of times, each in a [`Histogram`] of a few bytes: round trips, from the
//! first sending of a call to a node's first answer, and handling, from the reception of a request to
//! its answer. Rounds whose answers wait for a save are not counted. An answer that comes too late for
//! its round is, or a slow network would look like a fast one. A call that was lost and repeated
//! counts from its first sending, because T has to outlast that, too.
//!
//! The counts leave the node through its log, and so does what [`advise`] says of the longest of them.

use crate::time::Duration;

/// How many buckets a histogram has.
pub const BUCKETS: usize = 16;

/// Counts of times in buckets, each half an octave wide: 2^k to 1.5 times 2^k to 2^(k+1). The first
/// one holds everything shorter as well, the last one everything longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Histogram {
    counts: [u16; BUCKETS],
    max_us: u32,
    /// The step of the first bucket; see [`step_of`].
    first: u8,
}

/// Which half octave a time is in: two steps for each octave.
#[inline(never)]
fn step_of(us: u32) -> u32 {
    let us = us.max(2);
    let octave = us.ilog2();
    2 * octave + (us >> (octave - 1) & 1)
}

/// Where a step begins.
const fn start_of(step: u32) -> u64 {
    ((2 + (step & 1)) as u64) << (step / 2 - 1)
}

impl Histogram {
    /// For times that should stay below `longest`, which is in one of the last buckets.
    #[must_use]
    pub fn new(longest: Duration) -> Self {
        let last = step_of(longest.0);
        let first = last.saturating_sub(BUCKETS as u32 - 4).max(2) as u8;
        Self { counts: [0; BUCKETS], max_us: 0, first }
    }

    /// From what a log line says of one.
    #[must_use]
    pub fn from_parts(first: u8, max_us: u32, words: [u64; BUCKETS / 4]) -> Option<Self> {
        if first < 2 || usize::from(first) + BUCKETS > 64 {
            return None;
        }
        let mut counts = [0; BUCKETS];
        for (index, count) in counts.iter_mut().enumerate() {
            *count = (words[index / 4] >> (16 * (index % 4))) as u16;
        }
        Some(Self { counts, max_us, first })
    }

    /// The counts for a log line, four in each word, the shortest times lowest in the first.
    #[must_use]
    pub fn words(&self) -> [u64; BUCKETS / 4] {
        let mut words = [0; BUCKETS / 4];
        for (word, counts) in words.iter_mut().zip(self.counts.as_chunks::<4>().0) {
            *word = counts.iter().rev().fold(0, |word, count| word << 16 | u64::from(*count));
        }
        words
    }

    pub fn note(&mut self, span: Duration) {
        let us = span.0;
        self.max_us = self.max_us.max(us);
        let index = step_of(us).saturating_sub(self.first.into());
        let index = (index as usize).min(BUCKETS - 1);
        if self.counts[index] == u16::MAX {
            // The shape stays as it is.
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
        self.counts[index] += 1;
    }

    #[must_use]
    pub fn samples(&self) -> u32 {
        self.counts.iter().map(|count| u32::from(*count)).sum()
    }

    #[must_use]
    pub const fn counts(&self) -> &[u16; BUCKETS] {
        &self.counts
    }

    #[must_use]
    pub const fn first(&self) -> u8 {
        self.first
    }

    #[must_use]
    pub const fn max_us(&self) -> u32 {
        self.max_us
    }

    /// What the times of a bucket are shorter than; the last bucket has no such bound.
    #[must_use]
    pub fn below_us(&self, bucket: usize) -> Option<u64> {
        (bucket + 1 < BUCKETS).then(|| start_of(u32::from(self.first) + bucket as u32 + 1))
    }
}

/// What was measured, says of Tm and Tp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// 2 Tm + Tp covers the longest round trip and the margin.
    pub tm_safe: bool,
    /// Tp covers the longest handling and the margin.
    pub tp_safe: bool,
    /// What would be safe, in whole milliseconds.
    pub tm: Duration,
    pub tp: Duration,
}

/// A quarter more than was ever seen.
#[inline(never)]
fn with_margin(span: Duration) -> Duration {
    span + Duration(span.0.div_ceil(4))
}

#[inline(never)]
fn whole_ms(span: Duration) -> Duration {
    Duration(span.0.div_ceil(1000).max(1)).times(1000)
}

/// Judges Tm and Tp by the longest round trip and the longest handling that were seen. Half a round
/// trip is taken for a way, however little of it was handling: that is on the safe side.
#[must_use]
pub fn advise(tm: Duration, tp: Duration, trip_max: Duration, handling_max: Duration) -> Advice {
    let (trip, handling) = (with_margin(trip_max), with_margin(handling_max));
    Advice {
        tm_safe: trip <= tm.times(2) + tp,
        tp_safe: handling <= tp,
        tm: whole_ms(Duration(trip.0.div_ceil(2))),
        tp: whole_ms(handling),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn steps_are_half_octaves() {
        assert_eq!([2, 3, 4, 5, 6, 8, 11, 12].map(step_of), [2, 3, 4, 4, 5, 6, 6, 7]);
        assert_eq!([2, 3, 4, 5, 6, 7].map(start_of), [2, 3, 4, 6, 8, 12]);
    }

    #[test]
    fn a_full_bucket_halves_them_all() {
        let mut histogram = Histogram::new(ms(50));
        (0..1000).for_each(|_| histogram.note(ms(2)));
        (0..u32::from(u16::MAX) + 1).for_each(|_| histogram.note(ms(20)));
        let counts: std::vec::Vec<u16> =
            histogram.counts.into_iter().filter(|count| *count > 0).collect();
        assert_eq!(counts, [500, u16::MAX / 2 + 1]);
        assert_eq!(histogram.samples(), 500 + u32::from(u16::MAX / 2) + 1);
    }

    #[test]
    fn a_log_line_tells_all_and_one_that_cannot_be_is_refused() {
        let mut good = Histogram::new(ms(50));
        (1..100).for_each(|ms| good.note(Duration::from_millis(ms)));
        let again = Histogram::from_parts(good.first, good.max_us, good.words());
        assert_eq!(again, Some(good));
        assert_eq!(Histogram::from_parts(1, 0, good.words()), None);
        assert_eq!(Histogram::from_parts(200, 0, good.words()), None);
    }

    proptest! {
        #[test]
        fn every_time_is_in_the_bucket_that_it_should_be_in(
            times in prop::collection::vec(0..10_000_000u32, 1..200),
            longest_ms in 1..10_000u64,
        ) {
            let mut histogram = Histogram::new(ms(longest_ms));
            times.iter().for_each(|us| histogram.note(Duration(*us)));
            prop_assert_eq!(histogram.samples() as usize, times.len());
            prop_assert_eq!(histogram.max_us(), *times.iter().max().unwrap());
            let mut at_most = 0;
            for bucket in 0..BUCKETS {
                at_most += usize::from(histogram.counts[bucket]);
                let below = histogram.below_us(bucket).unwrap_or(u64::MAX);
                prop_assert_eq!(at_most, times.iter().filter(|us| u64::from(**us) < below).count());
            }
            // The time that matters has room on both sides.
            let edge = histogram.below_us(BUCKETS - 2).unwrap();
            prop_assert!(edge > ms(longest_ms).us() && edge <= 4 * ms(longest_ms).us());
        }

        #[test]
        fn what_is_advised_is_safe_and_not_wasteful(trip in 0..1_000_000u32, handling in 0..500_000u32) {
            let (trip, handling) = (Duration(trip), Duration(handling));
            let advice = advise(ms(1), ms(1), trip, handling);
            let again = advise(advice.tm, advice.tp, trip, handling);
            prop_assert!(again.tm_safe && again.tp_safe);
            prop_assert_eq!((again.tm, again.tp), (advice.tm, advice.tp));
            prop_assert!(advice.tp.0 <= handling.0 * 5 / 4 + 2000);
            prop_assert!(2 * advice.tm.0 <= trip.0 * 5 / 4 + 3000);
        }
    }

    #[test]
    fn the_margin_is_a_quarter() {
        let judge = |trip_us, handling_us| {
            let advice = advise(ms(20), ms(10), Duration(trip_us), Duration(handling_us));
            (advice.tm_safe, advice.tp_safe)
        };
        assert_eq!(judge(40_000, 8_000), (true, true));
        assert_eq!(judge(40_001, 8_000), (false, true));
        assert_eq!(judge(40_000, 8_001), (true, false));
    }
}
