//! Bellwether on the SmartFusion2 SOM (in QEMU: emcraft-sf2).
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
use crate::flash::{Flash, S25sl12801};
use crate::registers::timer::{self, COUNTS_PER_US};

bellwether_board::board!(Sf2);

const SECTORS: u32 = 4;
const SECTOR_BYTES: u32 = S25sl12801::SECTOR_BYTES;

struct Sf2;

impl Hardware for Sf2 {
    type Flash = Flash;
    type Ethernet = Ethernet;
    type Guard = Deadline;

    const SECTORS: usize = SECTORS as usize;
    const LAYOUT: Layout = {
        let middle = SECTORS * SECTOR_BYTES;
        Layout { a: 0..middle, b: middle..2 * middle }
    };
    /// 64 datagrams opened and answered one after the other, behind one record that is being read from
    /// flash (0.9 ms). Both take at most 27,000 instructions (`cargo lab cost`), of 1.4 cycles each at 142 MHz:
    /// 0.27 ms.
    const TP_MIN: Duration = Duration::from_millis(18);
    /// Both copies of the longest state vector behind an erase, by the times that the firmware waits out
    /// (see `flash`).
    const TS_MIN: Duration = ts_min(
        &nor::part::<S25sl12801>(),
        &Geometry { word_bytes: 4, sector_bytes: SECTOR_BYTES, sectors: SECTORS },
    );

    const ECHO: bool = true;

    fn start() -> (Self, Flash, Deadline) {
        // The timers go on through a reset.
        timer::ALARM.stop();
        timer::DEADLINE.stop();
        if let Some(mut core) = Peripherals::take() {
            systick::start(&mut core.SYST);
            interrupts::enable(&mut core.NVIC, &mut core.SCB);
        }
        (Self, flash::start(), Deadline)
    }

    async fn connect(self, spawner: Spawner, door: Door) -> Ethernet {
        if let Ok(task) = ethernet::watch_link() {
            spawner.spawn(task);
        }
        ethernet::start(door)
    }
}

/// The second system timer. The chip has a watchdog, too, but QEMU does not model it.
struct Deadline;

impl Guard for Deadline {
    fn feed(&mut self, span: Duration) {
        timer::DEADLINE.start(span.0.saturating_mul(COUNTS_PER_US));
    }
}
