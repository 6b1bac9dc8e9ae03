//! The clock of a run. All boards of a run live on it, and the lab takes all its times from it.
//!
//! It is paced: it goes with the host's clock, but never by more than [`CAP`] at once, and only while every
//! core of the host has run. While the host is away (another machine has its cores, another process is
//! preferred, the lab itself is stopped) it stands still, so that no board is late because its host is.
//! Boards read it in place of the host's: a shim that is preloaded into QEMU answers `clock_gettime` from
//! the page of shared memory that this module writes (`tests/clock`). A board that alone stands still, as
//! in a scenario's pause, finds that time went on without it.
//!
//! A thread on each core naps and then says that its core has run. When all have, and neither a board nor the
//! switch waits for a core (`queue.rs`: they also keep each other from running), the clock is renewed.
//! The lab holds the clock while it does what takes no time on a bench, such as switching on five boards.
//!
//! Where there is no such shim, and for real boards, the clock is the host's own.

use std::ffi::OsString;
use std::ops::{Add, Sub};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bellwether_clock::{Page, Renewal};
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

use crate::folder;
use crate::queue::Queued;
use crate::tools;

/// How far the clock goes on without knowing whether the host is still there. A tenth of the shortest
/// times that boards are configured with.
const CAP: Duration = Duration::from_millis(2);
/// What a board that has something to do must have had of a core before the clock goes on: nearly all of the
/// step, so that boards that compute at the same time are not slower by their own clock.
const ENOUGH: u64 = CAP.as_nanos() as u64 * 7 / 8;
/// How long the lab waits for boards that were switched on to wait for the clock.
const FALLING_ASLEEP: Duration = Duration::from_millis(500);
/// Short enough that a core that runs has said so before the clock stops.
const NAP: Duration = Duration::from_micros(700);

/// A moment on the clock of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// Zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0 + span)
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }
}

/// The shim for QEMU; `None`: the lab goes by the host's clock.
static SHIM: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Decides once which clock all runs of this process go by. Says so in one line where it cannot be the
/// lab's own.
pub fn choose(host_clock: bool) {
    SHIM.get_or_init(|| {
        let shim = if host_clock { Err("--host-clock".into()) } else { usable_shim() };
        shim.inspect_err(|why| {
            println!("the boards go by the host's clock, and a late host spoils runs: {why}");
        })
        .ok()
    });
}

/// Whether runs go by the host's clock.
pub fn is_hosts() -> bool {
    !matches!(SHIM.get(), Some(Some(_)))
}

/// The shim, if a QEMU that it is preloaded into does ask it for the time.
fn usable_shim() -> Result<PathBuf, String> {
    if !cfg!(target_os = "linux") {
        return Err("another clock can be put under QEMU on Linux only".into());
    }
    let shim = tools::clock_shim()?;
    let trial = Pacer::start(&shim).map_err(|error| format!("no clock: {error}"))?;
    let asked = Command::new(tools::QEMU)
        .arg("--version")
        .envs(trial.environment())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("{}: {error}", tools::QEMU))?;
    if asked.success() && trial.page.was_asked() {
        return Ok(shim);
    }
    Err(format!("{} does not ask a preloaded library for the time", tools::QEMU))
}

/// The clock of one run; clones show the same time.
#[derive(Debug, Clone)]
pub struct Clock {
    pacer: Option<Arc<Pacer>>,
}

impl Clock {
    /// As [`choose`] has decided.
    pub fn start() -> Result<Self, String> {
        let Some(Some(shim)) = SHIM.get() else { return Ok(Self::host()) };
        let pacer = Pacer::start(shim).map_err(|error| format!("no clock for the run: {error}"))?;
        Ok(Self { pacer: Some(Arc::new(pacer)) })
    }

    /// The host's own.
    pub fn host() -> Self {
        Self { pacer: None }
    }

    /// Whether a late host is late on this clock, too.
    pub fn is_hosts(&self) -> bool {
        self.pacer.is_none()
    }

    pub fn now(&self) -> Moment {
        let host = host_ns();
        Moment(Duration::from_nanos(self.pacer.as_ref().map_or(host, |pacer| pacer.page.at(host))))
    }

    /// How far a board may be behind: the host may put it aside between its look at the clock and what it
    /// does then, and the clock notices only at its next renewal.
    pub fn blur(&self) -> Duration {
        if self.is_hosts() { Duration::ZERO } else { 2 * CAP }
    }

    /// What makes a QEMU read this clock.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        self.pacer.as_ref().map_or(Vec::new(), |pacer| pacer.environment())
    }

    /// From now on the clock waits for this QEMU whenever that waits for a core.
    #[must_use]
    pub fn follow(&self, process: u32) -> Followed {
        self.wait_for(Queued::process(process))
    }

    /// The same for the thread that calls this.
    #[must_use]
    pub fn follow_this_thread(&self) -> Followed {
        self.wait_for(Queued::thread(gettid().as_raw_nonzero().get() as u32))
    }

    fn wait_for(&self, queued: Queued) -> Followed {
        let (clock, id) = (self.clone(), queued.id());
        if let Some(pacer) = &self.pacer {
            pacer.shared.lock().queued.push(queued);
        }
        Followed { clock, id }
    }

    /// Stops the clock until what is returned is dropped. The host's goes on.
    #[must_use]
    pub fn hold(&self) -> Hold {
        if let Some(pacer) = &self.pacer {
            pacer.shared.lock().holds += 1;
        }
        Hold(self.clone())
    }

    /// While the clock is held: waits until all boards sleep until a later time. Not for long: a board may
    /// look at the clock all the time.
    pub fn wait_until_asleep(&self) {
        let Some(pacer) = &self.pacer else { return };
        let give_up = Instant::now() + FALLING_ASLEEP;
        let mut asleep = 0;
        // Twice in a row: between two frames a board sleeps, too.
        while asleep < 2 && Instant::now() < give_up {
            std::thread::sleep(NAP);
            let awake = pacer.shared.lock().queued.iter_mut().any(Queued::could_run);
            asleep = if awake { 0 } else { asleep + 1 };
        }
    }

    /// The share of the time for which the clock stood still because the host was away; `None` on the
    /// host's.
    pub fn held_back(&self) -> Option<f64> {
        let pacer = self.pacer.as_ref()?;
        let Paced { elapsed, advanced, .. } = &*pacer.shared.lock();
        Some(1.0 - *advanced as f64 / (*elapsed).max(1) as f64)
    }
}

/// Keeps the clock from leaving somebody behind.
#[derive(Debug)]
pub struct Followed {
    clock: Clock,
    id: u32,
}

impl Drop for Followed {
    fn drop(&mut self) {
        if let Some(pacer) = &self.clock.pacer {
            let mut paced = pacer.shared.lock();
            paced.queued.retain(|queued| queued.id() != self.id);
        }
    }
}

/// Keeps a clock from going on.
#[derive(Debug)]
pub struct Hold(Clock);

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(pacer) = &self.0.pacer {
            pacer.shared.release();
        }
    }
}

fn host_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// What the threads of all cores share.
#[derive(Debug)]
struct Shared {
    page: Arc<Page>,
    paced: Mutex<Paced>,
    stop: AtomicBool,
}

#[derive(Debug)]
struct Paced {
    /// Which cores have run since the last renewal.
    ran: Vec<bool>,
    /// For whom the clock waits.
    queued: Vec<Queued>,
    /// How many hold the clock.
    holds: usize,
    /// By the host's clock and by this one, since the first renewal, without what it was held for.
    elapsed: u64,
    advanced: u64,
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Paced> {
        self.paced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A core has run. The last one of all renews the clock.
    fn has_run(&self, core: usize) {
        let mut paced = self.lock();
        paced.ran[core] = true;
        if paced.holds == 0 && paced.ran.iter().all(|ran| *ran) {
            if paced.queued.iter_mut().any(|queued| queued.waits_for_a_core(ENOUGH)) {
                return;
            }
            paced.queued.iter_mut().for_each(Queued::renew);
            paced.ran.fill(false);
            let Renewal { elapsed, advanced } = self.page.renew(host_ns());
            paced.elapsed += elapsed;
            paced.advanced += advanced;
        }
    }

    fn release(&self) {
        let mut paced = self.lock();
        paced.holds -= 1;
        if paced.holds == 0 {
            // What it was held for is left out; what it had gone on before that is not.
            let Renewal { advanced, .. } = self.page.renew(host_ns());
            paced.elapsed += advanced;
            paced.advanced += advanced;
        }
    }
}

/// Keeps the clock going until it is dropped.
#[derive(Debug)]
struct Pacer {
    shim: PathBuf,
    page: Arc<Page>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    // Last: the file goes after everything that uses it.
    folder: TempDir,
}

const PAGE: &str = "clock";

impl Pacer {
    fn start(shim: &Path) -> std::io::Result<Self> {
        let folder = folder::create()?;
        let cap = CAP.as_nanos() as u64;
        let page = Arc::new(Page::create(&folder.path().join(PAGE), host_ns(), cap)?);
        let cores = cores();
        let paced = Paced {
            ran: vec![false; cores.len()],
            queued: Vec::new(),
            holds: 0,
            elapsed: 0,
            advanced: 0,
        };
        let (paced, stop) = (Mutex::new(paced), AtomicBool::new(false));
        let shared = Arc::new(Shared { page: Arc::clone(&page), paced, stop });
        let beacon = |(index, core)| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || beacon(&shared, index, core))
        };
        let threads = cores.into_iter().enumerate().map(beacon).collect();
        Ok(Self { shim: shim.to_owned(), page, shared, threads, folder })
    }

    fn environment(&self) -> Vec<(&'static str, OsString)> {
        let page = self.folder.path().join(PAGE);
        vec![("LD_PRELOAD", self.shim.clone().into()), ("BELLWETHER_CLOCK", page.into())]
    }
}

impl Drop for Pacer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The cores that this process may use; at least one thread, wherever it then runs.
fn cores() -> Vec<Option<usize>> {
    let Ok(allowed) = sched_getaffinity(None) else { return vec![None] };
    (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).map(Some).collect()
}

fn beacon(shared: &Shared, index: usize, core: Option<usize>) {
    if let Some(core) = core {
        let mut only = CpuSet::new();
        only.set(core);
        // Where the host forbids it the thread speaks for whatever core it is on.
        let _ = sched_setaffinity(None, &only);
    }
    while !shared.stop.load(Ordering::Relaxed) {
        std::thread::sleep(NAP);
        shared.has_run(index);
    }
}
