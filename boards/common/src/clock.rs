//! Time for embassy where no HAL brings it: SysTick counts, a timer of the chip wakes.
//!
//! SysTick runs on its reference clock and wraps after 2^24 of its ticks. It is never stopped or
//! reloaded, so that time does not drift with the alarms.

use core::cell::RefCell;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::Waker;

use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use critical_section::Mutex;
use embassy_time_driver::Driver;
use embassy_time_queue_utils::Queue;

const PERIOD: u32 = 1 << 24;

/// The clocks of a chip.
pub trait Clocks: Send + Sync + 'static {
    /// `ticks` of the reference clock of SysTick are so many microseconds.
    fn microseconds(ticks: u64) -> u64;

    /// How many microseconds an alarm lies ahead at most: it comes early then, and is set again.
    const ALARM_US_MAX: u64;

    /// Has an interrupt come once, after so many microseconds; its handler calls [`Clock::wake`].
    fn set_alarm(us: u32);

    /// No interrupt comes any more.
    fn stop_alarm();
}

/// One static of this is embassy's time driver.
pub struct Clock<C> {
    queue: Mutex<RefCell<Queue>>,
    clocks: PhantomData<C>,
}

static PERIODS: AtomicU32 = AtomicU32::new(0);

/// Starts SysTick.
pub fn start(systick: &mut SYST) {
    systick.set_clock_source(SystClkSource::External);
    systick.set_reload(PERIOD - 1);
    systick.clear_current();
    systick.enable_interrupt();
    systick.enable_counter();
}

#[cortex_m_rt::exception]
fn SysTick() {
    PERIODS.store(PERIODS.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
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

impl<C: Clocks> Driver for Clock<C> {
    // Asked for in some twenty places.
    #[inline(never)]
    fn now(&self) -> u64 {
        C::microseconds(ticks())
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

impl<C: Clocks> Clock<C> {
    #[allow(clippy::new_without_default)] // for a static
    pub const fn new() -> Self {
        Self { queue: Mutex::new(RefCell::new(Queue::new())), clocks: PhantomData }
    }

    fn arm(&self, queue: &mut Queue) {
        let now = self.now();
        let next = queue.next_expiration(now);
        if next == u64::MAX {
            C::stop_alarm();
            return;
        }
        // One microsecond more: an alarm that comes early would only be set again.
        let wait = next.saturating_sub(now).saturating_add(1).min(C::ALARM_US_MAX);
        C::set_alarm(wait as u32);
    }

    /// For the handler of the alarm.
    pub fn wake(&self) {
        critical_section::with(|section| {
            C::stop_alarm();
            self.arm(&mut self.queue.borrow_ref_mut(section));
        });
    }
}
