//! The store: one value, two records.

use core::ops::Range;

use super::configuration::Active;
use super::error::{Error, LayoutError, Reason, Sector, Which};
use super::guard::{Flash, read, word_bytes};
use super::index::Index;
use super::record::{self, Header, KEYS, RECORD_HEADER_BYTES};
use super::region::{Aligned, Region, Sizes, WORD_BYTES_MAX};
use super::report::Counters;

/// Where the two regions lie in the flash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The region that is written first.
    pub a: Range<u32>,
    /// The region that is written second.
    pub b: Range<u32>,
}

/// Whether somebody waits for an answer that depends on this save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// An answer waits: never start an erase, refuse instead.
    Answer,
    /// Boot, provisioning, idle time: make room first where needed.
    Idle,
}

/// Errors put into the store on purpose, to show that the tests see them.
#[cfg(feature = "sabotage")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sabotage {
    /// Only region A is written and read.
    pub second_region_off: bool,
    /// The record at the highest address wins, and region A before region B.
    pub ignore_generation: bool,
}

/// Cells in two regions of one flash.
///
/// `PAGES` is the largest number of sectors of a region, `BUFFER` the bytes of the record buffer:
/// the largest value plus [`RECORD_HEADER_BYTES`], in whole words.
#[derive(Debug)]
pub struct Store<F, const PAGES: usize = 8, const BUFFER: usize = 704> {
    pub(super) flash: F,
    pub(super) regions: [Region<PAGES>; 2],
    pub(super) index: Index,
    /// The generation of the last record written.
    pub(super) generation: u32,
    /// How many open sectors idle time provides for.
    pub(super) spare_pages: u8,
    pub(super) active: Active,
    pub(super) elections: u32,
    /// The last change of the keys whose predecessors were wiped from flash.
    pub(super) wiped: u8,
    /// The last change of the keys.
    pub(super) change: u8,
    /// As the mark says it.
    pub(super) incarnation: u32,
    pub(super) counters: Counters,
    pub(super) buffer: Aligned<BUFFER>,
    #[cfg(feature = "sabotage")]
    pub(super) sabotage: Sabotage,
}

/// A value that is to be saved.
pub(super) struct Save<'p> {
    pub key: u8,
    pub format: u8,
    /// They follow each other.
    pub parts: &'p [&'p [u8]],
    pub path: Path,
    pub verify: bool,
}

impl Save<'_> {
    fn seal<F: Flash>(&self, generation: u32, buffer: &mut [u8]) -> Result<usize, Error> {
        record::seal(buffer, self.key, self.format, generation, self.parts, word_bytes::<F>())
            .ok_or(Error::new(Reason::TooLong))
    }
}

/// A value as it was found, borrowed from the record buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loaded<'s> {
    /// The format version under which it was written.
    pub format: u8,
    /// Its bytes.
    pub value: &'s [u8],
}

impl<F: Flash, const PAGES: usize, const BUFFER: usize> Store<F, PAGES, BUFFER> {
    /// Bytes of RAM that remember where things are: the index and the caches of both regions.
    pub const CACHE_BYTES: usize = size_of::<Index>() + size_of::<[Region<PAGES>; 2]>();

    const FITS: () = {
        assert!(
            Self::CACHE_BYTES <= 512,
            "the caches may take 512 bytes: fewer sectors per region"
        );
        assert!(word_bytes::<F>() <= WORD_BYTES_MAX);
        assert!(BUFFER >= 2 * WORD_BYTES_MAX && BUFFER <= 4096);
    };

    /// A store that nothing can be saved in before its [`Store::boot`]. Nothing is read.
    pub fn new(flash: F, layout: &Layout) -> Result<Self, Error> {
        const { Self::FITS };
        let fail = |why| Error::new(Reason::Layout(why));
        let sizes = Sizes::of::<F>();
        if layout.a.start < layout.b.end && layout.b.start < layout.a.end {
            return Err(fail(LayoutError::Overlap));
        }
        if !BUFFER.is_multiple_of(word_bytes::<F>())
            || BUFFER as u32 + sizes.item_overhead() > sizes.payload()
        {
            return Err(fail(LayoutError::BufferSize));
        }
        let a = Region::new(&flash, &layout.a).map_err(|why| fail(why).within(Which::A))?;
        let b = Region::new(&flash, &layout.b).map_err(|why| fail(why).within(Which::B))?;
        Ok(Self {
            flash,
            regions: [a, b],
            index: Index::EMPTY,
            generation: 0,
            spare_pages: 2,
            active: Active::NONE,
            elections: 0,
            wiped: 0,
            change: 0,
            incarnation: 0,
            counters: Counters::default(),
            buffer: Aligned([0; BUFFER]),
            #[cfg(feature = "sabotage")]
            sabotage: Sabotage::default(),
        })
    }

    /// Gives the flash back.
    #[must_use]
    pub fn into_flash(self) -> F {
        self.flash
    }

    /// The flash, for its owner's counters. Writing to it behind the store's back is not allowed.
    pub fn flash_mut(&mut self) -> &mut F {
        &mut self.flash
    }

    /// What happened since the boot.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The longest value that this store can hold.
    #[must_use]
    pub const fn value_bytes_max() -> usize {
        BUFFER - RECORD_HEADER_BYTES
    }

    pub(super) fn region(&self, which: Which) -> &Region<PAGES> {
        let [a, b] = &self.regions;
        match which {
            Which::A => a,
            Which::B => b,
        }
    }

    /// The parts of the store that an operation on one region needs at once.
    pub(super) fn parts(&mut self, which: Which) -> (&mut Region<PAGES>, &mut F, &mut [u8]) {
        let [a, b] = &mut self.regions;
        let region = match which {
            Which::A => a,
            Which::B => b,
        };
        (region, &mut self.flash, &mut self.buffer.0)
    }

    pub(super) fn in_use(&self) -> &'static [Which] {
        #[cfg(feature = "sabotage")]
        if self.sabotage.second_region_off {
            return &[Which::A];
        }
        &Which::BOTH
    }

    pub(super) fn generation_counts(&self) -> bool {
        #[cfg(feature = "sabotage")]
        if self.sabotage.ignore_generation {
            return false;
        }
        true
    }

    /// The newest good copy of a cell, or `None` where there never was one.
    pub fn load(&mut self, key: u8) -> Result<Option<Loaded<'_>>, Error> {
        let Some(header) = self.read_newest(key)? else {
            return Ok(None);
        };
        let value = record::value_of(&self.buffer.0, header.length)
            .ok_or(Error::new(Reason::Unreadable { key }))?;
        Ok(Some(Loaded { format: header.format, value }))
    }

    /// Reads the newest good record of a key into the buffer.
    pub(super) fn read_newest(&mut self, key: u8) -> Result<Option<Header>, Error> {
        let mut order = Which::BOTH;
        let a = self.peek(Which::A, key);
        let b = self.peek(Which::B, key);
        if Which::BOTH.iter().all(|which| self.index.address(*which, key).is_none()) {
            return Ok(None);
        }
        let generation = |header: Option<Header>| header.map_or(0, |found| found.generation);
        if generation(b) > generation(a) && self.generation_counts() {
            order.reverse();
        }
        for which in order {
            if let Some(header) = self.read_copy(which, key) {
                return Ok(Some(header));
            }
        }
        Err(Error::new(Reason::Unreadable { key }))
    }

    /// The header of one copy, unchecked.
    pub(super) fn peek(&mut self, which: Which, key: u8) -> Option<Header> {
        let address = self.index.address(which, key)?;
        let mut bytes = [0; WORD_BYTES_MAX];
        let length = RECORD_HEADER_BYTES.next_multiple_of(word_bytes::<F>());
        let bytes = bytes.get_mut(..length)?;
        read(&mut self.flash, address, bytes);
        Header::parse(bytes).filter(|header| header.key == key)
    }

    /// Refuses to go on where a good record has a newer format; a decayed one proves nothing.
    pub(super) fn refuse_newer(&mut self, key: u8, known: u8) -> Result<(), Error> {
        for which in self.in_use() {
            // The unchecked header is cheap to read and nearly always enough.
            if self.peek(*which, key).is_some_and(|header| header.format > known)
                && let Some(Header { format: stored, .. }) = self.read_copy(*which, key)
            {
                return Err(Error::new(Reason::NewerFormat { stored }));
            }
        }
        Ok(())
    }

    /// Reads one copy of a cell into the buffer, if it is good.
    pub(super) fn read_copy(&mut self, which: Which, key: u8) -> Option<Header> {
        let address = self.index.address(which, key)?;
        let padded = self.peek(which, key)?.padded(word_bytes::<F>());
        let bytes = self.buffer.0.get_mut(..padded)?;
        read(&mut self.flash, address, bytes);
        Header::check(bytes).filter(|header| header.key == key)
    }

    /// Saves a value in both regions, A first.
    ///
    /// When it returns `Ok` the value is in both; with `verify` both were read back. An error
    /// leaves the old value readable (see [`Reason`] for when the new one is readable already).
    ///
    /// Cancel safety: not cancel safe. A dropped save leaves the old value or the new one, and the
    /// regions are surveyed again before they are used; run it where nothing can drop it.
    pub async fn save(
        &mut self,
        key: u8,
        format: u8,
        value: &[u8],
        path: Path,
        verify: bool,
    ) -> Result<(), Error> {
        self.save_parts(&Save { key, format, parts: &[value], path, verify }).await
    }

    /// [`Store::save`] of a value in parts.
    pub(super) async fn save_parts(&mut self, save: &Save<'_>) -> Result<(), Error> {
        let result = self.try_save(save).await;
        let count = match &result {
            Ok(()) => &mut self.counters.saves,
            Err(error) if error.reason == Reason::NotPrepared => &mut self.counters.saves_refused,
            Err(_) => &mut self.counters.saves_failed,
        };
        *count = count.saturating_add(1);
        result
    }

    async fn try_save(&mut self, save: &Save<'_>) -> Result<(), Error> {
        let Save { key, path, .. } = *save;
        let value_bytes = save.parts.iter().map(|part| part.len()).sum();
        let length = record::padded_bytes(value_bytes, word_bytes::<F>());
        if length > BUFFER || usize::from(key) >= KEYS {
            return Err(Error::new(Reason::TooLong));
        }
        self.refuse_newer(key, save.format)?;
        let generation = self.generation.checked_add(1).ok_or(Error::new(Reason::Exhausted))?;
        self.room_for(key, length, path).await?;
        self.generation = generation;
        save.seal::<F>(generation, &mut self.buffer.0)?;
        for which in self.in_use() {
            let mut last_try = path == Path::Answer;
            while let Err(error) = self.append(*which, key, length, save.verify).await {
                if last_try || self.region(*which).refused.is_none() {
                    return Err(error.within(*which));
                }
                // There is time to copy the region anew and to try once more.
                last_try = true;
                self.make_room(*which, key, length).await.map_err(|error| error.within(*which))?;
                save.seal::<F>(generation, &mut self.buffer.0)?;
            }
        }
        Ok(())
    }

    /// Writes the value that is in force once more, so that no record torn before can replace it.
    ///
    /// A save that was cut leaves the old value or the new one. If the bits of its record are
    /// unstable, one boot can read the old value and a later one the new, until the cell is saved
    /// again. Whoever acts on a value read at boot, as the commit protocol does, pins it first.
    ///
    /// Cancel safety: not cancel safe, like [`Store::save`].
    pub async fn pin(&mut self, key: u8) -> Result<(), Error> {
        let Some(header) = self.read_newest(key)? else {
            return Ok(());
        };
        let length = header.padded(word_bytes::<F>());
        self.room_for(key, length, Path::Idle).await?;
        let generation = self.generation.checked_add(1).ok_or(Error::new(Reason::Exhausted))?;
        self.generation = generation;
        for which in self.in_use() {
            // Making room used the buffer.
            self.read_newest(key)?;
            record::reseal(&mut self.buffer.0, generation)
                .ok_or(Error::new(Reason::Unreadable { key }))?;
            self.append(*which, key, length, true).await.map_err(|error| error.within(*which))?;
        }
        Ok(())
    }

    /// Makes sure, in both regions, that a record fits without an erase.
    async fn room_for(&mut self, key: u8, length: usize, path: Path) -> Result<(), Error> {
        if !self.leaves_room(key, length) {
            return Err(Error::new(Reason::Full));
        }
        for which in self.in_use() {
            match path {
                Path::Idle => self
                    .make_room(*which, key, length)
                    .await
                    .map_err(|error| error.within(*which))?,
                Path::Answer if self.fits(*which, key, length) => {}
                Path::Answer => return Err(Error::new(Reason::NotPrepared).within(*which)),
            }
        }
        Ok(())
    }

    /// Appends the record in the buffer to one region, and once more if it does not read back.
    pub(super) async fn append(
        &mut self,
        which: Which,
        key: u8,
        length: usize,
        verify: bool,
    ) -> Result<(), Error> {
        let mut last_try = false;
        loop {
            let sizes = Sizes::of::<F>();
            let (region, flash, buffer) = self.parts(which);
            let appended = region.append(flash, buffer, length).await;
            if let Err(error) = appended
                && error.reason == Reason::ProgramFailed
            {
                region.refused = error.sector.map(Sector::number);
            }
            let address = appended?;
            if !verify || self.reads_back(address, length) {
                self.index.set(which, key, address);
                self.index.set_length(key, length);
                return Ok(());
            }
            self.counters.verify_retries = self.counters.verify_retries.saturating_add(1);
            if last_try || !self.fits(which, key, length) {
                let (region, _, _) = self.parts(which);
                let page = region.page_of(sizes, address);
                region.refused = Some(page);
                region.suspect = true;
                return Err(Error::at(page, Reason::VerifyMismatch));
            }
            last_try = true;
        }
    }

    /// Compares what is on flash with the record in the buffer.
    fn reads_back(&mut self, address: u32, length: usize) -> bool {
        const CHUNK_BYTES: usize = 2 * WORD_BYTES_MAX;
        let Some(record) = self.buffer.0.get(..length) else {
            return false;
        };
        let mut at = address;
        for expected in record.chunks(CHUNK_BYTES) {
            let mut bytes = [0; CHUNK_BYTES];
            let Some(found) = bytes.get_mut(..expected.len()) else {
                return false;
            };
            read(&mut self.flash, at, found);
            if found != expected {
                return false;
            }
            at += expected.len() as u32;
        }
        true
    }
}
