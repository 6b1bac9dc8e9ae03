//! The SPI NOR flash (S25SL12801): 16 MiB, 256-byte pages, 64 KiB sectors.

use bellwether_board::nor::{Chip, Nor, PAGE_BYTES};
use embassy_time::Duration;

use crate::registers::spi;

mod command {
    pub const WRITE_ENABLE: u8 = 0x06;
    pub const STATUS: u8 = 0x05;
    pub const READ: u8 = 0x03;
    pub const PROGRAM: u8 = 0x02;
    pub const ERASE: u8 = 0xd8;
}

const BUSY: u8 = 1;

pub type Flash = Nor<S25sl12801>;

/// The part. There is one.
pub struct S25sl12801(());

/// Takes the interface into use. Call once.
pub fn start() -> Flash {
    spi::CONTROL.write(spi::MASTER);
    spi::FRAME_SIZE.write(8);
    spi::SLAVE_SELECT.write(1);
    Nor(S25sl12801(()))
}

impl S25sl12801 {
    /// One exchange with the part selected: sends `head`, then swaps `body` for what comes back.
    fn exchange(&mut self, head: &[u8], body: &mut [u8]) {
        let frames = (head.len() + body.len()) as u32;
        let control = spi::HOLD_SELECT | spi::BIG_FIFO | frames << spi::FRAMES_SHIFT | spi::MASTER;
        spi::CONTROL.write(control | spi::ENABLE);
        for byte in head {
            swap(*byte);
        }
        for byte in body {
            *byte = swap(*byte);
        }
        spi::CONTROL.write(spi::MASTER);
    }

    fn command(&mut self, command: u8, address: u32, body: &mut [u8]) {
        let [_, high, middle, low] = address.to_be_bytes();
        self.exchange(&[command, high, middle, low], body);
    }
}

fn swap(byte: u8) -> u8 {
    spi::TRANSMIT.write(byte.into());
    while spi::STATUS.read() & spi::RECEIVE_EMPTY != 0 {}
    spi::RECEIVE.read() as u8
}

impl Chip for S25sl12801 {
    const CAPACITY_BYTES: u32 = 16 << 20;
    const SECTOR_BYTES: u32 = 64 << 10;
    // Between the usual times of the data sheet (1.5 ms with what settles behind it, 0.5 s) and its worst
    // (3 ms, 2 s), which nothing in an emulation would ever take.
    const PROGRAM: Duration = Duration::from_micros(750);
    const ERASE: Duration = Duration::from_secs(1);
    const SETTLE: Duration = Duration::from_micros(1500);

    fn read(&mut self, address: u32, bytes: &mut [u8]) {
        self.command(command::READ, address, bytes);
    }

    fn program(&mut self, address: u32, bytes: &[u8]) {
        let mut page = [0; PAGE_BYTES as usize];
        // No longer than a page, by the promise of the caller.
        let Some(page) = page.get_mut(..bytes.len()) else { return };
        page.copy_from_slice(bytes);
        self.exchange(&[command::WRITE_ENABLE], &mut []);
        self.command(command::PROGRAM, address, page);
    }

    fn erase(&mut self, address: u32) {
        self.exchange(&[command::WRITE_ENABLE], &mut []);
        self.command(command::ERASE, address, &mut []);
    }

    fn is_busy(&mut self) -> bool {
        let mut status = [0];
        self.exchange(&[command::STATUS], &mut status);
        status[0] & BUSY != 0
    }
}
