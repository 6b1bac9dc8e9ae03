//! The flash parts of the boards that this project knows, at their worst.

use bellwether::cells::{Geometry, Part};

/// A board's flash, as its cells use it.
#[derive(Debug, Clone, Copy)]
pub struct Board {
    /// The name of the board.
    pub name: &'static str,
    /// One region.
    pub geometry: Geometry,
    /// Open sectors that idle time provides for.
    pub spare_sectors: u32,
    /// The part.
    pub part: Part,
}

const EMULATED: Part = Part {
    program_us_max: 2_250,
    program_page_bytes: 256,
    erase_us_max: 1_000_000,
    suspend_us_max: None,
    read_us_per_kib: 1_200,
    endurance_erases: 100_000,
};

/// Word and page sizes as measured or documented; times and endurance from data sheets, where the
/// board's own crate must confirm them.
pub const BOARDS: [Board; 6] = [
    // Emulated: QEMU programs and erases at once, and the firmware waits out what stands here. The data
    // sheet of the part (S25SL128) allows 3 ms and 2 s: whoever puts a real one to use writes those into
    // boards/sf2/src/flash.rs, too.
    Board {
        name: "sf2",
        geometry: Geometry { word_bytes: 1, sector_bytes: 65_536, sectors: 4 },
        spare_sectors: 2,
        part: EMULATED,
    },
    // Memory that stands for the same part; what is written is durable at once.
    Board {
        name: "mps2-an385",
        geometry: Geometry { word_bytes: 1, sector_bytes: 65_536, sectors: 4 },
        spare_sectors: 2,
        part: Part { program_us_max: 750, ..EMULATED },
    },
    Board {
        name: "nucleo-h563zi",
        geometry: Geometry { word_bytes: 16, sector_bytes: 8_192, sectors: 5 },
        spare_sectors: 3,
        part: Part {
            program_us_max: 100,
            program_page_bytes: 16,
            erase_us_max: 10_000,
            suspend_us_max: None,
            read_us_per_kib: 20,
            endurance_erases: 10_000,
        },
    },
    Board {
        name: "w5500-evb-pico2",
        geometry: Geometry { word_bytes: 4, sector_bytes: 4_096, sectors: 8 },
        spare_sectors: 4,
        part: Part {
            program_us_max: 3_000,
            program_page_bytes: 256,
            erase_us_max: 400_000,
            suspend_us_max: None,
            read_us_per_kib: 100,
            endurance_erases: 100_000,
        },
    },
    Board {
        name: "nucleo-f429zi",
        geometry: Geometry { word_bytes: 4, sector_bytes: 131_072, sectors: 3 },
        spare_sectors: 2,
        part: Part {
            program_us_max: 100,
            program_page_bytes: 4,
            erase_us_max: 4_000_000,
            suspend_us_max: None,
            read_us_per_kib: 20,
            endurance_erases: 10_000,
        },
    },
    Board {
        name: "nucleo-h743zi",
        geometry: Geometry { word_bytes: 32, sector_bytes: 131_072, sectors: 3 },
        spare_sectors: 2,
        part: Part {
            program_us_max: 500,
            program_page_bytes: 32,
            erase_us_max: 4_000_000,
            suspend_us_max: None,
            read_us_per_kib: 20,
            endurance_erases: 10_000,
        },
    },
];
