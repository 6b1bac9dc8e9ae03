//! The LAN9118: frames wait in its own memory until the stack reads them. The door and the time stamps
//! are around it (`gate` in boards/common).

use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Context;

use bellwether::shell::Door;
use bellwether_board::ethernet::FRAME_BYTES_MAX;
use bellwether_board::gate::Gate;
use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};
use embassy_sync::waitqueue::AtomicWaker;
use embassy_time::{Duration, Timer};

use crate::interrupts::{Interrupt, allow};
use crate::registers::lan::{self, mac};

const LINK_PERIOD: Duration = Duration::from_millis(100);
const CHECKSUM_BYTES: usize = 4;

static WAKER: AtomicWaker = AtomicWaker::new();
/// For the cable alone: the gate's waker for frames looks at the clock.
static LINK_WAKER: AtomicWaker = AtomicWaker::new();
static LINK_DOWN: AtomicBool = AtomicBool::new(false);

pub type Ethernet = Gate<Lan9118>;

/// The controller. There is one.
pub struct Lan9118 {
    address: [u8; 6],
}

fn read_mac(register: u32) -> u32 {
    lan::MAC_COMMAND.write(lan::MAC_BUSY | lan::MAC_READ | register);
    while lan::MAC_COMMAND.read() & lan::MAC_BUSY != 0 {}
    lan::MAC_DATA.read()
}

fn write_mac(register: u32, value: u32) {
    lan::MAC_DATA.write(value);
    lan::MAC_COMMAND.write(lan::MAC_BUSY | register);
    while lan::MAC_COMMAND.read() & lan::MAC_BUSY != 0 {}
}

/// Starts the controller. Call once.
pub fn start(door: Door) -> Ethernet {
    let address = door.address;
    lan::HARDWARE_CONFIG.write(lan::SOFT_RESET);
    while lan::HARDWARE_CONFIG.read() & lan::SOFT_RESET != 0 {}
    lan::HARDWARE_CONFIG.write(lan::TX_FIFO_5_KIB);
    let [a, b, c, d, e, f] = address;
    write_mac(mac::ADDRESS_LOW, u32::from_le_bytes([a, b, c, d]));
    write_mac(mac::ADDRESS_HIGH, u32::from_le_bytes([e, f, 0, 0]));
    // An interrupt for each frame.
    lan::FIFO_INTERRUPT.write(0);
    lan::INTERRUPT_ENABLE.write(0);
    lan::INTERRUPT_STATUS.write(u32::MAX);
    lan::INTERRUPT_CONFIG.write(lan::INTERRUPT_ON);
    lan::TX_CONFIG.write(lan::TX_ON);
    let duplex = mac::FULL_DUPLEX | mac::ALL_MULTICAST;
    write_mac(mac::CONTROL, duplex | mac::RX_ENABLE | mac::TX_ENABLE);
    lan::INTERRUPT_ENABLE.write(lan::RX_LEVEL);
    allow(Interrupt::Ethernet);
    Gate::new(Lan9118 { address }, door)
}

// SAFETY: the name stands in the interrupt table.
#[unsafe(no_mangle)]
extern "C" fn ETHERNET() {
    // The line stays up as long as frames wait; the driver allows it again when none are left.
    lan::INTERRUPT_ENABLE.write(0);
    WAKER.wake();
}

/// Looks after the cable.
#[embassy_executor::task]
pub async fn watch_link() -> ! {
    loop {
        write_mac(mac::MII_ACCESS, mac::READ_PHY_STATUS);
        let down = read_mac(mac::MII_DATA) & mac::PHY_LINK_UP == 0;
        if LINK_DOWN.load(Ordering::Relaxed) != down {
            LINK_DOWN.store(down, Ordering::Relaxed);
            LINK_WAKER.wake();
        }
        Timer::after(LINK_PERIOD).await;
    }
}

/// The frame that stands first.
pub struct Received {
    len: usize,
}

impl RxToken for Received {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, read: F) -> R {
        let mut frame = [[0; 4]; FRAME_BYTES_MAX / 4];
        let words = self.len.div_ceil(4);
        if words > frame.len() {
            lan::RX_CONTROL.write(lan::RX_DISCARD);
            while lan::RX_CONTROL.read() & lan::RX_DISCARD != 0 {}
            return read(&mut []);
        }
        for word in frame.iter_mut().take(words) {
            *word = lan::RX_DATA.read().to_le_bytes();
        }
        let bytes = frame.as_flattened_mut();
        let len = self.len.saturating_sub(CHECKSUM_BYTES).min(bytes.len());
        read(&mut bytes[..len])
    }
}

pub struct Transmit;

impl TxToken for Transmit {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut frame = [[0; 4]; FRAME_BYTES_MAX / 4];
        let len = len.min(FRAME_BYTES_MAX);
        let result = write(&mut frame.as_flattened_mut()[..len]);
        // First and last piece in one; then the length again.
        lan::TX_DATA.write(1 << 13 | 1 << 12 | len as u32);
        lan::TX_DATA.write(len as u32);
        for word in frame.iter().take(len.div_ceil(4)) {
            lan::TX_DATA.write(u32::from_le_bytes(*word));
        }
        // Nobody asks what became of it, but the list of answers must not fill up.
        while lan::TX_FIFO.read() >> 16 & 0xff != 0 {
            lan::TX_STATUS.read();
        }
        result
    }
}

impl Driver for Lan9118 {
    type RxToken<'a> = Received;
    type TxToken<'a> = Transmit;

    fn receive(&mut self, context: &mut Context<'_>) -> Option<(Received, Transmit)> {
        WAKER.register(context.waker());
        if lan::RX_FIFO.read() >> 16 & 0xff == 0 {
            lan::INTERRUPT_STATUS.write(lan::RX_LEVEL);
            lan::INTERRUPT_ENABLE.write(lan::RX_LEVEL);
            // One that came before the line above has cleared its interrupt would wait for the next.
            if lan::RX_FIFO.read() >> 16 & 0xff == 0 {
                return None;
            }
        }
        let status = lan::RX_STATUS.read();
        Some((Received { len: (status >> 16 & 0x3fff) as usize }, Transmit))
    }

    fn transmit(&mut self, context: &mut Context<'_>) -> Option<Transmit> {
        // Room for the longest frame and its two commands.
        let room = (lan::TX_FIFO.read() & 0xffff) as usize;
        if room < FRAME_BYTES_MAX + 8 {
            context.waker().wake_by_ref();
            return None;
        }
        Some(Transmit)
    }

    fn link_state(&mut self, context: &mut Context<'_>) -> LinkState {
        LINK_WAKER.register(context.waker());
        if LINK_DOWN.load(Ordering::Relaxed) { LinkState::Down } else { LinkState::Up }
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = FRAME_BYTES_MAX;
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet(self.address)
    }
}
