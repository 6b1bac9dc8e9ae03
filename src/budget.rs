//! A small allowance for elections that others provoke.
//!
//! A node that can be heard but cannot hear would otherwise make its coordinator call elections
//! without end. A few in a row are allowed, because under loss one election may not be enough; after
//! that, one per period.

use crate::time::{Duration, Instant};

const TOKENS_MAX: u32 = 3;

#[derive(Debug, Clone, Copy)]
pub struct Budget {
    tokens: u32,
    refilled: Instant,
}

impl Budget {
    pub const FULL: Self = Self { tokens: TOKENS_MAX, refilled: Instant(0) };

    /// Takes one from the allowance, which gains one each `period`.
    pub fn take(&mut self, now: Instant, period: Duration) -> bool {
        let waited = now.since(self.refilled);
        // Counted, not divided: small processors cannot divide 64 bits.
        let gained = (1..=TOKENS_MAX).take_while(|times| period.times(*times) <= waited).count();
        if gained > 0 {
            self.tokens = (self.tokens + gained as u32).min(TOKENS_MAX);
            self.refilled = now;
        }
        let granted = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_at_once_then_one_per_period() {
        let mut budget = Budget::FULL;
        let period = Duration(100);
        let mut granted = |at| budget.take(Instant(at), period);
        assert!(granted(100) && granted(110) && granted(120));
        assert!(!granted(130));
        assert!(granted(205));
        assert!(!granted(250));
        assert!(granted(1000) && granted(1001) && granted(1002) && !granted(1003));
    }
}
