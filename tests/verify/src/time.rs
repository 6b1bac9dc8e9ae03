//! Where the time went, and how it compares with what a run may take.

use std::fmt::Write;
use std::fs;
use std::time::Duration;

use crate::options::{Asked, Depth};
use crate::run;
use crate::schedule::Done;

/// Linux counts the time of processes in hundredths of a second.
const TICKS_PER_SECOND: u64 = 100;

/// The CPU time of this process and of all that it has waited for, where the system tells it.
pub fn own_cpu() -> Option<Duration> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    read_cpu(&text)
}

fn read_cpu(stat: &str) -> Option<Duration> {
    // The name of the program stands in brackets and may hold anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    // utime, stime, cutime, cstime; the state of the process comes first.
    let fields = rest.split(' ').skip(11).take(4).map(str::parse::<u64>);
    let ticks = fields.collect::<Result<Vec<_>, _>>().ok().filter(|all| all.len() == 4)?;
    Some(Duration::from_millis(ticks.iter().sum::<u64>() * 1000 / TICKS_PER_SECOND))
}

/// For the process that started this one.
pub fn describe_cpu(cpu: Option<Duration>) -> String {
    format!("cpu {}", cpu.map_or(-1.0, |cpu| cpu.as_secs_f64()))
}

/// From what `describe_cpu` made.
pub fn read_described(line: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(line.strip_prefix("cpu ")?.parse().ok()?).ok()
}

/// What a whole run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goal {
    most: Duration,
    when: &'static str,
}

impl Goal {
    /// The goal, if there is one. What was built before decides whether the run is a cold one.
    pub fn of(depth: Depth, asked: &Asked) -> Option<Self> {
        Self::for_run(depth, asked, run::program("bellwether-lab").exists())
    }

    fn for_run(depth: Depth, asked: &Asked, warm: bool) -> Option<Self> {
        let goal =
            |minutes: u64, when| Some(Self { most: Duration::from_secs(minutes * 60), when });
        match (depth, warm) {
            _ if *asked != Asked::All => None,
            (Depth::Deep, _) | (Depth::Quick, false) => None,
            (Depth::Usual, false) => goal(20, "cold: everything had to be built"),
            (Depth::Usual, true) => goal(8, "warm"),
            (Depth::Quick, true) => goal(3, "quick, warm"),
        }
    }
}

fn spoken(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    if seconds < 60 {
        format!("{seconds} s")
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

/// The steps, longest first, and the total with the goal beside it.
pub fn table(done: &[Done], total: Duration, goal: Option<Goal>) -> String {
    let mut sorted: Vec<&Done> = done.iter().collect();
    sorted.sort_by_key(|done| std::cmp::Reverse(done.wall));
    let mut text = String::from("---- where the time went\n  wall s   CPU s  step\n");
    for done in sorted {
        let cpu = done.cpu.map_or("-".into(), |cpu| format!("{:.0}", cpu.as_secs_f64()));
        let wall = done.wall.as_secs_f64();
        let _ = writeln!(text, "{wall:>8.0} {cpu:>7}  {}", done.name);
    }
    let cpu: Duration = done.iter().filter_map(|done| done.cpu).sum();
    let _ = write!(text, "total {}, CPU {}", spoken(total), spoken(cpu));
    if let Some(Goal { most, when }) = goal {
        let outcome = if total <= most { "kept" } else { "MISSED" };
        let _ = write!(text, "; goal {} ({when}): {outcome}", spoken(most));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::run::Verdict;

    #[test]
    fn the_time_of_a_process_and_its_children_is_read() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 9 8 0 0 100 20 3000 400 20 0 1 0 55 1 1";
        assert_eq!(read_cpu(stat), Some(Duration::from_millis(35_200)));
        assert_eq!(read_cpu("7 (a) S 1 2"), None);
        assert_eq!(read_cpu(""), None);
    }

    #[test]
    fn times_are_handed_on() {
        let some = Duration::from_millis(1250);
        assert_eq!(read_described(&describe_cpu(Some(some))), Some(some));
        assert_eq!(read_described(&describe_cpu(None)), None);
        assert_eq!(read_described("1 passed, 0 failed"), None);
    }

    fn done(name: &str, wall: u64, cpu: Option<u64>) -> Done {
        let cpu = cpu.map(Duration::from_secs);
        let wall = Duration::from_secs(wall);
        Done { name: name.into(), verdict: Verdict::of(true), wall, cpu, begun: true }
    }

    #[test]
    fn the_longest_is_told_first_and_a_missed_goal_is_said() {
        let all = [done("short", 3, None), done("long", 70, Some(100))];
        let goal = Goal::for_run(Depth::Usual, &Asked::All, true);
        let text = table(&all, Duration::from_secs(73), goal);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "      70     100  long");
        assert_eq!(lines[3], "       3       -  short");
        let said = "total 1 min 13 s, CPU 1 min 40 s; goal 8 min 00 s (warm): kept";
        assert_eq!(lines[4], said);
        let late = table(&all, Duration::from_secs(481), goal);
        assert!(late.trim_end().ends_with("(warm): MISSED"), "{late}");
    }

    #[test]
    fn a_part_of_a_run_has_no_goal() {
        assert_eq!(Goal::for_run(Depth::Usual, &Asked::Only("x".into()), true), None);
        assert_eq!(Goal::for_run(Depth::Deep, &Asked::All, false), None);
        let cold = Goal::for_run(Depth::Usual, &Asked::All, false).unwrap();
        assert_eq!(cold.most, Duration::from_secs(1200));
    }
}
