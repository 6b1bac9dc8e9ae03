//! Whether a board, or the switch between boards, waits for a core of the host.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bellwether_clock::processor_time;

/// How QEMU names the thread that runs the board's processor (`debug-threads=on`).
const PROCESSOR_THREAD: &str = "CPU";

/// Somebody in the host's queues.
#[derive(Debug)]
pub struct Queued {
    /// Of a process, or of a thread of this one.
    id: u32,
    /// Of a process: what it had used of cores at the last renewal of the clock.
    used: Option<u64>,
    /// `stat` of the threads that matter; empty until they are there.
    threads: Vec<File>,
}

impl Queued {
    /// A QEMU.
    pub fn process(id: u32) -> Self {
        Self { id, used: Some(0), threads: Vec::new() }
    }

    /// A thread of the lab that never computes for long: if it could run, it waits.
    pub fn thread(id: u32) -> Self {
        let stat = File::open(format!("/proc/self/task/{id}/stat"));
        Self { id, used: None, threads: stat.into_iter().collect() }
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    /// A thread of it could run, and it has had less than `enough` of a core (nanoseconds) since the last
    /// renewal. A process that was stopped (SIGSTOP) could not run, and one that has ended does not wait
    /// either.
    pub fn waits_for_a_core(&mut self, enough: u64) -> bool {
        if let Some(before) = self.used {
            let used = processor_time(self.id);
            if used.is_none_or(|used| used.saturating_sub(before) >= enough) {
                return false;
            }
            if self.threads.is_empty() {
                self.threads = threads(self.id);
            }
        }
        self.threads.iter().any(|stat| state(stat) == Some(b'R'))
    }

    /// A thread of it runs or could.
    pub fn could_run(&mut self) -> bool {
        self.waits_for_a_core(u64::MAX)
    }

    /// The clock goes on: from now on it must run again.
    pub fn renew(&mut self) {
        self.used = self.used.map(|used| processor_time(self.id).unwrap_or(used));
    }
}

/// The main loop, and the thread of the board's processor; nothing if that is not there yet.
fn threads(process: u32) -> Vec<File> {
    let tasks = PathBuf::from(format!("/proc/{process}/task"));
    let is_processor = |task: &Path| {
        let name = std::fs::read_to_string(task.join("comm")).unwrap_or_default();
        name.starts_with(PROCESSOR_THREAD)
    };
    let found = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
    let processors: Vec<PathBuf> =
        found.map(|task| task.path()).filter(|task| is_processor(task)).collect();
    if processors.is_empty() {
        return Vec::new();
    }
    let all = processors.into_iter().chain([tasks.join(process.to_string())]);
    all.filter_map(|task| File::open(task.join("stat")).ok()).collect()
}

/// `123 (name) S …`: R runs or could run, S and D sleep, T was stopped.
fn state(stat: &File) -> Option<u8> {
    let mut room = [0; 64];
    let read = stat.read_at(&mut room, 0).ok()?;
    let end = room[..read].iter().rposition(|byte| *byte == b')')?;
    room.get(end + 2).copied()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    /// A process whose only thread is taken for that of a board's processor.
    fn queued(child: &Child) -> Queued {
        let stat = File::open(format!("/proc/{}/stat", child.id())).unwrap();
        Queued { id: child.id(), used: Some(0), threads: vec![stat] }
    }

    fn ended(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn who_sleeps_waits_for_no_core() {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let mut queued = queued(&child);
        // It may still be starting.
        while state(&queued.threads[0]) != Some(b'S') {
            std::thread::yield_now();
        }
        queued.renew();
        assert!(!queued.waits_for_a_core(u64::MAX));
        ended(child);
    }

    #[test]
    fn who_could_run_waits_until_it_had_enough() {
        let child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let mut queued = queued(&child);
        queued.renew();
        assert!(queued.waits_for_a_core(u64::MAX));
        while queued.waits_for_a_core(1_000_000) {
            std::thread::yield_now();
        }
        let process = Pid::from_raw(child.id() as i32).unwrap();
        kill_process(process, Signal::STOP).unwrap();
        while state(&queued.threads[0]) != Some(b'T') {
            std::thread::yield_now();
        }
        assert!(!queued.waits_for_a_core(u64::MAX), "who is stopped does not wait");
        ended(child);
    }

    #[test]
    fn a_thread_that_runs_could_run() {
        let me = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert!(Queued::thread(me).waits_for_a_core(0));
        assert!(!Queued::thread(u32::MAX).waits_for_a_core(u64::MAX));
    }

    #[test]
    fn who_has_ended_waits_for_nothing() {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let mut queued = queued(&child);
        ended(child);
        assert!(!queued.waits_for_a_core(u64::MAX));
        assert!(threads(queued.id).is_empty());
    }
}
