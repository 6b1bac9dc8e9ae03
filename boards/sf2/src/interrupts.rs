//! The interrupts of the chip.

use bellwether_board::{priority, retained};
use cortex_m::interrupt::InterruptNumber;
use cortex_m::peripheral::{NVIC, SCB};

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
}

unsafe extern "C" {
    fn ETHERNET();
    fn ALARM();
    fn DefaultHandler();
}

const COUNT: usize = 82;
/// The table ends with the last interrupt that is ever unmasked.
const VECTORS: usize = Interrupt::Deadline as usize + 1;

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

/// Sets the priorities and lets the interrupts come.
pub fn enable(nvic: &mut NVIC, scb: &mut SCB) {
    priority::set(nvic, scb, COUNT, Interrupt::Deadline);
    for interrupt in [Interrupt::Deadline, Interrupt::Alarm, Interrupt::Ethernet] {
        // SAFETY: no critical section is active yet, and the priorities are set.
        unsafe { NVIC::unmask(interrupt) };
    }
}
