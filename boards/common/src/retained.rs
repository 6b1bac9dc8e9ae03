//! What survives a reset: why it came, and what the node was doing.
//!
//! RAM keeps what nobody initialises. A checksum tells a record from the noise of a cold RAM. What a
//! chip knows of the cause of a reset counts only where the firmware itself left none.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::panic::PanicInfo;

use bellwether::id::NodeId;
use bellwether::shell::{ResetCause, WORDS};
use bellwether::state::Summary;
use cortex_m_rt::exception;

use crate::arrivals::digest;
use crate::stack;

const TEXT_BYTES: usize = 120;
const PLACE_BYTES: usize = 40;
const MAGIC: u32 = 0xbe11_0004;
const SUMMED_BYTES: usize = core::mem::offset_of!(Record, checksum);
const _: () = assert!(SUMMED_BYTES == 4 + 4 + 8 + 6 + TEXT_BYTES + PLACE_BYTES + 2);

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Record {
    magic: u32,
    line: u32,
    number: u64,
    cause: u8,
    status: u8,
    coordinator: u8,
    group: u8,
    what_len: u8,
    place_len: u8,
    what: [u8; TEXT_BYTES],
    place: [u8; PLACE_BYTES],
    /// How often the node has reset itself without a quiet time in between.
    streak: u8,
    padding: u8,
    checksum: u32,
}

struct Kept(UnsafeCell<MaybeUninit<Record>>);

// SAFETY: one core. The record is written by the thread (`remember`), by handlers that end in a
// reset, and read once at boot before any of them can run.
unsafe impl Sync for Kept {}

// SAFETY: the section is one that the start-up code leaves alone.
#[unsafe(link_section = ".uninit.RETAINED")]
static RETAINED: Kept = Kept(UnsafeCell::new(MaybeUninit::uninit()));

impl Record {
    /// All zero, so that the image holds no copy of it.
    const VOID: Self = Self {
        magic: 0,
        line: 0,
        number: 0,
        cause: 0,
        status: 0,
        coordinator: 0,
        group: 0,
        what_len: 0,
        place_len: 0,
        what: [0; TEXT_BYTES],
        place: [0; PLACE_BYTES],
        streak: 0,
        padding: 0,
        checksum: 0,
    };

    #[inline(never)]
    fn sum(&self) -> u32 {
        // SAFETY: all that comes before the checksum has been written, and nothing lies in between.
        let bytes = unsafe { core::slice::from_raw_parts((&raw const *self).cast(), SUMMED_BYTES) };
        digest(bytes)
    }

    pub fn what(&self) -> &[u8] {
        self.what.get(..usize::from(self.what_len)).unwrap_or(&[])
    }

    pub fn place(&self) -> &[u8] {
        self.place.get(..usize::from(self.place_len)).unwrap_or(&[])
    }

    pub fn line(&self) -> u32 {
        self.line
    }

    /// Status, coordinator, group and its number.
    pub fn state(&self) -> (u8, u8, u8, u64) {
        (self.status, self.coordinator, self.group, self.number)
    }
}

fn kept() -> *mut Record {
    RETAINED.0.get().cast()
}

/// Why this boot came about, how often in a row it was the node itself, and what the boot before left.
/// `chip`: what the hardware says. Call once, first thing.
pub(crate) fn take(chip: Option<ResetCause>) -> (ResetCause, u8, Option<Record>) {
    let mut found = Record::VOID;
    let words = size_of::<Record>() / size_of::<u32>();
    for word in 0..words {
        // SAFETY: every bit pattern is a `Record`, whose size is a whole number of words, and nobody
        // else has it yet. Volatile, because the compiler knows of nobody who wrote it. Word by word,
        // because the volatile copy of a whole record is one instruction per byte.
        unsafe {
            let value = kept().cast::<u32>().add(word).read_volatile();
            (&raw mut found).cast::<u32>().add(word).write(value);
        }
    }
    let good = found.magic == MAGIC && found.checksum == found.sum();
    let left = ResetCause::from_byte(found.cause).filter(|_| good);
    let cause = left.or(chip).unwrap_or(ResetCause::Power);
    let streak = match cause {
        ResetCause::Power => 0,
        _ if good => found.streak.saturating_add(1),
        _ => 1,
    };
    let mut fresh = Record { magic: MAGIC, streak, ..Record::VOID };
    // A reset that leaves nothing behind, as that of a watchdog, shall find the streak.
    fresh.checksum = fresh.sum();
    // SAFETY: as above.
    unsafe { kept().write(fresh) };
    (cause, streak, (cause == ResetCause::Panic).then_some(found))
}

/// The node has run for long enough: the next reset is the first of a row.
pub(crate) fn forget_streak() {
    // SAFETY: only the thread writes here, and handlers that interrupt it never return.
    let record = unsafe { &mut *kept() };
    if record.streak != 0 {
        record.streak = 0;
        record.checksum = record.sum();
    }
}

/// Keeps the state vector for the case that this boot ends badly.
pub(crate) fn remember(state: &Summary<WORDS>) {
    // SAFETY: only the thread writes here, and handlers that interrupt it never return.
    let record = unsafe { &mut *kept() };
    record.status = state.status as u8;
    record.coordinator = state.coordinator.map_or(0, NodeId::get);
    let group = state.group.map(|group| (group.coordinator.get(), group.number));
    (record.group, record.number) = group.unwrap_or((0, 0));
    record.checksum = record.sum();
}

/// Leaves the cause for the next boot. Uses neither the log nor critical sections; nothing may follow
/// but the reset.
pub fn leave(cause: ResetCause) {
    // SAFETY: nothing else runs until the reset.
    let record = unsafe { &mut *kept() };
    record.magic = MAGIC;
    record.cause = cause as u8;
    record.checksum = record.sum();
}

/// Leaves the cause and resets.
pub fn reset(cause: ResetCause) -> ! {
    leave(cause);
    cortex_m::peripheral::SCB::sys_reset()
}

struct Text<'t> {
    bytes: &'t mut [u8],
    used: usize,
}

impl Text<'_> {
    fn put(&mut self, text: &str) {
        self.put_bytes(text.bytes());
    }

    fn put_hex(&mut self, value: u32) {
        let digits = (0..8).rev().map(|digit| value >> (4 * digit) & 0xf);
        self.put_bytes(digits.map(|digit| b"0123456789abcdef"[digit as usize]));
    }

    fn put_bytes(&mut self, bytes: impl Iterator<Item = u8>) {
        for (byte, slot) in bytes.zip(self.bytes.iter_mut().skip(self.used)) {
            *slot = byte;
            self.used += 1;
        }
    }
}

fn write_text(bytes: &mut [u8], write: impl FnOnce(&mut Text<'_>)) -> u8 {
    let mut text = Text { bytes, used: 0 };
    write(&mut text);
    text.used as u8
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    cortex_m::interrupt::disable();
    // SAFETY: nothing else runs until the reset.
    let record = unsafe { &mut *kept() };
    // Even to look at the message costs eight kilobytes: it keeps every text and all formatting of
    // every panic in the image. The place says as much to whoever has the sources.
    record.what_len = write_text(&mut record.what, |text| text.put("panic"));
    if let Some(place) = info.location() {
        record.line = place.line();
        let file = place.file();
        let start = file.len().saturating_sub(PLACE_BYTES);
        record.place_len = write_text(&mut record.place, |text| {
            text.put(file.get(start..).unwrap_or(file));
        });
    }
    reset(ResetCause::Panic)
}

/// The stacked frame: r0 to r3, r12, lr, pc, xpsr.
const FRAME_BYTES: u32 = 32;

/// A fault: where the thread was, if its stack can still be read.
// SAFETY: the handler never returns and reads only what it has checked to be the stack.
#[exception(trampoline = false)]
unsafe fn HardFault() -> ! {
    cortex_m::interrupt::disable();
    let stack = cortex_m::register::psp::read();
    // SAFETY: nothing else runs until the reset.
    let record = unsafe { &mut *kept() };
    record.what_len = write_text(&mut record.what, |text| {
        if stack::holds(stack, FRAME_BYTES) {
            // SAFETY: inside the stack, and aligned as every stack pointer is.
            let [lr, pc] = unsafe { core::ptr::read_volatile((stack + 20) as *const [u32; 2]) };
            text.put("fault at ");
            text.put_hex(pc);
            text.put(" called from ");
            text.put_hex(lr);
        } else {
            text.put("stack overflow: fault with the stack at ");
            text.put_hex(stack);
        }
    });
    reset(ResetCause::Panic)
}

/// The handler of the deadline timer. Its interrupt has priority 0: no critical section holds it up.
pub extern "C" fn deadline() {
    reset(ResetCause::Deadline)
}
