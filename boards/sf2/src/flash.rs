//! The SPI NOR flash (S25SL12801): 16 MiB, 256-byte pages, 64 KiB sectors.
//!
//! QEMU programs and erases at once, shows no busy bit, and writes its file behind the guest's back.
//! The driver waits out the times of the real part by the clock, so that the timing design is tried
//! for real, and a little longer after each write, so that what is acknowledged survives a power cut
//! of the emulation as it survives one of the part.

use core::sync::atomic::{AtomicU32, Ordering};

use embassy_futures::yield_now;
use embassy_time::{Duration, Timer};
use embedded_storage_async::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};

use crate::registers::spi;

pub const CAPACITY_BYTES: u32 = 16 << 20;
pub const SECTOR_BYTES: u32 = 64 << 10;
const PAGE_BYTES: u32 = 256;
/// What is read before other tasks get a turn.
const READ_BYTES_MAX: usize = 256;

mod command {
    pub const WRITE_ENABLE: u8 = 0x06;
    pub const STATUS: u8 = 0x05;
    pub const READ: u8 = 0x03;
    pub const PROGRAM: u8 = 0x02;
    pub const ERASE: u8 = 0xd8;
}

const BUSY: u8 = 1;

/// How long the part takes, by its data sheet.
#[derive(Clone, Copy)]
pub struct Times {
    pub program: Duration,
    /// After each write; stands for what the emulation needs to make it durable.
    pub settle: Duration,
    pub erase: Duration,
}

pub const TIMES: Times = Times {
    program: Duration::from_micros(750),
    settle: Duration::from_micros(1500),
    erase: Duration::from_secs(1),
};

static PROGRAMS: AtomicU32 = AtomicU32::new(0);
static ERASES: AtomicU32 = AtomicU32::new(0);

/// Page programs and sector erases since the boot.
pub fn counts() -> (u32, u32) {
    (PROGRAMS.load(Ordering::Relaxed), ERASES.load(Ordering::Relaxed))
}

#[derive(Debug, Clone, Copy)]
pub enum FlashError {
    OutOfBounds,
    NotAligned,
    /// Still busy long after it should be done.
    Stuck,
}

impl NorFlashError for FlashError {
    fn kind(&self) -> NorFlashErrorKind {
        match self {
            Self::OutOfBounds => NorFlashErrorKind::OutOfBounds,
            Self::NotAligned => NorFlashErrorKind::NotAligned,
            Self::Stuck => NorFlashErrorKind::Other,
        }
    }
}

/// The part. There is one.
pub struct Flash {
    times: Times,
}

impl Flash {
    /// Takes the interface into use. Call once.
    pub fn new(times: Times) -> Self {
        spi::CONTROL.write(spi::MASTER);
        spi::FRAME_SIZE.write(8);
        spi::SLAVE_SELECT.write(1);
        Self { times }
    }

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

    async fn wait(&mut self, usual: Duration) -> Result<(), FlashError> {
        Timer::after(usual).await;
        for _ in 0..100 {
            let mut status = [0];
            self.exchange(&[command::STATUS], &mut status);
            if status[0] & BUSY == 0 {
                return Ok(());
            }
            Timer::after(usual / 16).await;
        }
        Err(FlashError::Stuck)
    }

    /// Cancel safety: none; a program that was sent goes on.
    async fn program(&mut self, address: u32, bytes: &[u8]) -> Result<(), FlashError> {
        let mut page = [0; PAGE_BYTES as usize];
        let page = page.get_mut(..bytes.len()).ok_or(FlashError::OutOfBounds)?;
        page.copy_from_slice(bytes);
        self.exchange(&[command::WRITE_ENABLE], &mut []);
        self.command(command::PROGRAM, address, page);
        PROGRAMS.fetch_add(1, Ordering::Relaxed);
        self.wait(self.times.program).await
    }
}

fn swap(byte: u8) -> u8 {
    spi::TRANSMIT.write(byte.into());
    while spi::STATUS.read() & spi::RECEIVE_EMPTY != 0 {}
    spi::RECEIVE.read() as u8
}

fn check(offset: u32, len: usize) -> Result<(), FlashError> {
    let end = u32::try_from(len).ok().and_then(|len| offset.checked_add(len));
    match end {
        Some(end) if end <= CAPACITY_BYTES => Ok(()),
        _ => Err(FlashError::OutOfBounds),
    }
}

impl ErrorType for Flash {
    type Error = FlashError;
}

impl ReadNorFlash for Flash {
    const READ_SIZE: usize = 1;

    /// Cancel safety: reads only.
    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), FlashError> {
        check(offset, bytes.len())?;
        let mut address = offset;
        for (index, part) in bytes.chunks_mut(READ_BYTES_MAX).enumerate() {
            if index > 0 {
                yield_now().await;
            }
            self.command(command::READ, address, part);
            address += part.len() as u32;
        }
        Ok(())
    }

    fn capacity(&self) -> usize {
        CAPACITY_BYTES as usize
    }
}

impl NorFlash for Flash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = SECTOR_BYTES as usize;

    /// Cancel safety: not cancel safe.
    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        check(offset, bytes.len())?;
        if !offset.is_multiple_of(4) || !bytes.len().is_multiple_of(4) {
            return Err(FlashError::NotAligned);
        }
        let (mut address, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let room = (PAGE_BYTES - address % PAGE_BYTES) as usize;
            let (page, later) = rest.split_at(room.min(rest.len()));
            self.program(address, page).await?;
            address += page.len() as u32;
            rest = later;
        }
        Timer::after(self.times.settle).await;
        Ok(())
    }

    /// Cancel safety: not cancel safe.
    async fn erase(&mut self, from: u32, to: u32) -> Result<(), FlashError> {
        if from > to || to > CAPACITY_BYTES {
            return Err(FlashError::OutOfBounds);
        }
        if !from.is_multiple_of(SECTOR_BYTES) || !to.is_multiple_of(SECTOR_BYTES) {
            return Err(FlashError::NotAligned);
        }
        for sector in (from..to).step_by(SECTOR_BYTES as usize) {
            self.exchange(&[command::WRITE_ENABLE], &mut []);
            self.command(command::ERASE, sector, &mut []);
            ERASES.fetch_add(1, Ordering::Relaxed);
            self.wait(self.times.erase).await?;
        }
        Ok(())
    }
}
