//! Bellwether on the MPS2 board with the AN385 image (in QEMU: mps2-an385).
#![no_std]
#![no_main]

mod clock;
mod ethernet;
mod flash;
mod interrupts;
mod registers;

use bellwether::cells::{Geometry, Layout};
use bellwether::shell::Door;
use bellwether::time::Duration;
use bellwether_board::nor::{self, Chip};
use bellwether_board::{Guard, Hardware, clock as systick, ts_min};
use cortex_m::peripheral::Peripherals;
use embassy_executor::Spawner;

use crate::ethernet::Ethernet;
use crate::flash::{Flash, Psram};
use crate::registers::{COUNTS_PER_US, timer, watchdog};

bellwether_board::board!(Mps2);

const SECTORS: u32 = 4;
const SECTOR_BYTES: u32 = Psram::SECTOR_BYTES;

struct Mps2;

impl Hardware for Mps2 {
    type Flash = Flash;
    type Ethernet = Ethernet;
    type Guard = Guards;

    const SECTORS: usize = SECTORS as usize;
    const LAYOUT: Layout = {
        let middle = SECTORS * SECTOR_BYTES;
        Layout { a: 0..middle, b: middle..2 * middle }
    };
    /// 64 datagrams opened and answered one after the other, behind one flash page that is being read or
    /// written (0.1 ms). Both take at most 27,000 instructions (`cargo lab cost`), of which QEMU carries out a
    /// hundred million a second or more: 0.27 ms. The board itself would have 25 MHz and need 75 ms.
    const TP_MIN: Duration = Duration::from_millis(18);
    /// Both copies of the longest state vector behind an erase, by the times that the firmware waits out
    /// (see `flash`).
    const TS_MIN: Duration = ts_min(
        &nor::part::<Psram>(),
        &Geometry { word_bytes: 4, sector_bytes: SECTOR_BYTES, sectors: SECTORS },
    );

    const WATCHDOG: bool = true;
    const ECHO: bool = true;

    fn start() -> (Self, Flash, Guards) {
        timer::ALARM.stop();
        timer::DEADLINE.stop();
        if let Some(mut core) = Peripherals::take() {
            systick::start(&mut core.SYST);
            interrupts::enable(&mut core.NVIC, &mut core.SCB);
        }
        (Self, flash::start(), Guards)
    }

    async fn connect(self, spawner: Spawner, door: Door) -> Ethernet {
        if let Ok(task) = ethernet::watch_link() {
            spawner.spawn(task);
        }
        ethernet::start(door)
    }
}

/// From the last sign of life to the first expiry of the watchdog. It is for a core that nothing else
/// can reach, and much later than the deadline timer, so that whatever that can end has its cause. A
/// core that stands still for twice as long, as only an emulated one does, is reset without one.
const WATCHDOG_COUNTS: u32 = 4_000_000 * COUNTS_PER_US;

/// The second timer, and behind it the watchdog, which no code can hold up.
struct Guards;

impl Guard for Guards {
    fn feed(&mut self, span: Duration) {
        let counts = span.0.saturating_mul(COUNTS_PER_US);
        timer::DEADLINE.start(counts);
        watchdog::LOCK.write(watchdog::UNLOCK);
        watchdog::LOAD.write(WATCHDOG_COUNTS.max(counts.saturating_mul(2)));
        watchdog::CLEAR.write(1);
        watchdog::CONTROL.write(watchdog::INTERRUPT | watchdog::RESET);
        watchdog::LOCK.write(0);
    }
}
