//! Critical sections.
//!
//! They raise BASEPRI, not PRIMASK: the deadline timer has priority 0, which BASEPRI never masks, so
//! that a core that hangs inside one is still reset. All else has priority 0x40, which every chip has
//! whose priorities are two bits or more: every one with a BASEPRI.

use cortex_m::interrupt::InterruptNumber;
use cortex_m::peripheral::scb::SystemHandler;
use cortex_m::peripheral::{NVIC, SCB};
use cortex_m::register::{basepri, basepri_max};

const MASKED: u8 = 0x40;

/// Gives every one of the chip's interrupts (there are `count`) the priority that critical sections
/// mask, and the deadline timer that which they do not. Where a HAL sets priorities: call it again
/// after that.
pub fn set(nvic: &mut NVIC, scb: &mut SCB, count: usize, deadline: impl InterruptNumber) {
    // SAFETY: no critical section is active; the priorities are those that the critical sections
    // below rely on.
    unsafe {
        for priority in nvic.ipr.iter().take(count) {
            priority.write(MASKED);
        }
        nvic.set_priority(deadline, 0);
        scb.set_priority(SystemHandler::SysTick, MASKED);
    }
}

struct RaisedPriority;
critical_section::set_impl!(RaisedPriority);

// SAFETY: one core; everything that uses critical sections runs in the thread or at priority 0x40.
// The deadline handler, which is not masked, uses none and shares nothing with the rest but the
// record of the reset, after which nothing else runs.
unsafe impl critical_section::Impl for RaisedPriority {
    // Both are called from dozens of places.
    #[inline(never)]
    unsafe fn acquire() -> critical_section::RawRestoreState {
        let before = basepri::read();
        basepri_max::write(MASKED);
        cortex_m::asm::dsb();
        cortex_m::asm::isb();
        before.into()
    }

    #[inline(never)]
    unsafe fn release(before: critical_section::RawRestoreState) {
        // SAFETY: this is what `acquire` found.
        unsafe { basepri::write(before as u8) }
    }
}
