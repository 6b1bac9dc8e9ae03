//! The flash as the map sees it: wider words, no erases, and notes about what happened where.
//!
//! - Words are at least four bytes wide. With 1-byte words an acknowledged store of the map can
//!   vanish after two cuts; with 2 to 32 byte words it never did.
//! - An erase is refused, unless the sector was erased in idle time already: then it is done.
//! - A word that cannot be read (parts with ECC, after a cut) reads as 0x55: no valid header, and
//!   as a marker it counts as written. The copy is bad, the store goes on.

use embedded_storage::nor_flash::ReadNorFlash as BlockingRead;
use embedded_storage_async::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};

/// A flash that can hold a store. A record is read in one go, which takes less than a millisecond
/// on the slowest part, with the blocking read; programs, erases and the reading of whole sectors are
/// awaited.
pub trait Flash: NorFlash + BlockingRead {}

impl<F: NorFlash + BlockingRead> Flash for F {}

/// The smallest word in which records are written.
const WORD_BYTES_MIN: usize = 4;

/// What an unreadable word reads as.
const UNREADABLE: u8 = 0x55;

/// The word of a store on this flash: the widest of four bytes, the write and the read size.
pub(super) const fn word_bytes<F: NorFlash>() -> usize {
    let wide = if F::WRITE_SIZE > F::READ_SIZE { F::WRITE_SIZE } else { F::READ_SIZE };
    if wide > WORD_BYTES_MIN { wide } else { WORD_BYTES_MIN }
}

/// A refused or failed operation, as told to the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuardError {
    Program,
    Erase,
}

impl NorFlashError for GuardError {
    fn kind(&self) -> NorFlashErrorKind {
        NorFlashErrorKind::Other
    }
}

/// One region of a flash while something is done to it.
#[derive(Debug)]
pub(super) struct Guard<'a, F> {
    flash: &'a mut F,
    start: u32,
    /// Bit i: sector i of the region is known to be erased.
    open: u32,
    /// Where the last write began.
    pub last_write: u32,
    /// Where the last operation failed.
    pub failed_at: u32,
}

/// Reads a few bytes at once.
pub(super) fn read<F: Flash>(flash: &mut F, offset: u32, bytes: &mut [u8]) {
    if BlockingRead::read(flash, offset, bytes).is_err() {
        bytes.fill(UNREADABLE);
    }
}

/// Reads many bytes; others get their turns.
pub(super) async fn read_long<F: Flash>(flash: &mut F, offset: u32, bytes: &mut [u8]) {
    if ReadNorFlash::read(flash, offset, bytes).await.is_err() {
        bytes.fill(UNREADABLE);
    }
}

impl<'a, F: Flash> Guard<'a, F> {
    pub fn new(flash: &'a mut F, start: u32, open: u32) -> Self {
        Self { flash, start, open, last_write: 0, failed_at: start }
    }
}

impl<F: Flash> ErrorType for Guard<'_, F> {
    type Error = GuardError;
}

impl<F: Flash> ReadNorFlash for Guard<'_, F> {
    const READ_SIZE: usize = word_bytes::<F>();

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), GuardError> {
        read(self.flash, offset, bytes);
        Ok(())
    }

    fn capacity(&self) -> usize {
        ReadNorFlash::capacity(self.flash)
    }
}

impl<F: Flash> NorFlash for Guard<'_, F> {
    const WRITE_SIZE: usize = word_bytes::<F>();
    const ERASE_SIZE: usize = F::ERASE_SIZE;

    async fn erase(&mut self, from: u32, _to: u32) -> Result<(), GuardError> {
        let sector = from.wrapping_sub(self.start) / F::ERASE_SIZE as u32;
        if self.open.checked_shr(sector).unwrap_or(0) & 1 == 1 {
            return Ok(());
        }
        self.failed_at = from;
        Err(GuardError::Erase)
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), GuardError> {
        self.last_write = offset;
        if self.flash.write(offset, bytes).await.is_err() {
            self.failed_at = offset;
            return Err(GuardError::Program);
        }
        Ok(())
    }
}
