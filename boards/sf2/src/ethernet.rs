//! The Ethernet MAC.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

use bellwether::shell::Door;
use bellwether_board::counts;
use bellwether_board::ethernet::{self, FRAME_BYTES_MAX};
use bellwether_board::inbox::{self, Inbox};
use embassy_time::{Duration, Timer};

use crate::registers::mac;

const RX_BUFFERS: usize = 8;
/// Of a receive buffer: free. Of a transmit buffer: sent.
const EMPTY: u32 = 1 << 31;
const LENGTH: u32 = 0x7ff;
const PHY: u32 = 1;
const PHY_STATUS: u32 = 1;
const PHY_LINK_UP: u32 = 1 << 2;
const LINK_PERIOD: Duration = Duration::from_millis(100);

#[repr(C)]
struct Descriptor {
    address: u32,
    size: u32,
    next: u32,
}

#[repr(C, align(4))]
struct Memory {
    rx: [Descriptor; RX_BUFFERS],
    tx: Descriptor,
    rx_bytes: [[u8; FRAME_BYTES_MAX]; RX_BUFFERS],
    tx_bytes: [u8; FRAME_BYTES_MAX],
}

struct Shared(UnsafeCell<Memory>);

// SAFETY: receive parts are touched in the interrupt only (and by `start`, before it is enabled),
// transmit parts by the thread only.
unsafe impl Sync for Shared {}

const UNUSED: Descriptor = Descriptor { address: 0, size: 0, next: 0 };
static MEMORY: Shared = Shared(UnsafeCell::new(Memory {
    rx: [UNUSED; RX_BUFFERS],
    tx: UNUSED,
    rx_bytes: [[0; FRAME_BYTES_MAX]; RX_BUFFERS],
    tx_bytes: [0; FRAME_BYTES_MAX],
}));

/// The receive buffer that the MAC fills next, or has filled.
static CURRENT: AtomicUsize = AtomicUsize::new(0);

pub struct Mac;
pub type Ethernet = ethernet::Ethernet<Mac>;

/// Starts the MAC. Call once.
pub fn start(door: Door) -> Ethernet {
    mac::CONFIG_1.write(mac::RESET);
    mac::CONFIG_1.write(0);
    // Full duplex, padding and checksum by the MAC, byte mode off.
    mac::CONFIG_2.write(0x7217);
    mac::FRAME_LENGTH_MAX.write(FRAME_BYTES_MAX as u32);
    mac::FIFO_CONFIG_0.write(0x1f << 8);
    let [a, b, c, d, e, f] = door.address;
    mac::STATION_1.write(u32::from_be_bytes([a, b, c, d]));
    mac::STATION_2.write(u32::from_be_bytes([e, f, 0, 0]));
    let ethernet = Ethernet::new(door);
    // SAFETY: the MAC is off and its interrupt masked: nobody else touches the memory.
    let memory = unsafe { &mut *MEMORY.0.get() };
    let first = &raw const memory.rx as u32;
    for (index, descriptor) in memory.rx.iter_mut().enumerate() {
        let next = (index + 1) % RX_BUFFERS;
        descriptor.address = &raw const memory.rx_bytes[index] as u32;
        descriptor.next = first + (next * size_of::<Descriptor>()) as u32;
        descriptor.size = EMPTY;
    }
    let tx = &raw const memory.tx as u32;
    memory.tx = Descriptor { address: &raw const memory.tx_bytes as u32, size: EMPTY, next: tx };
    cortex_m::asm::dmb();
    mac::TX_DESCRIPTOR.write(tx);
    mac::RX_DESCRIPTOR.write(first);
    mac::CONFIG_1.write(mac::TX_ENABLE | mac::RX_ENABLE);
    mac::INTERRUPT_MASK.write(mac::INTERRUPTS);
    mac::RX_CONTROL.write(1);
    ethernet
}

/// Looks after the cable.
#[embassy_executor::task]
pub async fn watch_link() -> ! {
    loop {
        mac::MII_ADDRESS.write(PHY << 8 | PHY_STATUS);
        mac::MII_COMMAND.write(1);
        let up = mac::MII_STATUS.read() & PHY_LINK_UP != 0;
        mac::MII_COMMAND.write(0);
        inbox::set_link(up);
        Timer::after(LINK_PERIOD).await;
    }
}

fn take_in(inbox: &mut Inbox) {
    let memory = MEMORY.0.get();
    loop {
        let status = mac::RX_STATUS.read();
        let current = CURRENT.load(Ordering::Relaxed);
        if (status >> mac::PACKETS_SHIFT) & 0xff != 0 {
            // SAFETY: the MAC has filled this descriptor and its buffer and does not touch them
            // until it is marked empty again.
            let (descriptor, bytes) =
                unsafe { (&raw mut (*memory).rx[current], &(*memory).rx_bytes[current]) };
            // SAFETY: as above; volatile, because the MAC writes it.
            let size = unsafe { (&raw const (*descriptor).size).read_volatile() };
            let frame = bytes.get(..(size & LENGTH) as usize).unwrap_or(&[]);
            inbox.receive(frame);
            // SAFETY: as above.
            unsafe { (&raw mut (*descriptor).size).write_volatile(EMPTY) };
            CURRENT.store((current + 1) % RX_BUFFERS, Ordering::Relaxed);
            mac::RX_STATUS.write(mac::PACKET);
        } else if status & mac::OVERFLOW != 0 {
            // The MAC stopped; it begins again where this driver stands.
            mac::RX_STATUS.write(mac::OVERFLOW);
            counts::CROWDED.add();
            // SAFETY: only the address is taken.
            let at = unsafe { &raw const (*memory).rx[current] };
            mac::RX_DESCRIPTOR.write(at as u32);
            mac::RX_CONTROL.write(1);
        } else {
            return;
        }
    }
}

// SAFETY: the name stands in the interrupt table.
#[unsafe(no_mangle)]
extern "C" fn ETHERNET() {
    inbox::fill(take_in);
}

impl ethernet::Mac for Mac {
    fn send<R>(len: usize, write: impl FnOnce(&mut [u8]) -> R) -> R {
        // SAFETY: the MAC is done with the frame before, see below, and the thread alone sends.
        let memory = MEMORY.0.get();
        let bytes = unsafe { &mut (*memory).tx_bytes };
        let result = write(&mut bytes[..len]);
        let size = unsafe { &raw mut (*memory).tx.size };
        // SAFETY: as above; volatile, because the MAC reads and writes it.
        unsafe { size.write_volatile(len as u32) };
        cortex_m::asm::dmb();
        mac::TX_CONTROL.write(1);
        // A frame takes 0.12 ms at most; QEMU sends inside the write above.
        // SAFETY: as above.
        while unsafe { size.read_volatile() } & EMPTY == 0 {}
        mac::TX_STATUS.write(mac::PACKET | mac::UNDERRUN);
        result
    }
}
