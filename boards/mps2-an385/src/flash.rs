//! The board has no flash. Its 16 MiB of pseudo-static RAM, which QEMU keeps in a file, stand for a
//! NOR flash like that of the other emulated board: programming only clears bits, only an erase sets
//! them, and both take their time.

use bellwether_board::nor::{Chip, Nor};
use embassy_time::Duration;

const BASE: usize = 0x2100_0000;

pub type Flash = Nor<Psram>;

/// The part. There is one.
pub struct Psram(());

/// Takes the part into use. Call once.
pub fn start() -> Flash {
    Nor(Psram(()))
}

fn byte(address: u32) -> *mut u8 {
    (BASE + address as usize) as *mut u8
}

impl Chip for Psram {
    const CAPACITY_BYTES: u32 = 16 << 20;
    const SECTOR_BYTES: u32 = 64 << 10;
    const PROGRAM: Duration = Duration::from_micros(750);
    const ERASE: Duration = Duration::from_secs(1);
    /// What is written is in the file at once.
    const SETTLE: Duration = Duration::from_micros(0);

    fn read(&mut self, address: u32, bytes: &mut [u8]) {
        for (address, byte_read) in (address..).zip(bytes) {
            // SAFETY: the caller stays inside the part, which nothing else uses. Volatile, because
            // the host may look on.
            *byte_read = unsafe { byte(address).read_volatile() };
        }
    }

    fn program(&mut self, address: u32, bytes: &[u8]) {
        for (address, value) in (address..).zip(bytes) {
            // SAFETY: as above.
            unsafe { byte(address).write_volatile(byte(address).read_volatile() & value) };
        }
    }

    fn erase(&mut self, address: u32) {
        for address in (address..address + Self::SECTOR_BYTES).step_by(4) {
            // SAFETY: as above; sectors are aligned.
            unsafe { byte(address).cast::<u32>().write_volatile(u32::MAX) };
        }
    }

    fn is_busy(&mut self) -> bool {
        false
    }
}
