//! `cargo sim compare` as a user meets it, and what is quoted of it.

#![allow(clippy::expect_used, clippy::unwrap_used)] // a test may fail where it stands

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bellwether_sim::compare::plan::{self, Ground};
use bellwether_sim::compare::row::{Document, Row, SCHEMA};
use bellwether_sim::compare::textbook::TextbookRow;
use bellwether_sim::compare::{compare, overview, plot};

fn sim(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellwether-sim"));
    command.arg("compare").args(arguments).output().expect("the simulator starts")
}

/// A line of a table without the blanks that align it.
fn cells(line: &str) -> Vec<String> {
    line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

fn package(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

fn small_cases() -> Vec<plan::Case> {
    plan::cases(&plan::sections_for(&Ground::usual(), 3))
}

fn last_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn table_json_and_plot_say_the_same_of_every_case() {
    let svg = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compare.svg");
    let rows = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compare-rows.json");
    let files = ["--svg", &svg.display().to_string(), "--rows", &rows.display().to_string()];
    // Eight nodes are in every section.
    let sections = plan::sections_for(&Ground::usual(), 8);
    assert!(sections.iter().all(|section| !section.cases.is_empty()));
    let small = ["--nodes-max", "8", "--seeds", "1"];
    let output = sim(&[&small[..], &["--json"], &files].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let document: Document = serde_json::from_str(&last_line(&output)).expect("one JSON object");
    assert_eq!(document.schema, SCHEMA);
    let cases = plan::cases(&sections);
    assert_eq!(document.rows.len(), cases.len());
    assert!(document.rows.iter().zip(&cases).all(|(row, case)| row.is_of(case)));
    let file: Document =
        serde_json::from_str(&fs::read_to_string(&rows).expect("the rows are there"))
            .expect("one JSON object");
    assert_eq!(file, document);

    let output = sim(&small);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<_> = text.lines().map(cells).collect();
    for cells in document.rows.iter().map(Row::cells) {
        assert!(lines.contains(&cells), "{cells:?} in\n{text}");
    }
    assert_eq!(
        document.textbook.len(),
        5 * 2 * 3,
        "five situations, two algorithms, 3, 5, 8 nodes"
    );
    for cells in document.textbook.iter().map(TextbookRow::cells) {
        assert!(lines.contains(&cells), "{cells:?} in\n{text}");
    }
    assert_seen_in_plot(&document, &fs::read_to_string(&svg).expect("the plot is there"));
}

fn assert_seen_in_plot(document: &Document, plot: &str) {
    let rows = plot::rows(document);
    assert!(rows.len() >= 9, "three situations, three algorithms");
    assert_eq!(plot.matches("<circle cx").count(), rows.len() + 3, "and three of the legend");
    for row in rows {
        let label = plot::label(row);
        assert!(plot.contains(&format!("<title>{label}</title>")), "{label}");
    }
}

/// INTERFACES: one JSON object as the last line, with these numbers at least.
#[test]
fn json_is_one_line_and_tells_what_all_commands_tell() {
    let output = sim(&["--nodes-max", "3", "--seeds", "1", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&last_line(&output)).expect("one object");
    for key in ["runs", "violations", "datagrams", "wall_seconds"] {
        assert!(json[key].is_number(), "{key} in {json}");
    }
    let rows = json["rows"].as_array().expect("rows");
    assert_eq!(json["runs"], rows.len(), "one run each");
    // The textbook algorithms are there to fail, and nobody's exit code minds.
    let textbook = json["textbook"].as_array().expect("textbook rows");
    assert!(textbook.iter().any(|row| row["violations"] != 0), "{textbook:?}");
    assert_eq!((output.status.code(), &json["violations"]), (Some(0), &0.into()));
}

#[test]
fn a_run_that_is_refused_leaves_the_plot_of_the_last_one() {
    let svg = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kept.svg");
    fs::write(&svg, "the last one").expect("a file can be written");
    let output = sim(&["--svg", &svg.display().to_string(), "--rows", "no/such/folder/rows.json"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(fs::read_to_string(&svg).expect("it is there"), "the last one");
}

#[test]
fn bad_options_exit_2_and_the_first_line_names_them() {
    for (arguments, wanted) in [
        (&["--seeds", "0"][..], "--seeds"),
        (&["--nodes-max", "2"], "--nodes-max"),
        (&["--nodes-max", "129"], "--nodes-max"),
        (&["--deep", "--seeds", "3"], "--deep"),
        (&["--colour"], "--colour"),
    ] {
        let output = sim(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        let first = message.lines().next().unwrap_or_default();
        assert!(first.contains(wanted), "{message}");
    }
}

#[test]
fn a_plot_that_cannot_be_written_is_refused_before_anything_runs() {
    let output = sim(&["--svg", "no/such/folder/plot.svg"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.starts_with("--svg no/such/folder/plot.svg: "), "{message}");
    assert!(output.stdout.is_empty());
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let cases = small_cases();
    let ground = Ground::usual();
    assert_eq!(compare(&ground, &cases, 2, 1), compare(&ground, &cases, 2, 3));
}

#[test]
fn a_case_comes_out_the_same_by_itself_as_among_others() {
    let (ground, cases) = (Ground::usual(), small_cases());
    let all = compare(&ground, &cases, 2, 2);
    for (case, row) in cases.iter().zip(&all.rows) {
        assert_eq!(row.runs, 2);
        assert_eq!(compare(&ground, &[*case], 2, 1).rows[0], *row);
    }
}

#[test]
fn a_case_is_measured_once_and_all_sections_have_some() {
    let sections = plan::sections();
    assert!(sections.iter().all(|section| !section.cases.is_empty()));
    let cases = plan::cases(&sections);
    for (index, case) in cases.iter().enumerate() {
        assert!(!cases[..index].contains(case), "{case:?}");
    }
}

/// `tests/sim/compare.json` is what the command printed when the README was written.
#[test]
fn the_readme_and_its_plot_quote_what_was_measured() {
    let text = fs::read_to_string(package("compare.json")).expect("compare.json is there");
    let document: Document = serde_json::from_str(&text).expect("compare.json is good");
    assert_eq!(document.schema, SCHEMA);
    for case in plan::cases(&plan::sections()) {
        assert!(document.row(&case).is_some(), "compare.json lacks {case:?}");
    }
    let violations: u64 = document.rows.iter().map(|row| row.violations).sum();
    assert_eq!((document.violations, violations), (0, 0));
    let plot = fs::read_to_string(package("compare.svg")).expect("compare.svg is there");
    assert!(plot == plot::svg(&document), "compare.svg is not the plot of compare.json");

    let readme = fs::read_to_string(package("../../README.md")).expect("the README is there");
    assert!(readme.contains("tests/sim/compare.svg"));
    let quoted = |head: &[String]| {
        let below = readme.lines().map(cells).skip_while(|line| line != head).skip(2);
        below.take_while(|line| line.len() == head.len()).collect::<Vec<_>>()
    };
    let rows = quoted(&Row::HEAD.map(Into::into));
    assert!(rows.len() >= 20, "the README quotes {} rows", rows.len());
    let measured: Vec<_> = document.rows.iter().map(Row::cells).collect();
    for line in rows {
        assert!(measured.contains(&line), "{line:?} was not measured");
    }
    let overviews = overview::all(&document);
    assert_eq!(overviews.len(), 2);
    for overview in overviews {
        assert_eq!(quoted(&overview.head), overview.lines, "{}", overview.title);
    }
    let rows = quoted(&TextbookRow::HEAD.map(Into::into));
    assert!(rows.len() >= 4, "the README quotes {} textbook rows", rows.len());
    let measured: Vec<_> = document.textbook.iter().map(TextbookRow::cells).collect();
    for line in rows {
        assert!(measured.contains(&line), "{line:?} was not measured");
    }
}
