//! Cells in the second bank of the chip's own flash.
//!
//! Code runs from the first bank, so that programs and erases of the second one stop nobody: the
//! controller works on its own while the executor goes on. Only reads of the second bank would wait, and
//! there is one reader, this adapter, which waits for the controller first.

use bellwether_board::counts::{ERASES, PROGRAMS};
use embassy_futures::yield_now;
use embassy_time::{Duration, Instant, Timer};
use embedded_storage::nor_flash::ReadNorFlash as BlockingRead;
use embedded_storage_async::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};

/// What is read before other tasks get a turn.
const READ_BYTES_MAX: usize = 256;
/// Words that are programmed before other tasks get a turn: 0.8 ms at worst.
const PROGRAMS_MAX: usize = 8;
/// What a word reads as that a power cut has torn. The cells take it neither for an empty place nor for
/// a record: that copy is bad, and the other one counts.
const DAMAGED: u8 = 0x55;
/// A program that takes longer will not end any more; data sheets promise a tenth of it.
const PROGRAM_LIMIT: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlashError {
    OutOfBounds,
    NotAligned,
    /// The controller refused: protected, or out of sequence.
    Refused,
    /// Still busy long after it should be done.
    Stuck,
}

impl NorFlashError for FlashError {
    fn kind(&self) -> NorFlashErrorKind {
        match self {
            Self::OutOfBounds => NorFlashErrorKind::OutOfBounds,
            Self::NotAligned => NorFlashErrorKind::NotAligned,
            Self::Refused | Self::Stuck => NorFlashErrorKind::Other,
        }
    }
}

/// The flash controller of a family. It does one thing at a time, and addresses are those of the memory
/// map.
pub trait Controller {
    /// What is programmed at once, and never twice between two erases.
    const WORD_BYTES: usize;
    /// The sectors of the cells; others of the chip may have another size.
    const SECTOR_BYTES: usize;
    /// Between two looks at a running erase.
    const ERASE_STEP: Duration;
    /// An erase that takes longer will not end any more; data sheets promise half of it.
    const ERASE_LIMIT: Duration;

    fn is_busy(&self) -> bool;

    /// Starts to erase the sector at this address.
    fn start_erase(&mut self, address: u32);

    /// Starts to program one word.
    fn start_program(&mut self, address: u32, word: &[u8]);

    /// After the last look at a busy controller: closes the operation and says whether it went well.
    fn finish(&mut self) -> Result<(), FlashError>;

    /// Reads bytes of one word; `false` if the chip says that the word is damaged.
    fn read(&mut self, address: u32, bytes: &mut [u8]) -> bool;
}

/// The part of the flash that the memory map keeps for the cells.
pub struct Flash<C> {
    controller: C,
    start: u32,
    len: u32,
}

unsafe extern "C" {
    static _cells_start: u8;
    static _cells_end: u8;
}

impl<C: Controller> Flash<C> {
    /// The region that the board's `memory.x` names. Call once: there is one controller.
    pub fn new(controller: C) -> Self {
        // Symbols of the linker: their addresses are their values, and nothing is read here.
        let (start, end) = (&raw const _cells_start as u32, &raw const _cells_end as u32);
        Self { controller, start, len: end.saturating_sub(start) }
    }

    fn check(&self, offset: u32, len: usize, unit: usize) -> Result<(), FlashError> {
        let end = u32::try_from(len).ok().and_then(|len| offset.checked_add(len));
        if end.is_none_or(|end| end > self.len) {
            return Err(FlashError::OutOfBounds);
        }
        if !(offset as usize).is_multiple_of(unit) || !len.is_multiple_of(unit) {
            return Err(FlashError::NotAligned);
        }
        Ok(())
    }

    /// A word takes microseconds: less than going to another task and back.
    fn program(&mut self, address: u32, word: &[u8]) -> Result<(), FlashError> {
        self.controller.start_program(address, word);
        PROGRAMS.add();
        let began = Instant::now();
        while self.controller.is_busy() {
            if began.elapsed() > PROGRAM_LIMIT {
                return Err(FlashError::Stuck);
            }
        }
        self.controller.finish()
    }

    async fn erase_sector(&mut self, address: u32) -> Result<(), FlashError> {
        self.controller.start_erase(address);
        ERASES.add();
        let began = Instant::now();
        while self.controller.is_busy() {
            if began.elapsed() > C::ERASE_LIMIT {
                return Err(FlashError::Stuck);
            }
            Timer::after(C::ERASE_STEP).await;
        }
        self.controller.finish()
    }
}

impl<C> ErrorType for Flash<C> {
    type Error = FlashError;
}

impl<C: Controller> ReadNorFlash for Flash<C> {
    const READ_SIZE: usize = 1;

    /// Cancel safety: reads only.
    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), FlashError> {
        let offsets = (offset..).step_by(READ_BYTES_MAX);
        for (offset, part) in offsets.zip(bytes.chunks_mut(READ_BYTES_MAX)) {
            yield_now().await;
            BlockingRead::read(self, offset, part)?;
        }
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.len as usize
    }
}

impl<C: Controller> BlockingRead for Flash<C> {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), FlashError> {
        self.check(offset, bytes.len(), 1)?;
        let (mut address, mut rest) = (self.start + offset, bytes);
        while !rest.is_empty() {
            let room = C::WORD_BYTES - address as usize % C::WORD_BYTES;
            let (word, later) = rest.split_at_mut(room.min(rest.len()));
            if !self.controller.read(address, word) {
                word.fill(DAMAGED);
            }
            address += word.len() as u32;
            rest = later;
        }
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.len as usize
    }
}

impl<C: Controller> NorFlash for Flash<C> {
    const WRITE_SIZE: usize = C::WORD_BYTES;
    const ERASE_SIZE: usize = C::SECTOR_BYTES;

    /// Cancel safety: not cancel safe.
    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        self.check(offset, bytes.len(), C::WORD_BYTES)?;
        let addresses = (self.start + offset..).step_by(C::WORD_BYTES);
        for (index, (address, word)) in addresses.zip(bytes.chunks(C::WORD_BYTES)).enumerate() {
            if index % PROGRAMS_MAX == PROGRAMS_MAX - 1 {
                yield_now().await;
            }
            self.program(address, word)?;
        }
        Ok(())
    }

    /// Cancel safety: not cancel safe.
    async fn erase(&mut self, from: u32, to: u32) -> Result<(), FlashError> {
        let len = to.checked_sub(from).ok_or(FlashError::OutOfBounds)?;
        self.check(from, len as usize, C::SECTOR_BYTES)?;
        for sector in (from..to).step_by(C::SECTOR_BYTES) {
            self.erase_sector(self.start + sector).await?;
        }
        Ok(())
    }
}
