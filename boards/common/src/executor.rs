//! An executor that sleeps. WFE does not sleep in QEMU, and five boards that poll leave a host no
//! time; WFI with PRIMASK set wakes on the interrupt that it would otherwise miss.

use core::sync::atomic::{AtomicBool, Ordering};

use embassy_executor::{Spawner, raw};
use static_cell::StaticCell;

static PENDING: AtomicBool = AtomicBool::new(false);
static EXECUTOR: StaticCell<raw::Executor> = StaticCell::new();

// SAFETY: the name and the signature are what the executor's crate declares.
#[unsafe(export_name = "__pender")]
fn pend(_context: *mut ()) {
    PENDING.store(true, Ordering::Relaxed);
}

/// Runs tasks for ever.
pub fn run(init: impl FnOnce(Spawner)) -> ! {
    let executor: &'static raw::Executor = EXECUTOR.init(raw::Executor::new(core::ptr::null_mut()));
    init(executor.spawner());
    loop {
        // SAFETY: only called here, and never from inside itself.
        unsafe { executor.poll() };
        crate::stack::wipe_if_asked();
        cortex_m::interrupt::disable();
        // Nothing comes in between.
        if PENDING.load(Ordering::Relaxed) {
            PENDING.store(false, Ordering::Relaxed);
        } else {
            cortex_m::asm::wfi();
        }
        // SAFETY: no critical section is active in this loop.
        unsafe { cortex_m::interrupt::enable() };
    }
}
