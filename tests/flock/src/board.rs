//! The boards that images can be made for.

use bellwether::cells::Layout;
use bellwether::state::StateVector;
use bellwether_flash::parts::{BOARDS, Board as Part};
use bellwether_flash::show::Image;

/// A board, as far as its cells are concerned.
#[derive(Debug, Clone, Copy)]
pub struct Board {
    /// The name in a flock file.
    pub name: &'static str,
    /// The smallest Tp that the board declares, in microseconds.
    pub tp_us_min: u64,
    /// Where the image goes.
    place: Place,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    /// A flash outside of the address space, whose file QEMU is given like this.
    Emulated { capacity_bytes: u64, option: &'static str },
    /// In the address space, where `CELLS` of the board's memory.x reserves room. `chip` as probe-rs
    /// calls it.
    MemoryMap { at: u32, chip: &'static str },
}

/// The boards of the folder `boards`, each under the name of its folder, which is also its name among the
/// flash parts.
pub const ALL: [Board; 5] = [
    emulated("sf2", "-drive if=mtd,format=raw,file="),
    mapped("nucleo-h563zi", 19_000, 0x0810_0000, "STM32H563ZITx"),
    mapped("w5500-evb-pico2", 580_000, 0x101f_0000, "RP235x"),
    mapped("nucleo-f429zi", 15_000, 0x0812_0000, "STM32F429ZITx"),
    emulated("mps2-an385", "-object memory-backend-file,id=ram,size=16M,share=on,mem-path="),
];

const fn emulated(name: &'static str, option: &'static str) -> Board {
    Board { name, tp_us_min: 18_000, place: Place::Emulated { capacity_bytes: 16 << 20, option } }
}

const fn mapped(name: &'static str, tp_us_min: u64, at: u32, chip: &'static str) -> Board {
    Board { name, tp_us_min, place: Place::MemoryMap { at, chip } }
}

impl Board {
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Board> {
        ALL.iter().find(|board| board.name == name)
    }

    fn part(&self) -> &'static Part {
        BOARDS.iter().find(|part| part.name == self.name).unwrap_or(&BOARDS[0])
    }

    /// The longest save of its part, in microseconds, with a margin for the tasks in between.
    #[must_use]
    pub fn ts_us_min(&self) -> u64 {
        let Part { part, geometry, .. } = self.part();
        let largest = StateVector::<1>::RECORD_BYTES_MAX as u32;
        u64::from(part.save_us_max(geometry, largest, 648, true)) + 20_000
    }

    /// Bytes of both regions, which lie side by side.
    #[must_use]
    pub fn image_bytes(&self) -> usize {
        let geometry = self.part().geometry;
        2 * (geometry.sectors * geometry.sector_bytes) as usize
    }

    /// An image with these bytes; what lies behind the regions is not looked at.
    pub fn image(&self, mut bytes: Vec<u8>) -> Result<Image, String> {
        let geometry = self.part().geometry;
        if bytes.len() < self.image_bytes() {
            let (found, needed) = (bytes.len(), self.image_bytes());
            return Err(format!(
                "{found} bytes, but the cells of board \"{}\" take {needed}",
                self.name
            ));
        }
        bytes.truncate(self.image_bytes());
        let middle = geometry.sectors * geometry.sector_bytes;
        Ok(Image {
            bytes,
            sector_bytes: geometry.sector_bytes,
            word_bytes: geometry.word_bytes,
            layout: Layout { a: 0..middle, b: middle..2 * middle },
        })
    }

    /// How an image gets into the board.
    #[must_use]
    pub fn how_to_write(&self, file: &str) -> String {
        match self.place {
            Place::Emulated { capacity_bytes, option } => {
                format!(
                    "into the flash at 0x0; for QEMU: truncate -s {capacity_bytes} {file}, \
                     then {option}{file}"
                )
            }
            Place::MemoryMap { at, chip } => format!(
                "probe-rs download --chip {chip} --binary-format bin --base-address {at:#x} {file}"
            ),
        }
    }

    /// The chip as probe-rs calls it; `None` for a board that is only emulated.
    #[must_use]
    pub fn chip(&self) -> Option<&'static str> {
        match self.place {
            Place::Emulated { .. } => None,
            Place::MemoryMap { chip, .. } => Some(chip),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use std::path::Path;

    use super::*;

    /// What a memory.x says of its region `CELLS`: where it begins, and how long it is.
    fn cells(memory: &str) -> (u32, usize) {
        let line = memory.lines().find(|line| line.trim_start().starts_with("CELLS")).unwrap();
        let (_, rest) = line.split_once("ORIGIN = 0x").unwrap();
        let (origin, length) = rest.split_once(", LENGTH = ").unwrap();
        let kib: usize = length.trim().strip_suffix('K').unwrap().parse().unwrap();
        (u32::from_str_radix(origin, 16).unwrap(), kib << 10)
    }

    #[test]
    fn images_go_where_the_memory_maps_of_the_boards_keep_room_for_them() {
        let boards = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../boards");
        for board in &ALL {
            let folder = boards.join(board.name);
            let Place::MemoryMap { at, chip } = board.place else { continue };
            let memory = std::fs::read_to_string(folder.join("memory.x")).unwrap();
            assert_eq!(cells(&memory), (at, board.image_bytes()), "{}", board.name);
            let cargo = std::fs::read_to_string(folder.join(".cargo/config.toml")).unwrap();
            assert!(cargo.contains(&format!("--chip {chip} ")), "{}", board.name);
        }
    }

    fn source(board: &str, file: &str) -> String {
        let boards = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../boards");
        std::fs::read_to_string(boards.join(board).join(file)).unwrap()
    }

    /// The number behind the first of these words: `erase_us_max: 4_000_000`.
    fn number(text: &str, word: &str) -> u64 {
        let (_, rest) = text.split_once(word).unwrap_or_else(|| panic!("no {word}"));
        let digits: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '_').collect();
        digits.replace('_', "").parse().unwrap()
    }

    /// A time in microseconds: `PROGRAM: Duration = Duration::from_micros(750)`.
    fn time_us(text: &str, word: &str) -> u64 {
        let (_, rest) =
            text.split_once(&format!("const {word}: Duration = Duration::from_")).unwrap();
        let (unit, _) = rest.split_once('(').unwrap();
        let scale = match unit {
            "micros" => 1,
            "millis" => 1_000,
            "secs" => 1_000_000,
            other => panic!("{other}"),
        };
        number(rest, &format!("{unit}(")) * scale
    }

    /// What a board's own sources say of its flash: program, page, erase, read, endurance.
    fn declared(board: &Board) -> [u64; 5] {
        let main = source(board.name, "src/main.rs");
        if board.chip().is_some() {
            return [
                "program_us_max",
                "program_page_bytes",
                "erase_us_max",
                "read_us_per_kib",
                "endurance_erases",
            ]
            .map(|field| number(&main, &format!("{field}: ")));
        }
        let (flash, nor) = (source(board.name, "src/flash.rs"), source("common", "src/nor.rs"));
        [
            time_us(&flash, "PROGRAM") + time_us(&flash, "SETTLE"),
            number(&nor, "PAGE_BYTES: u32 = "),
            time_us(&flash, "ERASE"),
            number(&nor, "read_us_per_kib: "),
            number(&nor, "endurance_erases: "),
        ]
    }

    /// Tp and Ts, which follows from the part and from how many sectors of which size a region has.
    #[test]
    fn floors_are_those_that_the_boards_declare() {
        for board in &ALL {
            let main = source(board.name, "src/main.rs");
            assert_eq!(time_us(&main, "TP_MIN"), board.tp_us_min, "{}", board.name);
            let Part { part, geometry, .. } = *board.part();
            let known = [
                part.program_us_max,
                part.program_page_bytes,
                part.erase_us_max,
                part.read_us_per_kib,
                part.endurance_erases,
            ];
            assert_eq!(declared(board), known.map(u64::from), "{}", board.name);
            let shape = match board.chip() {
                Some(_) => {
                    let (_, text) = main.split_once("&Geometry {").unwrap();
                    let kib = number(text, "sector_bytes: ");
                    (number(text, "sectors: "), kib << 10)
                }
                None => {
                    let flash = source(board.name, "src/flash.rs");
                    let kib = number(&flash, "SECTOR_BYTES: u32 = ");
                    (number(&main, "SECTORS: u32 = "), kib << 10)
                }
            };
            let known = (u64::from(geometry.sectors), u64::from(geometry.sector_bytes));
            assert_eq!(shape, known, "{}", board.name);
        }
    }

    #[test]
    fn every_board_has_a_part_of_its_own_name() {
        for board in &ALL {
            assert!(BOARDS.iter().any(|part| part.name == board.name), "{}", board.name);
        }
    }
}
