//! What a board must supply.

use bellwether::cells::{Flash, Geometry, Layout, Part};
use bellwether::shell::{Door, ResetCause, WORDS};
use bellwether::state::{StateVector, Summary};
use bellwether::time::Duration;
use embassy_executor::Spawner;
use embassy_net_driver::Driver;

/// A board: its constants, and how it is taken into use. The value is what it takes to connect.
pub trait Hardware: Sized + 'static {
    type Flash: Flash + 'static;
    type Ethernet: Driver + 'static;
    type Guard: Guard + 'static;

    /// Where the cells lie in the flash.
    const LAYOUT: Layout;
    /// Erase sectors of each of the two regions.
    const SECTORS: usize;
    /// The least Tp and Ts that the board can honour; it refuses to start with less.
    const TP_MIN: Duration;
    const TS_MIN: Duration;

    /// Whether a watchdog stands behind the deadline timer and resets a core that hangs with all
    /// interrupts off. The board's suite tries it.
    const WATCHDOG: bool = false;
    /// Whether that watchdog is the deadline timer, too: a deadline that is missed then has the cause
    /// `watchdog`.
    const DEADLINE_IS_WATCHDOG: bool = false;
    /// Whether the other end of the cable sends every frame back while the suite runs, as the lab does
    /// for emulated boards. Else the suite only looks whether the link comes up.
    const ECHO: bool = false;

    /// What the chip itself knows of the cause of this boot. Asked once, before anything else. What
    /// the firmware left in the retained record comes first.
    fn reset_cause() -> Option<ResetCause> {
        None
    }

    /// Takes the chip into use: clocks, timers, interrupts, flash. embassy's time runs from here on.
    fn start() -> (Self, Self::Flash, Self::Guard);

    /// Takes lamp and button into use, where there are any: see [`crate::lamp`]. Called before the node
    /// knows who it is, so that a board without a configuration shows that it has power.
    fn front(&mut self, _spawner: Spawner) {}

    /// A number that nobody can foresee, where the chip has such a thing.
    fn random(&mut self) -> Option<u64> {
        None
    }

    /// The hardware address of the chip, where it has one. Else one is made of the node's IP address.
    fn address(&self) -> Option<[u8; 6]> {
        None
    }

    /// Takes the network into use, and spawns the tasks that it needs by itself. The driver turns
    /// away what the door does not let in: see [`crate::inbox`] and [`crate::gate`].
    fn connect(self, spawner: Spawner, door: Door) -> impl Future<Output = Self::Ethernet>;
}

/// What watches over a node, and shows how it is.
pub trait Guard {
    /// (Re)starts the deadline timer, which ends in [`crate::retained::deadline`], and feeds the
    /// independent watchdog, where there is one.
    fn feed(&mut self, span: Duration);

    /// The state vector has changed: for lamps.
    fn show(&mut self, _state: &Summary<WORDS>) {}
}

/// Ts: both copies of the longest state vector, behind an erase that has just begun. The margin is
/// for the tasks that run in between.
#[must_use]
pub const fn ts_min(part: &Part, geometry: &Geometry) -> Duration {
    let largest = StateVector::<WORDS>::RECORD_BYTES_MAX as u32;
    Duration(part.save_us_max(geometry, largest, 648, true) + 20_000)
}
