//! The suite of a board's drivers (boards/common/src/suite.rs): run on emulated boards, built for all.

use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::boards::{self, Board};
use crate::clock::Clock;
use crate::flash;
use crate::folder;
use crate::line::Line;
use crate::machine::{Files, Machine};
use crate::probe::Probe;
use crate::tools;

/// What must come, in this order: cases, and boots with their cause. See [`course`] for what some boards
/// leave out.
const COURSE: [&str; 25] = [
    "power",
    "flash-words-fit-the-cells",
    "flash-erase-sets-all-bits",
    "flash-keeps-what-is-written",
    "flash-reaches-its-last-word",
    "flash-write-only-clears-bits",
    "flash-erase-spares-the-next-sector",
    "flash-refuses-what-is-out-of-bounds",
    "flash-refuses-what-is-not-aligned",
    "clock-goes-forward",
    "alarms-are-not-early",
    "alarms-come-in-order",
    "random-numbers-differ",
    "link-comes-up",
    "frames-come-back",
    "frames-have-the-time-of-their-arrival",
    "bursts-come-back-in-order",
    "noise-stays-outside",
    "deadline-waits",
    "deadline",
    "flash-outlives-a-reset",
    "watchdog",
    "panic",
    "request",
    "end",
];
/// Only where words can be written twice.
const TWICE: &str = "flash-write-only-clears-bits";
/// Only where every frame comes back.
const ECHOED: [&str; 4] = [
    "frames-come-back",
    "frames-have-the-time-of-their-arrival",
    "bursts-come-back-in-order",
    "noise-stays-outside",
];

/// The course of one board.
fn course(board: &Board) -> Vec<&'static str> {
    let tried = |step: &&str| match *step {
        TWICE => board.word_bytes <= 4,
        // One of the two ends what the other would.
        "deadline" => !board.deadline_is_watchdog,
        "watchdog" => board.watchdog && !board.deadline_is_watchdog,
        step if ECHOED.contains(&step) => board.machine.is_some(),
        _ => true,
    };
    let mut course: Vec<_> = COURSE.into_iter().filter(tried).collect();
    if board.deadline_is_watchdog
        && let Some(at) = course.iter().position(|step| *step == "flash-outlives-a-reset")
    {
        course.insert(at, "watchdog");
    }
    course
}

/// The longest wait for the next step, by the board's clock: a watchdog, or erases.
const PATIENCE: Duration = Duration::from_secs(20);

/// Between two looks whether it is over.
const LOOK: Duration = Duration::from_millis(100);

/// Sends every frame back, until it is dropped.
struct Echo {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    fn start(files: &Files) -> std::io::Result<Self> {
        let port = UnixDatagram::bind(files.port())?;
        port.set_read_timeout(Some(Duration::from_millis(50)))?;
        let (stop, nic) = (Arc::new(AtomicBool::new(false)), files.nic());
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut frame = [0; 2048];
            while !stopped.load(Ordering::Relaxed) {
                if let Ok(len) = port.recv(&mut frame) {
                    // A board that has gone wants no frames.
                    let _ = port.send_to(&frame[..len], &nic);
                }
            }
        });
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Tries the drivers of one board.
pub fn run(board: &'static Board) -> Result<String, String> {
    let image = Arc::new(tools::driver_suite(board)?);
    let folder = folder::create().map_err(|error| format!("no folder for the run: {error}"))?;
    let files = Files::new(folder.path(), 1);
    flash::blank(&files.flash())?;
    let _echo = Echo::start(&files).map_err(|error| format!("no network: {error}"))?;
    let clock = Clock::start()?;
    let mut machine = Machine::start(&image, &files, &clock, false)?;
    let (heard, said) = channel();
    let _probe = Probe::start(image, files.probe(), 1, 1, heard, clock.clone());
    let mut good = 0;
    for wanted in course(board) {
        let end = clock.now() + PATIENCE;
        loop {
            let line = said.recv_timeout(LOOK);
            if let Some(why) = machine.died() {
                return Err(format!("QEMU ended by itself: {why}"));
            }
            let Ok(line) = line else {
                if clock.now() < end {
                    continue;
                }
                return Err(format!("{wanted} did not come"));
            };
            let Some(line) = Line::parse(&line.text) else { continue };
            let found = match line.word.as_str() {
                "start" => line.get("cause"),
                "case" => line.get("name"),
                "fault" => return Err(line.text().into()),
                _ => continue,
            };
            if found != Some(wanted) {
                return Err(format!("{} {} instead of {wanted}", line.word, line.text()));
            }
            if line.get("good") == Some("false") {
                return Err(format!("{wanted} is not so"));
            }
            good += 1;
            break;
        }
    }
    // The probe ends with its machine.
    drop(machine);
    Ok(format!("{good} steps"))
}

/// Builds what whoever has the board runs first.
fn build(board: &'static Board) -> Result<String, String> {
    tools::driver_suite(board)?;
    Ok(format!(
        "only built; with a board: `cd boards/{} && cargo run --release --features suite`, {} steps",
        board.name,
        course(board).len()
    ))
}

/// Tries the drivers of all emulated boards, and builds the suite of the others; the exit code of the
/// lab.
pub fn run_all() -> u8 {
    let mut failed = 0;
    for board in &boards::ALL {
        let tried = if board.machine.is_some() { run(board) } else { build(board) };
        match tried {
            Ok(seen) => println!("ok      drivers of {}: {seen}", board.name),
            Err(why) => {
                println!("FAILED  drivers of {}: {why}", board.name);
                failed += 1;
            }
        }
    }
    u8::from(failed > 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn has(name: &str, step: &str) -> bool {
        course(boards::named(name).unwrap()).contains(&step)
    }

    #[test]
    fn every_board_has_the_course_that_it_can_take() {
        assert_eq!(course(boards::named("mps2-an385").unwrap()), COURSE);
        assert!(has("sf2", TWICE) && has("sf2", "deadline") && !has("sf2", "watchdog"));
        assert!(!has("nucleo-h563zi", TWICE) && has("nucleo-f429zi", TWICE));
        assert!(has("nucleo-h563zi", "watchdog") && has("nucleo-h563zi", "link-comes-up"));
        assert!(ECHOED.iter().all(|step| has("sf2", step) && !has("nucleo-f429zi", step)));
        let pico = course(boards::named("w5500-evb-pico2").unwrap());
        let at = pico.iter().position(|step| *step == "deadline-waits").unwrap();
        assert_eq!(&pico[at + 1..at + 4], ["watchdog", "flash-outlives-a-reset", "panic"]);
    }
}
