//! The boards that firmware is built for, and the machines that QEMU has for some of them.

use std::ops::Range;

use crate::machine::Files;

/// A board: `boards/NAME`, whose image is `bellwether-NAME`.
#[derive(Debug)]
pub struct Board {
    pub name: &'static str,
    /// Its Rust target.
    pub target: &'static str,
    /// Where the image must begin.
    pub flash_start: u64,
    /// It must end before this: here the cells begin, or the flash ends.
    pub flash_end: u64,
    /// No image may be longer.
    pub flash_max: u64,
    /// Where static memory may lie; below is the stack of the thread, and nothing else.
    pub memory: Range<u64>,
    pub memory_max: u64,
    /// Where the boot ROM stops to look for a start block, if it looks for one.
    pub start_block_below: Option<u64>,
    /// What its flash programs at once.
    pub word_bytes: u32,
    /// Arguments of QEMU for its machine and its flash, if there is such a machine.
    pub machine: Option<fn(&Files) -> Vec<String>>,
    /// Whether the board, or that machine, has a watchdog behind the deadline timer.
    pub watchdog: bool,
    /// Whether the watchdog is the deadline timer.
    pub deadline_is_watchdog: bool,
}

/// What an image may take.
const FLASH_MAX: u64 = 128 << 10;
/// With a vendor's crate under it.
const FLASH_MAX_REAL: u64 = 144 << 10;
const MEMORY_MAX: u64 = 64 << 10;

/// What most of them have in common.
const PLAIN: Board = Board {
    name: "",
    target: "thumbv7m-none-eabi",
    flash_start: 0,
    flash_end: 256 << 10,
    flash_max: FLASH_MAX,
    memory: 0x2000_4800..0x2001_0000,
    memory_max: MEMORY_MAX,
    start_block_below: None,
    word_bytes: 4,
    machine: None,
    watchdog: true,
    deadline_is_watchdog: false,
};

pub static ALL: [Board; 5] = [
    Board {
        name: "sf2",
        // The smallest memory: with both stacks (memory.x) it is full.
        memory_max: 42 << 10,
        machine: Some(|files| {
            let drive = format!("if=mtd,format=raw,file={}", files.flash().display());
            ["-M", "emcraft-sf2", "-drive", &drive].map(String::from).into()
        }),
        watchdog: false,
        ..PLAIN
    },
    Board {
        name: "mps2-an385",
        machine: Some(|files| {
            // The pseudo-static RAM stands for a flash.
            let file = files.flash().display().to_string();
            let ram = format!("memory-backend-file,id=ram,size=16M,mem-path={file},share=on");
            ["-M", "mps2-an385,memory-backend=ram", "-object", &ram].map(String::from).into()
        }),
        ..PLAIN
    },
    Board {
        name: "nucleo-h563zi",
        target: "thumbv8m.main-none-eabihf",
        flash_max: FLASH_MAX_REAL,
        flash_start: 0x0800_0000,
        flash_end: 0x0810_0000,
        memory: 0x2000_6000..0x2004_0000,
        word_bytes: 16,
        ..PLAIN
    },
    Board {
        name: "nucleo-f429zi",
        target: "thumbv7em-none-eabihf",
        flash_max: FLASH_MAX_REAL,
        flash_start: 0x0800_0000,
        flash_end: 0x0810_0000,
        memory: 0x2000_6000..0x2003_0000,
        ..PLAIN
    },
    Board {
        name: "w5500-evb-pico2",
        target: "thumbv8m.main-none-eabihf",
        flash_max: FLASH_MAX_REAL,
        flash_start: 0x1000_0000,
        flash_end: 0x101f_0000,
        memory: 0x2000_6000..0x2008_0000,
        start_block_below: Some(0x1000_1000),
        deadline_is_watchdog: true,
        ..PLAIN
    },
];

/// The one that the lab takes if none is named.
pub fn default() -> &'static Board {
    &ALL[0]
}

/// Those that QEMU knows.
pub fn emulated() -> impl Iterator<Item = &'static Board> {
    ALL.iter().filter(|board| board.machine.is_some())
}

/// The boards of a flock, in order of the ids: names with commas in between, each perhaps with a
/// number behind a colon. A list that is shorter than the flock begins again.
pub fn parse(list: &str, nodes: u8) -> Result<Vec<&'static Board>, String> {
    let known: Vec<&str> = emulated().map(|board| board.name).collect();
    let mut boards = Vec::new();
    for item in list.split(',') {
        let (name, count) = item.split_once(':').unwrap_or((item, "1"));
        let board = emulated().find(|board| board.name == name).ok_or_else(|| {
            format!(
                "--boards: there is no emulated board \"{name}\"; allowed: {}",
                known.join(", ")
            )
        })?;
        let count: u8 = count.parse().ok().filter(|count| *count > 0).ok_or_else(|| {
            format!("--boards: \"{count}\" behind \"{name}\" is no number; allowed: 1 to {nodes}")
        })?;
        boards.extend((0..count).map(|_| board));
    }
    if boards.len() > usize::from(nodes) {
        return Err(format!("--boards names {} boards for a flock of {nodes}", boards.len()));
    }
    Ok((0..usize::from(nodes)).map(|index| boards[index % boards.len()]).collect())
}

/// The board of this name.
pub fn named(name: &str) -> Result<&'static Board, String> {
    ALL.iter().find(|board| board.name == name).ok_or_else(|| {
        let names = ALL.each_ref().map(|board| board.name);
        format!("there is no board {name:?}; allowed: {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Origin and end of a region of a memory map.
    fn region(memory: &str, name: &str) -> Range<u64> {
        let line = memory.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        let (_, rest) = line.split_once("ORIGIN = 0x").unwrap();
        let (origin, length) = rest.split_once(", LENGTH = ").unwrap();
        let origin = u64::from_str_radix(origin, 16).unwrap();
        let (number, unit) = length.trim().split_at(length.trim().len() - 1);
        let shift = if unit == "M" { 20 } else { 10 };
        origin..origin + (number.parse::<u64>().unwrap() << shift)
    }

    #[test]
    fn the_table_is_that_of_the_memory_maps_and_of_cargo() {
        let root = crate::tools::root();
        for board in &ALL {
            let folder = root.join("boards").join(board.name);
            let file = if board.name == "sf2" { &root } else { &folder }.join("memory.x");
            let memory = std::fs::read_to_string(file).unwrap();
            let flash = board.flash_start..board.flash_end;
            assert_eq!(region(&memory, "FLASH"), flash, "{}", board.name);
            assert_eq!(region(&memory, "RAM"), board.memory, "{}", board.name);
            let cargo = std::fs::read_to_string(folder.join(".cargo/config.toml")).unwrap();
            assert!(cargo.contains(&format!("target = \"{}\"", board.target)), "{}", board.name);
        }
    }

    #[test]
    fn every_folder_of_a_board_is_in_the_table_and_every_flock_can_have_it() {
        let boards = std::fs::read_dir(crate::tools::root().join("boards")).unwrap();
        let shared = ["common", "stm32", ".cargo", "target"];
        for entry in boards.flatten().filter(|entry| entry.path().is_dir()) {
            let name = entry.file_name().into_string().unwrap();
            if !shared.contains(&&*name) {
                assert!(named(&name).is_ok(), "{name}");
                assert!(bellwether_flock::board::Board::named(&name).is_some(), "{name}");
            }
        }
    }

    fn names(list: &str, nodes: u8) -> Result<Vec<&str>, String> {
        Ok(parse(list, nodes)?.iter().map(|board| board.name).collect())
    }

    #[test]
    fn a_list_of_boards_is_spread_over_the_ids() {
        let mixed = names("sf2:2,mps2-an385:3", 5).unwrap();
        assert_eq!(mixed, ["sf2", "sf2", "mps2-an385", "mps2-an385", "mps2-an385"]);
        assert_eq!(names("mps2-an385,sf2", 3).unwrap(), ["mps2-an385", "sf2", "mps2-an385"]);
    }

    #[test]
    fn a_bad_list_gets_a_reason() {
        assert!(names("sf3", 5).unwrap_err().contains("allowed: sf2, mps2-an385"));
        assert!(names("sf2:0", 5).unwrap_err().contains("is no number"));
        assert!(names("sf2:x", 5).unwrap_err().contains("is no number"));
        assert!(names("", 5).unwrap_err().contains("no emulated board \"\""));
        assert!(names("sf2:6", 5).unwrap_err().contains("6 boards for a flock of 5"));
    }
}
