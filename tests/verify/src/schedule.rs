//! Which step runs when: two at a time, each in a process of its own, which alone can tell how much CPU
//! time its commands took.

use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::options::Depth;
use crate::run::Verdict;
use crate::steps::{Step, When};
use crate::time;

/// How many steps run at a time.
const WORKERS: usize = 2;

/// A step that has ended.
#[derive(Debug)]
pub struct Done {
    pub name: String,
    pub verdict: Verdict,
    pub wall: Duration,
    pub cpu: Option<Duration>,
    /// Whether it was begun at all.
    pub begun: bool,
}

/// The steps whose name contains this, and the steps that they need.
pub fn only(mut steps: Vec<Step>, part: &str) -> Vec<Step> {
    let mut wanted: Vec<bool> = steps.iter().map(|step| step.name.contains(part)).collect();
    // What is needed stands before what needs it.
    for index in (0..steps.len()).rev() {
        let needed = steps[index].needs.filter(|_| wanted[index]);
        if let Some(at) = steps.iter().position(|step| needed == Some(&*step.name)) {
            wanted[at] = true;
        }
    }
    let mut wanted = wanted.into_iter();
    steps.retain(|_| wanted.next().unwrap_or(false));
    steps
}

/// Runs this program once more for a step, and prints what it found.
pub fn in_a_process(step: &Step, depth: Depth) -> Done {
    println!("     begun: {}", step.name);
    let began = Instant::now();
    let output = std::env::current_exe().and_then(|program| {
        let mut command = Command::new(program);
        command.args(["--step", &step.name]).args(depth.option());
        command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()
    });
    let said = match &output {
        Ok(output) => String::from_utf8_lossy(&output.stdout),
        Err(error) => format!("     | not started: {error}\n").into(),
    };
    let done = read(&step.name, &said, began.elapsed());
    let outcome = if done.verdict.failed == 0 { "ok" } else { "FAILED" };
    let mut text = format!("---- {}\n", step.name);
    for line in said.lines().filter(|line| !is_for_this_program(line)) {
        text += &format!("{line}\n");
    }
    let cpu = done.cpu.map_or(String::new(), |cpu| format!(", CPU {:.0} s", cpu.as_secs_f64()));
    let (counts, wall) = (done.verdict.describe(), done.wall.as_secs());
    println!("{text}     {outcome}: {counts} in {wall} s{cpu}");
    done
}

fn is_for_this_program(line: &str) -> bool {
    Verdict::read(line).is_some() || line.starts_with("cpu ")
}

/// What the process of a step said with its last two lines.
fn read(name: &str, said: &str, wall: Duration) -> Done {
    let mut last = said.lines().rev();
    let verdict = last.next().and_then(Verdict::read);
    let cpu = last.next().and_then(time::read_described);
    // Without a verdict it ended before it could say how.
    let verdict = verdict.unwrap_or(Verdict::of(false));
    Done { name: name.into(), verdict, wall, cpu, begun: true }
}

/// What the workers share.
struct State<'a> {
    waiting: Vec<&'a Step>,
    running: usize,
    /// Where something is being built.
    folders: Vec<&'static str>,
    done: Vec<Done>,
}

impl<'a> State<'a> {
    /// The first step that can start now.
    fn take(&mut self) -> Option<&'a Step> {
        let free = |step: &&Step| step.builds_in.is_none_or(|it| !self.folders.contains(&it));
        let passed = |name| self.done.iter().any(|it| it.name == name && it.verdict.failed == 0);
        let can_start = |step: &&Step| free(step) && step.needs.is_none_or(passed);
        let at = self.waiting.iter().position(can_start)?;
        let step = self.waiting.remove(at);
        self.folders.extend(step.builds_in);
        self.running += 1;
        Some(step)
    }

    fn end(&mut self, step: &Step, done: Done) {
        self.running -= 1;
        self.folders.retain(|folder| Some(*folder) != step.builds_in);
        self.done.push(done);
    }

    /// What waits for a step that failed has failed too.
    fn give_up(&mut self) {
        for step in self.waiting.drain(..) {
            println!("---- {}\n     FAILED: not run, what it runs could not be built", step.name);
            let (name, verdict) = (step.name.clone(), Verdict::of(false));
            let (wall, cpu) = (Duration::ZERO, None);
            self.done.push(Done { name, verdict, wall, cpu, begun: false });
        }
    }
}

/// Runs the steps: first those that prepare, then two at a time.
pub fn run(steps: &[Step], depth: Depth, work: impl Fn(&Step, Depth) -> Done + Sync) -> Vec<Done> {
    let (waiting, folders, done) = (Vec::new(), Vec::new(), Vec::new());
    let state = Mutex::new(State { waiting, running: 0, folders, done });
    let ended = Condvar::new();
    for (when, workers) in [(When::First, 1), (When::Together, WORKERS)] {
        lock(&state).waiting.extend(steps.iter().filter(|step| step.when == when));
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some(step) = next(&state, &ended) {
                        let done = work(step, depth);
                        lock(&state).end(step, done);
                        ended.notify_all();
                    }
                });
            }
        });
    }
    state.into_inner().unwrap_or_else(PoisonError::into_inner).done
}

fn lock<'s, 'a>(state: &'s Mutex<State<'a>>) -> MutexGuard<'s, State<'a>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next step, when it can start; none when there is nothing left to do.
fn next<'a>(state: &Mutex<State<'a>>, ended: &Condvar) -> Option<&'a Step> {
    let mut state = lock(state);
    loop {
        if let Some(step) = state.take() {
            return Some(step);
        }
        if state.running == 0 {
            state.give_up();
        }
        if state.waiting.is_empty() {
            return None;
        }
        state = ended.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str) -> Step {
        Step::new(name, |_| Verdict::of(true))
    }

    fn programs() -> Step {
        step("programs").building("target")
    }

    /// Runs steps of which one fails, if it is named; says in which order they ended.
    fn order(steps: &[Step], failing: &str) -> Vec<(String, u64)> {
        let work = |step: &Step, _| {
            let verdict = Verdict::of(step.name != failing);
            Done { name: step.name.clone(), verdict, wall: Duration::ZERO, cpu: None, begun: true }
        };
        let done = run(steps, Depth::Usual, work);
        done.into_iter().map(|done| (done.name, done.verdict.failed)).collect()
    }

    #[test]
    fn every_step_runs_once_and_what_is_first_is() {
        let steps = [step("b"), step("c"), step("z"), step("a").on(When::First)];
        let order = order(&steps, "");
        assert_eq!(order.len(), 4);
        assert_eq!(&*order[0].0, "a");
    }

    #[test]
    fn what_needs_the_programs_waits_for_them() {
        let steps = [step("runs").needing("programs"), programs()];
        assert_eq!(order(&steps, ""), [("programs".into(), 0), ("runs".into(), 0)]);
    }

    #[test]
    fn without_programs_what_needs_them_has_failed_and_the_rest_has_not() {
        let last = step("boards").needing("programs");
        let steps = [step("runs").needing("programs"), programs(), step("other"), last];
        let mut order = order(&steps, "programs");
        order.sort();
        let failed = |name: &str, failed| (name.to_owned(), failed);
        let wanted = [failed("boards", 1), failed("other", 0), failed("programs", 1)];
        assert_eq!(order[..3], wanted);
        assert_eq!(order[3], failed("runs", 1));
    }

    #[test]
    fn two_steps_never_build_in_one_folder_at_a_time() {
        let steps: Vec<Step> = (0..20).map(|_| step("x").building("target")).collect();
        let inside = Mutex::new(());
        let done = run(&steps, Depth::Usual, |step, _| {
            let _alone = inside.try_lock().expect("nobody else builds here");
            std::thread::yield_now();
            Done {
                name: step.name.clone(),
                verdict: Verdict::of(true),
                wall: Duration::ZERO,
                cpu: None,
                begun: true,
            }
        });
        assert_eq!(done.len(), 20);
    }

    #[test]
    fn a_part_of_the_steps_comes_with_the_programs_that_it_needs() {
        let steps = || vec![programs(), step("random runs").needing("programs"), step("format")];
        let names =
            |part| only(steps(), part).into_iter().map(|step| step.name).collect::<Vec<_>>();
        assert_eq!(names("random"), ["programs", "random runs"]);
        assert_eq!(names("format"), ["format"]);
        let chain = vec![programs(), step("b").needing("programs"), step("c").needing("b")];
        assert_eq!(only(chain, "c").len(), 3);
    }

    #[test]
    fn a_process_without_a_verdict_has_failed() {
        let read = |said| read("x", said, Duration::ZERO);
        let done = read("     as usual\ncpu 1.5\n3 passed, 0 failed\n");
        assert_eq!((done.verdict.passed, done.verdict.failed), (3, 0));
        assert_eq!(done.cpu, Some(Duration::from_millis(1500)));
        assert_eq!(read("     as usual\n").verdict.failed, 1);
        assert_eq!(read("").verdict.failed, 1);
    }
}
