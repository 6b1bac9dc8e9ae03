//! What a case came to, as it is printed and written to files.

use serde::{Deserialize, Serialize};

use super::plan::{Case, Situation};
use super::run::Sample;
use super::textbook::TextbookRow;
use crate::random::{algorithm_name, detector_name};

/// Changes whenever the meaning of a field does.
pub const SCHEMA: &str = "bellwether-compare/2";

/// Everything that one `cargo sim compare` found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    pub schema: String,
    pub tm_ms: f64,
    pub tp_ms: f64,
    pub t_ms: f64,
    /// How many T a quiet flock was watched.
    pub quiet_t: u64,
    /// Of all rows together.
    pub runs: u64,
    pub violations: u64,
    pub datagrams: u64,
    pub rows: Vec<Row>,
    /// Their violations are none of those above.
    pub textbook: Vec<TextbookRow>,
}

/// Times are in T; `None` is never, or, in a quiet flock, nothing to wait for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub situation: String,
    /// How many nodes crashed at once.
    pub crashed: u8,
    pub algorithm: String,
    pub detector: String,
    pub nodes: u8,
    pub loss_percent: u8,
    pub delays: String,
    /// T, in percent of the least one, which is the unit of all times.
    pub t_percent: u8,
    pub runs: usize,
    /// Runs at whose end the flock was not settled.
    pub unsettled: usize,
    pub p50_t: Option<f64>,
    pub p99_t: Option<f64>,
    pub worst_t: Option<f64>,
    /// Means over the runs.
    pub wrong_suspicions: f64,
    pub datagrams: f64,
    pub bytes: f64,
    /// Of the node that saved most.
    pub saves: f64,
    /// In all runs together.
    pub violations: u64,
}

impl Row {
    pub fn new(case: &Case, samples: &[Sample], t_us: u64) -> Self {
        let mut sorted: Vec<Option<u64>> = samples.iter().map(|sample| sample.settle_us).collect();
        // Never is later than any time.
        sorted.sort_by_key(|time| time.unwrap_or(u64::MAX));
        let at = |share: f64| {
            let index = (sorted.len() as f64 * share).ceil() as usize;
            let time = sorted.get(index.saturating_sub(1)).copied().flatten()?;
            Some(rounded(time as f64 / t_us as f64))
        };
        let mean = |value: fn(&Sample) -> u64| {
            rounded(samples.iter().map(value).sum::<u64>() as f64 / samples.len().max(1) as f64)
        };
        Self {
            situation: case.situation.name().into(),
            crashed: case.situation.crashed(),
            algorithm: algorithm_name(case.algorithm).into(),
            detector: detector_name(case.detector).into(),
            nodes: case.nodes,
            loss_percent: case.loss_percent,
            delays: case.delays.name().into(),
            t_percent: case.t_percent,
            runs: samples.len(),
            unsettled: samples.iter().filter(|sample| !sample.settled).count(),
            p50_t: at(0.5),
            p99_t: at(0.99),
            worst_t: at(1.0),
            wrong_suspicions: mean(|sample| sample.wrong_suspicions),
            datagrams: mean(|sample| sample.datagrams),
            bytes: mean(|sample| sample.bytes),
            saves: mean(|sample| sample.saves),
            violations: samples.iter().map(|sample| sample.violations).sum(),
        }
    }

    pub fn is_of(&self, case: &Case) -> bool {
        self.situation == case.situation.name()
            && self.crashed == case.situation.crashed()
            && self.algorithm == algorithm_name(case.algorithm)
            && self.detector == detector_name(case.detector)
            && self.nodes == case.nodes
            && self.loss_percent == case.loss_percent
            && self.delays == case.delays.name()
            && self.t_percent == case.t_percent
    }

    pub const HEAD: [&'static str; 16] = [
        "situation",
        "algorithm",
        "detector",
        "nodes",
        "loss",
        "delays",
        "T",
        "p50",
        "p99",
        "worst",
        "unsettled",
        "wrong",
        "datagrams",
        "bytes",
        "saves",
        "violations",
    ];

    pub fn cells(&self) -> Vec<String> {
        let situation = match self.crashed {
            0 | 1 => self.situation.clone(),
            crashed => format!("{} of {crashed}", self.situation),
        };
        let quiet = self.situation == Situation::Quiet.name();
        let time = |time: Option<f64>| if quiet { "-".into() } else { time_text(time) };
        vec![
            situation,
            self.algorithm.clone(),
            self.detector.clone(),
            self.nodes.to_string(),
            format!("{} %", self.loss_percent),
            self.delays.clone(),
            format!("{:.1}", f64::from(self.t_percent) / 100.0),
            time(self.p50_t),
            time(self.p99_t),
            time(self.worst_t),
            format!("{}/{}", self.unsettled, self.runs),
            format!("{:.2}", self.wrong_suspicions),
            format!("{:.0}", self.datagrams),
            format!("{:.0}", self.bytes),
            format!("{:.2}", self.saves),
            self.violations.to_string(),
        ]
    }
}

pub fn time_text(time: Option<f64>) -> String {
    time.map_or("never".into(), |time| format!("{time:.2} T"))
}

/// To what is shown: a file need not hold more.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

impl Document {
    /// All on one line, with what the run took.
    pub fn json(&self, wall_seconds: f64) -> Result<String, serde_json::Error> {
        let mut json = serde_json::to_value(self)?;
        json["wall_seconds"] = wall_seconds.into();
        serde_json::to_string(&json)
    }

    /// For a file: one row on each line, so that two of them can be compared, and nothing that depends
    /// on the machine.
    pub fn file(&self) -> Result<String, serde_json::Error> {
        fn lines<T: Serialize>(rows: &[T]) -> Result<String, serde_json::Error> {
            let lines: Result<Vec<_>, _> = rows.iter().map(serde_json::to_string).collect();
            Ok(format!("[\n{}\n]", lines?.join(",\n")))
        }
        let head = Self { rows: Vec::new(), textbook: Vec::new(), ..self.clone() };
        let text = serde_json::to_string(&head)?;
        let text = text.replacen("\"rows\":[]", &format!("\"rows\":{}", lines(&self.rows)?), 1);
        let textbook = format!("\"textbook\":{}", lines(&self.textbook)?);
        Ok(text.replacen("\"textbook\":[]", &textbook, 1) + "\n")
    }

    pub fn row(&self, case: &Case) -> Option<&Row> {
        self.rows.iter().find(|row| row.is_of(case))
    }
}

#[cfg(test)]
mod tests {
    use bellwether::config::Algorithm;

    use super::super::plan;
    use super::*;

    fn sample(settle_us: Option<u64>) -> Sample {
        Sample {
            settled: settle_us.is_some(),
            settle_us,
            wrong_suspicions: 1,
            datagrams: 10,
            bytes: 100,
            saves: 2,
            violations: 1,
        }
    }

    fn some_case() -> Case {
        let cases = plan::cases(&plan::sections());
        let fits = |case: &&Case| {
            (case.situation, case.algorithm) == (Situation::Crash(1), Algorithm::Ring)
        };
        *cases.iter().find(fits).unwrap()
    }

    #[test]
    fn a_row_tells_percentiles_means_and_sums() {
        let samples: Vec<Sample> = (1..=200).map(|time| sample(Some(time * 1000))).collect();
        let row = Row::new(&some_case(), &samples, 1000);
        assert_eq!((row.p50_t, row.p99_t), (Some(100.0), Some(198.0)));
        assert_eq!((row.worst_t, row.unsettled, row.runs), (Some(200.0), 0, 200));
        assert_eq!((row.wrong_suspicions, row.datagrams, row.saves), (1.0, 10.0, 2.0));
        assert_eq!(row.violations, 200);
    }

    #[test]
    fn what_never_settles_is_worse_than_anything() {
        let samples = [sample(Some(1000)), sample(None), sample(Some(3000))];
        let row = Row::new(&some_case(), &samples, 1000);
        assert_eq!((row.p50_t, row.worst_t, row.unsettled), (Some(3.0), None, 1));
        assert!(row.cells().contains(&"never".to_owned()), "{:?}", row.cells());
    }
}
