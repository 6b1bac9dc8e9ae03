//! The stack of the thread.
//!
//! It lies below everything else in RAM: what overflows it leaves the RAM and faults, and no variable
//! can be overwritten by it. Interrupts have a stack of their own at the end of the RAM, so that the fault
//! still finds one. The memory map of a board says where it begins and ends.
//!
//! Calls that have returned leave their bytes on it, a key that was moved among them. When keys were
//! replaced, the dead part of the stack is wiped as soon as no task runs.

use core::sync::atomic::{AtomicBool, Ordering};

static WIPE: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    static _thread_stack_start: u32;
    static _thread_stack_end: u32;
}

/// Moves the thread to its own stack and goes on there; interrupts keep the one of the start-up. Call
/// from the entry point and from nowhere else.
#[inline(always)]
pub fn switch(thread: extern "C" fn() -> !) -> ! {
    // SAFETY: the symbol is the end of a region that the memory map gives to this stack alone;
    // nothing of this frame is used after the switch.
    unsafe {
        core::arch::asm!(
            "msr psp, {stack}",
            "msr control, {thread_stack}",
            "isb",
            "bx {thread}",
            stack = in(reg) &raw const _thread_stack_start,
            thread_stack = in(reg) 2,
            thread = in(reg) thread,
            options(noreturn)
        )
    }
}

/// Whether so many bytes from here on lie in the stack.
pub(crate) fn holds(address: u32, bytes: u32) -> bool {
    let low = &raw const _thread_stack_end as u32;
    let high = &raw const _thread_stack_start as u32;
    address >= low && address <= high - bytes
}

/// Has everything that returned calls have left wiped at the next idle moment.
pub(crate) fn wipe_when_idle() {
    WIPE.store(true, Ordering::Relaxed);
}

/// Wipes below the present end of the stack, if somebody has asked for it. Called by the executor between
/// two tasks: what lives on the stack then is its own.
#[inline(never)]
pub(crate) fn wipe_if_asked() {
    if !WIPE.load(Ordering::Relaxed) {
        return;
    }
    WIPE.store(false, Ordering::Relaxed);
    let mut at = (&raw const _thread_stack_end).cast_mut();
    let end: *mut u32;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mrs {end}, psp", end = out(reg) end) };
    while at < end {
        // SAFETY: between the end of the region and the stack pointer lies nothing that is alive: an
        // interrupt that comes in between puts its frame there and has taken it away when this goes on.
        // Volatile, so that it does not become a call, whose frame would be there, too.
        unsafe {
            at.write_volatile(0);
            at = at.add(1);
        }
    }
}
