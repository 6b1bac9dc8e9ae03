//! What watches over the node: a timer whose interrupt nothing holds up, and behind it a watchdog with a
//! clock of its own.

use bellwether::shell::WORDS;
use bellwether::state::Summary;
use bellwether::time::Duration;
use bellwether_board::{Guard, lamp, retained};
use embassy_stm32::pac::iwdg::vals::{Key, Pr};
use embassy_stm32::pac::timer::vals::Urs;
use embassy_stm32::peripherals::TIM5;
use embassy_stm32::time::Hertz;
use embassy_stm32::timer::low_level::Timer;
use embassy_stm32::{interrupt, pac};

/// The watchdog counts 12 bits of its clock of 32 kHz, divided by 256.
const WATCHDOG_STEP_US: u32 = 8_000;
const WATCHDOG_STEPS_MAX: u32 = 0xfff;

/// There is one.
pub struct Watchman {
    _timer: Timer<'static, TIM5>,
    /// What the watchdog counts down from; 0: it is not started yet.
    steps: u16,
}

impl Watchman {
    /// Call once.
    pub fn new() -> Self {
        // SAFETY: boards leave this timer to this crate, and this is called once.
        let mut timer = Timer::new(unsafe { TIM5::steal() });
        // Only the counter may raise the flag: setting the divider would, too, and reset the node at once.
        pac::TIM5.cr1().write(|control| control.set_urs(Urs::COUNTER_ONLY));
        timer.set_tick_freq(Hertz(1_000_000));
        timer.clear_update_interrupt();
        timer.enable_update_interrupt(true);
        Self { _timer: timer, steps: 0 }
    }
}

impl Default for Watchman {
    fn default() -> Self {
        Self::new()
    }
}

impl Guard for Watchman {
    fn feed(&mut self, span: Duration) {
        let timer = pac::TIM5;
        // Stopped, it counts from 0 to the span once; the update then is the deadline.
        timer.cr1().write(|control| {
            control.set_opm(true);
            control.set_urs(Urs::COUNTER_ONLY);
        });
        timer.cnt().write_value(0);
        timer.arr().write_value(span.0);
        timer.sr().write(|_| {});
        timer.cr1().modify(|control| control.set_cen(true));
        let watchdog = pac::IWDG;
        // Its clock may be half as fast again as its name says: with more than twice the span it never
        // comes before the timer, which leaves a better record of what happened.
        let steps =
            (span.0.saturating_mul(2) / WATCHDOG_STEP_US + 2).min(WATCHDOG_STEPS_MAX) as u16;
        if self.steps == 0 {
            watchdog.kr().write(|key| key.set_key(Key::START));
        }
        // It takes new values over by its own slow clock, and none meanwhile: they are then tried again
        // at the next feeding.
        let status = watchdog.sr().read();
        if self.steps != steps && !status.pvu() && !status.rvu() {
            self.steps = steps;
            watchdog.kr().write(|key| key.set_key(Key::ENABLE));
            watchdog.pr().write(|divider| divider.set_pr(Pr::DIVIDE_BY256));
            watchdog.rlr().write(|reload| reload.set_rl(steps));
            // They count from the next feeding on, if not from this one.
        }
        watchdog.kr().write(|key| key.set_key(Key::RESET));
    }

    fn show(&mut self, state: &Summary<WORDS>) {
        lamp::show(state);
    }
}

#[interrupt]
fn TIM5() {
    retained::deadline();
}
