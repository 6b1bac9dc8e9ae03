//! `cargo lab`: see the README.

#![forbid(unsafe_code)]

mod attach;
mod attack;
mod boards;
mod budget;
mod calm;
mod checks;
mod chronicle;
mod clash;
mod clock;
mod conduct;
mod cost;
mod display;
mod drivers;
mod erase;
mod flash;
mod flock;
mod folder;
mod host;
mod labs;
mod line;
mod machine;
mod measured;
mod mute;
mod narrator;
mod numbers;
mod pcap;
mod play;
mod plays;
mod probe;
mod provoke;
mod queue;
mod real;
mod recovery;
mod rekey;
mod share;
mod suite;
mod switch;
mod tools;
mod view;

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::num::NonZeroU8;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bellwether_scenario::{Algorithm, NodeEvent, Overrides, Run, Scenario, TraceWriter};
use clap::{Parser, Subcommand, ValueEnum};

use crate::boards::Board;
use crate::display::{Display, Printer};
use crate::measured::Measured;
use crate::play::{Floors, Outcome, Times};
use crate::probe::Image;
use crate::view::{Picture, View};

#[derive(Debug, Parser)]
#[command(
    name = "cargo lab",
    about = "The real firmware on emulated boards, on a virtual Ethernet"
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// A scenario file to play and judge; without one the flock runs until it is stopped
    scenario: Option<PathBuf>,
    /// How many boards
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=64))]
    nodes: Option<u8>,
    /// Which boards, in order of the ids: sf2, mps2-an385; as in `sf2:2,mps2-an385:3`
    #[arg(long, default_value = "sf2")]
    boards: String,
    #[arg(long)]
    algorithm: Option<Election>,
    #[arg(long)]
    seed: Option<u64>,
    /// Write a trace (JSON Lines)
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Write what the boards measured of their network, for `cargo sim --delays`
    #[arg(long)]
    delays: Option<PathBuf>,
    /// Write a capture of all frames for Wireshark or tshark
    #[arg(long)]
    pcap: Option<PathBuf>,
    /// Print events as lines instead of the live view
    #[arg(long)]
    headless: bool,
    /// Show the lines of the boards as they are instead of what they mean
    #[arg(long)]
    raw: bool,
    /// Keep the live view as text in this file, also where there is no terminal
    #[arg(long)]
    screen: Option<PathBuf>,
    /// Print only the verdict
    #[arg(long)]
    quiet: bool,
    /// Tm to use instead of the file's
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    tm_ms: Option<u64>,
    /// Tp to use instead of the file's
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    tp_ms: Option<u64>,
    /// Stretch every time of the file by this; by default as much as the boards need
    #[arg(long)]
    factor: Option<f64>,
    /// Let the boards go by the host's clock, which goes on while the host is busy elsewhere
    #[arg(long, global = true)]
    host_clock: bool,
    /// How long a run without a scenario lasts
    #[arg(long, default_value_t = 3_600_000, value_parser = clap::value_parser!(u64).range(1..))]
    duration_ms: u64,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the system tests and print a closing line
    Suite {
        /// Only the tests whose name contains this
        filter: Option<String>,
        /// Attack for a minute with each weapon instead of some seconds
        #[arg(long)]
        deep: bool,
        /// Run them so many times; scenarios must settle in the same way every time
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
        repeat: u32,
    },
    /// Watch a flock that nothing disturbs but a busy host: it must settle once, and stay so
    Calm(calm::Options),
    /// Print how many instructions it takes to seal and to open a datagram
    Cost,
    /// Try the drivers of every emulated board on the board itself, and build that test for the others
    Boards,
    /// Print what the image of every board takes of flash and memory, and by part, and check it
    Size,
    /// Build and measure the firmware of the boards that can be bought
    Build {
        /// Only this one
        board: Option<String>,
    },
    /// Follow real boards through the debug probes that probe-rs finds
    Attach(attach::Options),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Election {
    Bully,
    Invitation,
    Ring,
}

impl From<Election> for Algorithm {
    fn from(election: Election) -> Self {
        match election {
            Election::Bully => Self::Bully,
            Election::Invitation => Self::Invitation,
            Election::Ring => Self::Ring,
        }
    }
}

const FAILED: u8 = 1;
const BAD_INPUT: u8 = 2;
const INCONCLUSIVE: u8 = 3;
/// One cause often has many consequences.
const FAILURES_SHOWN: usize = 8;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    if let Err(error) = ctrlc::set_handler(move || stopped.store(true, Ordering::Relaxed)) {
        eprintln!("Ctrl-C cannot be caught: {error}");
    }
    let loaded = load(&arguments).and_then(|scenario| {
        let boards = boards::parse(&arguments.boards, scenario.nodes)?;
        Ok((scenario, boards))
    });
    let code = match (&arguments.command, loaded) {
        (Some(command), Ok(_)) => {
            carry_out(command, arguments.host_clock, &stop).unwrap_or_else(|why| {
                eprintln!("{why}");
                FAILED
            })
        }
        (None, Ok((scenario, boards))) => run(&scenario, &boards, &arguments, &stop),
        (_, Err(why)) => {
            eprintln!("{why}");
            BAD_INPUT
        }
    };
    ExitCode::from(code)
}

/// The scenario to play, or what is wrong with the input.
fn load(arguments: &Arguments) -> Result<Scenario, String> {
    if arguments.factor.is_some_and(|factor| !(0.01..=1000.0).contains(&factor)) {
        return Err("--factor is out of range; allowed: 0.01 to 1000".into());
    }
    match &arguments.command {
        Some(Command::Build { board }) => _ = real::named(board.as_deref())?,
        Some(Command::Attach(options)) => _ = attach::kinds(&options.board)?,
        _ => {}
    }
    let algorithm = arguments.algorithm.map(Algorithm::from);
    let scenario = match &arguments.scenario {
        None => {
            let (algorithm, nodes) =
                (algorithm.unwrap_or(Algorithm::Invitation), arguments.nodes.unwrap_or(5));
            let mut scenario =
                Scenario::undisturbed(algorithm, nodes, arguments.duration_ms * 1000);
            scenario.seed = arguments.seed.unwrap_or(scenario.seed);
            scenario
        }
        Some(file) => {
            let name = file.display().to_string();
            let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
            let nodes = arguments.nodes.and_then(NonZeroU8::new);
            let overrides =
                Overrides { algorithm, nodes, seed: arguments.seed, ..Overrides::default() };
            Scenario::parse_with(&name, &text, overrides).map_err(|error| error.to_string())?
        }
    };
    if scenario.nodes > 64 {
        return Err(format!("{} boards; allowed: 1 to 64", scenario.nodes));
    }
    let (chosen, factor) = play::choose_times(&scenario, times(arguments), Floors::BOARDS);
    flash::timing(&chosen.stretched(factor))?;
    Ok(scenario)
}

fn times(arguments: &Arguments) -> Times {
    // Without a file nothing has to be stretched: Tm and Tp are the lab's own.
    let own = arguments.scenario.is_none() && arguments.factor.is_none();
    let default = if own { Times::OWN } else { Times::default() };
    Times {
        tm_ms: arguments.tm_ms.or(default.tm_ms),
        tp_ms: arguments.tp_ms.or(default.tp_ms),
        factor: arguments.factor,
    }
}

/// The exit code of a command, or why it could not be carried out.
fn carry_out(command: &Command, host_clock: bool, stop: &AtomicBool) -> Result<u8, String> {
    if !matches!(command, Command::Build { .. } | Command::Attach(_) | Command::Size) {
        tools::ensure_qemu()?;
        clock::choose(host_clock);
    }
    match command {
        Command::Suite { filter, deep, repeat } => {
            suite::run(filter.as_deref(), *deep, *repeat, stop)
        }
        Command::Calm(options) => calm::run(options, stop),
        Command::Boards => Ok(drivers::run_all()),
        Command::Build { board } => real::build_all(board.as_deref()),
        Command::Attach(options) => attach::run(options, stop),
        Command::Cost => {
            println!("{}", cost::run()?);
            Ok(0)
        }
        Command::Size => size(),
    }
}

/// The table of all boards. What is too large is said at its end, so that the rest is seen.
fn size() -> Result<u8, String> {
    println!("{}", budget::header());
    let mut wrong = Vec::new();
    for board in &boards::ALL {
        let sizes = budget::look(&tools::firmware(board)?)?;
        println!("{}", budget::lines(board, &sizes));
        wrong.extend(budget::check(board, &sizes).err());
    }
    if wrong.is_empty() { Ok(0) } else { Err(wrong.join("\n")) }
}

/// One image for each kind of board, shared by all boards of that kind.
fn images(boards: &[&'static Board]) -> Result<Vec<Arc<Image>>, String> {
    tools::ensure_qemu()?;
    let mut images: Vec<Arc<Image>> = Vec::new();
    for board in boards {
        let known = images.iter().find(|image| image.board.name == board.name).cloned();
        images.push(match known {
            Some(image) => image,
            None => Arc::new(tools::firmware(board)?),
        });
    }
    Ok(images)
}

fn run(
    scenario: &Scenario,
    boards: &[&'static Board],
    arguments: &Arguments,
    stop: &AtomicBool,
) -> u8 {
    let images = match images(boards) {
        Ok(images) => images,
        Err(why) => {
            eprintln!("{why}");
            return FAILED;
        }
    };
    clock::choose(arguments.host_clock);
    tools::prefer_lab();
    let (scenario, factor) = play::choose_times(scenario, times(arguments), Floors::in_force());
    let played = play::until_conclusive(factor, stop, |factor| {
        let mut display = display(arguments, &scenario.stretched(factor));
        println!(
            "\"{}\": {} boards, {}, Tm {} ms, Tp {} ms, times of the file x {factor:.2}",
            scenario.name,
            scenario.nodes,
            scenario.algorithm,
            (scenario.tm_us as f64 * factor / 100.0).round() / 10.0,
            (scenario.tp_us as f64 * factor / 100.0).round() / 10.0,
        );
        let pcap = arguments.pcap.as_deref();
        let outcome = play::play(&scenario, factor, &images, pcap, stop, display.as_mut());
        // Gives the terminal back before anything is printed.
        drop(display);
        let outcome = outcome?;
        if let Some(path) = arguments.trace.as_deref() {
            write_trace(path, &outcome.run, &outcome.events)?;
        }
        report(&outcome);
        if let Some(path) = arguments.delays.as_deref() {
            write_delays(path, &outcome.measured)?;
        }
        Ok(outcome)
    });
    let outcome = match played {
        Ok(outcome) => outcome,
        Err(why) => {
            eprintln!("{why}");
            return FAILED;
        }
    };
    if outcome.interrupted {
        return if arguments.scenario.is_some() { FAILED } else { 0 };
    }
    if outcome.failures.is_empty() {
        println!("all expectations and assertions held");
        return 0;
    }
    for failure in outcome.failures.iter().take(FAILURES_SHOWN) {
        println!("{failure}");
    }
    if outcome.failures.len() > FAILURES_SHOWN {
        println!("… and {} more", outcome.failures.len() - FAILURES_SHOWN);
    }
    if outcome.is_inconclusive() {
        let late = outcome.host_late.unwrap_or_default().as_secs_f64() * 1000.0;
        println!("inconclusive: the host was {late:.1} ms late, more than Tp/2");
        return INCONCLUSIVE;
    }
    println!("replay: cargo lab {}", replay(arguments));
    FAILED
}

fn display(arguments: &Arguments, scenario: &Scenario) -> Box<dyn Display> {
    let live = !arguments.headless && !arguments.quiet && std::io::stdout().is_terminal();
    if !live && arguments.screen.is_none() {
        return Box::new(Printer::new(arguments.quiet).raw(arguments.raw));
    }
    let Scenario { nodes, algorithm, tm_us, tp_us, .. } = *scenario;
    let picture = Picture::new(nodes, algorithm, tm_us, tp_us).raw(arguments.raw);
    Box::new(View::start(picture, live, arguments.screen.clone()))
}

fn replay(arguments: &Arguments) -> String {
    let mut words = vec![];
    words.extend(arguments.scenario.iter().map(|path| path.display().to_string()));
    words.extend(arguments.nodes.map(|nodes| format!("--nodes {nodes}")));
    words.push(format!("--boards {}", arguments.boards));
    let algorithm = arguments.algorithm.map(Algorithm::from);
    words.extend(algorithm.map(|algorithm| format!("--algorithm {algorithm}")));
    words.extend(arguments.seed.map(|seed| format!("--seed {seed}")));
    words.extend(arguments.tm_ms.map(|ms| format!("--tm-ms {ms}")));
    words.extend(arguments.tp_ms.map(|ms| format!("--tp-ms {ms}")));
    words.extend(arguments.factor.map(|factor| format!("--factor {factor}")));
    words.extend(arguments.host_clock.then(|| "--host-clock".into()));
    if arguments.scenario.is_none() {
        words.push(format!("--duration-ms {}", arguments.duration_ms));
    }
    words.push("--headless".into());
    words.join(" ")
}

fn report(outcome: &Outcome) {
    let list = |shown: Vec<String>, none: &str| match shown.is_empty() {
        true => none.to_owned(),
        false => shown.join(", "),
    };
    let settled = play::settlements(outcome.run.nodes, &outcome.events);
    let settled = settled
        .iter()
        .map(|settled| format!("{:.2} s under {}", settled.at_us as f64 / 1e6, settled.coordinator))
        .collect();
    println!("settled: {}", list(settled, "never"));
    let resets = play::resets(&outcome.events);
    let resets = resets.iter().map(|((node, cause), count)| format!("node {node} {cause} {count}"));
    println!("resets: {}", list(resets.collect(), "none"));
    println!(
        "{} frames, processor time of all boards {:.1} % of one core, of the lab {:.1} %, \
         {} log lines lost, {}",
        outcome.frames,
        outcome.cpu.as_secs_f64() / outcome.lasted.as_secs_f64() * 100.0,
        outcome.own_cpu.as_secs_f64() / outcome.lasted.as_secs_f64() * 100.0,
        outcome.lines_lost,
        outcome.of_the_clock()
    );
    for line in outcome.measured.verdict() {
        println!("{line}");
    }
}

fn write_delays(path: &Path, measured: &Measured) -> Result<(), String> {
    let failed = |why: &dyn std::fmt::Display| format!("--delays {}: {why}", path.display());
    let delays = measured.delays().ok_or_else(|| failed(&"too little was measured"))?;
    std::fs::write(path, delays.text()).map_err(|error| failed(&error))
}

fn write_trace(path: &Path, run: &Run, events: &[NodeEvent]) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = BufWriter::new(File::create(path).map_err(failed)?);
    let mut writer = TraceWriter::new(file, run).map_err(failed)?;
    for event in events {
        writer.write(event).map_err(failed)?;
    }
    writer.finish().and_then(|mut file| file.flush()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_has_all_that_the_run_had() {
        let given = "a.toml --nodes 3 --boards sf2:1 --algorithm ring --seed 9 --tm-ms 50 --tp-ms 60 \
                     --factor 2 --headless";
        let parsed = Arguments::parse_from(["lab"].into_iter().chain(given.split(' ')));
        assert_eq!(replay(&parsed), given);
        let parsed = Arguments::parse_from(["lab", "--duration-ms", "500"]);
        assert_eq!(replay(&parsed), "--boards sf2 --duration-ms 500 --headless");
    }
}
