//! Time as an argument. The core never reads a clock: the shell says what time it is.

/// A reading of the node's own clock, in microseconds since some moment before it booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub u64);

/// A span of time in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(pub u64);

impl Instant {
    pub const FAR: Self = Self(u64::MAX);

    /// Zero if `earlier` is in fact later.
    #[must_use]
    #[inline(never)]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl core::ops::Add<Duration> for Instant {
    type Output = Self;
    #[inline(never)]
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Duration {
    pub const ZERO: Self = Self(0);

    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1000))
    }

    #[must_use]
    #[inline(never)] // 64-bit arithmetic is long where registers have 32
    pub const fn times(self, factor: u32) -> Self {
        Self(self.0.saturating_mul(factor as u64))
    }

    /// This span times `numerator / denominator`; a denominator of 0 counts as 1.
    #[must_use]
    #[inline(never)]
    pub const fn fraction(self, numerator: u32, denominator: u32) -> Self {
        let denominator = if denominator == 0 { 1 } else { denominator };
        Self(self.times(numerator).0 / denominator as u64)
    }

    #[must_use]
    #[inline(never)]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl core::ops::Add for Duration {
    type Output = Self;
    #[inline(never)]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl core::fmt::Display for Duration {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{:03} ms", self.0 / 1000, self.0 % 1000)
    }
}
