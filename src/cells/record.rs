//! The record: what one save puts into each region, and how it is recognised again.
//!
//! ```text
//!  ┌─────┬────────┬─────────┬────────────┬──────────┬───────────┬───────────┐
//!  │ key │ format │ length  │ generation │ checksum │ value     │ pad, zero │
//!  └─────┴────────┴─────────┴────────────┴──────────┴───────────┴───────────┘
//!  0     1        2         4            8          12          12 + length
//! ```
//!
//! All numbers are little endian. The checksum (CRC-32, another polynomial than the map's own, so
//! that one error does not pass both) covers key, format, length, generation and value. The pad
//! fills the last flash word: the map then writes a record in two calls instead of three.

use crc::{CRC_32_ISO_HDLC, Crc, NoTable};

/// How many keys a store can hold.
pub const KEYS: usize = 30;

/// Bytes of a record before its value.
pub const RECORD_HEADER_BYTES: usize = 12;

/// Without a table: a kilobyte of flash is worth more than the time that a record takes.
const CHECKSUM: Crc<u32, NoTable> = Crc::<u32, NoTable>::new(&CRC_32_ISO_HDLC);
const CHECKSUM_AT: usize = 8;

/// The fields before the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub key: u8,
    pub format: u8,
    pub length: u16,
    pub generation: u32,
    checksum: u32,
}

impl Header {
    /// The fields as they stand, unchecked. `None` when there are too few bytes.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let head: &[u8; RECORD_HEADER_BYTES] = bytes.first_chunk()?;
        let [key, format, l0, l1, g0, g1, g2, g3, c0, c1, c2, c3] = *head;
        Some(Self {
            key,
            format,
            length: u16::from_le_bytes([l0, l1]),
            generation: u32::from_le_bytes([g0, g1, g2, g3]),
            checksum: u32::from_le_bytes([c0, c1, c2, c3]),
        })
    }

    /// The fields of a record whose checksum is right, and whose key this store can hold.
    pub fn check(bytes: &[u8]) -> Option<Self> {
        let header = Self::parse(bytes)?;
        let value = value_of(bytes, header.length)?;
        let fields = bytes.get(..CHECKSUM_AT)?;
        (checksum(fields, value) == header.checksum && usize::from(header.key) < KEYS)
            .then_some(header)
    }

    /// Bytes of the record, padded to whole words.
    pub fn padded(&self, word: usize) -> usize {
        padded_bytes(usize::from(self.length), word)
    }
}

/// Bytes of a record with a value of `length` bytes, padded to whole words.
pub(super) const fn padded_bytes(length: usize, word: usize) -> usize {
    (RECORD_HEADER_BYTES + length).next_multiple_of(word)
}

/// The value inside a record.
pub(super) fn value_of(bytes: &[u8], length: u16) -> Option<&[u8]> {
    bytes.get(RECORD_HEADER_BYTES..)?.get(..usize::from(length))
}

/// Writes a whole record into `buffer` and returns its padded length. The value is given in parts
/// that follow each other.
///
/// `None` when it does not fit.
pub(super) fn seal(
    buffer: &mut [u8],
    key: u8,
    format: u8,
    generation: u32,
    parts: &[&[u8]],
    word: usize,
) -> Option<usize> {
    let value_bytes = parts.iter().map(|part| part.len()).sum();
    let length = u16::try_from(value_bytes).ok()?;
    let padded = padded_bytes(value_bytes, word);
    let (head, rest) = buffer.get_mut(..padded)?.split_first_chunk_mut::<RECORD_HEADER_BYTES>()?;
    let (value, pad) = rest.split_at_mut_checked(value_bytes)?;
    let mut body = &mut *value;
    for part in parts {
        let (here, after) = body.split_at_mut_checked(part.len())?;
        here.copy_from_slice(part);
        body = after;
    }
    pad.fill(0);
    let [l0, l1] = length.to_le_bytes();
    let [g0, g1, g2, g3] = generation.to_le_bytes();
    let fields = [key, format, l0, l1, g0, g1, g2, g3];
    let [c0, c1, c2, c3] = checksum(&fields, value).to_le_bytes();
    *head = [key, format, l0, l1, g0, g1, g2, g3, c0, c1, c2, c3];
    Some(padded)
}

/// Gives the good record in `buffer` another generation.
pub(super) fn reseal(buffer: &mut [u8], generation: u32) -> Option<()> {
    let header = Header::check(buffer)?;
    let (head, rest) = buffer.split_first_chunk_mut::<RECORD_HEADER_BYTES>()?;
    let value = rest.get(..usize::from(header.length))?;
    let [key, format, l0, l1, ..] = *head;
    let [g0, g1, g2, g3] = generation.to_le_bytes();
    let fields = [key, format, l0, l1, g0, g1, g2, g3];
    let [c0, c1, c2, c3] = checksum(&fields, value).to_le_bytes();
    *head = [key, format, l0, l1, g0, g1, g2, g3, c0, c1, c2, c3];
    Some(())
}

fn checksum(fields: &[u8], value: &[u8]) -> u32 {
    let mut digest = CHECKSUM.digest();
    digest.update(fields);
    digest.update(value);
    digest.finalize()
}

/// The header that the map writes before each item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemHeader {
    /// Erased bytes: the items of this sector end here.
    End,
    /// Not a header: the map goes on one word further.
    Damaged,
    /// An item with this many bytes of data.
    Item(u16),
}

/// Bytes of the map's header before padding.
pub(super) const ITEM_HEADER_BYTES: usize = 8;

impl ItemHeader {
    /// Judges a header as the map does, so that both walk through a sector in the same steps.
    pub fn parse(bytes: &[u8]) -> Self {
        if bytes.iter().all(|byte| *byte == 0xFF) {
            return Self::End;
        }
        match *bytes {
            [_, _, _, _, l0, l1, c0, c1, ..]
                if length_checksum([l0, l1]) == u16::from_le_bytes([c0, c1]) =>
            {
                Self::Item(u16::from_le_bytes([l0, l1]))
            }
            _ => Self::Damaged,
        }
    }
}

/// The map's checksum of an item's length: never 0xFFFF.
fn length_checksum(length: [u8; 2]) -> u16 {
    let mut crc = 0xFFFF_u16;
    for byte in length {
        crc ^= u16::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x1A2E } else { crc >> 1 };
        }
    }
    match crc ^ 0xFFFF {
        0xFFFF => 0xFFFE,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_record_checks_and_any_flipped_bit_is_seen() {
        let mut buffer = [0xAA; 64];
        let padded = seal(&mut buffer, 3, 1, 77, &[b"thirteen", b" byte"], 4).unwrap();
        assert_eq!(padded, 28);
        let header = Header::check(&buffer[..padded]).unwrap();
        assert_eq!((header.key, header.format), (3, 1));
        assert_eq!((header.length, header.generation), (13, 77));
        assert_eq!(value_of(&buffer, header.length), Some(&b"thirteen byte"[..]));
        for bit in 0..25 * 8 {
            let mut torn = buffer;
            torn[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::check(&torn[..padded]), None, "bit {bit}");
        }
    }

    #[test]
    fn a_resealed_record_differs_only_in_its_generation() {
        let mut buffer = [0xAA; 64];
        seal(&mut buffer, 3, 1, 77, &[b"value"], 4).unwrap();
        let before = Header::check(&buffer).unwrap();
        reseal(&mut buffer, 80).unwrap();
        let after = Header::check(&buffer).unwrap();
        assert_eq!((after.generation, after.length), (80, before.length));
        assert_eq!(value_of(&buffer, 5), Some(&b"value"[..]));
        buffer[12] ^= 1;
        assert_eq!(reseal(&mut buffer, 81), None);
    }

    #[test]
    fn a_record_that_does_not_fit_is_refused() {
        let mut buffer = [0; 20];
        assert_eq!(seal(&mut buffer, 1, 1, 1, &[&[0; 9]], 4), None);
        assert_eq!(seal(&mut buffer, 1, 1, 1, &[&[0; 8]], 4), Some(20));
    }

    #[test]
    fn erased_bytes_end_a_sector_and_unreadable_ones_do_not_pass_as_a_header() {
        assert_eq!(ItemHeader::parse(&[0xFF; 8]), ItemHeader::End);
        assert_eq!(ItemHeader::parse(&[0x55; 8]), ItemHeader::Damaged);
        assert_eq!(ItemHeader::parse(&[0x00; 8]), ItemHeader::Damaged);
    }
}
