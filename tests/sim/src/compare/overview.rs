//! The two tables that most readers want: a crash against the size of the flock, and against loss.

use super::plan::{self, Case, LOSS_PERCENT, NODES, Situation};
use super::row::{Document, Row};
use crate::measure::ALGORITHMS;
use crate::measure::table::Table;
use crate::random::algorithm_name;

/// What is varied, the head of the table, and a line for each algorithm.
#[derive(Debug)]
pub struct Overview {
    pub title: &'static str,
    pub head: Vec<String>,
    pub lines: Vec<Vec<String>>,
}

impl Overview {
    pub(super) fn table(&self) -> Table {
        let head: Vec<&str> = self.head.iter().map(String::as_str).collect();
        let mut table = Table::new(&head);
        self.lines.iter().for_each(|line| table.row(line));
        table
    }
}

/// Those that the document has rows for.
pub fn all(document: &Document) -> Vec<Overview> {
    let nodes = NODES.map(|nodes| format!("{nodes} nodes"));
    let loss = LOSS_PERCENT.map(|percent| format!("{percent} %"));
    let by_nodes = overview(document, "crash by nodes", "nodes", &nodes);
    [by_nodes, overview(document, "crash by loss, 8 nodes", "loss", &loss)]
        .into_iter()
        .filter(|overview| overview.lines.iter().flatten().any(|cell| cell.contains('/')))
        .collect()
}

fn overview(
    document: &Document,
    title: &'static str,
    section: &str,
    columns: &[String],
) -> Overview {
    let mut lines = Vec::new();
    for algorithm in ALGORITHMS {
        let mut line = vec![algorithm_name(algorithm).to_owned()];
        let sections = plan::sections();
        let varied = sections.iter().filter(|one| one.title == section);
        let wanted = (Situation::Crash(1), algorithm);
        let cases = varied.flat_map(|one| &one.cases);
        let cases = cases.filter(|case| (case.situation, case.algorithm) == wanted);
        line.extend(cases.map(|case: &Case| document.row(case).map_or("-".into(), cell)));
        lines.push(line);
    }
    let head = std::iter::once(title.to_owned()).chain(columns.iter().cloned()).collect();
    Overview { title, head, lines }
}

fn cell(row: &Row) -> String {
    let time = |time: Option<f64>| time.map_or("never".into(), |time| format!("{time:.2}"));
    format!("{} / {}", time(row.p50_t), time(row.p99_t))
}
