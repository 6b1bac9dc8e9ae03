//! What a part is like, what becomes of its bits, and what is kept of an operation.

use embedded_storage_async::nor_flash::{NorFlashError, NorFlashErrorKind};

/// How often a word can be programmed between two erases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordRule {
    /// Once; a second program is refused.
    Once,
    /// Again and again; bits are only cleared.
    ClearBits,
}

/// What a cut leaves of the operation that was running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tear {
    /// Byte by byte: done up to the cut, old behind it.
    Clean,
    /// The byte at the cut is half done. For an erase the same as `Bits`.
    Byte,
    /// Program: the rest of the program page is half done, in random bits. Erase: every bit of the
    /// sector is done with a probability that grows with the time that the erase had.
    Bits,
}

impl Tear {
    /// All of them.
    pub const ALL: [Tear; 3] = [Tear::Clean, Tear::Byte, Tear::Bits];
}

/// What the words of a part with check bits read as that a cut has torn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ecc {
    /// The part has no check bits.
    Off,
    /// The read fails.
    Error,
    /// What the adapters of the boards make of the fault that such a read raises: the same byte all over
    /// (boards/stm32/src/flash.rs).
    Fill(u8),
}

/// How a sector fails that can no longer be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worn {
    /// Programs and erases are refused.
    Loud,
    /// Programs and erases seem to work and change nothing.
    Silent,
}

/// How long operations take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Bytes of a program page.
    pub page_bytes: u32,
    /// One page program.
    pub program_ns: u64,
    /// One sector erase.
    pub erase_ns: u64,
    /// Reading one byte.
    pub read_ns_per_byte: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self { page_bytes: 256, program_ns: 400_000, erase_ns: 45_000_000, read_ns_per_byte: 200 }
    }
}

/// Why the flash refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NorError {
    /// Beyond the end.
    OutOfBounds,
    /// Offset, length or buffer not aligned.
    NotAligned,
    /// The word was programmed since its last erase.
    NotErased(u32),
    /// The sector is worn out.
    Worn(u32),
    /// The check bits of this word do not fit.
    Damaged(u32),
    /// There is no power.
    PowerLost,
}

impl NorFlashError for NorError {
    fn kind(&self) -> NorFlashErrorKind {
        match self {
            Self::OutOfBounds => NorFlashErrorKind::OutOfBounds,
            Self::NotAligned => NorFlashErrorKind::NotAligned,
            _ => NorFlashErrorKind::Other,
        }
    }
}

/// One program or erase, as the log and the journal keep it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Where it began.
    pub address: u32,
    /// How many bytes it covers.
    pub bytes: u32,
    /// An erase, not a program.
    pub erase: bool,
    /// When it began, on the flash's own clock.
    pub begins_ns: u64,
    /// How long it took.
    pub lasts_ns: u64,
    /// What was there before; kept in a journal only.
    pub(super) undo: Option<Undo>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Undo {
    pub before: Vec<u8>,
    pub programmed: Vec<bool>,
    pub wanted: Vec<u8>,
}

/// What is recorded of programs and erases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// Nothing.
    Nothing,
    /// Where, what and when.
    Log,
    /// The log, and the bytes before, so that time can be turned back.
    Journal,
}
