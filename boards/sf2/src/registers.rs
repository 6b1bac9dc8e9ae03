//! The registers that the drivers use, from the user guide of the microcontroller subsystem
//! (UG0331).

use bellwether_board::register::Register;

/// The register at an address of this chip.
const fn register(address: usize) -> Register {
    // SAFETY: every address below is that of a register of the user guide.
    unsafe { Register::at(address) }
}

/// The system timers: 1 wakes, 2 guards.
pub mod timer {
    use super::{Register, register};

    pub struct Timer {
        pub load: Register,
        pub control: Register,
        pub status: Register,
    }

    const fn timer(base: usize) -> Timer {
        Timer {
            load: register(base + 0x04),
            control: register(base + 0x0c),
            status: register(base + 0x10),
        }
    }

    pub const ALARM: Timer = timer(0x4000_4000);
    pub const DEADLINE: Timer = timer(0x4000_4018);

    pub const ENABLE: u32 = 1;
    pub const ONE_SHOT: u32 = 2;
    pub const INTERRUPT: u32 = 4;

    impl Timer {
        pub fn stop(&self) {
            self.control.write(0);
            self.status.write(1);
        }

        /// Counts down once from `count` and interrupts.
        pub fn start(&self, count: u32) {
            self.control.write(0);
            self.status.write(1);
            self.load.write(count.max(1));
            self.control.write(ENABLE | ONE_SHOT | INTERRUPT);
        }
    }

    /// The clock of the timers: 100 MHz in QEMU and in the default design of the vendor's tool. A
    /// design with a slower one must say so here; the deadline would come late otherwise.
    pub const COUNTS_PER_US: u32 = 100;
}

/// The serial peripheral interface to the flash.
pub mod spi {
    use super::{Register, register};

    const BASE: usize = 0x4000_1000;
    pub const CONTROL: Register = register(BASE);
    pub const FRAME_SIZE: Register = register(BASE + 0x04);
    pub const STATUS: Register = register(BASE + 0x08);
    pub const RECEIVE: Register = register(BASE + 0x10);
    pub const TRANSMIT: Register = register(BASE + 0x14);
    pub const SLAVE_SELECT: Register = register(BASE + 0x1c);

    pub const ENABLE: u32 = 1;
    pub const MASTER: u32 = 1 << 1;
    pub const FRAMES_SHIFT: u32 = 8;
    /// The slave stays selected for all frames of the count.
    pub const HOLD_SELECT: u32 = 1 << 26;
    pub const BIG_FIFO: u32 = 1 << 29;
    pub const RECEIVE_EMPTY: u32 = 1 << 6;
}

/// The Ethernet MAC.
pub mod mac {
    use super::{Register, register};

    const BASE: usize = 0x4004_1000;
    pub const CONFIG_1: Register = register(BASE);
    pub const CONFIG_2: Register = register(BASE + 0x04);
    pub const FRAME_LENGTH_MAX: Register = register(BASE + 0x10);
    pub const MII_COMMAND: Register = register(BASE + 0x24);
    pub const MII_ADDRESS: Register = register(BASE + 0x28);
    pub const MII_STATUS: Register = register(BASE + 0x30);
    pub const STATION_1: Register = register(BASE + 0x40);
    pub const STATION_2: Register = register(BASE + 0x44);
    pub const FIFO_CONFIG_0: Register = register(BASE + 0x48);
    pub const TX_CONTROL: Register = register(BASE + 0x180);
    pub const TX_DESCRIPTOR: Register = register(BASE + 0x184);
    pub const TX_STATUS: Register = register(BASE + 0x188);
    pub const RX_CONTROL: Register = register(BASE + 0x18c);
    pub const RX_DESCRIPTOR: Register = register(BASE + 0x190);
    pub const RX_STATUS: Register = register(BASE + 0x194);
    pub const INTERRUPT_MASK: Register = register(BASE + 0x198);

    pub const TX_ENABLE: u32 = 1;
    pub const RX_ENABLE: u32 = 1 << 2;
    pub const RESET: u32 = 1 << 31;
    pub const PACKETS_SHIFT: u32 = 16;
    pub const PACKET: u32 = 1;
    pub const UNDERRUN: u32 = 1 << 1;
    pub const OVERFLOW: u32 = 1 << 2;
    /// Packet received, receive overflow.
    pub const INTERRUPTS: u32 = 0x50;
}
