//! A NOR flash with its bounds, its pages and its times, over whatever moves the bytes.
//!
//! Emulations program and erase at once and show no busy bit. The times of the real part are waited
//! out by the clock, so that the timing design is tried for real, and a little longer after each
//! write, so that what is acknowledged survives a power cut of the emulation as it survives one of
//! the part.

use bellwether::cells::Part;
use embassy_futures::yield_now;
use embassy_time::{Duration, Timer};
use embedded_storage::nor_flash::ReadNorFlash as BlockingRead;
use embedded_storage_async::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};

use crate::counts;

/// What is programmed at once at most.
pub const PAGE_BYTES: u32 = 256;
/// What is read before other tasks get a turn.
const READ_BYTES_MAX: usize = 256;

/// A part. Addresses, lengths and alignment are in order when it is called.
pub trait Chip {
    const CAPACITY_BYTES: u32;
    const SECTOR_BYTES: u32;
    /// How long the part takes. An emulated one is done at once, and this is waited out: it is then also
    /// the longest, from which Ts follows. A real one that may take longer needs its worst times here.
    const PROGRAM: Duration;
    const ERASE: Duration;
    /// After each write; stands for what an emulation needs to make it durable.
    const SETTLE: Duration;

    fn read(&mut self, address: u32, bytes: &mut [u8]);

    /// Begins to clear bits, inside of one page.
    fn program(&mut self, address: u32, bytes: &[u8]);

    /// Begins to erase one sector.
    fn erase(&mut self, address: u32);

    fn is_busy(&mut self) -> bool;
}

/// What the arithmetic of the cells wants to know of a part.
#[must_use]
pub const fn part<C: Chip>() -> Part {
    Part {
        program_us_max: (C::PROGRAM.as_micros() + C::SETTLE.as_micros()) as u32,
        program_page_bytes: PAGE_BYTES,
        erase_us_max: C::ERASE.as_micros() as u32,
        suspend_us_max: None,
        read_us_per_kib: 1_200,
        endurance_erases: 100_000,
    }
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
pub struct Nor<C>(pub C);

impl<C: Chip> Nor<C> {
    fn check(offset: u32, len: usize) -> Result<(), FlashError> {
        let end = u32::try_from(len).ok().and_then(|len| offset.checked_add(len));
        match end {
            Some(end) if end <= C::CAPACITY_BYTES => Ok(()),
            _ => Err(FlashError::OutOfBounds),
        }
    }

    async fn wait(&mut self, usual: Duration) -> Result<(), FlashError> {
        Timer::after(usual).await;
        for _ in 0..100 {
            if !self.0.is_busy() {
                return Ok(());
            }
            Timer::after(usual / 16).await;
        }
        Err(FlashError::Stuck)
    }
}

impl<C> ErrorType for Nor<C> {
    type Error = FlashError;
}

impl<C: Chip> ReadNorFlash for Nor<C> {
    const READ_SIZE: usize = 1;

    /// Cancel safety: reads only.
    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), FlashError> {
        let mut address = offset;
        for part in bytes.chunks_mut(READ_BYTES_MAX) {
            yield_now().await;
            BlockingRead::read(self, address, part)?;
            address += part.len() as u32;
        }
        Ok(())
    }

    fn capacity(&self) -> usize {
        C::CAPACITY_BYTES as usize
    }
}

impl<C: Chip> BlockingRead for Nor<C> {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), FlashError> {
        Self::check(offset, bytes.len())?;
        self.0.read(offset, bytes);
        Ok(())
    }

    fn capacity(&self) -> usize {
        C::CAPACITY_BYTES as usize
    }
}

impl<C: Chip> NorFlash for Nor<C> {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = C::SECTOR_BYTES as usize;

    /// Cancel safety: not cancel safe; a program that has begun goes on.
    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        Self::check(offset, bytes.len())?;
        if !offset.is_multiple_of(4) || !bytes.len().is_multiple_of(4) {
            return Err(FlashError::NotAligned);
        }
        let (mut address, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let room = (PAGE_BYTES - address % PAGE_BYTES) as usize;
            let (page, later) = rest.split_at(room.min(rest.len()));
            self.0.program(address, page);
            counts::PROGRAMS.add();
            self.wait(C::PROGRAM).await?;
            address += page.len() as u32;
            rest = later;
        }
        Timer::after(C::SETTLE).await;
        Ok(())
    }

    /// Cancel safety: not cancel safe.
    async fn erase(&mut self, from: u32, to: u32) -> Result<(), FlashError> {
        if from > to || to > C::CAPACITY_BYTES {
            return Err(FlashError::OutOfBounds);
        }
        if !from.is_multiple_of(C::SECTOR_BYTES) || !to.is_multiple_of(C::SECTOR_BYTES) {
            return Err(FlashError::NotAligned);
        }
        for sector in (from..to).step_by(C::SECTOR_BYTES as usize) {
            self.0.erase(sector);
            counts::ERASES.add();
            self.wait(C::ERASE).await?;
        }
        Ok(())
    }
}
