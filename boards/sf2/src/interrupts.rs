//! Interrupts and critical sections.
//!
//! Critical sections raise BASEPRI, not PRIMASK: the deadline timer has priority 0, which BASEPRI
//! never masks, so that a core that hangs inside one is still reset. All else has priority 0x40.

use cortex_m::interrupt::InterruptNumber;
use cortex_m::peripheral::scb::SystemHandler;
use cortex_m::peripheral::{NVIC, SCB};
use cortex_m::register::{basepri, basepri_max};

const MASKED: u8 = 0x40;

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Interrupt {
    Ethernet = 12,
    Alarm = 14,
    Deadline = 15,
}

// SAFETY: the numbers are those of the chip, and no two are the same.
unsafe impl InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        self as u16
    }
}

#[repr(C)]
pub union Vector {
    handler: unsafe extern "C" fn(),
    reserved: usize,
}

unsafe extern "C" {
    fn ETHERNET();
    fn ALARM();
    fn DEADLINE();
    fn DefaultHandler();
}

const COUNT: usize = 82;

/// Read by cortex-m-rt's linker script.
// SAFETY: the section and the name are what the linker script expects of a device.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
pub static __INTERRUPTS: [Vector; COUNT] = {
    let mut table = [const { Vector { handler: DefaultHandler } }; COUNT];
    table[Interrupt::Ethernet as usize] = Vector { handler: ETHERNET };
    table[Interrupt::Alarm as usize] = Vector { handler: ALARM };
    table[Interrupt::Deadline as usize] = Vector { handler: DEADLINE };
    table[COUNT - 1] = Vector { reserved: 0 };
    table
};

/// Sets the priorities and lets the interrupts come.
pub fn enable(nvic: &mut NVIC, scb: &mut SCB) {
    // SAFETY: no critical section is active yet; the priorities are those that the critical
    // sections below rely on.
    unsafe {
        nvic.set_priority(Interrupt::Deadline, 0);
        nvic.set_priority(Interrupt::Alarm, MASKED);
        nvic.set_priority(Interrupt::Ethernet, MASKED);
        scb.set_priority(SystemHandler::SysTick, MASKED);
        for interrupt in [Interrupt::Deadline, Interrupt::Alarm, Interrupt::Ethernet] {
            NVIC::unmask(interrupt);
        }
    }
}

struct RaisedPriority;
critical_section::set_impl!(RaisedPriority);

// SAFETY: one core; everything that uses critical sections runs in the thread or at priority 0x40.
// The deadline handler, which is not masked, uses none and shares nothing with the rest but the
// record of the reset, after which nothing else runs.
unsafe impl critical_section::Impl for RaisedPriority {
    unsafe fn acquire() -> critical_section::RawRestoreState {
        let before = basepri::read();
        basepri_max::write(MASKED);
        cortex_m::asm::dsb();
        cortex_m::asm::isb();
        before.into()
    }

    unsafe fn release(before: critical_section::RawRestoreState) {
        // SAFETY: this is what `acquire` found.
        unsafe { basepri::write(before as u8) }
    }
}
