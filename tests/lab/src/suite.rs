//! The system tests: what every change of the firmware has to pass on emulated boards.
//!
//! Each flock has a clock of its own that stands still while the host is busy elsewhere, so several run at
//! once. What measures the host itself runs alone.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::attack;
use crate::boards;
use crate::budget;
use crate::clash;
use crate::clock::{self, Clock};
use crate::cost;
use crate::display::Printer;
use crate::erase;
use crate::host::Lateness;
use crate::labs;
use crate::mute;
use crate::numbers;
use crate::play::{self, Floors};
use crate::plays::{self, Play};
use crate::probe::Image;
use crate::provoke;
use crate::rekey;
use crate::tools;

/// Flocks at once, on two cores. More only take longer each.
const AT_ONCE: usize = 3;
/// How long the attacker uses each weapon.
const FLOOD: Duration = Duration::from_secs(6);
const FLOOD_DEEP: Duration = Duration::from_secs(60);
/// On the host's clock more than this excuses a failed test that is no scenario: half of the Tp that they use.
const HOST_LATE_MAX: Duration = Duration::from_millis(20);

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    /// Only on the host's clock: the host was too late.
    Inconclusive,
}

/// What a test says of itself when it ends.
struct Told {
    verdict: Verdict,
    /// Behind its name and the seconds that it took.
    seen: String,
    /// Lines of their own.
    failures: Vec<String>,
    /// How the flock of a scenario settled, one time after the other.
    settled: Vec<Settled>,
}

/// A coordinator and all live nodes.
type Settled = (u8, Vec<u8>);

struct Test<'a> {
    name: String,
    /// Nothing else may run meanwhile.
    alone: bool,
    /// The flock settles in the same way every time.
    repeats: bool,
    run: Box<dyn Fn() -> Told + Send + Sync + 'a>,
}

impl<'a> Test<'a> {
    /// A test that says by itself what it saw.
    fn of(name: &str, check: impl Fn() -> Result<String, String> + Send + Sync + 'a) -> Self {
        let run = move || {
            let lateness = clock::is_hosts().then(|| Lateness::watch(Clock::host()));
            let result = check();
            let late = lateness.is_some_and(|lateness| lateness.most() > HOST_LATE_MAX);
            let verdict = match (&result, late) {
                (Ok(_), _) => Verdict::Passed,
                (Err(_), false) => Verdict::Failed,
                (Err(_), true) => Verdict::Inconclusive,
            };
            let (seen, failures) = match result {
                Ok(seen) => (seen, Vec::new()),
                Err(why) => (String::new(), vec![why]),
            };
            Told { verdict, seen, failures, settled: Vec::new() }
        };
        Self { name: name.to_owned(), alone: false, repeats: false, run: Box::new(run) }
    }

    fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    fn play(play: &'a Play, stop: &'a AtomicBool) -> Self {
        let run = Box::new(move || play_one(play, stop));
        Self { name: play.name(), alone: false, repeats: play.repeats, run }
    }
}

fn play_one(play: &Play, stop: &AtomicBool) -> Told {
    let (scenario, factor) = play::choose_times(&play.scenario, play.times, Floors::in_force());
    let played = play::until_conclusive(factor, stop, |factor| {
        let mut display = Printer::new(true);
        let mut outcome = play::play(&scenario, factor, &play.images, None, stop, &mut display)?;
        outcome.failures.extend(plays::beside_the_point(&scenario, &outcome));
        Ok(outcome)
    });
    match played {
        Err(why) => Told {
            verdict: Verdict::Failed,
            seen: String::new(),
            failures: vec![why],
            settled: Vec::new(),
        },
        Ok(outcome) => {
            let verdict = match (outcome.failures.is_empty(), outcome.is_inconclusive()) {
                (true, _) => Verdict::Passed,
                (false, true) => Verdict::Inconclusive,
                (false, false) => Verdict::Failed,
            };
            let failures = outcome.failures.iter().take(4).cloned().collect();
            let settled = play::settlements(outcome.run.nodes, &outcome.events);
            let settled = settled.into_iter().map(|once| (once.coordinator, once.members));
            let settled = settled.collect();
            Told { verdict, seen: outcome.of_the_clock(), failures, settled }
        }
    }
}

/// Everything that is not a scenario.
fn checks<'a>(image: &'a Arc<Image>, deep: bool) -> Vec<Test<'a>> {
    let mut tests = vec![Test::of("budget", || {
        let sizes = budget::measure(image)?;
        Ok(format!("{} bytes of flash, {} of memory", sizes.flash, sizes.memory))
    })];
    for (name, test) in mute::TESTS {
        tests.push(Test::of(name, move || test(image).map(|()| String::new())));
    }
    for (name, test) in labs::TESTS {
        tests.push(Test::of(name, test));
    }
    tests.push(Test::of("two boards with one id", || clash::run(image)));
    tests.push(Test::of("cost of a seal", cost::run));
    tests.push(Test::of("provoked failures, sf2", || provoke::run(&boards::ALL[0])));
    tests.push(Test::of("provoked failures, mps2-an385", || provoke::run(&boards::ALL[1])));
    let flood = if deep { FLOOD_DEEP } else { FLOOD };
    for (name, weapon) in attack::TESTS {
        tests.push(Test::of(name, move || attack::run(image, weapon, flood)));
    }
    for (name, test) in erase::TESTS.into_iter().chain(rekey::TESTS) {
        tests.push(Test::of(name, move || test(image)));
    }
    for (name, test) in numbers::TESTS {
        tests.push(Test::of(name, move || test(image)).alone());
    }
    tests
}

/// How the flocks of scenarios settled when they were played first.
type First = Mutex<BTreeMap<String, Vec<Settled>>>;

/// What to say if the flock of a scenario did not settle as it did the first time.
fn differs(name: &str, settled: &[Settled], first: &First) -> Option<String> {
    let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
    match first.get(name) {
        None => {
            first.insert(name.to_owned(), settled.to_vec());
            None
        }
        Some(before) => (before != settled)
            .then(|| format!("settled as {settled:?}, and the first time as {before:?}")),
    }
}

/// Runs a test and says how it went.
fn carry_out(test: &Test<'_>, first: &First, stop: &AtomicBool) -> Verdict {
    let began = Instant::now();
    let Told { mut verdict, seen, mut failures, settled } = (test.run)();
    if verdict == Verdict::Passed
        && test.repeats
        && let Some(what) = differs(&test.name, &settled, first)
    {
        verdict = Verdict::Failed;
        failures.push(what);
    }
    let stopped = stop.load(Ordering::Relaxed);
    let (verdict, word) = match verdict {
        _ if stopped => (Verdict::Failed, "STOPPED"),
        Verdict::Passed => (verdict, "ok     "),
        Verdict::Inconclusive => (verdict, "unsure "),
        Verdict::Failed => (verdict, "FAILED "),
    };
    let colon = if seen.is_empty() { "" } else { ": " };
    let mut said =
        format!("{word} {}, {:.0} s{colon}{seen}", test.name, began.elapsed().as_secs_f64());
    for failure in failures {
        said += &format!("\n        {failure}");
    }
    // At once, or lines of tests that run at the same time mix.
    println!("{said}");
    verdict
}

/// Runs these tests, so many at once.
fn carry_out_all(
    tests: &[&Test<'_>],
    at_once: usize,
    first: &First,
    stop: &AtomicBool,
) -> Vec<Verdict> {
    let waiting = Mutex::new(tests.iter().collect::<VecDeque<_>>());
    let verdicts = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some(test) = next.filter(|_| !stop.load(Ordering::Relaxed)) else { break };
                    let verdict = carry_out(test, first, stop);
                    verdicts.lock().unwrap_or_else(PoisonError::into_inner).push(verdict);
                }
            });
        }
    });
    verdicts.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs all system tests; the exit code of the lab.
pub fn run(filter: Option<&str>, deep: bool, repeat: u32, stop: &AtomicBool) -> Result<u8, String> {
    let image = &Arc::new(tools::firmware(boards::default())?);
    let other = &Arc::new(tools::firmware(&boards::ALL[1])?);
    // Now, so that no test waits for the other's build.
    for board in &boards::ALL[..2] {
        tools::provoked(board)?;
    }
    tools::prefer_lab();
    let on_host = clock::is_hosts();
    let times = if on_host { plays::HOST_TIMES } else { plays::TIMES };
    let plays = plays::all(image, other, times)?;
    // The longest first, so that none of them is left over at the end.
    let mut tests: Vec<Test<'_>> = plays.iter().map(|play| Test::play(play, stop)).collect();
    tests.sort_by_key(|test| !test.name.contains("every change saved"));
    tests.extend(checks(image, deep));
    tests.retain(|test| filter.is_none_or(|filter| test.name.contains(filter)));
    let (alone, together): (Vec<_>, Vec<_>) = tests.iter().partition(|test| test.alone);
    let began = Instant::now();
    let (first, mut verdicts) = (First::default(), Vec::new());
    for _ in 0..repeat {
        let at_once = if on_host { 1 } else { AT_ONCE };
        verdicts.extend(carry_out_all(&together, at_once, &first, stop));
        verdicts.extend(carry_out_all(&alone, 1, &first, stop));
    }
    let count = |wanted: Verdict| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let (failed, unsure) = (count(Verdict::Failed), count(Verdict::Inconclusive));
    let inconclusive = if on_host { format!(", {unsure} inconclusive") } else { String::new() };
    println!(
        "{} passed, {failed} failed{inconclusive}, {:.0} s",
        count(Verdict::Passed),
        began.elapsed().as_secs_f64()
    );
    Ok(match (failed, unsure) {
        _ if verdicts.is_empty() => return Err("there is no such test".into()),
        (0, 0) => 0,
        (0, _) => crate::INCONCLUSIVE,
        _ => crate::FAILED,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_check_says_is_its_verdict() {
        let passed = (Test::of("x", || Ok("7 s".into())).run)();
        assert_eq!((passed.verdict, passed.seen.as_str()), (Verdict::Passed, "7 s"));
        let failed = (Test::of("x", || Err("no".into())).run)();
        assert_ne!(failed.verdict, Verdict::Passed);
        assert_eq!(failed.failures, ["no"]);
    }

    #[test]
    fn a_flock_must_settle_as_it_did_the_first_time() {
        let first = First::default();
        let (once, twice) = ([(5, vec![1, 5])], [(5, vec![1, 5]), (1, vec![1])]);
        assert_eq!(differs("a", &once, &first), None);
        assert_eq!(differs("a", &once, &first), None);
        assert_eq!(differs("b", &twice, &first), None);
        assert!(differs("a", &twice, &first).is_some());
        assert!(differs("a", &[(4, vec![1, 5])], &first).is_some());
    }

    #[test]
    fn all_tests_run_however_many_at_once() {
        let ran = Mutex::new(Vec::new());
        let test = |name: &'static str| {
            let ran = &ran;
            let run = move || {
                ran.lock().unwrap().push(name);
                Ok(String::new())
            };
            Test::of(name, run)
        };
        let (stop, tests) = (AtomicBool::new(false), [test("a"), test("b"), test("c")]);
        let tests: Vec<_> = tests.iter().collect();
        let verdicts = carry_out_all(&tests, 2, &First::default(), &stop);
        assert_eq!(verdicts, [Verdict::Passed; 3]);
        let mut names = ran.lock().unwrap().clone();
        names.sort_unstable();
        assert_eq!(names, ["a", "b", "c"]);
    }
}
