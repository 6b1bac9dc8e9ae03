//! A clock that one process paces and others read: one page of shared memory.
//!
//! ```text
//!  word 0   what this page is
//!  word 1   generation: counts the renewals; its lowest bit says which slot is in force
//!  word 2   slot 0: the host's clock at the renewal, ns
//!  word 3           the paced clock at the renewal, ns
//!  word 4   slot 1: the same
//!  word 5
//!  word 6   cap: how far the paced clock may go on without a renewal, ns
//!  word 7   not 0: somebody has asked for the time
//! ```
//!
//! The paced clock is at `paced + min(host - host at the renewal, cap)`. So it runs smoothly between two
//! renewals, never jumps by more than the cap, and stands still while nobody renews it.
//!
//! # Why two slots
//!
//! The writer fills the slot that is not in force, then puts it in force. A reader therefore never waits
//! for a writer that the host has put aside: it reads again only if a renewal came in between.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

const WORDS: usize = 8;
const BYTES: usize = WORDS * size_of::<u64>();
/// "bellclk1", so that no other file is taken for a clock.
const MAGIC: u64 = u64::from_le_bytes(*b"bellclk1");

const GENERATION: usize = 1;
const SLOTS: [usize; 2] = [2, 4];
const CAP: usize = 6;
const ASKED: usize = 7;

/// The page, in this process. All times are nanoseconds.
#[derive(Debug)]
pub struct Page {
    words: &'static [AtomicU64; WORDS],
}

/// What a renewal did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renewal {
    /// How long ago the one before was, by the host's clock.
    pub elapsed: u64,
    /// How far the paced clock went meanwhile.
    pub advanced: u64,
}

impl Page {
    /// A new clock in this file. It begins at the host's time, `host`.
    pub fn create(path: &Path, host: u64, cap: u64) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        file.set_len(BYTES as u64)?;
        let page = Self::map(&file)?;
        for (word, value) in [(CAP, cap), (SLOTS[0], host), (SLOTS[0] + 1, host), (0, MAGIC)] {
            page.words[word].store(value, Ordering::SeqCst);
        }
        Ok(page)
    }

    /// The clock that somebody has created there.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let page =
            if file.metadata()?.len() == BYTES as u64 { Self::map(&file).ok() } else { None };
        let is_clock = |page: &Self| page.words[0].load(Ordering::SeqCst) == MAGIC;
        page.filter(is_clock).ok_or_else(|| io::Error::other("the file is no clock"))
    }

    fn map(file: &File) -> io::Result<Self> {
        let how = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the system chooses harms nobody. It is page-aligned, as
        // long as the words are, and lives until `Drop`; all access is atomic, also in other processes.
        let words = unsafe {
            let start = mmap(std::ptr::null_mut(), BYTES, how, MapFlags::SHARED, file, 0)?;
            &*start.cast::<[AtomicU64; WORDS]>()
        };
        Ok(Self { words })
    }

    /// What the paced clock shows when the host's shows `host`.
    #[must_use]
    pub fn at(&self, host: u64) -> u64 {
        loop {
            let generation = self.words[GENERATION].load(Ordering::Acquire);
            let slot = SLOTS[(generation & 1) as usize];
            let renewed = self.words[slot].load(Ordering::Relaxed);
            let paced = self.words[slot + 1].load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if self.words[GENERATION].load(Ordering::Relaxed) == generation {
                // Whoever read the host's clock before the renewal is at the renewal, not before it.
                let since = host.saturating_sub(renewed);
                return paced + since.min(self.words[CAP].load(Ordering::Relaxed));
            }
        }
    }

    /// Lets the clock go on. Only one thread of one process may do this at a time.
    pub fn renew(&self, host: u64) -> Renewal {
        let generation = self.words[GENERATION].load(Ordering::Relaxed);
        let old = SLOTS[(generation & 1) as usize];
        let new = SLOTS[((generation + 1) & 1) as usize];
        let (renewed, paced) =
            (self.words[old].load(Ordering::Relaxed), self.words[old + 1].load(Ordering::Relaxed));
        let elapsed = host.saturating_sub(renewed);
        let advanced = elapsed.min(self.words[CAP].load(Ordering::Relaxed));
        // Who still reads this slot must see the generation change before its content does.
        fence(Ordering::Release);
        self.words[new].store(host.max(renewed), Ordering::Relaxed);
        self.words[new + 1].store(paced + advanced, Ordering::Relaxed);
        self.words[GENERATION].store(generation + 1, Ordering::Release);
        Renewal { elapsed, advanced }
    }

    /// Says that somebody has asked for the time.
    pub fn ask(&self) {
        // Everybody reads this page all the time: written once, it stays in all caches.
        if !self.was_asked() {
            self.words[ASKED].store(1, Ordering::Relaxed);
        }
    }

    /// Whether anybody has asked for the time so far.
    #[must_use]
    pub fn was_asked(&self) -> bool {
        self.words[ASKED].load(Ordering::Relaxed) != 0
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let start = std::ptr::from_ref(self.words).cast_mut();
        // SAFETY: the mapping is this value's own, and nothing else refers to it.
        let _ = unsafe { munmap(start.cast(), BYTES) };
    }
}

/// Processor time that a process has used, in nanoseconds; `None` if there is no such process.
#[must_use]
pub fn processor_time(process: u32) -> Option<u64> {
    let process = i32::try_from(process).ok()?;
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both write to the variable that they are given, and to nothing else.
    let failed = unsafe {
        libc::clock_getcpuclockid(process, &raw mut clock) != 0
            || libc::clock_gettime(clock, &raw mut time) != 0
    };
    (!failed).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const CAP: u64 = 2_000;

    fn clock(host: u64) -> (tempfile::TempDir, Page, Page) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clock");
        let writer = Page::create(&path, host, CAP).unwrap();
        let reader = Page::open(&path).unwrap();
        (folder, writer, reader)
    }

    #[test]
    fn it_goes_on_by_the_cap_and_no_further() {
        let (_folder, _writer, reader) = clock(10_000);
        for (host, shown) in [(9_000, 10_000), (10_000, 10_000), (11_500, 11_500)] {
            assert_eq!(reader.at(host), shown);
        }
        for host in [12_000, 12_001, 900_000] {
            assert_eq!(reader.at(host), 12_000);
        }
    }

    #[test]
    fn a_renewal_is_no_jump_and_a_stall_is_left_out() {
        let (_folder, writer, reader) = clock(0);
        assert_eq!(writer.renew(1_500), Renewal { elapsed: 1_500, advanced: 1_500 });
        assert_eq!(reader.at(1_500), 1_500);
        assert_eq!(reader.at(2_000), 2_000);
        // The host was away for 300 us.
        assert_eq!(writer.renew(301_500), Renewal { elapsed: 300_000, advanced: CAP });
        assert_eq!(reader.at(301_500), 3_500);
        assert_eq!(reader.at(301_000), 3_500, "read the host's clock before the renewal");
        assert_eq!(reader.at(302_000), 4_000);
    }

    #[test]
    fn it_never_goes_back_while_one_renews_and_others_read() {
        let (folder, writer, _reader) = clock(0);
        let host = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let reader = Page::open(&folder.path().join("clock")).unwrap();
                    let mut last = 0;
                    while host.load(Ordering::SeqCst) < 40_000_000 {
                        let now = reader.at(host.load(Ordering::SeqCst));
                        assert!(now >= last, "{now} after {last}");
                        last = now;
                    }
                });
            }
            for step in 1..=40_000 {
                host.store(step * 1000, Ordering::SeqCst);
                writer.renew(step * 1000);
            }
        });
        assert_eq!(writer.at(0), 40_000_000);
    }

    #[test]
    fn a_file_that_is_no_clock_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other");
        assert!(Page::open(&path).is_err());
        for content in [&b""[..], &[0; BYTES], &[7; BYTES + 1]] {
            std::fs::write(&path, content).unwrap();
            assert!(Page::open(&path).is_err());
        }
    }

    #[test]
    fn a_process_that_computes_uses_time() {
        let me = std::process::id();
        let before = processor_time(me).unwrap();
        let mut last = before;
        while last == before {
            last = processor_time(me).unwrap();
        }
        assert!(last > before);
        assert_eq!(processor_time(u32::MAX), None);
    }

    #[test]
    fn who_asks_is_seen() {
        let (_folder, writer, reader) = clock(0);
        assert!(!writer.was_asked());
        reader.ask();
        assert!(writer.was_asked());
    }
}
