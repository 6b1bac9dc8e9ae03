//! Bellwether on the NUCLEO-H563ZI. Built and linked; it has not run on hardware yet.
#![no_std]
#![no_main]

use bellwether::cells::{Geometry, Layout, Part};
use bellwether::shell::{Door, ResetCause};
use bellwether::time::Duration;
use bellwether_board::gate::Gate;
use bellwether_board::{Hardware, lamp, ts_min};
use bellwether_stm32::flash::Flash;
use bellwether_stm32::guard::Watchman;
use bellwether_stm32::h5::{self, FlashH5};
use bellwether_stm32::{Network, address, front, queue};
use embassy_executor::Spawner;
use embassy_stm32::eth::{self, Ethernet};
use embassy_stm32::gpio::{Input, Level, Output, Pull, Speed};
use embassy_stm32::rng::{self, Rng};
use embassy_stm32::time::Hertz;
use embassy_stm32::{Config, Peripherals, bind_interrupts, peripherals, rcc};

bind_interrupts!(struct Interrupts {
    ETH => eth::InterruptHandler;
    RNG => rng::InterruptHandler<peripherals::RNG>;
});

bellwether_board::board!(Nucleo);

struct Nucleo(Peripherals);

impl Hardware for Nucleo {
    type Flash = Flash<FlashH5>;
    type Ethernet = Network;
    type Guard = Watchman;

    const SECTORS: usize = 5;
    const LAYOUT: Layout = Layout { a: 0..40 << 10, b: 40 << 10..80 << 10 };
    /// 64 datagrams opened and answered one after the other, behind eight words that are being programmed
    /// (0.1 ms each). Both take at most 27,000 instructions (`cargo lab cost`). Without a cache, behind five wait
    /// states and a prefetch that every branch spoils, that is 2.5 cycles each: 0.27 ms. An erase stops
    /// nobody: it runs in the bank that no code is in.
    const TP_MIN: Duration = Duration::from_millis(19);
    /// Both copies of the longest state vector, 48 words of 0.1 ms each, behind an erase (10 ms) and
    /// the notes about it.
    const TS_MIN: Duration = {
        let part = Part {
            program_us_max: 100,
            program_page_bytes: 16,
            erase_us_max: 10_000,
            suspend_us_max: None,
            read_us_per_kib: 20,
            endurance_erases: 10_000,
        };
        ts_min(&part, &Geometry { word_bytes: 16, sector_bytes: 8 << 10, sectors: 5 })
    };

    const WATCHDOG: bool = true;

    fn reset_cause() -> Option<ResetCause> {
        h5::reset_cause()
    }

    fn start() -> (Self, Flash<FlashH5>, Watchman) {
        let mut config = Config::default();
        // The clock of the debug probe, 8 MHz, to 250 MHz. The random numbers need 48 MHz of their own.
        let mode = rcc::HseMode::BypassDigital;
        config.rcc.hsi48 = Some(Default::default());
        config.rcc.hse = Some(rcc::Hse { freq: Hertz(8_000_000), mode });
        config.rcc.pll1 = Some(rcc::Pll {
            source: rcc::PllSource::HSE,
            prediv: rcc::PllPreDiv::DIV2,
            mul: rcc::PllMul::MUL125,
            divp: Some(rcc::PllDiv::DIV2),
            divq: None,
            divr: None,
        });
        config.rcc.sys = rcc::Sysclk::PLL1_P;
        config.rcc.voltage_scale = rcc::VoltageScale::Scale0;
        (Self(bellwether_stm32::init(config)), Flash::new(FlashH5::new()), Watchman::new())
    }

    fn front(&mut self, spawner: Spawner) {
        // The green lamp and the blue button.
        // SAFETY: nobody else takes these pins.
        let (lamp, button) =
            unsafe { (self.0.PB0.clone_unchecked(), self.0.PC13.clone_unchecked()) };
        let lamp = Output::new(lamp, Level::Low, Speed::Low);
        front::start(spawner, lamp, Input::new(button, Pull::Down));
    }

    fn random(&mut self) -> Option<u64> {
        Some(Rng::new(self.0.RNG.reborrow(), Interrupts).next_u64())
    }

    fn address(&self) -> Option<[u8; 6]> {
        Some(address())
    }

    async fn connect(self, _spawner: Spawner, door: Door) -> Network {
        let p = self.0;
        lamp::introduce(door.me);
        #[rustfmt::skip]
        let ethernet = Ethernet::new(
            queue(), p.ETH, Interrupts,
            p.PA1, p.PA7, p.PC4, p.PC5, p.PG13, p.PB15, p.PG11,
            door.address, p.ETH_SMA, p.PA2, p.PC1,
        );
        Gate::new(ethernet, door)
    }
}

/// So that a change of the memory map links the image anew.
const _: &[u8] = include_bytes!("../memory.x");
