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
    /// Its name among the flash parts, which say how large a region is.
    part: &'static str,
    /// The smallest Tp that the board declares, in microseconds; 0 where no board crate exists yet.
    pub tp_us_min: u64,
    /// Where the image goes.
    place: Place,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    /// A serial flash of its own, outside of the address space.
    Serial { at: u32, capacity_bytes: u64 },
    /// The chip's own flash, where the memory map of the board reserves room.
    MemoryMap,
}

/// The default board, and those whose flash is known although their crates do not exist yet.
pub const ALL: [Board; 5] = [
    Board {
        name: "sf2",
        part: "emcraft-sf2",
        tp_us_min: 7_000,
        place: Place::Serial { at: 0, capacity_bytes: 16 << 20 },
    },
    internal("nucleo-h563zi"),
    internal("w5500-evb-pico2"),
    internal("nucleo-f429zi"),
    internal("nucleo-h743zi"),
];

const fn internal(name: &'static str) -> Board {
    Board { name, part: name, tp_us_min: 0, place: Place::MemoryMap }
}

impl Board {
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Board> {
        ALL.iter().find(|board| board.name == name)
    }

    fn part(&self) -> &'static Part {
        BOARDS.iter().find(|part| part.name == self.part).unwrap_or(&BOARDS[0])
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
            Place::Serial { at, capacity_bytes } => format!(
                "into the serial flash at {at:#x}; for QEMU: truncate -s {capacity_bytes} {file}, \
                 then -drive if=mtd,format=raw,file={file}"
            ),
            Place::MemoryMap => format!(
                "probe-rs download --binary-format bin --base-address <where the memory map of the \
                 board puts the cells> {file}"
            ),
        }
    }
}
