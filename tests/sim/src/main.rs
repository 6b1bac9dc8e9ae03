//! `cargo sim`: see the README.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use bellwether::config;
use bellwether_scenario::{self as scenario, Algorithm, Overrides, Scenario, TraceWriter};
use bellwether_sim::{compare, explore, measure, play, random};
use clap::{Parser, Subcommand, ValueEnum};

#[derive(Debug, Parser)]
#[command(name = "cargo sim", about = "The same node code in the deterministic simulator")]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// A scenario file; without one, random runs with random faults
    scenario: Option<PathBuf>,
    /// How many nodes
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..))]
    nodes: Option<u8>,
    #[arg(long)]
    algorithm: Option<Election>,
    /// How members find out that their coordinator has failed
    #[arg(long)]
    detector: Option<Detector>,
    /// Whether a higher node that wakes takes over from a coordinator that is at work
    #[arg(long)]
    preempt: Option<bool>,
    /// The seed of the run, or of the first of several
    #[arg(long)]
    seed: Option<u64>,
    /// How many random runs
    #[arg(long, conflicts_with = "scenario", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// Random runs with an attacker on the wire, who has not got the key
    #[arg(long, conflicts_with = "scenario")]
    attack: bool,
    /// Write a trace (JSON Lines) of a scenario or of a single random run
    #[arg(long, conflicts_with = "seeds")]
    trace: Option<PathBuf>,
    /// Draw the delays of frames from those that `cargo lab --delays` has measured
    #[arg(long, value_name = "FILE")]
    delays: Option<PathBuf>,
    /// Print one JSON object as the last line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare the algorithms over flock sizes, loss, delays and kinds of failure
    Compare(compare::Options),
    /// Play all runs of a small flock with up to some deviations
    Explore(explore::Options),
    /// Measure failover, merge and steady state
    Measure(measure::Options),
    /// The timers that follow from Tm and Tp, and what a slower network costs
    Timers,
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

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Detector {
    Reliable,
    Heartbeat,
    Adaptive,
    Indirect,
}

impl Detector {
    const fn of_scenario(self) -> scenario::Detector {
        match self {
            Self::Reliable => scenario::Detector::Reliable,
            Self::Heartbeat => scenario::Detector::Heartbeat,
            Self::Adaptive => scenario::Detector::Adaptive,
            Self::Indirect => scenario::Detector::Indirect,
        }
    }
}

/// Exit codes: 0 all held, 1 something did not, 2 the input was bad and nothing was started.
const FAILED: u8 = 1;
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match (&arguments.command, &arguments.scenario) {
        (Some(Command::Compare(options)), _) => compare::command(options),
        (Some(Command::Explore(options)), _) => Ok(explore::command(options)),
        (Some(Command::Measure(options)), _) => Ok(measure::command(options)),
        (Some(Command::Timers), _) => Ok(measure::timers::command()),
        (None, Some(file)) => play_file(file, &arguments),
        (None, None) => random_runs(&arguments),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(BAD_INPUT)
        }
    }
}

fn play_file(file: &Path, arguments: &Arguments) -> Result<bool, String> {
    let name = file.display().to_string();
    let text = fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    let overrides = Overrides {
        algorithm: arguments.algorithm.map(Into::into),
        nodes: arguments.nodes.and_then(std::num::NonZeroU8::new),
        seed: arguments.seed,
        detector: arguments.detector.map(Detector::of_scenario),
        preempt: arguments.preempt,
    };
    let scenario =
        Scenario::parse_with(&name, &text, overrides).map_err(|error| error.to_string())?;
    let began = Instant::now();
    let mut trace_file = open_trace(arguments.trace.as_deref())?;
    let mut settings = play::settings(&scenario).map_err(|error| format!("{name}: {error}"))?;
    if let Some(file) = &arguments.delays {
        settings.replay(&compare::read_delays(file)?);
    }
    let played = play::play_with(&scenario, settings, trace_file.is_some())
        .map_err(|error| format!("{name}: {error}"))?;
    if let Some(out) = &mut trace_file {
        write_trace(out, &played.run, &played.trace)?;
    }
    for failure in &played.failures {
        println!("{name}: {failure}");
    }
    let held = played.failures.is_empty();
    if held {
        println!("{name}: \"{}\": all expectations and assertions held", scenario.name);
    } else {
        let delays = arguments.delays.as_ref();
        let delays = delays.map_or(String::new(), |file| format!(" --delays {}", file.display()));
        println!("replay: cargo sim {name} --seed {}{delays}", scenario.seed);
    }
    if arguments.json {
        println!("{}", played.totals.json(began.elapsed().as_secs_f64()));
    }
    Ok(held)
}

fn open_trace(path: Option<&Path>) -> Result<Option<BufWriter<fs::File>>, String> {
    let Some(path) = path else { return Ok(None) };
    let file = fs::File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Some(BufWriter::new(file)))
}

fn write_trace(
    out: &mut impl Write,
    run: &bellwether_scenario::Run,
    events: &[bellwether_scenario::NodeEvent],
) -> Result<(), String> {
    let write = || {
        let mut writer = TraceWriter::new(out, run)?;
        for event in events {
            writer.write(event)?;
        }
        writer.finish()?.flush()
    };
    let written: std::io::Result<()> = write();
    written.map_err(|error| format!("the trace could not be written: {error}"))
}

fn random_runs(arguments: &Arguments) -> Result<bool, String> {
    let began = Instant::now();
    let first = arguments.seed.unwrap_or(1);
    let seeds = arguments.seeds.unwrap_or(1);
    let delays = match &arguments.delays {
        Some(file) => Some((file.display().to_string(), compare::read_delays(file)?)),
        None => None,
    };
    let options = random::Options {
        delays,
        algorithm: arguments.algorithm.map(|election| match election {
            Election::Bully => config::Algorithm::Bully,
            Election::Invitation => config::Algorithm::Invitation,
            Election::Ring => config::Algorithm::Ring,
        }),
        nodes: arguments.nodes,
        detector: arguments.detector.map(|detector| play::detector(detector.of_scenario())),
        preempt: arguments.preempt,
        trace: arguments.trace.is_some(),
        attack: arguments.attack,
        ..random::Options::default()
    };
    if options.detector == Some(config::Detector::Reliable)
        && options.algorithm != Some(config::Algorithm::Bully)
    {
        return Err("--detector reliable is for --algorithm bully alone".into());
    }
    let mut trace_file = open_trace(arguments.trace.as_deref())?;
    let summary = random::run_seeds(first, seeds, &options);
    if let (Some(out), Some((run, events))) = (&mut trace_file, &summary.trace) {
        write_trace(out, run, events)?;
    }
    summary.print(&options);
    if arguments.json {
        println!("{}", summary.json(began.elapsed().as_secs_f64()));
    }
    Ok(summary.totals.violations == 0)
}
