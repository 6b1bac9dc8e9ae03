//! Real boards: their logs come through probe-rs, one process per debug probe, and feed the view, the
//! trace and the checkers of emulated ones.
//!
//! A board says who it is when it boots. The log of a board that nobody listened to keeps its first lines,
//! so that it is known whenever one comes; with `--reset` it begins anew.

use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use bellwether::config::Timing;
use bellwether::time::Duration as Span;
use bellwether_flock::board::Board;
use bellwether_flock::install;
use bellwether_scenario::{Algorithm, NodeEvent, Observation, Run, Scenario, Watch};
use clap::Args;

use crate::chronicle::{Chronicle, Said};
use crate::clock::{Clock, Moment};
use crate::display::{Display, Printer, Scene, Wish};
use crate::line::Line;
use crate::measured::Measured;
use crate::probe::{Heard, microseconds};
use crate::view::{Picture, View};
use crate::{FAILED, FAILURES_SHOWN, checks, real, write_delays, write_trace};

const PROBE_RS: &str = "probe-rs";
/// Before every line of a node in the output of probe-rs.
const MARK: &str = "bellwether ";
/// How long boards have to say who they are.
const INTRODUCTION: Duration = Duration::from_secs(10);
/// Lines of a board that has not said who it is.
const WAITING_MAX: usize = 1000;

#[derive(Debug, Args)]
pub struct Options {
    /// The kind of the boards; where they differ, one for each probe, in order, with commas in between
    #[arg(long)]
    pub board: String,
    /// Only this probe, as `probe-rs list` names it (VID:PID:SERIAL); may be repeated
    #[arg(long)]
    probe: Vec<String>,
    /// The image that the boards run, if they are of one kind; without it, it is built
    #[arg(long)]
    image: Option<PathBuf>,
    /// Reset the boards first, so that their logs begin anew
    #[arg(long)]
    reset: bool,
    /// Write a trace (JSON Lines)
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Write what the boards measured of their network, for `cargo sim --delays`
    #[arg(long)]
    delays: Option<PathBuf>,
    /// Print events as lines instead of the live view
    #[arg(long)]
    headless: bool,
    /// Show the boards' own lines
    #[arg(long)]
    raw: bool,
    /// How long to follow; without it until Ctrl-C, or until no probe is left
    #[arg(long)]
    duration_ms: Option<u64>,
}

/// What came from a probe: a line, or the end and what probe-rs said last.
enum News {
    Line { node_us: u64, text: String },
    End(String),
}

/// The process of one probe. Dropping it ends it.
struct Wire(Child);

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The probes that are plugged in, as the option `--probe` of probe-rs names them.
fn list() -> Result<Vec<String>, String> {
    if !install::runs(PROBE_RS, &["--version"]) {
        return Err("probe-rs is missing: run `cargo install probe-rs-tools --locked`".into());
    }
    let listed = Command::new(PROBE_RS).arg("list").output();
    let listed = listed.map_err(|error| format!("probe-rs list: {error}"))?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    // `[0]: NAME -- VID:PID:SERIAL (KIND)`
    let probe = |line: &str| {
        let (_, rest) = line.strip_prefix('[')?.split_once(" -- ")?;
        Some(rest.split_once(" (").map_or(rest, |(probe, _)| probe).trim().to_owned())
    };
    Ok(text.lines().filter_map(probe).collect())
}

/// The kinds that `--board` names.
pub fn kinds(list: &str) -> Result<Vec<&'static Board>, String> {
    list.split(',').map(|name| Ok(real::named(Some(name))?[0])).collect()
}

/// The kind of the board at each probe, and its image.
fn assign(options: &Options, probes: usize) -> Result<Vec<(&'static Board, PathBuf)>, String> {
    let kinds = kinds(&options.board)?;
    if kinds.len() > 1 && kinds.len() != probes {
        let named = kinds.len();
        return Err(format!(
            "--board names {named} kinds for {probes} probes; allowed: 1, or one each"
        ));
    }
    let mut assigned: Vec<(&'static Board, PathBuf)> = Vec::new();
    for index in 0..probes {
        let kind = kinds[index % kinds.len()];
        let built = assigned.iter().find(|(board, _)| board.name == kind.name);
        let image = match (&options.image, built) {
            (Some(_), _) if kinds.iter().any(|other| other.name != kind.name) => {
                return Err("--image is for boards of one kind".into());
            }
            (Some(image), _) => image.clone(),
            (None, Some((_, image))) => image.clone(),
            (None, None) => real::build(kind)?,
        };
        assigned.push((kind, image));
    }
    Ok(assigned)
}

fn choose(options: &Options) -> Result<Vec<String>, String> {
    let found = list()?;
    if found.is_empty() {
        return Err("no debug probe was found; look with `probe-rs list`".into());
    }
    match options.probe.iter().find(|wanted| !found.contains(wanted)) {
        Some(wanted) => Err(format!("there is no probe {wanted}; found: {}", found.join(", "))),
        None if options.probe.is_empty() => Ok(found),
        None => Ok(options.probe.clone()),
    }
}

/// Starts to listen to one probe.
fn listen(
    index: usize,
    board: &Board,
    probe: &str,
    image: &Path,
    news: Sender<(usize, Moment, News)>,
) -> Result<Wire, String> {
    let clock = Clock::host();
    let failed = |error: std::io::Error| format!("probe-rs attach: {error}");
    let mut child = Command::new(PROBE_RS)
        .args(["attach", "--chip", board.chip().unwrap_or_default(), "--probe", probe])
        // A board that resets itself goes on, and one whose log is full does not wait.
        .args(["--non-interactive", "--no-catch-reset", "--no-catch-hardfault"])
        .args(["--rtt-channel-mode", "no-block-trim", "--log-format"])
        .arg(format!("{MARK}{{t}} {{s}}"))
        .arg(image)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("probe-rs attach: no output".into());
    };
    let complaints = std::thread::spawn(move || {
        let lines = BufReader::new(errors).lines().map_while(Result::ok);
        lines.filter(|line| !line.trim().is_empty()).last().unwrap_or_default()
    });
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let Some((stamp, text)) = line.strip_prefix(MARK).and_then(|rest| rest.split_once(' '))
            else {
                continue; // probe-rs itself
            };
            let node_us = microseconds(stamp).unwrap_or(0);
            let line = News::Line { node_us, text: text.trim().into() };
            if news.send((index, clock.now(), line)).is_err() {
                return;
            }
        }
        let last = complaints.join().unwrap_or_default();
        let _ = news.send((index, clock.now(), News::End(last)));
    });
    Ok(Wire(child))
}

/// Who the boards are, and what they said before all had said so.
struct Introduction {
    ids: Vec<Option<u8>>,
    ended: Vec<bool>,
    waiting: Vec<(usize, Moment, u64, String)>,
    run: Option<Run>,
    timing: Option<Timing>,
}

impl Introduction {
    fn is_over(&self) -> bool {
        self.ids.iter().zip(&self.ended).all(|(id, ended)| id.is_some() || *ended)
    }

    fn hear(&mut self, index: usize, at: Moment, node_us: u64, text: String) {
        if let Some(line) = Line::parse(&text).filter(|line| line.word == "boot") {
            self.boot(index, &line);
        }
        if self.waiting.len() < WAITING_MAX * self.ids.len() {
            self.waiting.push((index, at, node_us, text));
        }
    }

    /// `boot id=3 … algorithm=bully tm_us=… tp_us=… ts_us=…`
    fn boot(&mut self, index: usize, line: &Line) {
        let id = line.number("id").and_then(|id| u8::try_from(id).ok()).filter(|id| *id != 0);
        let spans = ["tm_us", "tp_us", "ts_us"].map(|key| line.number(key).unwrap_or(1));
        let algorithm = match line.get("algorithm") {
            Some("bully") => Algorithm::Bully,
            Some("ring") => Algorithm::Ring,
            _ => Algorithm::Invitation,
        };
        self.ids[index] = id;
        let [tm_us, tp_us, _] = spans;
        let [tm, tp, ts] = spans.map(Span::from_us);
        self.timing = Some(Timing::derive(tm, tp, ts));
        self.run = Some(Run { algorithm, nodes: 0, tm_us, tp_us, factor: 1.0 });
    }
}

/// The boards as they are seen.
struct Boards {
    /// That of the host: real boards have clocks of their own.
    clock: Clock,
    zero: Moment,
    watch: Watch,
    present: Vec<u8>,
    chronicle: Chronicle,
    measured: Measured,
}

impl Boards {
    fn hear(&mut self, node: u8, before: Moment, node_us: u64, text: String) -> Option<Said> {
        let heard = Heard { node, power: 1, node_us, after: None, before, text };
        let said = self.chronicle.hear(&heard)?;
        said.events.iter().for_each(|event| self.watch.note(event));
        self.measured.hear(&said);
        Some(said)
    }
}

impl Scene for Boards {
    fn now_us(&self) -> u64 {
        self.clock.now().since(self.zero).as_micros() as u64
    }

    fn seen(&self) -> &Observation {
        self.watch.seen()
    }

    fn has_power(&self, id: u8) -> bool {
        self.present.contains(&id)
    }
}

fn introduce(
    probes: &[String],
    news: &Receiver<(usize, Moment, News)>,
    stop: &AtomicBool,
) -> Result<Introduction, String> {
    let mut known = Introduction {
        ids: vec![None; probes.len()],
        ended: vec![false; probes.len()],
        waiting: Vec::new(),
        run: None,
        timing: None,
    };
    let until = Instant::now() + INTRODUCTION;
    while !known.is_over() && !stop.load(Ordering::Relaxed) {
        let wait = until.saturating_duration_since(Instant::now());
        match news.recv_timeout(wait) {
            Ok((index, at, News::Line { node_us, text })) => known.hear(index, at, node_us, text),
            Ok((index, _, News::End(last))) => {
                known.ended[index] = true;
                if known.ids[index].is_none() {
                    eprintln!("probe {}: {last}", probes[index]);
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    for (probe, _) in probes.iter().zip(&known.ids).filter(|(_, id)| id.is_none()) {
        eprintln!("the board at probe {probe} has not said who it is, and is left out");
    }
    if known.ids.iter().all(Option::is_none) {
        return Err(
            "no board said who it is: try --reset, and look whether boards are provisioned".into(),
        );
    }
    Ok(known)
}

/// Follows boards; the exit code.
pub fn run(options: &Options, stop: &AtomicBool) -> Result<u8, String> {
    let probes = choose(options)?;
    let assigned = assign(options, probes.len())?;
    if options.reset {
        for (probe, (board, _)) in probes.iter().zip(&assigned) {
            let chip = board.chip().unwrap_or_default();
            if !install::runs(PROBE_RS, &["reset", "--chip", chip, "--probe", probe]) {
                return Err(format!("the board at probe {probe} could not be reset"));
            }
        }
    }
    let (sender, news) = channel();
    let mut wires = Vec::new();
    for (index, (probe, (board, image))) in probes.iter().zip(&assigned).enumerate() {
        wires.push(listen(index, board, probe, image, sender.clone())?);
    }
    drop(sender);
    let Introduction { ids, ended, waiting, run, timing } = introduce(&probes, &news, stop)?;
    let (Some(mut run), Some(timing)) = (run, timing) else {
        return Err("no board said how it was configured".into());
    };
    let present: Vec<u8> = ids.iter().flatten().copied().collect();
    run.nodes = present.iter().copied().max().unwrap_or(1);
    let mut scenario = Scenario::undisturbed(run.algorithm, run.nodes, 0);
    (scenario.tm_us, scenario.tp_us) = (run.tm_us, run.tp_us);
    scenario.boot.clone_from(&present);
    let clock = Clock::host();
    let zero = clock.now();
    let watch = Watch::new(&scenario);
    let chronicle = Chronicle::new(run.nodes, clock.clone(), zero);
    let measured = Measured::new(run.nodes, run.tm_us, run.tp_us);
    let mut boards = Boards { clock, zero, watch, present, chronicle, measured };
    let mut display = display(options, &run);
    for (index, at, node_us, text) in waiting {
        let said = ids[index].and_then(|id| boards.hear(id, at, node_us, text));
        said.iter().for_each(|said| display.said(said));
    }
    let end = options.duration_ms.map(|ms| zero + Duration::from_millis(ms));
    let mut left = ended.iter().filter(|ended| !**ended).count();
    while left > 0
        && !stop.load(Ordering::Relaxed)
        && end.is_none_or(|end| boards.clock.now() < end)
    {
        match news.recv_timeout(Duration::from_millis(50)) {
            Ok((index, at, News::Line { node_us, text })) => {
                let said = ids[index].and_then(|id| boards.hear(id, at, node_us, text));
                said.iter().for_each(|said| display.said(said));
            }
            Ok((index, _, News::End(_))) => {
                left -= 1;
                let gone = ids[index];
                boards.present.retain(|id| Some(*id) != gone);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        // Nobody here can cut the power of a real board.
        if display.look(&boards).contains(&Wish::Quit) {
            break;
        }
    }
    display.look(&boards);
    drop((display, wires));
    let events = boards.chronicle.events_from_the_first();
    if let Some(path) = &options.trace {
        write_trace(path, &run, &events)?;
    }
    println!("{} boards, {} lines lost", ids.iter().flatten().count(), boards.chronicle.lines_lost);
    boards.measured.verdict().iter().for_each(|line| println!("{line}"));
    if let Some(path) = &options.delays {
        write_delays(path, &boards.measured)?;
    }
    judge(&scenario, &timing, &events)
}

/// What the checkers find. A network that breaks its bounds leaves no trace here: it is named with them.
fn judge(scenario: &Scenario, timing: &Timing, events: &[NodeEvent]) -> Result<u8, String> {
    let failures = checks::violations(scenario, timing, events, &[], &[])?;
    if failures.is_empty() {
        println!("all assertions held");
        return Ok(0);
    }
    failures.iter().take(FAILURES_SHOWN).for_each(|failure| println!("{failure}"));
    println!("{} in all, unless the network broke its bounds", failures.len());
    Ok(FAILED)
}

fn display(options: &Options, run: &Run) -> Box<dyn Display> {
    if options.headless || !std::io::stdout().is_terminal() {
        return Box::new(Printer::new(false).raw(options.raw));
    }
    let picture = Picture::new(run.nodes, run.algorithm, run.tm_us, run.tp_us).raw(options.raw);
    Box::new(View::start(picture, true, None))
}
