//! What the image takes of the board, and whether it lies where it should.

use object::elf::{PT_LOAD, SHF_ALLOC, SHT_NOBITS};
use object::read::elf::{ElfFile32, FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, Object, ObjectSection};

use crate::boards::Board;
use crate::probe::Image;
use crate::share;

/// Bytes of flash and of static memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    pub flash: u64,
    pub memory: u64,
    /// Of the flash, by part: by symbols.
    pub shares: share::Shares,
    /// The same by the origin of instructions.
    pub origins: share::Shares,
}

/// A section that takes room on the board.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Section {
    name: String,
    start: u64,
    size: u64,
    /// Its content is in the image: zeroes are not.
    stored: bool,
}

/// The sections of an image that are loaded, and where in the flash it ends.
fn sections(bytes: &[u8]) -> Result<(Vec<Section>, u64), String> {
    let bad = |error: object::Error| error.to_string();
    let file = ElfFile32::<Endianness>::parse(bytes).map_err(bad)?;
    let endian = file.endian();
    let mut found = Vec::new();
    for section in file.sections() {
        let header = section.elf_section_header();
        if header.sh_flags(endian) & SHF_ALLOC != 0 && section.size() > 0 {
            found.push(Section {
                name: section.name().map_err(bad)?.to_owned(),
                start: section.address(),
                size: section.size(),
                stored: header.sh_type(endian) != SHT_NOBITS,
            });
        }
    }
    let headers = file.elf_header().program_headers(endian, bytes).map_err(bad)?;
    let loaded = headers.iter().filter(|header| header.p_type(endian) == PT_LOAD);
    let stored = loaded.filter(|header| header.p_filesz(endian) > 0);
    let ends =
        stored.map(|header| u64::from(header.p_paddr(endian)) + u64::from(header.p_filesz(endian)));
    Ok((found, ends.max().unwrap_or(0)))
}

/// Bytes of flash and of static memory, or what is wrong with these sections.
fn judge(sections: &[Section], flash_end: u64, board: &Board) -> Result<(u64, u64), String> {
    let (mut flash, mut memory) = (0, 0);
    for Section { name, start, size, stored } in sections {
        let end = start + size;
        let inside = |range: &std::ops::Range<u64>| *start >= range.start && end <= range.end;
        if inside(&board.memory) {
            memory += size;
            flash += if *stored { *size } else { 0 };
        } else if *stored && inside(&(board.flash_start..board.flash_end)) {
            flash += size;
        } else {
            return Err(format!("{name} is at {start:#x} to {end:#x}, outside its memory"));
        }
    }
    let start_of = |wanted: &str| {
        let section = sections.iter().find(|section| section.name == wanted);
        section.map(|section| section.start).ok_or_else(|| format!("it has no {wanted}"))
    };
    let (table, wanted) = (start_of(".vector_table")?, board.flash_start);
    if table != wanted {
        return Err(format!("the vector table is at {table:#x}, not at {wanted:#x}"));
    }
    if let Some(limit) = board.start_block_below {
        let start = start_of(".start_block")?;
        if start >= limit {
            return Err(format!("the start block is at {start:#x}, not below {limit:#x}"));
        }
    }
    if flash_end > board.flash_end {
        let limit = board.flash_end;
        return Err(format!("the image ends at {flash_end:#x}, behind {limit:#x}: in the cells"));
    }
    Ok((flash, memory))
}

/// What is too large.
fn limit(board: &Board, flash: u64, memory: u64) -> Result<(), String> {
    for (what, found, most) in
        [("flash", flash, board.flash_max), ("static memory", memory, board.memory_max)]
    {
        if found > most {
            return Err(format!("{found} bytes of {what}; allowed: {most}"));
        }
    }
    Ok(())
}

/// Whether an image takes no more than it may.
pub fn check(board: &Board, sizes: &Sizes) -> Result<(), String> {
    limit(board, sizes.flash, sizes.memory).map_err(|what| format!("{}: {what}", board.name))
}

/// The sizes of an image that is in order.
pub fn measure(image: &Image) -> Result<Sizes, String> {
    let sizes = look(image)?;
    check(image.board, &sizes)?;
    Ok(sizes)
}

/// The sizes of an image whose parts lie where they should.
pub fn look(image: &Image) -> Result<Sizes, String> {
    let (path, board) = (&image.path, image.board);
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let wrong = |what: String| format!("{}: {what}", board.name);
    let (sections, flash_end) = sections(&bytes).map_err(wrong)?;
    let (flash, memory) = judge(&sections, flash_end, board).map_err(wrong)?;
    let shares = share::measure(&bytes, board, flash).map_err(wrong)?;
    let origins = share::origins(path, &bytes, board, flash).map_err(wrong)?;
    Ok(Sizes { flash, memory, shares, origins })
}

/// The first line of the table.
pub fn header() -> String {
    let parts: String = share::PARTS.iter().map(|(_, name)| format!("{name:>8}")).collect();
    format!("{:<16} {:>8} {:>8} {:>8} {:>8} |{parts}", "board", "flash", "of", "static", "of")
}

/// A board's two lines of the table.
pub fn lines(board: &Board, sizes: &Sizes) -> String {
    let row = |shares: &share::Shares| -> String {
        shares.iter().map(|bytes| format!("{bytes:>8}")).collect()
    };
    format!(
        "{:<16} {:>8} {:>8} {:>8} {:>8} |{}\n{:>52} |{}",
        board.name,
        sizes.flash,
        board.flash_max,
        sizes.memory,
        board.memory_max,
        row(&sizes.shares),
        "by the origin of each instruction",
        row(&sizes.origins),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::boards::ALL;

    fn section(name: &str, start: u64, size: u64, stored: bool) -> Section {
        Section { name: name.into(), start, size, stored }
    }

    /// An image that is in order, and where it ends.
    fn good(board: &Board) -> (Vec<Section>, u64) {
        let (flash, memory) = (board.flash_start, board.memory.start);
        let sections = vec![
            section(".vector_table", flash, 0x100, true),
            section(".start_block", flash + 0x100, 0x20, true),
            section(".text", flash + 0x120, 60_000, true),
            section(".data", memory, 100, true),
            section(".bss", memory + 104, 20_000, false),
        ];
        (sections, flash + 0x120 + 60_000 + 100)
    }

    #[test]
    fn what_is_stored_counts_for_the_flash_and_what_has_an_address_there_for_the_memory() {
        for board in &ALL {
            let (sections, end) = good(board);
            assert_eq!(judge(&sections, end, board), Ok((60_388, 20_100)), "{}", board.name);
        }
    }

    /// Why an image is refused that was changed like this.
    fn refused(board: &Board, change: impl Fn(&mut Vec<Section>, &mut u64)) -> String {
        let (mut sections, mut end) = good(board);
        change(&mut sections, &mut end);
        judge(&sections, end, board)
            .and_then(|(flash, memory)| limit(board, flash, memory))
            .unwrap_err()
    }

    #[test]
    fn what_lies_elsewhere_or_is_too_long_is_refused() {
        for board in &ALL {
            let why = refused(board, |sections, _| drop(sections.remove(0)));
            assert_eq!(why, "it has no .vector_table");
            let why = refused(board, |sections, _| sections[0].start += 0x400);
            assert!(why.starts_with("the vector table is at"), "{why}");
            // As a memory map that begins with the stack would have it.
            let why = refused(board, |sections, _| sections[4].start = board.memory.start - 8);
            assert!(why.starts_with(".bss is at"), "{why}");
            let why = refused(board, |sections, _| sections[2].start = 0x9000_0000);
            assert!(why.starts_with(".text is at"), "{why}");
            let why = refused(board, |sections, _| sections[2].size = board.flash_max);
            assert!(why.contains("bytes of flash; allowed"), "{why}");
            // Any section that is loaded counts, whatever it is called.
            let odd =
                section(".odd", board.memory.start + 20_104, board.memory_max - 20_099, false);
            let why = refused(board, |sections, _| sections.push(odd.clone()));
            let fits = odd.start + odd.size <= board.memory.end;
            let wanted = if fits { "bytes of static memory; allowed" } else { ".odd is at" };
            assert!(why.contains(wanted), "{why}");
            let why = refused(board, |_, end| *end = board.flash_end + 1);
            assert!(why.ends_with("in the cells"), "{why}");
        }
    }

    #[test]
    fn the_start_block_is_where_the_boot_rom_looks() {
        let board = ALL.iter().find(|board| board.start_block_below.is_some()).unwrap();
        let why = refused(board, |sections, _| drop(sections.remove(1)));
        assert_eq!(why, "it has no .start_block");
        let why = refused(board, |sections, _| sections[1].start = 0x1000_1000);
        assert!(why.starts_with("the start block is at 0x10001000"), "{why}");
    }
}
