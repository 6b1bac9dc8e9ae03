//! Bellwether on the W5500-EVB-Pico2. Built and linked; it has not run on hardware yet.
//!
//! The watchdog alone enforces the deadline, and the cause of such a reset is `watchdog`: while the flash
//! erases, no handler of a timer could be fetched from it. The watchdog counts microseconds and goes on
//! whatever the cores do.
#![no_std]
#![no_main]

mod bus;
mod flash;

use bellwether::cells::{Geometry, Layout, Part};
use bellwether::shell::{Door, ResetCause, WORDS, log};
use bellwether::state::Summary;
use bellwether::time::Duration;
use bellwether_board::gate::Gate;
use bellwether_board::{Guard, Hardware, chip, lamp, retained, ts_min};
use embassy_executor::Spawner;
use embassy_net_wiznet::chip::W5500;
use embassy_net_wiznet::{Device, Runner, State};
use embassy_rp::gpio::{Input, Level, Output, Pull};
use embassy_rp::peripherals::TRNG;
use embassy_rp::spi::{self, Spi};
use embassy_rp::trng::{self, Trng};
use embassy_rp::watchdog::Watchdog;
use embassy_rp::{Peripherals, bind_interrupts, otp, pac};
use embassy_time::Timer;
use static_cell::ConstStaticCell;

use crate::bus::Bus;
use crate::flash::Flash;

bind_interrupts!(struct Interrupts {
    TRNG_IRQ => trng::InterruptHandler<TRNG>;
});

bellwether_board::board!(Pico);

struct Pico(Peripherals);

impl Hardware for Pico {
    type Flash = Flash;
    type Ethernet = Gate<Device<'static>>;
    type Guard = Keeper;

    const SECTORS: usize = 8;
    const LAYOUT: Layout = Layout { a: 0..32 << 10, b: 32 << 10..64 << 10 };
    /// An erase holds everything up for 400 ms. 64 datagrams that came meanwhile are then opened and
    /// answered: at most 27,000 instructions (`cargo lab cost`) of 1.5 cycles, and 0.15 ms on the serial bus, are
    /// 0.42 ms each, 27 ms in all. The watchdog was fed a quarter of Tp before all that at worst, so that
    /// three quarters of Tp must be as long.
    const TP_MIN: Duration = Duration::from_millis(580);
    /// Both copies of the longest state vector, 6 pages of 3 ms each, behind an erase (400 ms) and the
    /// notes about it.
    const TS_MIN: Duration = {
        let part = Part {
            program_us_max: 3_000,
            program_page_bytes: 256,
            erase_us_max: 400_000,
            suspend_us_max: None,
            read_us_per_kib: 100,
            endurance_erases: 100_000,
        };
        ts_min(&part, &Geometry { word_bytes: 4, sector_bytes: 4 << 10, sectors: 8 })
    };

    const WATCHDOG: bool = true;
    const DEADLINE_IS_WATCHDOG: bool = true;

    fn reset_cause() -> Option<ResetCause> {
        pac::WATCHDOG.reason().read().timer().then_some(ResetCause::Watchdog)
    }

    fn start() -> (Self, Flash, Keeper) {
        // A reset by software leaves the watchdog running.
        pac::WATCHDOG.ctrl().modify(|control| control.set_enable(false));
        let p = embassy_rp::init(Default::default());
        // SAFETY: what is left of the peripherals touches neither again.
        let (flash, watchdog) =
            unsafe { (p.FLASH.clone_unchecked(), p.WATCHDOG.clone_unchecked()) };
        let keeper = Keeper { watchdog: Watchdog::new(watchdog), started: false };
        (Self(p), Flash::new(flash), keeper)
    }

    fn front(&mut self, spawner: Spawner) {
        // SAFETY: nobody else takes these pins.
        let (lamp, button) =
            unsafe { (self.0.PIN_25.clone_unchecked(), self.0.PIN_14.clone_unchecked()) };
        let (lamp, button) = (Output::new(lamp, Level::Low), Input::new(button, Pull::Up));
        if let Ok(task) = front_task(lamp, button) {
            spawner.spawn(task);
        }
    }

    fn random(&mut self) -> Option<u64> {
        let mut trng = Trng::new(self.0.TRNG.reborrow(), Interrupts, Default::default());
        Some(trng.blocking_next_u64())
    }

    fn address(&self) -> Option<[u8; 6]> {
        otp::get_chipid().ok().map(|id| chip::address(&id.to_le_bytes()))
    }

    async fn connect(self, spawner: Spawner, door: Door) -> Gate<Device<'static>> {
        static STATE: ConstStaticCell<State<8, 4>> = ConstStaticCell::new(State::new());
        let p = self.0;
        lamp::introduce(door.me);
        let mut config = spi::Config::default();
        // What the W5500 promises to keep up with is 33 MHz.
        config.frequency = 30_000_000;
        let spi = Spi::new_blocking(p.SPI0, p.PIN_18, p.PIN_19, p.PIN_16, config);
        let bus = Bus { spi, select: Output::new(p.PIN_17, Level::High) };
        let (interrupt, reset) =
            (Input::new(p.PIN_21, Pull::Up), Output::new(p.PIN_20, Level::High));
        let address = door.address;
        let wiznet = embassy_net_wiznet::new(address, STATE.take(), bus, interrupt, reset).await;
        let Ok((device, runner)) = wiznet else {
            // A network chip that does not answer may answer the next time.
            log::fault(defmt::intern!("no-network-chip"));
            Timer::after_secs(1).await;
            retained::reset(ResetCause::Request)
        };
        if let Ok(task) = wiznet_task(runner) {
            spawner.spawn(task);
        }
        Gate::new(device, door)
    }
}

#[embassy_executor::task]
async fn wiznet_task(runner: Runner<'static, W5500, Bus, Input<'static>, Output<'static>>) {
    runner.run().await
}

/// The board's own button belongs to the boot ROM. One of the user's, from pin 14 to ground, does as well.
#[embassy_executor::task]
async fn front_task(mut lamp: Output<'static>, button: Input<'static>) {
    lamp::attend(|lit| lamp.set_level(Level::from(lit)), || button.is_low()).await
}

/// The watchdog, which is the deadline timer, too.
struct Keeper {
    watchdog: Watchdog,
    started: bool,
}

/// What it can count.
const WATCHDOG_US_MAX: u32 = 0xff_ffff;

impl Guard for Keeper {
    fn feed(&mut self, span: Duration) {
        let span = embassy_time::Duration::from_micros(span.0.min(WATCHDOG_US_MAX).into());
        if self.started {
            self.watchdog.feed(span);
        } else {
            self.started = true;
            self.watchdog.start(span);
        }
    }

    fn show(&mut self, state: &Summary<WORDS>) {
        lamp::show(state);
    }
}

/// So that a change of the memory map links the image anew.
const _: &[u8] = include_bytes!("../memory.x");
