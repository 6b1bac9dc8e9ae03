//! Time: SysTick counts at 1 MHz, the first CMSDK timer wakes.

use bellwether_board::clock::{Clock, Clocks};

use crate::registers::COUNTS_PER_US;
use crate::registers::timer::ALARM as TIMER;

struct Mps2Clocks;

impl Clocks for Mps2Clocks {
    fn microseconds(ticks: u64) -> u64 {
        ticks
    }

    const ALARM_US_MAX: u64 = (u32::MAX / COUNTS_PER_US) as u64;

    fn set_alarm(us: u32) {
        TIMER.start(us * COUNTS_PER_US);
    }

    fn stop_alarm() {
        TIMER.stop();
    }
}

embassy_time_driver::time_driver_impl!(static CLOCK: Clock<Mps2Clocks> = Clock::new());

// SAFETY: the name stands in the interrupt table.
#[unsafe(no_mangle)]
extern "C" fn ALARM() {
    CLOCK.wake();
}
