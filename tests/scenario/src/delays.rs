//! How long calls and their handling took on some network: a file that the lab writes and the
//! simulator draws delays from.
//!
//! ```toml
//! format = 1
//! tm_ms = 40                          # what the nodes had been told
//! tp_ms = 40
//!
//! [trips]                             # from a call to its answer
//! below_ms = [2, 3, 4, 5.125]         # the last one is the longest that was seen
//! counts = [10, 250, 40, 1]
//!
//! [handling]                          # from a reception to its answer
//! below_ms = [1, 1.5]
//! counts = [300, 2]
//! ```

use std::fmt::Write;

use crate::bad::BadFile;
use crate::toml_table::{Source, Table};

/// More buckets than anybody needs.
const BUCKETS_MAX: usize = 1000;

/// Counts of times by what they are shorter than.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// What is below this, and not below the one before; ascending. None is longer than the last one.
    below_us: Vec<u64>,
    counts: Vec<u64>,
}

impl Distribution {
    /// Buckets in ascending order, each with its upper bound, and the longest time, which may have come
    /// after the counts were taken. Empty buckets at the end do not count. `None` if all are empty.
    pub fn new(buckets: impl IntoIterator<Item = (u64, u64)>, longest_us: u64) -> Option<Self> {
        let mut buckets: Vec<(u64, u64)> = buckets.into_iter().collect();
        let counted = buckets.iter().rposition(|(_, count)| *count > 0)?;
        let holds = buckets.iter().position(|(below, _)| *below > longest_us);
        let last = holds.unwrap_or(buckets.len() - 1).max(counted);
        buckets.truncate(last + 1);
        let before = last.checked_sub(1).map_or(0, |index| buckets[index].0);
        let (below, count) = &mut buckets[last];
        *below = longest_us.clamp(before + 1, (*below).max(before + 1));
        *count = (*count).max(1);
        let (below_us, counts) = buckets.into_iter().unzip();
        Some(Self { below_us, counts })
    }

    pub fn samples(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub fn longest_us(&self) -> u64 {
        self.below_us.last().copied().unwrap_or(0)
    }

    /// The time that this share of all is shorter than. Inside a bucket all times are equally likely.
    pub fn quantile_us(&self, share: f64) -> u64 {
        let mut left = share.clamp(0.0, 1.0) * self.samples() as f64;
        let mut start = 0;
        for (below, count) in self.below_us.iter().zip(&self.counts) {
            let count = *count as f64;
            if count > 0.0 && left <= count {
                return start + ((below - start) as f64 * left / count) as u64;
            }
            left -= count;
            start = *below;
        }
        self.longest_us()
    }

    fn parse(table: &Table<'_>) -> Result<Self, BadFile> {
        table.allow_only(&["below_ms", "counts"])?;
        let bounds = table.need("below_ms", "what the times of each bucket are shorter than")?;
        let mut below_us: Vec<u64> = Vec::new();
        for bound in bounds.list("a list of milliseconds")? {
            let us = bound.time_us_above_zero()?;
            if below_us.last().is_some_and(|before| *before >= us) {
                return Err(bound.bad("`below_ms` does not ascend", "allowed: ascending bounds"));
            }
            below_us.push(us);
        }
        let field = table.need("counts", "how many times each bucket holds")?;
        let mut counts = Vec::new();
        for count in field.list("a list of whole numbers")? {
            counts.push(count.whole(0, 1 << 40)?);
        }
        if counts.len() != below_us.len() || counts.len() > BUCKETS_MAX {
            let wrong = format!("{} bounds and {} counts", below_us.len(), counts.len());
            let allowed = format!("allowed: one count for each bound, {BUCKETS_MAX} at most");
            return Err(field.bad(wrong, allowed));
        }
        if counts.iter().all(|count| *count == 0) {
            return Err(field.bad("nothing was counted", "allowed: at least one time"));
        }
        Ok(Self { below_us, counts })
    }

    fn write(&self, name: &str, meaning: &str, out: &mut String) -> std::fmt::Result {
        let bounds: Vec<String> =
            self.below_us.iter().map(|us| (*us as f64 / 1000.0).to_string()).collect();
        let counts: Vec<String> = self.counts.iter().map(u64::to_string).collect();
        writeln!(out, "\n# {meaning}\n[{name}]\nbelow_ms = [{}]", bounds.join(", "))?;
        writeln!(out, "counts = [{}]", counts.join(", "))
    }
}

/// What was measured on some network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delays {
    /// What the nodes had been told.
    pub tm_us: u64,
    pub tp_us: u64,
    /// From a call to its answer.
    pub trips: Distribution,
    /// From a reception to its answer.
    pub handling: Distribution,
}

impl Delays {
    pub fn parse(file: &str, text: &str) -> Result<Self, BadFile> {
        let source = Source { file, text };
        let document = source.parse()?;
        let table = Table::document(source, &document);
        table.allow_only(&["format", "tm_ms", "tp_ms", "trips", "handling"])?;
        table.need("format", "1")?.whole(1, 1)?;
        let distribution = |key, meaning| {
            Distribution::parse(&table.need(key, meaning)?.table("a table of buckets")?)
        };
        Ok(Self {
            tm_us: table.need("tm_ms", "Tm of the nodes")?.time_us_above_zero()?,
            tp_us: table.need("tp_ms", "Tp of the nodes")?.time_us_above_zero()?,
            trips: distribution("trips", "the times from a call to its answer")?,
            handling: distribution("handling", "the times from a reception to its answer")?,
        })
    }

    /// The file.
    pub fn text(&self) -> String {
        let (tm, tp) = (self.tm_us as f64 / 1000.0, self.tp_us as f64 / 1000.0);
        let mut out = format!("format = 1\ntm_ms = {tm}\ntp_ms = {tp}\n");
        // Writing to a String cannot fail.
        let _ = self.trips.write("trips", "From a call to its answer.", &mut out);
        let _ = self.handling.write("handling", "From a reception to its answer.", &mut out);
        out
    }

    /// The time of one way, of which this share of all are shorter: half of a trip. What was
    /// handling in it is not taken off, so that no way comes out too short.
    pub fn way_us(&self, share: f64) -> u64 {
        self.trips.quantile_us(share) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Delays {
        let trips = [(1500, 0), (2000, 10), (3000, 250), (4000, 0), (6000, 40), (8000, 0)];
        Delays {
            tm_us: 40_000,
            tp_us: 12_500,
            trips: Distribution::new(trips, 5125).unwrap(),
            handling: Distribution::new([(1000, 300)], 20).unwrap(),
        }
    }

    #[test]
    fn a_file_says_what_was_written() {
        let text = some().text();
        assert_eq!(Delays::parse("a.toml", &text), Ok(some()), "{text}");
        assert!(text.contains("below_ms = [1.5, 2, 3, 4, 5.125]"), "{text}");
    }

    #[test]
    fn quantiles_lie_in_their_buckets_and_none_is_longer_than_the_longest() {
        let trips = some().trips;
        assert_eq!(trips.samples(), 300);
        assert_eq!((trips.quantile_us(0.0), trips.quantile_us(1.0)), (1500, 5125));
        assert_eq!(trips.quantile_us(10.0 / 300.0), 2000);
        assert_eq!(trips.quantile_us(135.0 / 300.0), 2500);
        assert!((4000..=5125).contains(&trips.quantile_us(0.9)));
        assert_eq!(some().way_us(1.0), 2562);
    }

    #[test]
    fn a_longest_time_that_was_not_counted_yet_is_one_more() {
        let buckets = [(10, 5), (20, 0), (40, 0), (80, 0)];
        let seen = Distribution::new(buckets, 33).unwrap();
        assert_eq!((seen.longest_us(), seen.samples()), (33, 6));
        let seen = Distribution::new(buckets, 500).unwrap();
        assert_eq!((seen.longest_us(), seen.samples()), (80, 6));
    }

    #[test]
    fn nothing_counted_is_no_distribution() {
        assert_eq!(Distribution::new([(10, 0)], 5), None);
        assert_eq!(Distribution::new([], 5), None);
    }

    #[test]
    fn a_bad_file_is_refused_with_line_and_reason() {
        let good = some().text();
        for (old, new, line, wanted) in [
            ("format = 1", "format = 2", 1, "`format`"),
            ("tm_ms = 40", "tm_ms = 0", 2, "`tm_ms`"),
            ("[1.5, 2, 3", "[1.5, 3, 2", 7, "does not ascend"),
            ("counts = [0, 10,", "counts = [10,", 8, "5 bounds and 4 counts"),
            ("counts = [300]", "counts = [0]", 13, "nothing was counted"),
            ("counts = [300]", "counts = [-3]", 13, "`counts`"),
            ("[handling]", "[colour]", 11, "unknown key `colour`"),
            ("tp_ms = 12.5", "", 1, "`tp_ms` is missing"),
            ("below_ms = [0.02]", "below_ms = 3", 12, "`below_ms` is 3"),
        ] {
            let text = good.replacen(old, new, 1);
            assert_ne!(text, good, "{old}");
            let error = Delays::parse("bad.toml", &text).unwrap_err().to_string();
            let place = format!("bad.toml:{line}: ");
            assert!(error.starts_with(&place) && error.contains(wanted), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
