//! Tables, and what stands in them.

use serde_json::{Value, json};

/// Mean, median, 99th percentile and worst of a sample.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    pub mean: f64,
    pub p50: f64,
    pub p99: f64,
    pub worst: f64,
}

impl Spread {
    pub fn of(samples: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = samples.collect();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let index = (sorted.len() as f64 * share).ceil() as usize;
            sorted.get(index.saturating_sub(1)).copied().unwrap_or(f64::NAN)
        };
        Self {
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            p50: at(0.5),
            p99: at(0.99),
            worst: at(1.0),
        }
    }

    pub fn scale(&mut self, factor: f64) {
        self.mean *= factor;
        self.p50 *= factor;
        self.p99 *= factor;
        self.worst *= factor;
    }

    pub fn json(&self) -> Value {
        json!({ "mean": self.mean, "p50": self.p50, "p99": self.p99, "worst": self.worst })
    }
}

/// A table that prints as Markdown, so that it can be quoted as it is.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    pub fn row(&mut self, cells: &[String]) {
        self.rows.push(cells.to_vec());
    }

    pub fn print(&self) {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
            println!("| {} |", cells.join(" | "));
            if index == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
                println!("| {} |", rule.join(" | "));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_tells_mean_percentiles_and_worst() {
        let spread = Spread::of((1..=200).map(f64::from));
        assert_eq!((spread.mean, spread.p50), (100.5, 100.0));
        assert_eq!((spread.p99, spread.worst), (198.0, 200.0));
    }
}
