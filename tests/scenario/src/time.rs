//! Milliseconds of a file to microseconds, and back.

use std::fmt;

/// About eleven days: far beyond any run, and small enough that sums and stretching stay exact.
pub(crate) const TIME_MS_MAX: u64 = 1_000_000_000;

/// Microseconds, shown as milliseconds with no more decimals than needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ms(pub u64);

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ms, us) = (self.0 / 1000, self.0 % 1000);
        if us == 0 {
            return write!(f, "{ms}");
        }
        let decimals = format!("{us:03}");
        write!(f, "{ms}.{}", decimals.trim_end_matches('0'))
    }
}

/// `None` unless the time is 0 to [`TIME_MS_MAX`] with at most three decimals.
pub(crate) fn us_from_ms(ms: f64) -> Option<u64> {
    if !(0.0..=TIME_MS_MAX as f64).contains(&ms) {
        return None;
    }
    let us = ms * 1000.0;
    // At the largest time a float still resolves a few ten-thousandths of a microsecond.
    ((us - us.round()).abs() < 1e-3).then(|| us.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_with_the_decimals_it_needs() {
        let shown = |us| Ms(us).to_string();
        assert_eq!(shown(0), "0");
        assert_eq!(shown(12_345), "12.345");
        assert_eq!(shown(12_300), "12.3");
        assert_eq!(shown(12_000), "12");
        assert_eq!(shown(5), "0.005");
    }

    #[test]
    fn a_time_has_at_most_three_decimals() {
        assert_eq!(us_from_ms(12.345), Some(12_345));
        assert_eq!(us_from_ms(999_999_999.999), Some(999_999_999_999));
        assert_eq!(us_from_ms(1e9), Some(1_000_000_000_000));
        assert_eq!(us_from_ms(12.3456), None);
        assert_eq!(us_from_ms(-0.5), None);
        assert_eq!(us_from_ms(1e9 + 1.0), None);
        assert_eq!(us_from_ms(f64::NAN), None);
        assert_eq!(us_from_ms(f64::INFINITY), None);
    }
}
