//! Bellwether on the NUCLEO-F429ZI. Built and linked; it has not run on hardware yet.
#![no_std]
#![no_main]

use bellwether::cells::{Geometry, Layout, Part};
use bellwether::shell::{Door, ResetCause};
use bellwether::time::Duration;
use bellwether_board::gate::Gate;
use bellwether_board::{Hardware, lamp, ts_min};
use bellwether_stm32::f4::{self, FlashF4};
use bellwether_stm32::flash::Flash;
use bellwether_stm32::guard::Watchman;
use bellwether_stm32::{Network, address, front, queue};
use embassy_executor::Spawner;
use embassy_stm32::eth::{self, Ethernet};
use embassy_stm32::gpio::{Input, Level, Output, Pull, Speed};
use embassy_stm32::rng::{self, Rng};
use embassy_stm32::time::Hertz;
use embassy_stm32::{Config, Peripherals, bind_interrupts, peripherals, rcc};

bind_interrupts!(struct Interrupts {
    ETH => eth::InterruptHandler;
    HASH_RNG => rng::InterruptHandler<peripherals::RNG>;
});

bellwether_board::board!(Nucleo);

struct Nucleo(Peripherals);

impl Hardware for Nucleo {
    type Flash = Flash<FlashF4>;
    type Ethernet = Network;
    type Guard = Watchman;

    const SECTORS: usize = 3;
    const LAYOUT: Layout = Layout { a: 0..384 << 10, b: 384 << 10..768 << 10 };
    /// 64 datagrams opened and answered one after the other, behind eight words that are being programmed
    /// (0.1 ms each). Both take at most 27,000 instructions (`cargo lab cost`), of 1.3 cycles each: 0.21 ms. An
    /// erase stops nobody: it runs in the bank that no code is in.
    const TP_MIN: Duration = Duration::from_millis(15);
    /// Both copies of the longest state vector, 171 words of 0.1 ms each, behind an erase (4 s) and the
    /// notes about it.
    const TS_MIN: Duration = {
        let part = Part {
            program_us_max: 100,
            program_page_bytes: 4,
            erase_us_max: 4_000_000,
            suspend_us_max: None,
            read_us_per_kib: 20,
            endurance_erases: 10_000,
        };
        ts_min(&part, &Geometry { word_bytes: 4, sector_bytes: 128 << 10, sectors: 3 })
    };

    const WATCHDOG: bool = true;

    fn reset_cause() -> Option<ResetCause> {
        f4::reset_cause()
    }

    fn start() -> (Self, Flash<FlashF4>, Watchman) {
        let mut config = Config::default();
        // The clock of the debug probe, 8 MHz, to 168 MHz, and 48 MHz for the random numbers.
        let mode = rcc::HseMode::Bypass;
        config.rcc.hse = Some(rcc::Hse { freq: Hertz(8_000_000), mode });
        config.rcc.pll_src = rcc::PllSource::HSE;
        config.rcc.pll = Some(rcc::Pll {
            prediv: rcc::PllPreDiv::DIV4,
            mul: rcc::PllMul::MUL168,
            divp: Some(rcc::PllPDiv::DIV2),
            divq: Some(rcc::PllQDiv::DIV7),
            divr: None,
        });
        config.rcc.sys = rcc::Sysclk::PLL1_P;
        config.rcc.apb1_pre = rcc::APBPrescaler::DIV4;
        config.rcc.apb2_pre = rcc::APBPrescaler::DIV2;
        (Self(bellwether_stm32::init(config)), Flash::new(FlashF4::new()), Watchman::new())
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
            p.PA1, p.PA7, p.PC4, p.PC5, p.PG13, p.PB13, p.PG11,
            door.address, p.ETH_SMA, p.PA2, p.PC1,
        );
        Gate::new(ethernet, door)
    }
}

/// So that a change of the memory map links the image anew.
const _: &[u8] = include_bytes!("../memory.x");
