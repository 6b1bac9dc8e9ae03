//! Time: SysTick counts, timer 1 wakes.
//!
//! SysTick runs on its reference clock, 142 MHz / 32 = 4.4375 MHz, and wraps every 3.78 s. It is
//! never stopped or reloaded, so that time does not drift with the alarms.

use core::cell::RefCell;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::Waker;

use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use critical_section::{CriticalSection, Mutex};
use embassy_time_driver::Driver;
use embassy_time_queue_utils::Queue;

use crate::registers::timer::{ALARM as TIMER, COUNTS_PER_US};

const PERIOD: u32 = 1 << 24;
/// How many microseconds an alarm lies ahead at most: it comes early then, and is set again.
const ALARM_US_MAX: u64 = u32::MAX as u64 / COUNTS_PER_US;

static PERIODS: AtomicU32 = AtomicU32::new(0);

struct Clock {
    queue: Mutex<RefCell<Queue>>,
}

embassy_time_driver::time_driver_impl!(static CLOCK: Clock = Clock {
    queue: Mutex::new(RefCell::new(Queue::new())),
});

/// Starts SysTick. Its first wrap is 3.78 s away.
pub fn start(systick: &mut SYST) {
    TIMER.stop();
    systick.set_clock_source(SystClkSource::External);
    systick.set_reload(PERIOD - 1);
    systick.clear_current();
    systick.enable_interrupt();
    systick.enable_counter();
}

#[cortex_m_rt::exception]
fn SysTick() {
    PERIODS.fetch_add(1, Ordering::Relaxed);
}

/// Ticks of the reference clock since `start`.
fn ticks() -> u64 {
    critical_section::with(|_| {
        // VAL counts down from PERIOD - 1; 0 is already the first count of the next period.
        let elapsed = || PERIOD.wrapping_sub(SYST::get_current()) & (PERIOD - 1);
        let mut count = elapsed();
        let mut periods = PERIODS.load(Ordering::Relaxed);
        if cortex_m::peripheral::SCB::is_pendst_pending() {
            // It wrapped after this critical section began; whether before or after the look at the
            // count is not known, so look again.
            count = elapsed();
            periods = periods.wrapping_add(1);
        }
        u64::from(periods) << 24 | u64::from(count)
    })
}

impl Driver for Clock {
    fn now(&self) -> u64 {
        ticks() * 16 / 71
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|section| {
            let mut queue = self.queue.borrow_ref_mut(section);
            if queue.schedule_wake(at, waker) {
                self.arm(&mut queue);
            }
        });
    }
}

impl Clock {
    fn arm(&self, queue: &mut Queue) {
        let now = self.now();
        let next = queue.next_expiration(now);
        if next == u64::MAX {
            TIMER.stop();
            return;
        }
        // One microsecond more: an alarm that comes early would only be set again.
        let wait = next.saturating_sub(now).saturating_add(1).min(ALARM_US_MAX);
        TIMER.start((wait * COUNTS_PER_US) as u32);
    }

    fn wake(&self, section: CriticalSection<'_>) {
        TIMER.stop();
        self.arm(&mut self.queue.borrow_ref_mut(section));
    }
}

// SAFETY: the name stands in the interrupt table.
#[unsafe(no_mangle)]
extern "C" fn ALARM() {
    critical_section::with(|section| CLOCK.wake(section));
}
