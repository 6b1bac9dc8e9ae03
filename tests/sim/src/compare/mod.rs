//! `cargo sim compare`: all algorithms side by side.
//!
//! One thing is varied at a time around a base point ([`plan`]): the size of the flock, the loss, the
//! delays, how many nodes crash at once, the failure detector; and there are some corners. Each case is
//! [`run`] with many seeds and becomes a [`row`] of the table, of the JSON document and of the
//! [`plot`]; the [`textbook`] algorithms follow by themselves. All times are simulated: the same command
//! prints the same rows on any number of cores.

pub mod overview;
pub mod plan;
pub mod plot;
pub mod row;
pub mod run;
pub mod textbook;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use bellwether_scenario::Delays;

use crate::measure::for_seeds_on;
use crate::measure::table::Table;
use plan::{Case, Ground, Section};
use row::{Document, Row, SCHEMA};
use run::{FLAPS, Sample};
use textbook::TextbookRow;

/// What is compared, and where to.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// How many runs each row is made of; flocks of more than 16 nodes get fewer
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub seeds: u64,
    /// Ten times as many runs
    #[arg(long, conflicts_with = "seeds")]
    pub deep: bool,
    /// Leave larger flocks out
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u8).range(3..=128))]
    pub nodes_max: u8,
    /// Print one JSON object, on one line, instead of tables
    #[arg(long)]
    pub json: bool,
    /// Write a plot of the time to settle
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the rows, one on each line: what `tests/sim/compare.json` is
    #[arg(long, value_name = "FILE")]
    pub rows: Option<PathBuf>,
    /// With the delays that `cargo lab --delays` has measured, and Tm and Tp as they were there
    #[arg(long, value_name = "FILE")]
    pub delays: Option<PathBuf>,
}

/// Reads a file that `cargo lab --delays` wrote; the error is one line.
pub fn read_delays(file: &Path) -> Result<Arc<Delays>, String> {
    let name = file.display().to_string();
    let text = fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    Delays::parse(&name, &text).map(Arc::new).map_err(|error| error.to_string())
}

/// Compares and prints; `false` if an assertion did not hold. An error is bad input.
pub fn command(options: &Options) -> Result<bool, String> {
    let began = Instant::now();
    let ground = match &options.delays {
        Some(file) => Ground::measured(read_delays(file)?),
        None => Ground::usual(),
    };
    let files = [("--svg", &options.svg), ("--rows", &options.rows)];
    for (option, path) in files.iter().filter_map(|(option, path)| Some((option, path.as_ref()?))) {
        // Better now than in five minutes; what is there stays there until then.
        let opened = fs::OpenOptions::new().append(true).create(true).open(path);
        opened.map_err(|error| format!("{option} {}: {error}", path.display()))?;
    }
    let sections = plan::sections_for(&ground, options.nodes_max);
    let runs = options.seeds * if options.deep { 10 } else { 1 };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut document = compare(&ground, &plan::cases(&sections), runs, cores);
    document.textbook = textbook::rows(&ground, options.nodes_max);
    if let Some(path) = &options.svg {
        write("--svg", path, &plot::svg(&document))?;
    }
    if let Some(path) = &options.rows {
        write("--rows", path, &document.file().map_err(|error| error.to_string())?)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    eprintln!("{} rows in {seconds:.0} s on {cores} cores", document.rows.len());
    if options.json {
        println!("{}", document.json(seconds).map_err(|error| error.to_string())?);
    } else {
        print_tables(&sections, &document);
    }
    Ok(document.violations == 0)
}

fn write(option: &str, path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{option} {}: {error}", path.display()))
}

/// Runs all cases on so many threads, on which the result does not depend.
pub fn compare(ground: &Ground, cases: &[Case], runs: u64, cores: usize) -> Document {
    let timing = &ground.timing;
    let mut jobs: Vec<(usize, u64)> = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        jobs.extend((1..=case.runs(runs)).map(|seed| (index, seed)));
    }
    // What takes longest goes first, so that no core is left with it at the end.
    jobs.sort_by_key(|(index, _)| std::cmp::Reverse(cases[*index].nodes));
    let results = for_seeds_on(cores, jobs.len() as u64, |number| {
        let (index, seed) = jobs[number as usize - 1];
        run::run(ground, &cases[index], seed)
    });
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); cases.len()];
    for ((index, _), sample) in jobs.iter().zip(results) {
        samples[*index].push(sample);
    }
    let all = || samples.iter().flatten();
    let rows = cases.iter().zip(&samples);
    let ms = |span: bellwether::time::Duration| span.0 as f64 / 1000.0;
    Document {
        schema: SCHEMA.into(),
        tm_ms: ms(timing.tm),
        tp_ms: ms(timing.tp),
        t_ms: ms(timing.t),
        quiet_t: plan::QUIET_T,
        runs: all().count() as u64,
        violations: all().map(|sample| sample.violations).sum(),
        datagrams: all().map(|sample| sample.datagrams).sum(),
        textbook: Vec::new(),
        rows: rows.map(|(case, samples)| Row::new(case, samples, timing.t.us())).collect(),
    }
}

fn print_tables(sections: &[Section], document: &Document) {
    let Document { tm_ms, tp_ms, t_ms, quiet_t, .. } = document;
    println!("Tm = {tm_ms} ms, Tp = {tp_ms} ms; all times in the least T, {t_ms} ms.");
    println!(
        "p50, p99, worst: from the disturbance to all Normal. flapping: the highest node goes down"
    );
    println!(
        "{FLAPS} times, and the time is from its last return. quiet: nothing happens for {quiet_t} T."
    );
    println!(
        "T: in least ones. wrong: suspicions of a coordinator that was running. saves: of the node"
    );
    println!("that saved most. wrong, datagrams, bytes, saves: mean of the runs, from the (first)");
    println!("disturbance to all Normal. unsettled: of the runs; violations: in all of them.");
    for overview in overview::all(document) {
        println!("\n{}, p50 / p99:\n", overview.title);
        overview.table().print();
    }
    for section in sections {
        if let Some(table) = table(section, document) {
            println!("\n{}:\n", section.title);
            table.print();
        }
    }
    println!("\ntextbook (one run each; every message takes the mean of the usual delays):\n");
    let mut table = Table::new(&TextbookRow::HEAD);
    document.textbook.iter().for_each(|row| table.row(&row.cells()));
    table.print();
}

/// `None` if there is no row for it.
fn table(section: &Section, document: &Document) -> Option<Table> {
    let mut table = Table::new(&Row::HEAD);
    let mut rows = section.cases.iter().filter_map(|case| document.row(case)).peekable();
    rows.peek()?;
    rows.for_each(|row| table.row(&row.cells()));
    Some(table)
}
