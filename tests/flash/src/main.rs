//! Deep tests of the cell store, and arithmetic about its flash.

use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;

use bellwether::cells::Layout;
use bellwether_flash::WordRule;
use bellwether_flash::cuts::{Depth, Tally, explore};
use bellwether_flash::life::{Question, table};
use bellwether_flash::provision::{Values, provision};
use bellwether_flash::scenario::{Bench, life};
use bellwether_flash::show::{Image, show};
use bellwether_flash::torn::tear_erases;
use bellwether_flash::wear::wear;

const USAGE: &str = "\
usage: cargo cells COMMAND
  cuts [--deep] [--seed S]    power cuts at every byte, and again in the recovery
  torn [--count N] [--seed S] erases torn with random bits, both regions in turn (100000)
  wear [--saves N] [--bytes B] even wear of the sectors (1000000 saves of 100 bytes)
  life [--board NAME] [--elections-per-day X] [--boots-per-day X] [--bytes B]
       [--endurance N] [--sectors N]
                              years of life, worst save, erases and programs per election
  show IMAGE --a FROM..TO --b FROM..TO [--sector BYTES] [--word BYTES]
                              what a boot finds in a flash image; the image is not changed
  provision IMAGE --a FROM..TO --b FROM..TO [--sector BYTES] [--word BYTES]
       --incarnation N [--first-epoch E] [--configuration FILE]
                              erases the cells of an image and gives them values; without a
                              FILE the configuration that can still be read is kept
exit code: 0 all good, 1 something was lost or a bound exceeded, 2 bad input";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match command(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(what) => {
            eprintln!("{what}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn command(arguments: &[String]) -> Result<bool, String> {
    let (name, options) = arguments.split_first().ok_or("no command")?;
    let mut options = Options(options.to_vec());
    let started = Instant::now();
    let good = match name.as_str() {
        "cuts" => {
            let deep = options.flag("--deep");
            let seed = options.number("--seed", 1)?;
            options.none_left()?;
            report(&cuts(deep, seed))
        }
        "torn" => {
            let count = options.number("--count", 100_000)?;
            let seed = options.number("--seed", 1)?;
            options.none_left()?;
            let mut tally = tear_erases(&Bench::<4, 4096>::new(3), count / 2, seed);
            tally.add(tear_erases(&Bench::<4, 4096>::new(5), count - count / 2, seed + 1));
            report(&tally)
        }
        "wear" => {
            let saves = options.number("--saves", 1_000_000)?;
            let length = options.number("--bytes", 100)?;
            options.none_left()?;
            let worn = wear(&Bench::<4, 4096>::new(4), saves, length, 256)?;
            let [(a0, a1), (b0, b1)] = worn.erases;
            println!(
                "{saves} saves of {length} bytes: sectors of A erased {a0} to {a1} times, \
                 of B {b0} to {b1} times; {:.5} erases per save; at most {} programs per copy",
                worn.erases_per_save, worn.programs_max
            );
            a1 - a0 <= 1 && b1 - b0 <= 1
        }
        "life" => {
            let mut question = Question {
                elections_per_day: options.number("--elections-per-day", 24.0)?,
                boots_per_day: options.number("--boots-per-day", 1.0)?,
                endurance: options.optional("--endurance")?,
                sectors: options.optional("--sectors")?,
                board: options.optional("--board")?,
                ..Question::default()
            };
            if let Some(length) = options.optional("--bytes")? {
                question.lengths = vec![length];
            }
            options.none_left()?;
            let (text, kept) = table(&question)?;
            print!("{text}");
            kept
        }
        "show" => {
            let (_, image) = read_image(&mut options)?;
            options.none_left()?;
            print!("{}", show(&image)?);
            true
        }
        "provision" => {
            let incarnation = options.optional("--incarnation")?;
            let file: Option<String> = options.optional("--configuration")?;
            let read = |path| std::fs::read(&path).map_err(|error| format!("{path}: {error}"));
            let values = Values {
                configuration: file.map(read).transpose()?.map(|bytes| (bytes, 1)),
                keys: None,
                incarnation: incarnation.ok_or("--incarnation N is missing")?,
                first_epoch: options.number("--first-epoch", 0)?,
            };
            let (path, mut image) = read_image(&mut options)?;
            options.none_left()?;
            println!("{}", provision(&mut image, &values)?);
            std::fs::write(&path, &image.bytes).map_err(|error| format!("{path}: {error}"))?;
            true
        }
        other => return Err(format!("unknown command {other}")),
    };
    println!("{:.1} s", started.elapsed().as_secs_f64());
    Ok(good)
}

/// The options that describe an image, and its path.
fn read_image(options: &mut Options) -> Result<(String, Image), String> {
    let layout = Layout {
        a: range(options.optional("--a")?, "--a")?,
        b: range(options.optional("--b")?, "--b")?,
    };
    let sector_bytes = options.number("--sector", 65_536)?;
    let word_bytes = options.number("--word", 4)?;
    let path = options.0.pop().ok_or("no image")?;
    let bytes = std::fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
    Ok((path, Image { bytes, sector_bytes, word_bytes, layout }))
}

fn report(tally: &Tally) -> bool {
    println!("{}", tally.line());
    for violation in &tally.violations {
        println!("  {violation}");
    }
    tally.violations_total == 0
}

/// The deep run covers all word sizes, both word rules, and flickering as well as stable bits.
fn cuts(deep: bool, seed: u64) -> Tally {
    let steps = life(50, seed, 300);
    if !deep {
        return explore(&Bench::<4, 4096>::new(3), &steps, Depth::REDUCED, seed);
    }
    let part = Depth { program_stride: 3, erase_stride: 7, second_every: 3, ..Depth::DEEP };
    let mut tally = Tally::default();
    let mut run = |name: &str, more: Tally| {
        println!("{name}:");
        report(&more);
        tally.add(more);
    };
    run(
        "4-byte words, 3 sectors, flicker",
        explore(&Bench::<4, 4096>::new(3), &steps, Depth::DEEP, seed),
    );
    let mut stable = Bench::<4, 4096>::new(3);
    stable.flicker = false;
    run("4-byte words, 3 sectors, stable", explore(&stable, &steps, part, seed));
    let mut bytes = Bench::<1, 4096>::new(4);
    bytes.rule = WordRule::ClearBits;
    run("1-byte words, 4 sectors, flicker", explore(&bytes, &steps, part, seed + 1));
    run(
        "8-byte words, 4 sectors, flicker",
        explore(&Bench::<8, 4096>::new(4), &steps, part, seed + 2),
    );
    run(
        "16-byte words, 8 KiB, flicker",
        explore(&Bench::<16, 8192>::new(3), &steps, part, seed + 3),
    );
    run(
        "32-byte words, 5 sectors, flicker",
        explore(&Bench::<32, 4096>::new(5), &life(50, seed, 640), part, seed + 4),
    );
    tally
}

/// Reads `FROM..TO`, decimal or with 0x.
fn range(text: Option<String>, name: &str) -> Result<Range<u32>, String> {
    let text = text.ok_or(format!("{name} FROM..TO is missing"))?;
    let number = |part: &str| match part.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => part.parse().ok(),
    };
    text.split_once("..")
        .and_then(|(from, to)| Some(number(from)?..number(to)?))
        .ok_or(format!("{name}: cannot read {text}"))
}

struct Options(Vec<String>);

impl Options {
    fn flag(&mut self, name: &str) -> bool {
        let found = self.0.iter().position(|option| option == name);
        found.map(|index| self.0.remove(index)).is_some()
    }

    fn optional<T: std::str::FromStr>(&mut self, name: &str) -> Result<Option<T>, String> {
        let Some(index) = self.0.iter().position(|option| option == name) else {
            return Ok(None);
        };
        self.0.remove(index);
        if index >= self.0.len() {
            return Err(format!("{name} needs a value"));
        }
        let value = self.0.remove(index);
        value.parse().map(Some).map_err(|_| format!("{name}: cannot read {value}"))
    }

    fn number<T: std::str::FromStr>(&mut self, name: &str, default: T) -> Result<T, String> {
        Ok(self.optional(name)?.unwrap_or(default))
    }

    fn none_left(&self) -> Result<(), String> {
        match self.0.first() {
            Some(option) => Err(format!("unknown option {option}")),
            None => Ok(()),
        }
    }
}
