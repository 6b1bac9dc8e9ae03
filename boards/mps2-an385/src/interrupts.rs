//! The interrupts of the board.

use bellwether::shell::ResetCause;
use bellwether_board::{priority, retained};
use cortex_m::interrupt::InterruptNumber;
use cortex_m::peripheral::{NVIC, SCB};
use cortex_m_rt::exception;

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Interrupt {
    Alarm = 8,
    Deadline = 9,
    Ethernet = 13,
}

// SAFETY: the numbers are those of the board, and no two are the same.
unsafe impl InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        self as u16
    }
}

#[repr(C)]
pub union Vector {
    handler: unsafe extern "C" fn(),
}

unsafe extern "C" {
    fn ETHERNET();
    fn ALARM();
    fn DefaultHandler();
}

const COUNT: usize = 32;
/// The table ends with the last interrupt that is ever unmasked.
const VECTORS: usize = Interrupt::Ethernet as usize + 1;

/// Read by cortex-m-rt's linker script.
// SAFETY: the section and the name are what the linker script expects of a device.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
pub static __INTERRUPTS: [Vector; VECTORS] = {
    let mut table = [const { Vector { handler: DefaultHandler } }; VECTORS];
    table[Interrupt::Ethernet as usize] = Vector { handler: ETHERNET };
    table[Interrupt::Alarm as usize] = Vector { handler: ALARM };
    table[Interrupt::Deadline as usize] = Vector { handler: retained::deadline };
    table
};

/// Sets the priorities and lets the interrupts of the timers come.
pub fn enable(nvic: &mut NVIC, scb: &mut SCB) {
    priority::set(nvic, scb, COUNT, Interrupt::Deadline);
    allow(Interrupt::Deadline);
    allow(Interrupt::Alarm);
}

/// Lets an interrupt come; what came before does not count.
pub fn allow(interrupt: Interrupt) {
    NVIC::unpend(interrupt);
    // SAFETY: the priorities are set, and no critical section is active where this is called.
    unsafe { NVIC::unmask(interrupt) };
}

/// The first expiry of the watchdog: the cause is left for the next boot. The deadline timer expired
/// long before. If anything can still let its interrupt come, that resets the chip at once, with its
/// own cause: the core stood still and is late, but not hung. Else the second expiry does.
// SAFETY: what it shares with the rest is the record of the reset, which follows either way.
#[exception]
unsafe fn NonMaskableInt() {
    retained::leave(ResetCause::Watchdog);
}
