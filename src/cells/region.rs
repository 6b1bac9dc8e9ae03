//! One region: a ring of erase sectors, the crate that appends to it, and the walk that reads it.
//!
//! What lies there is a map of sequential-storage, and that crate's map reads it. But where each value lies
//! is in our own index, and values are moved on before they are in the way, so that nothing is asked of
//! the crate but to append: its queue does so with the same items and markers, and in a third of the
//! map's code.

use core::num::NonZeroU8;
use core::ops::Range;

use embedded_storage_async::nor_flash::ReadNorFlash;
use sequential_storage::cache::page_pointers::ArrayPagePointers;
use sequential_storage::cache::page_states::ArrayPageStates;
use sequential_storage::cache::{Cache, Uncached};
use sequential_storage::queue::{QueueConfig, QueueStorage};

use super::error::{Error, LayoutError, Reason};
use super::guard::{Flash, Guard, GuardError, read, read_long, word_bytes};
use super::plan::{Kind, Plan};
use super::record::{Header, ITEM_HEADER_BYTES, ItemHeader};

/// What the crate remembers: page states and write pointers.
type QueueCache<const PAGES: usize> =
    Cache<ArrayPageStates<PAGES>, ArrayPagePointers<PAGES>, Uncached>;

/// How many zero bits make a marker; the map uses the same number.
const MARKER_ZERO_BITS: u32 = 4;

/// The widest word that the map supports.
pub(super) const WORD_BYTES_MAX: usize = 32;

/// What is known about a region between two operations.
#[derive(Debug)]
pub(super) struct Region<const PAGES: usize> {
    start: u32,
    pages: NonZeroU8,
    /// The sector that takes the next record; `None` in an empty region.
    head: Option<u8>,
    /// How many closed sectors lie before the head.
    closed: u8,
    /// The address of the next item in the head.
    cursor: u32,
    /// An operation did not end: survey the region before it is used again.
    pub suspect: bool,
    /// How many of the oldest closed sectors still hold former keys; see `secret`.
    pub wipe: u8,
    /// The sector that refused a program or did not read back, until the region is copied anew.
    pub refused: Option<u8>,
    cache: Option<QueueCache<PAGES>>,
}

/// Sizes of a flash as the map sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub word: u32,
    pub sector: u32,
}

impl Sizes {
    pub const fn of<F: Flash>() -> Self {
        Self { word: word_bytes::<F>() as u32, sector: F::ERASE_SIZE as u32 }
    }

    /// Bytes that the map puts before a record.
    pub const fn item_overhead(self) -> u32 {
        (ITEM_HEADER_BYTES as u32).next_multiple_of(self.word)
    }

    /// Bytes of a sector that can hold items.
    pub const fn payload(self) -> u32 {
        self.sector.saturating_sub(2 * self.word)
    }
}

impl<const PAGES: usize> Region<PAGES> {
    /// Checks a range. Nothing is read.
    pub fn new<F: Flash>(flash: &F, range: &Range<u32>) -> Result<Self, LayoutError> {
        let sector = F::ERASE_SIZE as u32;
        if !range.start.is_multiple_of(sector)
            || !range.end.is_multiple_of(sector)
            || range.end as usize > ReadNorFlash::capacity(flash)
            || range.end <= range.start
        {
            return Err(LayoutError::NotOnSectors);
        }
        let pages = (range.end - range.start) / sector;
        if pages < 3 {
            return Err(LayoutError::TooFewSectors);
        }
        let Some(pages) = u8::try_from(pages)
            .ok()
            .and_then(NonZeroU8::new)
            .filter(|pages| usize::from(pages.get()) <= PAGES && pages.get() <= 32)
        else {
            return Err(LayoutError::TooManySectors);
        };
        Ok(Self {
            start: range.start,
            pages,
            head: None,
            closed: 0,
            cursor: 0,
            suspect: true,
            wipe: 0,
            refused: None,
            cache: None,
        })
    }

    pub fn pages(&self) -> u8 {
        self.pages.get()
    }

    /// The sector that lies so many further on in the ring.
    pub fn ahead(&self, page: u8, steps: u8) -> u8 {
        (page + steps) % self.pages
    }

    pub fn head(&self) -> Option<u8> {
        self.head
    }

    pub fn closed(&self) -> u8 {
        self.closed
    }

    // Small, but asked in many places; so is `head_room`.
    #[inline(never)]
    pub fn open_pages(&self) -> u8 {
        let used = self.closed + u8::from(self.head.is_some());
        self.pages().saturating_sub(used)
    }

    pub fn page_of(&self, sizes: Sizes, address: u32) -> u8 {
        (address.wrapping_sub(self.start) / sizes.sector) as u8
    }

    pub fn page_start(&self, sizes: Sizes, page: u8) -> u32 {
        self.start + u32::from(page) * sizes.sector
    }

    /// The closed sector that is recycled next.
    pub fn oldest(&self) -> Option<u8> {
        let head = self.head?;
        (self.closed > 0).then(|| self.ahead(head, self.pages() - self.closed))
    }

    /// Bytes left in the head for items, their overhead included.
    #[inline(never)]
    pub fn head_room(&self, sizes: Sizes) -> u32 {
        match self.head {
            Some(head) => (self.page_start(sizes, head) + sizes.sector)
                .saturating_sub(sizes.word)
                .saturating_sub(self.cursor),
            None => 0,
        }
    }

    fn range(&self, sizes: Sizes) -> Range<u32> {
        self.start..self.start + u32::from(self.pages.get()) * sizes.sector
    }

    fn open_mask(&self) -> u32 {
        let after = match self.head {
            Some(head) => head + 1,
            None => 0,
        };
        (0..self.open_pages()).fold(0, |bits, ahead| bits | 1_u32 << ((after + ahead) % self.pages))
    }

    /// Reads every marker and looks whether unmarked sectors are blank.
    pub async fn survey<F: Flash>(&self, flash: &mut F, buffer: &mut [u8]) -> [Kind; PAGES] {
        let sizes = Sizes::of::<F>();
        let mut kinds = [Kind::Blank; PAGES];
        for (page, kind) in (0..self.pages()).zip(kinds.iter_mut()) {
            let from = self.page_start(sizes, page);
            let (_, starts) = self.marker(flash, from);
            let end = from + sizes.sector - sizes.word;
            let (end_is_blank, ends) = self.marker(flash, end);
            *kind = match (starts, ends) {
                (true, true) => Kind::Closed,
                (true, false) if end_is_blank => Kind::Partial,
                (true, false) => Kind::Frayed,
                (false, true) => Kind::Torn,
                (false, false) if is_blank(flash, from, from + sizes.sector, buffer).await => {
                    Kind::Blank
                }
                (false, false) => Kind::Debris,
            };
        }
        kinds
    }

    /// The kinds of the sectors that exist.
    pub fn kinds<'k>(&self, kinds: &'k [Kind; PAGES]) -> &'k [Kind] {
        kinds.get(..usize::from(self.pages())).unwrap_or(kinds)
    }

    /// Whether a marker word is erased, and whether it counts as written.
    fn marker<F: Flash>(&self, flash: &mut F, address: u32) -> (bool, bool) {
        let mut word = [0; WORD_BYTES_MAX];
        let Some(word) = word.get_mut(..word_bytes::<F>()) else {
            return (false, false);
        };
        read(flash, address, word);
        let zeros = word.iter().map(|byte| byte.count_zeros()).sum::<u32>();
        (zeros == 0, zeros >= MARKER_ZERO_BITS)
    }

    /// Takes over a plan whose erases are done and whose head is marked.
    pub fn adopt(&mut self, sizes: Sizes, plan: &Plan, cursor: u32) {
        self.head = plan.head;
        self.closed = plan.closed;
        self.cursor = match plan.head {
            Some(head) if plan.mark_head => self.page_start(sizes, head) + sizes.word,
            _ => cursor,
        };
        self.cache = None;
        self.suspect = false;
    }

    /// Writes the start marker of the sector that becomes the head.
    ///
    /// Cancel safety: not cancel safe; the region must be surveyed again.
    pub async fn mark_head<F: Flash>(&mut self, flash: &mut F, page: u8) -> Result<(), Error> {
        let address = self.page_start(Sizes::of::<F>(), page);
        self.mark(flash, address).await
    }

    /// Closes the head before it is full, so that it can be recycled like any other sector, and
    /// goes on in the next one: the same two markers that the map writes when a record does not
    /// fit. The caller has made sure that two sectors are open.
    ///
    /// Cancel safety: not cancel safe; the region must be surveyed again.
    pub async fn close_head<F: Flash>(&mut self, flash: &mut F) -> Result<(), Error> {
        let sizes = Sizes::of::<F>();
        let Some(head) = self.head else {
            return Ok(());
        };
        let next = self.ahead(head, 1);
        self.suspect = true;
        self.mark(flash, self.page_start(sizes, head) + sizes.sector - sizes.word).await?;
        self.mark_head(flash, next).await?;
        self.head = Some(next);
        self.closed += 1;
        self.cursor = self.page_start(sizes, next) + sizes.word;
        self.cache = None;
        self.suspect = false;
        Ok(())
    }

    async fn mark<F: Flash>(&mut self, flash: &mut F, address: u32) -> Result<(), Error> {
        let page = self.page_of(Sizes::of::<F>(), address);
        let marker = Aligned([0_u8; WORD_BYTES_MAX]);
        let marker = marker.0.get(..word_bytes::<F>()).unwrap_or(&marker.0);
        flash.write(address, marker).await.map_err(|_| Error::at(page, Reason::ProgramFailed))?;
        match self.marker(flash, address) {
            (_, true) => Ok(()),
            (_, false) => Err(Error::at(page, Reason::VerifyMismatch)),
        }
    }

    /// Erases one sector and makes sure that it is blank.
    ///
    /// Cancel safety: not cancel safe; the region must be surveyed again.
    pub async fn erase<F: Flash>(
        &mut self,
        flash: &mut F,
        page: u8,
        buffer: &mut [u8],
    ) -> Result<(), Error> {
        let sizes = Sizes::of::<F>();
        let from = self.page_start(sizes, page);
        let to = from + sizes.sector;
        self.suspect = true;
        let erased = flash.erase(from, to).await.is_ok();
        if !erased || !is_blank(flash, from, to, buffer).await {
            return Err(Error::at(page, Reason::EraseFailed));
        }
        self.suspect = false;
        Ok(())
    }

    /// The oldest closed sector was erased.
    pub fn oldest_is_open(&mut self) {
        self.closed = self.closed.saturating_sub(1);
    }

    /// Appends the record of `length` bytes that lies at the start of `buffer`, and returns the
    /// address of its first byte. The caller has made sure that it fits without an erase.
    ///
    /// Cancel safety: not cancel safe; the region must be surveyed again.
    pub async fn append<F: Flash>(
        &mut self,
        flash: &mut F,
        buffer: &[u8],
        length: usize,
    ) -> Result<u32, Error> {
        let sizes = Sizes::of::<F>();
        let item = sizes.item_overhead() + length as u32;
        let (page, at) = match self.head {
            Some(head) if item <= self.head_room(sizes) => (head, self.cursor),
            Some(head) => {
                let next = self.ahead(head, 1);
                (next, self.page_start(sizes, next) + sizes.word)
            }
            None => (0, self.start + sizes.word),
        };
        let cache = self.cache.take().unwrap_or_else(|| {
            Cache::new(ArrayPageStates::new(), ArrayPagePointers::new(), Uncached)
        });
        let (start, range, open) = (self.start, self.range(sizes), self.open_mask());
        self.suspect = true;
        let mut guard = Guard::new(flash, start, open);
        let config = QueueConfig::try_new(range).map_err(|_| Error::new(Reason::Structure))?;
        let mut queue = QueueStorage::new(&mut guard, config, cache);
        let stored = queue.push(buffer.get(..length).unwrap_or(buffer), false).await;
        let (_, cache) = queue.destroy();
        let address = guard.last_write;
        let failed_at = self.page_of(sizes, guard.failed_at);
        match stored {
            Ok(()) => {}
            Err(sequential_storage::Error::Storage { value: GuardError::Program, .. }) => {
                return Err(Error::at(failed_at, Reason::ProgramFailed));
            }
            Err(_) => return Err(Error::at(failed_at, Reason::Structure)),
        }
        if address != at + sizes.item_overhead() {
            return Err(Error::at(page, Reason::Structure));
        }
        if self.head.is_some_and(|head| head != page) {
            self.closed += 1;
        }
        self.head = Some(page);
        self.cursor = address + length as u32;
        self.cache = Some(cache);
        self.suspect = false;
        Ok(address)
    }

    /// A walk over the items of one sector.
    pub fn walk(&self, sizes: Sizes, page: u8) -> Walk {
        let from = self.page_start(sizes, page);
        Walk { at: from + sizes.word, end: from + sizes.sector - sizes.word, gap: false }
    }
}

/// A place in a sector, moving from item to item in the same steps as the map's own walk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk {
    /// After the walk: where the next item would go.
    pub at: u32,
    end: u32,
    /// There were erased bytes between items: a torn header that reads as erased now. The map
    /// would stop there, and not see what follows.
    pub gap: bool,
}

impl Walk {
    /// The next record with a good checksum, which is then at the start of `buffer`, and its
    /// address.
    ///
    /// Cancel safety: reads only.
    pub async fn next<F: Flash>(
        &mut self,
        flash: &mut F,
        buffer: &mut [u8],
    ) -> Option<(Header, u32)> {
        let sizes = Sizes::of::<F>();
        let overhead = sizes.item_overhead();
        loop {
            if self.at + overhead > self.end {
                return None;
            }
            let mut header = [0; WORD_BYTES_MAX];
            let header = header.get_mut(..overhead as usize)?;
            read(flash, self.at, header);
            let item = ItemHeader::parse(header);
            let data = self.at + overhead;
            match item {
                ItemHeader::End => match first_written(flash, self.at, self.end, buffer).await {
                    Some(address) => {
                        self.gap = true;
                        self.at = address;
                    }
                    None => return None,
                },
                ItemHeader::Item(length)
                    if data + u32::from(length).next_multiple_of(sizes.word) <= self.end =>
                {
                    let padded = u32::from(length).next_multiple_of(sizes.word);
                    self.at = data + padded;
                    let Some(bytes) = buffer.get_mut(..padded as usize) else {
                        continue;
                    };
                    if bytes.is_empty() {
                        continue;
                    }
                    read(flash, data, bytes);
                    if let Some(found) = Header::check(bytes)
                        && found.padded(sizes.word as usize) == bytes.len()
                    {
                        return Some((found, data));
                    }
                }
                ItemHeader::Item(_) | ItemHeader::Damaged => self.at += sizes.word,
            }
        }
    }
}

/// Erased bytes to compare with.
const BLANK: [u8; 64] = [0xFF; 64];

/// Whether every byte of a range is erased.
pub(super) async fn is_blank<F: Flash>(
    flash: &mut F,
    from: u32,
    to: u32,
    buffer: &mut [u8],
) -> bool {
    first_written(flash, from, to, buffer).await.is_none()
}

/// The first word of a range that is not erased.
async fn first_written<F: Flash>(
    flash: &mut F,
    from: u32,
    to: u32,
    buffer: &mut [u8],
) -> Option<u32> {
    let word = word_bytes::<F>();
    let chunk_bytes = (buffer.len() / word * word).max(word) as u32;
    let mut at = from;
    while at < to {
        let length = chunk_bytes.min(to - at);
        let Some(chunk) = buffer.get_mut(..length as usize) else {
            return Some(at);
        };
        read_long(flash, at, chunk).await;
        // Blocks first: this runs over whole sectors at every boot.
        let blocks = chunk.chunks(BLANK.len());
        let blank = blocks.take_while(|block| BLANK.starts_with(block)).count();
        let rest = chunk.get(blank * BLANK.len()..).unwrap_or(&[]);
        if let Some(position) = rest.iter().position(|byte| *byte != 0xFF) {
            let position = blank * BLANK.len() + position;
            return Some(at + (position / word * word) as u32);
        }
        at += length;
    }
    None
}

/// Bytes on a word boundary of the CPU, as some drivers demand.
#[derive(Debug, Clone)]
#[repr(align(4))]
pub(super) struct Aligned<const BYTES: usize>(pub [u8; BYTES]);
