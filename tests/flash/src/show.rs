//! What is left in a flash image.

use std::fmt::Write as _;

use bellwether::cells::{KEYS, Layout, Store, keys};

use crate::nor::Nor;
use crate::scenario::finish;

/// What to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// All bytes of the flash.
    pub bytes: Vec<u8>,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Bytes of a word.
    pub word_bytes: u32,
    /// Where the regions lie.
    pub layout: Layout,
}

/// Boots a copy of the image, and lists what the boot found and every cell. The image stays as it
/// is.
pub fn show(image: &Image) -> Result<String, String> {
    match (image.word_bytes, image.sector_bytes) {
        (1 | 4, 4_096) => show_as::<4, 4_096>(image),
        (1 | 4, 65_536) => show_as::<4, 65_536>(image),
        (4, 131_072) => show_as::<4, 131_072>(image),
        (16, 8_192) => show_as::<16, 8_192>(image),
        (32, 131_072) => show_as::<32, 131_072>(image),
        (word, sector) => {
            Err(format!("no part here has words of {word} and sectors of {sector} bytes"))
        }
    }
}

fn show_as<const WORD: usize, const SECTOR: usize>(image: &Image) -> Result<String, String> {
    let mut flash = Nor::<WORD, SECTOR>::from_bytes(&image.bytes);
    let opened = finish(Store::<_, 8, 704>::open(&mut flash, &image.layout));
    let (mut store, report) = opened.map_err(|halt| halt.to_string())?;
    let mut text = format!("{:?}\n", report.provisioning);
    for (name, region) in ["A", "B"].iter().zip(&report.regions) {
        let _ = writeln!(text, "region {name}: {:?}, {region:?}", region.verdict());
    }
    for key in 0..KEYS as u8 {
        let name = match key {
            keys::MARK => "mark",
            keys::EPOCH => "boot epoch",
            keys::CONFIGURATION => "configuration",
            keys::TRANSACTION => "transaction",
            keys::ERASING => "erasing",
            keys::SECRET => "secret",
            key if key < keys::CHUNKS => "election",
            _ => "chunk",
        };
        let _ = match store.load(key) {
            Ok(Some(cell)) if cell.value.len() <= 8 => {
                writeln!(text, "{key:2} {name}: format {}, {:?}", cell.format, cell.value)
            }
            Ok(Some(cell)) => {
                let bytes = cell.value.len();
                writeln!(text, "{key:2} {name}: format {}, {bytes} bytes", cell.format)
            }
            Ok(None) => continue,
            Err(halt) => writeln!(text, "{key:2} {name}: {halt}"),
        };
    }
    Ok(text)
}
