//! Times in which no interrupt could come, because the flash took the code away.

/// What it takes to work off the frames of a stall.
const BACKLOG_US: u64 = 30_000;
/// What came longer ago than this has been looked at meanwhile: the longest stall, an erase (400 ms),
/// and its backlog. Between two stalls the other tasks have their turn.
const WAIT_US_MAX: u64 = 430_000;

/// A stall, or several that followed each other too closely to work off what came in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    from_us: u64,
    to_us: u64,
}

impl Stall {
    pub const NONE: Self = Self { from_us: 0, to_us: 0 };

    /// This one and the next one.
    #[must_use]
    pub fn and(self, from_us: u64, to_us: u64) -> Self {
        let follows = self.to_us > 0 && from_us < self.to_us + BACKLOG_US;
        let from_us = if follows {
            self.from_us.max(to_us.saturating_sub(WAIT_US_MAX)).min(from_us)
        } else {
            from_us
        };
        Self { from_us, to_us }
    }

    /// The earliest time that a frame with this stamp can have come at.
    #[must_use]
    pub fn not_later(self, stamp_us: u64) -> u64 {
        let during = self.to_us > 0 && (self.from_us..self.to_us + BACKLOG_US).contains(&stamp_us);
        if during { self.from_us } else { stamp_us }
    }
}
