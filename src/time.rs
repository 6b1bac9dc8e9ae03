//! Time as an argument. The core never reads a clock: the shell says what time it is.

/// A reading of the node's own clock, in microseconds since some moment before it booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub u64);

/// A span of time in microseconds, of an hour at most: what small processors count in one register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(pub u32);

impl Instant {
    pub const FAR: Self = Self(u64::MAX);

    /// Zero if `earlier` is in fact later, [`Duration::MAX`] if it was longer ago than that.
    #[must_use]
    #[inline(never)] // 64-bit arithmetic is long where registers have 32
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_us(self.0.saturating_sub(earlier.0))
    }
}

impl core::ops::Add<Duration> for Instant {
    type Output = Self;
    #[inline(never)]
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0.into()))
    }
}

impl Duration {
    pub const ZERO: Self = Self(0);
    /// More than any span that a node goes by: what is computed longer ends here, and is refused
    /// with the configuration.
    pub const MAX: Self = Self(u32::MAX);

    /// This many microseconds, [`Duration::MAX`] if they are more.
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(if us > u32::MAX as u64 { u32::MAX } else { us as u32 })
    }

    /// In microseconds, where they are added up to more than a span.
    #[must_use]
    pub const fn us(self) -> u64 {
        self.0 as u64
    }

    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self::from_us(ms.saturating_mul(1000))
    }

    #[must_use]
    #[inline(never)] // shorter than the copies
    pub const fn times(self, factor: u32) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// This span times `numerator / denominator`; a denominator of 0 counts as 1.
    #[must_use]
    pub const fn fraction(self, numerator: u32, denominator: u32) -> Self {
        let denominator = if denominator == 0 { 1 } else { denominator };
        Self(self.times(numerator).0 / denominator)
    }

    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl core::ops::Add for Duration {
    type Output = Self;
    #[inline(never)] // shorter than the copies
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl core::fmt::Display for Duration {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{:03} ms", self.0 / 1000, self.0 % 1000)
    }
}
