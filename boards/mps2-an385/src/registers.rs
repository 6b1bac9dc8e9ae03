//! The registers that the drivers use, from the application note (DAI0385), the CMSDK manual (DDI0479)
//! and the data sheet of the LAN9118.

use bellwether_board::register::Register;

/// The register at an address of this board.
const fn register(address: usize) -> Register {
    // SAFETY: every address below is that of a register of these documents.
    unsafe { Register::at(address) }
}

/// The clock of the timers and of the watchdog.
pub const COUNTS_PER_US: u32 = 25;

/// The CMSDK timers: the first wakes, the second guards.
pub mod timer {
    use super::{Register, register};

    pub struct Timer {
        control: Register,
        value: Register,
        reload: Register,
        interrupt: Register,
    }

    const fn timer(base: usize) -> Timer {
        Timer {
            control: register(base),
            value: register(base + 0x04),
            reload: register(base + 0x08),
            interrupt: register(base + 0x0c),
        }
    }

    pub const ALARM: Timer = timer(0x4000_0000);
    pub const DEADLINE: Timer = timer(0x4000_1000);

    const ENABLE: u32 = 1;
    const INTERRUPT: u32 = 1 << 3;

    impl Timer {
        pub fn stop(&self) {
            self.control.write(0);
            self.interrupt.write(1);
        }

        /// Counts down from `count` and interrupts, again and again until it is stopped.
        pub fn start(&self, count: u32) {
            self.stop();
            self.reload.write(count.max(1));
            self.value.write(count.max(1));
            self.control.write(ENABLE | INTERRUPT);
        }
    }
}

/// The CMSDK watchdog: its first expiry is an NMI, its second resets.
pub mod watchdog {
    use super::{Register, register};

    const BASE: usize = 0x4000_8000;
    pub const LOAD: Register = register(BASE);
    pub const CONTROL: Register = register(BASE + 0x08);
    pub const CLEAR: Register = register(BASE + 0x0c);
    pub const LOCK: Register = register(BASE + 0xc00);

    pub const UNLOCK: u32 = 0x1acc_e551;
    pub const INTERRUPT: u32 = 1;
    pub const RESET: u32 = 1 << 1;
}

/// The LAN9118 Ethernet controller.
pub mod lan {
    use super::{Register, register};

    const BASE: usize = 0x4020_0000;
    pub const RX_DATA: Register = register(BASE);
    pub const TX_DATA: Register = register(BASE + 0x20);
    pub const RX_STATUS: Register = register(BASE + 0x40);
    pub const TX_STATUS: Register = register(BASE + 0x48);
    pub const INTERRUPT_CONFIG: Register = register(BASE + 0x54);
    pub const INTERRUPT_STATUS: Register = register(BASE + 0x58);
    pub const INTERRUPT_ENABLE: Register = register(BASE + 0x5c);
    pub const FIFO_INTERRUPT: Register = register(BASE + 0x68);
    pub const TX_CONFIG: Register = register(BASE + 0x70);
    pub const HARDWARE_CONFIG: Register = register(BASE + 0x74);
    pub const RX_CONTROL: Register = register(BASE + 0x78);
    pub const RX_FIFO: Register = register(BASE + 0x7c);
    pub const TX_FIFO: Register = register(BASE + 0x80);
    pub const MAC_COMMAND: Register = register(BASE + 0xa4);
    pub const MAC_DATA: Register = register(BASE + 0xa8);

    /// Push-pull, active high, enabled.
    pub const INTERRUPT_ON: u32 = 0x111;
    /// Frames wait in the receive FIFO.
    pub const RX_LEVEL: u32 = 1 << 3;
    pub const TX_ON: u32 = 1 << 1;
    pub const SOFT_RESET: u32 = 1;
    /// Must be one, says the data sheet; five kilobytes for frames to be sent.
    pub const TX_FIFO_5_KIB: u32 = 1 << 20 | 5 << 16;
    /// Throws the frame away that stands first.
    pub const RX_DISCARD: u32 = 1 << 31;
    pub const MAC_BUSY: u32 = 1 << 31;
    pub const MAC_READ: u32 = 1 << 30;

    /// The MAC's own registers.
    pub mod mac {
        pub const CONTROL: u32 = 1;
        pub const ADDRESS_HIGH: u32 = 2;
        pub const ADDRESS_LOW: u32 = 3;
        pub const MII_ACCESS: u32 = 6;
        pub const MII_DATA: u32 = 7;

        pub const RX_ENABLE: u32 = 1 << 2;
        pub const TX_ENABLE: u32 = 1 << 3;
        pub const ALL_MULTICAST: u32 = 1 << 19;
        pub const FULL_DUPLEX: u32 = 1 << 20;
        /// The PHY inside has address 1; register 1 says whether there is a link.
        pub const READ_PHY_STATUS: u32 = 1 << 11 | 1 << 6;
        pub const PHY_LINK_UP: u32 = 1 << 2;
    }
}
