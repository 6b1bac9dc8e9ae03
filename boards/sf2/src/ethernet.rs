//! The Ethernet MAC, as a driver for embassy-net.
//!
//! The interrupt copies what the MAC took in into a queue, with the time, and gives the buffer back
//! at once: a few buffers then bear a burst of many frames.

use core::cell::{RefCell, UnsafeCell};
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Context;

use critical_section::Mutex;
use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};
use embassy_sync::waitqueue::AtomicWaker;
use embassy_time::{Duration, Instant, Timer};

use bellwether::shell::member::DATAGRAM_ROOM;
use bellwether::shell::{Door, Guest, TurnedAway};

use crate::arrivals;
use crate::queue::Queue;
use crate::registers::mac;

const RX_BUFFERS: usize = 8;
/// A flock of 64 has no longer datagrams than the shell's bound; the MAC drops what is longer, as
/// `FRAME_LENGTH_MAX` tells it to.
const FRAME_BYTES_MAX: usize = 768;
const HEADER_BYTES: usize = 14 + 20 + 8;
const _: () = assert!(HEADER_BYTES + DATAGRAM_ROOM <= FRAME_BYTES_MAX);
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
// transmit parts by the one `Ethernet` only.
unsafe impl Sync for Shared {}

const UNUSED: Descriptor = Descriptor { address: 0, size: 0, next: 0 };
static MEMORY: Shared = Shared(UnsafeCell::new(Memory {
    rx: [UNUSED; RX_BUFFERS],
    tx: UNUSED,
    rx_bytes: [[0; FRAME_BYTES_MAX]; RX_BUFFERS],
    tx_bytes: [0; FRAME_BYTES_MAX],
}));

struct Receiver {
    queue: Queue,
    current: usize,
    door: Option<Door>,
    turned_away: TurnedAway,
}

static RECEIVER: Mutex<RefCell<Receiver>> = Mutex::new(RefCell::new(Receiver::NEW));
static WAKER: AtomicWaker = AtomicWaker::new();
static LINK_UP: AtomicBool = AtomicBool::new(true);

/// The MAC. There is one.
pub struct Ethernet {
    address: [u8; 6],
    frame: [u8; FRAME_BYTES_MAX],
}

/// The multicast hardware address of an IPv4 group (RFC 1112).
pub fn multicast([_, b, c, d]: [u8; 4]) -> [u8; 6] {
    [0x01, 0x00, 0x5e, b & 0x7f, c, d]
}

impl Ethernet {
    /// Starts the MAC. Call once.
    pub fn start(door: Door) -> Self {
        let address = door.address;
        mac::CONFIG_1.write(mac::RESET);
        mac::CONFIG_1.write(0);
        // Full duplex, padding and checksum by the MAC, byte mode off.
        mac::CONFIG_2.write(0x7217);
        mac::FRAME_LENGTH_MAX.write(FRAME_BYTES_MAX as u32);
        mac::FIFO_CONFIG_0.write(0x1f << 8);
        let [a, b, c, d, e, f] = address;
        mac::STATION_1.write(u32::from_be_bytes([a, b, c, d]));
        mac::STATION_2.write(u32::from_be_bytes([e, f, 0, 0]));
        critical_section::with(|section| RECEIVER.borrow_ref_mut(section).door = Some(door));
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
        memory.tx =
            Descriptor { address: &raw const memory.tx_bytes as u32, size: EMPTY, next: tx };
        cortex_m::asm::dmb();
        mac::TX_DESCRIPTOR.write(tx);
        mac::RX_DESCRIPTOR.write(first);
        mac::CONFIG_1.write(mac::TX_ENABLE | mac::RX_ENABLE);
        mac::INTERRUPT_MASK.write(mac::INTERRUPTS);
        mac::RX_CONTROL.write(1);
        Self { address, frame: [0; FRAME_BYTES_MAX] }
    }
}

pub fn turned_away() -> TurnedAway {
    critical_section::with(|section| RECEIVER.borrow_ref(section).turned_away)
}

/// Looks after the cable.
pub async fn watch_link() -> ! {
    loop {
        mac::MII_ADDRESS.write(PHY << 8 | PHY_STATUS);
        mac::MII_COMMAND.write(1);
        let up = mac::MII_STATUS.read() & PHY_LINK_UP != 0;
        mac::MII_COMMAND.write(0);
        if LINK_UP.swap(up, Ordering::Relaxed) != up {
            WAKER.wake();
        }
        Timer::after(LINK_PERIOD).await;
    }
}

impl Receiver {
    const NEW: Self = Self {
        queue: Queue::EMPTY,
        current: 0,
        door: None,
        turned_away: TurnedAway { noise: 0, crowded: 0 },
    };

    fn receive(&mut self, frame: &[u8]) {
        let guest = self.door.as_ref().map_or(Guest::Passing, |door| door.look(frame));
        let kept = match guest {
            Guest::Passing => true,
            Guest::Noise => {
                self.turned_away.noise = self.turned_away.noise.saturating_add(1);
                true
            }
            // Strangers must leave room for the flock.
            Guest::Stranger if !self.queue.is_almost_empty() => false,
            Guest::Stranger | Guest::Member => self.queue.push(Instant::now().as_micros(), frame),
        };
        if !kept {
            self.turned_away.crowded = self.turned_away.crowded.saturating_add(1);
        }
    }

    fn take_in(&mut self) {
        let memory = MEMORY.0.get();
        loop {
            let status = mac::RX_STATUS.read();
            if (status >> mac::PACKETS_SHIFT) & 0xff != 0 {
                // SAFETY: the MAC has filled this descriptor and its buffer and does not touch them
                // until it is marked empty again.
                let (descriptor, bytes) = unsafe {
                    (&raw mut (*memory).rx[self.current], &(*memory).rx_bytes[self.current])
                };
                // SAFETY: as above; volatile, because the MAC writes it.
                let size = unsafe { (&raw const (*descriptor).size).read_volatile() };
                let frame = bytes.get(..(size & LENGTH) as usize).unwrap_or(&[]);
                self.receive(frame);
                // SAFETY: as above.
                unsafe { (&raw mut (*descriptor).size).write_volatile(EMPTY) };
                self.current = (self.current + 1) % RX_BUFFERS;
                mac::RX_STATUS.write(mac::PACKET);
            } else if status & mac::OVERFLOW != 0 {
                // The MAC stopped; it begins again where this driver stands.
                mac::RX_STATUS.write(mac::OVERFLOW);
                self.turned_away.crowded = self.turned_away.crowded.saturating_add(1);
                // SAFETY: only the address is taken.
                let at = unsafe { &raw const (*memory).rx[self.current] };
                mac::RX_DESCRIPTOR.write(at as u32);
                mac::RX_CONTROL.write(1);
            } else {
                return;
            }
        }
    }
}

// SAFETY: the name stands in the interrupt table.
#[unsafe(no_mangle)]
extern "C" fn ETHERNET() {
    critical_section::with(|section| RECEIVER.borrow_ref_mut(section).take_in());
    WAKER.wake();
}

pub struct Received<'a>(&'a mut [u8]);

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

pub struct Transmit;

impl TxToken for Transmit {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        // SAFETY: the MAC is done with the frame before, see below, and there is one `Ethernet`,
        // whose borrow ends only after this token was made; the thread alone sends.
        let memory = MEMORY.0.get();
        let bytes = unsafe { &mut (*memory).tx_bytes };
        let len = len.min(FRAME_BYTES_MAX);
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

impl Driver for Ethernet {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Transmit;

    fn receive(&mut self, context: &mut Context<'_>) -> Option<(Received<'_>, Transmit)> {
        WAKER.register(context.waker());
        let popped = critical_section::with(|section| {
            RECEIVER.borrow_ref_mut(section).queue.pop(&mut self.frame)
        });
        let (time_us, len) = popped?;
        let frame = self.frame.get_mut(..len)?;
        arrivals::note(frame, time_us);
        Some((Received(frame), Transmit))
    }

    fn transmit(&mut self, _context: &mut Context<'_>) -> Option<Transmit> {
        Some(Transmit)
    }

    fn link_state(&mut self, context: &mut Context<'_>) -> LinkState {
        WAKER.register(context.waker());
        if LINK_UP.load(Ordering::Relaxed) { LinkState::Up } else { LinkState::Down }
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
