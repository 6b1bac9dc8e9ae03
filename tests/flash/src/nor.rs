//! A NOR flash that is stricter than flash.
//!
//! - Offsets, lengths and buffers must be aligned. A program only clears bits. Under
//!   [`WordRule::Once`] a word that was programmed is refused until its sector is erased (parts
//!   with ECC); under [`WordRule::ClearBits`] it is ANDed, and counted in `overwrites`.
//! - Power can be cut after any byte of any program or erase ([`Nor::cut_after`]), inside the next
//!   erase ([`Nor::cut_in_erase`]), or at a time in the past ([`Nor::cut_back`], with a journal).
//!   What the running operation still had to do stays undone, or half of its bits are done
//!   ([`Tear`]). After a cut no operation ever completes, as if the code had stopped there: poll
//!   with [`until_cut`](crate::until_cut), drop the future, then [`Nor::power_up`]. Lend the flash
//!   (`&mut Nor` is a flash too), or it is dropped with the future.
//! - Bits that were torn may read differently after each power-up, and bits that a cut erase left
//!   just over the threshold may fall back, until their sector is erased (`flicker`).
//! - A word whose program was cut may read as an error, with its whole word ([`Nor::ecc`]): so do parts
//!   whose words have check bits. What it holds then is nobody's business. An erase that is cut leaves
//!   such words, too.
//! - Bits decay ([`Nor::decay`]); sectors wear out ([`Nor::wear_out`]) loudly or silently.
//! - Everything is counted: erases per sector, page programs, simulated time.

mod nature;

pub use nature::{Ecc, NorError, Operation, Record, Tear, Timing, WordRule, Worn};

use nature::Undo;
use std::collections::BTreeSet;

use embedded_storage::nor_flash::ReadNorFlash as BlockingRead;
use embedded_storage_async::nor_flash::{ErrorType, NorFlash, ReadNorFlash};

/// A NOR flash in memory, with words of `WORD` bytes and sectors of `SECTOR` bytes.
#[derive(Debug, Clone)]
pub struct Nor<const WORD: usize, const SECTOR: usize> {
    data: Vec<u8>,
    programmed: Vec<u64>,
    /// How often a word may be programmed.
    pub rule: WordRule,
    /// What a cut leaves behind.
    pub tear: Tear,
    /// Torn bits read differently after each power-up.
    pub flicker: bool,
    /// Torn words read as errors; [`Ecc::Off`]: as what they hold.
    pub ecc: Ecc,
    /// How long operations take.
    pub timing: Timing,
    /// Draws torn and flickering bits.
    pub random: fastrand::Rng,
    /// Erases of each sector.
    pub erases: Vec<u32>,
    /// Page programs.
    pub programs: u64,
    /// Words that were programmed twice.
    pub overwrites: u64,
    /// Bytes programmed or erased: the clock of [`Nor::cut_after`].
    pub spent: u64,
    /// Erases that a cut has torn.
    pub erases_torn: u64,
    /// Programs that a cut has torn.
    pub programs_torn: u64,
    /// Simulated time.
    pub elapsed_ns: u64,
    /// Programs and erases, as far as they are recorded.
    pub operations: Vec<Operation>,
    record: Record,
    cut_at: Option<u64>,
    cut_in_erase: Option<u32>,
    dead: bool,
    unstable: Vec<(u32, u8)>,
    marginal: Vec<(u32, Vec<u8>)>,
    worn: Vec<(u32, Worn)>,
    /// Words that were torn since the last erase.
    damaged: BTreeSet<usize>,
}

impl<const WORD: usize, const SECTOR: usize> Nor<WORD, SECTOR> {
    /// An erased flash.
    #[must_use]
    pub fn new(sectors: usize, seed: u64) -> Self {
        let bytes = sectors * SECTOR;
        Self {
            data: vec![0xFF; bytes],
            programmed: vec![0; (bytes / WORD).div_ceil(64)],
            rule: WordRule::Once,
            tear: Tear::Clean,
            flicker: false,
            ecc: Ecc::Off,
            timing: Timing::default(),
            random: fastrand::Rng::with_seed(seed),
            erases: vec![0; sectors],
            programs: 0,
            overwrites: 0,
            spent: 0,
            erases_torn: 0,
            programs_torn: 0,
            elapsed_ns: 0,
            operations: Vec::new(),
            record: Record::Nothing,
            cut_at: None,
            cut_in_erase: None,
            dead: false,
            unstable: Vec::new(),
            marginal: Vec::new(),
            worn: Vec::new(),
            damaged: BTreeSet::new(),
        }
    }

    /// A flash with these bytes, in whole sectors.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut flash = Self::new(bytes.len() / SECTOR, 0);
        for (word, chunk) in bytes.chunks_exact(WORD).enumerate().take(flash.data.len() / WORD) {
            if chunk.iter().any(|byte| *byte != 0xFF) {
                flash.program(word * WORD, chunk);
            }
        }
        flash
    }

    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// Cuts the power when this many more bytes were programmed or erased.
    pub fn cut_after(&mut self, bytes: u64) {
        self.cut_at = Some(self.spent + bytes);
    }

    /// Cuts the power inside the next erase, when this many bytes' worth of it are done.
    pub fn cut_in_erase(&mut self, bytes: u32) {
        self.cut_in_erase = Some(bytes);
    }

    /// Cuts the power now.
    pub fn cut_now(&mut self) {
        self.dead = true;
    }

    /// Whether the power is off.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.dead
    }

    /// Power again; planned cuts are forgotten.
    pub fn power_up(&mut self) {
        self.dead = false;
        self.cut_at = None;
        self.cut_in_erase = None;
        self.operations.clear();
        if !self.flicker {
            return;
        }
        for (address, mask) in &self.unstable {
            let roll = self.random.u8(..);
            if let Some(byte) = self.data.get_mut(*address as usize) {
                *byte = (*byte & !mask) | (roll & mask);
            }
        }
        for (sector, mask) in &self.marginal {
            let from = *sector as usize * SECTOR;
            for (byte, marginal) in self.data.iter_mut().skip(from).zip(mask) {
                // One in sixteen of the bits that only just read as erased falls back.
                let roll = self.random.u32(..).to_le_bytes();
                *byte &= !(marginal & roll[0] & roll[1] & roll[2] & roll[3]);
            }
        }
    }

    /// Starts recording from here.
    pub fn record(&mut self, record: Record) {
        self.record = record;
        self.operations.clear();
    }

    /// Flips one bit.
    pub fn decay(&mut self, address: u32, bit: u8) {
        if let Some(byte) = self.data.get_mut(address as usize) {
            *byte ^= 1 << (bit & 7);
        }
    }

    /// A sector can no longer be written.
    pub fn wear_out(&mut self, sector: u32, how: Worn) {
        self.worn.push((sector, how));
    }

    /// Turns back to a moment inside the recorded operations and cuts the power there: what came
    /// later is undone, what was running is torn. Returns whether an operation was torn.
    pub fn cut_back(&mut self, at_ns: u64) -> bool {
        let mut torn = false;
        while let Some(operation) = self.operations.pop() {
            let Some(undo) = operation.undo else {
                continue;
            };
            if operation.begins_ns + operation.lasts_ns <= at_ns {
                break;
            }
            let from = operation.address as usize;
            if let Some(bytes) = self.data.get_mut(from..from + undo.before.len()) {
                bytes.copy_from_slice(&undo.before);
            }
            for (word, programmed) in (from / WORD..).zip(&undo.programmed) {
                self.set_programmed(word, *programmed);
            }
            if operation.begins_ns < at_ns {
                let gone = u128::from(at_ns - operation.begins_ns);
                let done = gone * u128::from(operation.bytes) / u128::from(operation.lasts_ns);
                if operation.erase {
                    self.tear_erase(from, done as usize);
                } else {
                    self.program(from, &undo.wanted[..done as usize]);
                    self.tear_program(from, &undo.wanted, done as usize);
                }
                torn = true;
            }
        }
        self.operations.clear();
        self.elapsed_ns = self.elapsed_ns.min(at_ns);
        self.dead = true;
        torn
    }

    async fn stop_if_dead(&self) {
        if self.dead {
            core::future::pending::<()>().await;
        }
    }

    fn is_programmed(&self, word: usize) -> bool {
        self.programmed.get(word / 64).is_some_and(|bits| bits >> (word % 64) & 1 == 1)
    }

    fn set_programmed(&mut self, word: usize, programmed: bool) {
        if let Some(bits) = self.programmed.get_mut(word / 64) {
            if programmed {
                *bits |= 1 << (word % 64);
            } else {
                *bits &= !(1 << (word % 64));
            }
        }
    }

    fn worn_at(&self, address: usize) -> Option<Worn> {
        let sector = (address / SECTOR) as u32;
        self.worn.iter().find(|(worn, _)| *worn == sector).map(|(_, how)| *how)
    }

    /// Clears the bits that a program clears, and marks its words.
    fn program(&mut self, from: usize, bytes: &[u8]) {
        if let Some(here) = self.data.get_mut(from..from + bytes.len()) {
            for (byte, wanted) in here.iter_mut().zip(bytes) {
                *byte &= wanted;
            }
        }
        for word in from / WORD..(from + bytes.len()).div_ceil(WORD) {
            self.set_programmed(word, true);
        }
        if !self.unstable.is_empty() {
            let range = from as u32..(from + bytes.len()) as u32;
            self.unstable.retain(|(at, _)| !range.contains(at));
        }
    }

    /// Leaves the bytes from `done` on half programmed.
    fn tear_program(&mut self, from: usize, wanted: &[u8], done: usize) {
        self.programs_torn += 1;
        let page = self.timing.page_bytes as usize;
        let page_end = ((from + done) / page + 1) * page;
        let last = match self.tear {
            Tear::Clean => done,
            Tear::Byte => done + 1,
            Tear::Bits => wanted.len().min(page_end - from),
        };
        for (offset, wanted) in wanted.iter().enumerate().take(last).skip(done) {
            let address = from + offset;
            let Some(byte) = self.data.get_mut(address) else {
                continue;
            };
            let to_clear = *byte & !wanted;
            *byte &= !(to_clear & self.random.u8(..));
            let touched = *byte != 0xFF;
            if to_clear != 0 && self.flicker {
                self.unstable.push((address as u32, to_clear));
            }
            if touched {
                self.set_programmed(address / WORD, true);
            }
        }
        // The word that was under way, and those whose turn had come with it. A word that was not begun
        // has no check bits yet, and is blank.
        if self.ecc != Ecc::Off {
            self.damaged.extend((from + done) / WORD..(from + last).div_ceil(WORD));
        }
    }

    /// Leaves a sector half erased.
    fn tear_erase(&mut self, from: usize, done: usize) {
        self.erases_torn += 1;
        let Some(sector) = self.data.get_mut(from..from + SECTOR) else {
            return;
        };
        let before = self.flicker.then(|| sector.to_vec());
        if self.tear == Tear::Clean {
            sector.iter_mut().take(done).for_each(|byte| *byte = 0xFF);
        } else {
            // Each of eight rounds lets a share of the zero bits go; the shares grow with time.
            let level = (done * 9 / SECTOR).min(8);
            for byte in sector.iter_mut() {
                let mut stays = 0_u8;
                for bit in 0..8 {
                    stays |= u8::from(self.random.usize(..8) >= level) << bit;
                }
                *byte |= !stays;
            }
            if let Some(mut mask) = before {
                for (mask, now) in mask.iter_mut().zip(sector) {
                    *mask = !*mask & *now;
                }
                self.marginal.push(((from / SECTOR) as u32, mask));
            }
        }
        for word in from / WORD..(from + SECTOR) / WORD {
            let blank = self.data[word * WORD..][..WORD].iter().all(|byte| *byte == 0xFF);
            if blank {
                self.set_programmed(word, false);
            } else if self.ecc != Ecc::Off && self.tear != Tear::Clean {
                self.damaged.insert(word);
            }
        }
    }

    /// How many of the next bytes happen before the power is cut; `None` if all do.
    fn cut_within(&mut self, bytes: usize) -> Option<usize> {
        match self.cut_at {
            Some(at) if at < self.spent + bytes as u64 => {
                self.cut_at = None;
                self.dead = true;
                Some((at - self.spent) as usize)
            }
            _ => {
                self.spent += bytes as u64;
                None
            }
        }
    }

    fn note(&mut self, address: usize, bytes: usize, wanted: Option<&[u8]>, lasts_ns: u64) {
        let begins_ns = self.elapsed_ns;
        self.elapsed_ns += lasts_ns;
        if self.record == Record::Nothing {
            return;
        }
        let undo = (self.record == Record::Journal).then(|| Undo {
            before: self.data[address..address + bytes].to_vec(),
            programmed: (address / WORD..(address + bytes) / WORD)
                .map(|word| self.is_programmed(word))
                .collect(),
            wanted: wanted.map(<[u8]>::to_vec).unwrap_or_default(),
        });
        self.operations.push(Operation {
            address: address as u32,
            bytes: bytes as u32,
            erase: wanted.is_none(),
            begins_ns,
            lasts_ns,
            undo,
        });
    }

    fn write_now(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorError> {
        if self.dead {
            return Err(NorError::PowerLost);
        }
        let from = offset as usize;
        if !from.is_multiple_of(WORD)
            || !bytes.len().is_multiple_of(WORD)
            || bytes.is_empty()
            || !(bytes.as_ptr() as usize).is_multiple_of(4)
        {
            return Err(NorError::NotAligned);
        }
        if from + bytes.len() > self.data.len() {
            return Err(NorError::OutOfBounds);
        }
        match self.worn_at(from) {
            Some(Worn::Loud) => return Err(NorError::Worn(offset)),
            Some(Worn::Silent) => return Ok(()),
            None => {}
        }
        for word in from / WORD..(from + bytes.len()) / WORD {
            if self.is_programmed(word) {
                self.overwrites += 1;
                if self.rule == WordRule::Once {
                    return Err(NorError::NotErased((word * WORD) as u32));
                }
            }
        }
        let page = self.timing.page_bytes as usize;
        let programs = ((from + bytes.len() - 1) / page - from / page + 1) as u64;
        self.programs += programs;
        self.note(from, bytes.len(), Some(bytes), programs * self.timing.program_ns);
        match self.cut_within(bytes.len()) {
            None => {
                self.program(from, bytes);
                Ok(())
            }
            Some(done) => {
                self.program(from, &bytes[..done]);
                self.tear_program(from, bytes, done);
                Err(NorError::PowerLost)
            }
        }
    }

    fn erase_now(&mut self, from: u32, to: u32) -> Result<(), NorError> {
        let (from, to) = (from as usize, to as usize);
        if !from.is_multiple_of(SECTOR) || !to.is_multiple_of(SECTOR) {
            return Err(NorError::NotAligned);
        }
        if from > to || to > self.data.len() {
            return Err(NorError::OutOfBounds);
        }
        for sector in from / SECTOR..to / SECTOR {
            if self.dead {
                return Err(NorError::PowerLost);
            }
            let from = sector * SECTOR;
            match self.worn_at(from) {
                Some(Worn::Loud) => return Err(NorError::Worn(from as u32)),
                Some(Worn::Silent) => continue,
                None => {}
            }
            if let Some(bytes) = self.cut_in_erase.take() {
                self.cut_after(u64::from(bytes));
            }
            self.note(from, SECTOR, None, self.timing.erase_ns);
            if let Some(done) = self.cut_within(SECTOR) {
                self.tear_erase(from, done);
                return Err(NorError::PowerLost);
            }
            self.data[from..from + SECTOR].fill(0xFF);
            let (first, last) = (from / WORD, (from + SECTOR) / WORD);
            if first.is_multiple_of(64) && last.is_multiple_of(64) {
                self.programmed[first / 64..last / 64].fill(0);
            } else {
                (first..last).for_each(|word| self.set_programmed(word, false));
            }
            self.damaged.retain(|word| !(first..last).contains(word));
            self.erases[sector] += 1;
            let range = from as u32..(from + SECTOR) as u32;
            self.unstable.retain(|(at, _)| !range.contains(at));
            self.marginal.retain(|(torn, _)| *torn as usize != sector);
        }
        Ok(())
    }

    fn read_now(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorError> {
        let from = offset as usize;
        let Some(found) = self.data.get(from..from + bytes.len()) else {
            return Err(NorError::OutOfBounds);
        };
        bytes.copy_from_slice(found);
        let words = from / WORD..(from + bytes.len()).div_ceil(WORD);
        for word in self.damaged.range(words) {
            let torn = word * WORD..(word + 1) * WORD;
            let Ecc::Fill(byte) = self.ecc else {
                return Err(NorError::Damaged(torn.start as u32));
            };
            let here = bytes.iter_mut().zip(from..).filter(|(_, at)| torn.contains(at));
            here.for_each(|(here, _)| *here = byte);
        }
        self.elapsed_ns += bytes.len() as u64 * self.timing.read_ns_per_byte;
        Ok(())
    }
}

impl<const WORD: usize, const SECTOR: usize> ErrorType for Nor<WORD, SECTOR> {
    type Error = NorError;
}

impl<const WORD: usize, const SECTOR: usize> ReadNorFlash for Nor<WORD, SECTOR> {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorError> {
        self.stop_if_dead().await;
        self.read_now(offset, bytes)
    }

    fn capacity(&self) -> usize {
        self.data.len()
    }
}

impl<const WORD: usize, const SECTOR: usize> BlockingRead for Nor<WORD, SECTOR> {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorError> {
        self.read_now(offset, bytes)
    }

    fn capacity(&self) -> usize {
        self.data.len()
    }
}

impl<const WORD: usize, const SECTOR: usize> NorFlash for Nor<WORD, SECTOR> {
    const WRITE_SIZE: usize = WORD;
    const ERASE_SIZE: usize = SECTOR;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), NorError> {
        let result = self.erase_now(from, to);
        self.stop_if_dead().await;
        result
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorError> {
        let result = self.write_now(offset, bytes);
        self.stop_if_dead().await;
        result
    }
}
