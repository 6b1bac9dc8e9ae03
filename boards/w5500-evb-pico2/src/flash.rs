//! Cells in the serial flash that the code runs from.
//!
//! While it erases or programs, nothing can be fetched from it: interrupts are off, and the node is away
//! for 3 ms at worst with a page, and for 400 ms with a sector. Only the watchdog goes on. The gate is
//! told, because datagrams that came meanwhile have waited.

use bellwether_board::counts::{ERASES, PROGRAMS};
use bellwether_board::gate;
use embassy_futures::yield_now;
use embassy_rp::Peri;
use embassy_rp::flash::{self, Blocking, ERASE_SIZE, FLASH_BASE, PAGE_SIZE};
use embassy_rp::peripherals::FLASH;
use embassy_time::Instant;
use embedded_storage::nor_flash::ReadNorFlash as BlockingRead;
use embedded_storage_async::nor_flash::{ErrorType, NorFlash, ReadNorFlash};

const CAPACITY_BYTES: usize = 2 << 20;
/// The part can program single bytes. Whole words are one kind of power cut less to think of.
const WORD_BYTES: usize = 4;

type FlashError = flash::Error;

unsafe extern "C" {
    static _cells_start: u8;
    static _cells_end: u8;
}

/// The part of the flash that the memory map keeps for the cells.
pub struct Flash {
    part: flash::Flash<'static, FLASH, Blocking, CAPACITY_BYTES>,
    start: u32,
    len: u32,
}

impl Flash {
    pub fn new(part: Peri<'static, FLASH>) -> Self {
        // Symbols of the linker: their addresses are their values, and nothing is read here.
        let (start, end) = (&raw const _cells_start as u32, &raw const _cells_end as u32);
        let part = flash::Flash::new_blocking(part);
        Self { part, start: start - FLASH_BASE as u32, len: end - start }
    }

    fn check(&self, offset: u32, len: usize, unit: usize) -> Result<(), FlashError> {
        let end = u32::try_from(len).ok().and_then(|len| offset.checked_add(len));
        if end.is_none_or(|end| end > self.len) {
            return Err(FlashError::OutOfBounds);
        }
        if !(offset as usize).is_multiple_of(unit) || !len.is_multiple_of(unit) {
            return Err(FlashError::Unaligned);
        }
        Ok(())
    }
}

impl ErrorType for Flash {
    type Error = FlashError;
}

impl BlockingRead for Flash {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), FlashError> {
        self.check(offset, bytes.len(), 1)?;
        self.part.blocking_read(self.start + offset, bytes)
    }

    fn capacity(&self) -> usize {
        self.len as usize
    }
}

impl ReadNorFlash for Flash {
    const READ_SIZE: usize = 1;

    /// Cancel safety: reads only.
    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), FlashError> {
        for (offset, part) in (offset..).step_by(PAGE_SIZE).zip(bytes.chunks_mut(PAGE_SIZE)) {
            yield_now().await;
            BlockingRead::read(self, offset, part)?;
        }
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.len as usize
    }
}

impl NorFlash for Flash {
    const WRITE_SIZE: usize = WORD_BYTES;
    const ERASE_SIZE: usize = ERASE_SIZE;

    /// Cancel safety: not cancel safe.
    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        self.check(offset, bytes.len(), WORD_BYTES)?;
        let (mut address, mut rest) = (self.start + offset, bytes);
        while !rest.is_empty() {
            let room = PAGE_SIZE - address as usize % PAGE_SIZE;
            let (page, later) = rest.split_at(room.min(rest.len()));
            let began = Instant::now();
            let written = self.part.blocking_write(address, page);
            gate::stalled(began);
            written?;
            PROGRAMS.add();
            address += page.len() as u32;
            rest = later;
            yield_now().await;
        }
        Ok(())
    }

    /// Cancel safety: not cancel safe.
    async fn erase(&mut self, from: u32, to: u32) -> Result<(), FlashError> {
        let len = to.checked_sub(from).ok_or(FlashError::OutOfBounds)?;
        self.check(from, len as usize, ERASE_SIZE)?;
        for sector in (self.start + from..self.start + to).step_by(ERASE_SIZE) {
            let began = Instant::now();
            let erased = self.part.blocking_erase(sector, sector + ERASE_SIZE as u32);
            gate::stalled(began);
            erased?;
            ERASES.add();
            yield_now().await;
        }
        Ok(())
    }
}
