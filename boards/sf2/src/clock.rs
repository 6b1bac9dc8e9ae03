//! Time: SysTick counts at 142 MHz / 32 = 4.4375 MHz, system timer 1 wakes.

use bellwether_board::clock::{Clock, Clocks};

use crate::registers::timer::{ALARM as TIMER, COUNTS_PER_US};

struct Sf2Clocks;

impl Clocks for Sf2Clocks {
    fn microseconds(ticks: u64) -> u64 {
        ticks * 16 / 71
    }

    const ALARM_US_MAX: u64 = (u32::MAX / COUNTS_PER_US) as u64;

    fn set_alarm(us: u32) {
        TIMER.start(us * COUNTS_PER_US);
    }

    fn stop_alarm() {
        TIMER.stop();
    }
}

embassy_time_driver::time_driver_impl!(static CLOCK: Clock<Sf2Clocks> = Clock::new());

// SAFETY: the name stands in the interrupt table.
#[unsafe(no_mangle)]
extern "C" fn ALARM() {
    CLOCK.wake();
}
