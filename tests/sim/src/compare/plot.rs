//! The plot: time to settle against the size of the flock, and against loss.
//!
//! Both scales of the upper panels and the upright one of the lower are logarithmic: a ring takes ten
//! times what the others do.

use std::fmt::Write;

use bellwether::config::Algorithm;

use super::plan::{self, Case, Delays, LOSS_PERCENT, NODES, Situation};
use super::row::{Document, Row, time_text};
use crate::measure::ALGORITHMS;
use crate::random::algorithm_name;

const WIDTH: f64 = 1080.0;
const HEIGHT: f64 = 770.0;
const PANEL_WIDTH: f64 = 285.0;
const PANEL_HEIGHT: f64 = 255.0;
const LEFT: f64 = 62.0;
const TOP: f64 = 116.0;
const ACROSS: f64 = 345.0;
const DOWN: f64 = 344.0;
/// The range of the upright scale, in T, and its marks.
const TIME_MIN: f64 = 1.0;
const TIME_MAX: f64 = 1000.0;
const TIMES: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];
/// Told apart by the colour-blind, too.
const COLOURS: [&str; 3] = ["#0072b2", "#d55e00", "#009e73"];

const SITUATIONS: [(Situation, &str); 3] = [
    (Situation::ColdStart, "cold start"),
    (Situation::Crash(1), "coordinator crashes"),
    (Situation::Heal, "partition heals"),
];

/// What lies along the lower edge of a panel.
#[derive(Debug, Clone, Copy)]
enum Axis {
    Nodes,
    Loss,
}

impl Axis {
    /// The section of the plan in which it is varied.
    const fn section(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Loss => "loss",
        }
    }

    const fn marks(self) -> &'static [u8] {
        match self {
            Self::Nodes => &NODES,
            Self::Loss => &LOSS_PERCENT,
        }
    }

    fn value(self, row: &Row) -> u8 {
        match self {
            Self::Nodes => row.nodes,
            Self::Loss => row.loss_percent,
        }
    }

    /// Where a value lies, from 0 to 1.
    fn place(self, value: u8) -> f64 {
        let scale = |value: u8| match self {
            Self::Nodes => f64::from(value).ln(),
            Self::Loss => f64::from(value),
        };
        let (first, last) = match *self.marks() {
            [first, .., last] => (scale(first), scale(last)),
            _ => (0.0, 1.0),
        };
        (scale(value) - first) / (last - first)
    }
}

/// A panel's corner, and what is shown in it.
struct Panel {
    x: f64,
    y: f64,
    axis: Axis,
}

impl Panel {
    fn across(&self, value: u8) -> f64 {
        self.x + PANEL_WIDTH * (0.03 + 0.94 * self.axis.place(value))
    }

    /// Never is at the upper edge.
    fn up(&self, time: Option<f64>) -> f64 {
        let time = time.unwrap_or(TIME_MAX).clamp(TIME_MIN, TIME_MAX);
        self.y + PANEL_HEIGHT * (1.0 - (time / TIME_MIN).ln() / (TIME_MAX / TIME_MIN).ln())
    }
}

/// The rows of one line: one algorithm, one thing varied, all else as in the base point.
fn series(
    document: &Document,
    axis: Axis,
    situation: Situation,
    algorithm: Algorithm,
) -> Vec<&Row> {
    let sections = plan::sections();
    let varied = sections.iter().filter(|section| section.title == axis.section());
    let cases = varied.flat_map(|section| &section.cases);
    cases
        .filter(|case| (case.situation, case.algorithm) == (situation, algorithm))
        .filter_map(|case| {
            let measured = Case { delays: Delays::Measured, ..*case };
            document.row(case).or_else(|| document.row(&measured))
        })
        .collect()
}

/// Every row that the plot shows.
pub fn rows(document: &Document) -> Vec<&Row> {
    let mut rows = Vec::new();
    for axis in [Axis::Nodes, Axis::Loss] {
        for (situation, _) in SITUATIONS {
            for algorithm in ALGORITHMS {
                rows.extend(series(document, axis, situation, algorithm));
            }
        }
    }
    rows
}

/// What a point says when it is pointed at.
pub fn label(row: &Row) -> String {
    let [half, worst] = [row.p50_t, row.worst_t].map(time_text);
    let Row { algorithm, situation, nodes, loss_percent, .. } = row;
    format!("{algorithm}, {situation}, {nodes} nodes, {loss_percent} % loss: {half}, worst {worst}")
}

/// The plot as a file.
pub fn svg(document: &Document) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = draw(&mut out, document);
    out
}

fn draw(out: &mut String, document: &Document) -> std::fmt::Result {
    writeln!(
        out,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12" fill="#222">
<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>
<text x="{LEFT}" y="34" font-size="20">Time to settle, in T = {:.1} ms</text>"##,
        document.t_ms
    )?;
    legend(out, document)?;
    for (row, axis) in [Axis::Nodes, Axis::Loss].into_iter().enumerate() {
        for (column, (situation, title)) in SITUATIONS.into_iter().enumerate() {
            let x = LEFT + ACROSS * column as f64;
            let panel = Panel { x, y: TOP + DOWN * row as f64, axis };
            frame(out, &panel, title)?;
            for (algorithm, colour) in ALGORITHMS.into_iter().zip(COLOURS) {
                let rows = series(document, axis, situation, algorithm);
                line(out, &panel, &rows, colour)?;
            }
        }
    }
    writeln!(out, "</svg>")
}

fn legend(out: &mut String, document: &Document) -> std::fmt::Result {
    let Document { tm_ms, tp_ms, .. } = document;
    let mut x = LEFT;
    for (algorithm, colour) in ALGORITHMS.into_iter().zip(COLOURS) {
        let name = algorithm_name(algorithm);
        writeln!(
            out,
            r#"<path d="M{x} 58h30" stroke="{colour}" stroke-width="2.5"/><circle cx="{}" cy="58" r="4" fill="{colour}"/><text x="{}" y="62" font-size="14">{name}</text>"#,
            x + 15.0,
            x + 38.0
        )?;
        x += 124.0;
    }
    let line = "line: half of the runs are settled by then; shade: up to the slowest run;";
    let triangle = "triangle: a run was not settled within 30 s.";
    let times = format!("Tm = {tm_ms} ms, Tp = {tp_ms} ms, T as short as can be.");
    for (y, text) in [(52, line.into()), (68, format!("{triangle} {times}"))] {
        writeln!(out, r##"<text x="{x}" y="{y}" fill="#555">{text}</text>"##)?;
    }
    Ok(())
}

fn frame(out: &mut String, panel: &Panel, title: &str) -> std::fmt::Result {
    let Panel { x, y, axis } = *panel;
    let (middle, bottom) = (x + PANEL_WIDTH / 2.0, y + PANEL_HEIGHT);
    let (title, below) = match axis {
        Axis::Nodes => (format!("{title}, no loss"), "nodes"),
        Axis::Loss => (format!("{title}, 8 nodes"), "frames lost, %"),
    };
    writeln!(
        out,
        r#"<text x="{x}" y="{}" font-size="14" font-weight="bold">{title}</text>"#,
        y - 10.0
    )?;
    for time in TIMES {
        let up = panel.up(Some(time));
        writeln!(
            out,
            r##"<path d="M{x} {up:.1}h{PANEL_WIDTH}" stroke="#ddd"/><text x="{}" y="{:.1}" text-anchor="end">{time} T</text>"##,
            x - 6.0,
            up + 4.0
        )?;
    }
    for mark in axis.marks() {
        let at = panel.across(*mark);
        writeln!(
            out,
            r##"<path d="M{at:.1} {bottom}v5" stroke="#222"/><text x="{at:.1}" y="{}" text-anchor="middle">{mark}</text>"##,
            bottom + 18.0
        )?;
    }
    writeln!(
        out,
        r##"<rect x="{x}" y="{y}" width="{PANEL_WIDTH}" height="{PANEL_HEIGHT}" fill="none" stroke="#222"/><text x="{middle}" y="{}" text-anchor="middle">{below}</text>"##,
        bottom + 36.0
    )
}

fn line(out: &mut String, panel: &Panel, rows: &[&Row], colour: &str) -> std::fmt::Result {
    let points = |time: fn(&Row) -> Option<f64>| -> Vec<String> {
        let point = |row: &&Row| {
            let at = panel.across(panel.axis.value(row));
            format!("{at:.1},{:.1}", panel.up(time(row)))
        };
        rows.iter().map(point).collect()
    };
    let (half, mut worst) = (points(|row| row.p50_t), points(|row| row.worst_t));
    worst.reverse();
    writeln!(
        out,
        r#"<polygon points="{} {}" fill="{colour}" opacity="0.15"/><polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#,
        half.join(" "),
        worst.join(" "),
        half.join(" ")
    )?;
    for row in rows {
        let (at, up) = (panel.across(panel.axis.value(row)), panel.up(row.p50_t));
        let label = label(row);
        writeln!(
            out,
            r#"<circle cx="{at:.1}" cy="{up:.1}" r="3.5" fill="{colour}"><title>{label}</title></circle>"#
        )?;
        if row.unsettled > 0 {
            let top = panel.y;
            writeln!(
                out,
                r#"<path d="M{:.1} {:.1}l5 -9l5 9z" fill="{colour}"/>"#,
                at - 5.0,
                top + 11.0
            )?;
        }
    }
    Ok(())
}
