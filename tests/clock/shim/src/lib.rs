//! Preloaded into a QEMU (`LD_PRELOAD`), this answers libc's `clock_gettime(CLOCK_MONOTONIC)` from the
//! clock in the file that `BELLWETHER_CLOCK` names. Everything that an emulated board knows of time comes
//! from that call. Other clocks, and a process without such a file, get the host's.
//!
//! For QEMU alone: a program that sleeps until an absolute time of this clock (as Rust's timeouts do) finds
//! that time in the past once the paced clock lags behind the host's, and spins.
//!
//! Nothing in here may ask for the time by any other way than `Host`, or it would ask itself.

use std::ffi::c_int;
use std::path::Path;
use std::sync::OnceLock;

use bellwether_clock::Page;
use libc::{CLOCK_MONOTONIC, RTLD_NEXT, clockid_t, timespec};

const NS_PER_S: u64 = 1_000_000_000;

/// libc's own `clock_gettime`.
type Host = unsafe extern "C" fn(clockid_t, *mut timespec) -> c_int;

struct Clocks {
    host: Host,
    paced: Option<Page>,
}

static CLOCKS: OnceLock<Option<Clocks>> = OnceLock::new();

/// Looks for both clocks before the program begins, so that no two threads do it at once.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    let _ = clocks();
}

fn clocks() -> Option<&'static Clocks> {
    CLOCKS.get_or_init(find).as_ref()
}

fn find() -> Option<Clocks> {
    // SAFETY: the name is a C string; the answer is null, or the function of that name behind this one.
    let found = unsafe { libc::dlsym(RTLD_NEXT, c"clock_gettime".as_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: that function has this type, by POSIX.
    let host = unsafe { std::mem::transmute::<*mut libc::c_void, Host>(found) };
    let file = std::env::var_os("BELLWETHER_CLOCK");
    Some(Clocks { host, paced: file.and_then(|file| Page::open(Path::new(&file)).ok()) })
}

/// In place of libc's.
///
/// # Safety
///
/// As libc's: `time` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    let Some(Clocks { host, paced }) = clocks() else { return -1 };
    // SAFETY: the caller's promise is libc's.
    let result = unsafe { host(clock, time) };
    if let (Some(paced), CLOCK_MONOTONIC, 0) = (paced, clock, result) {
        paced.ask();
        // SAFETY: libc has just written there.
        let time = unsafe { &mut *time };
        let now = paced.at(time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64);
        (time.tv_sec, time.tv_nsec) = ((now / NS_PER_S) as i64, (now % NS_PER_S) as i64);
    }
    result
}
