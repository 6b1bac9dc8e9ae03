//! Reads the cells of a flash image.

use bellwether::cells::{BootEpoch, Mark, Report, Store};
use bellwether::key::Keys;

use crate::nor::Nor;
use crate::scenario::finish;
use crate::show::Image;

/// What a board with this flash would find. Keys print nothing but their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cells {
    pub report: Report,
    pub incarnation: Option<u32>,
    pub epoch: Option<u32>,
    /// Chunk 0 of the configuration, and its format.
    pub configuration: Option<(Vec<u8>, u8)>,
    pub keys: Option<Keys>,
    /// No bytes of former keys are left.
    pub is_wiped: bool,
    /// The newest state vector, as the core encoded it.
    pub state: Option<Vec<u8>>,
}

/// Boots a copy of the image. The image stays as it is.
pub fn read(image: &Image) -> Result<Cells, String> {
    match (image.word_bytes, image.sector_bytes) {
        (1 | 4, 4_096) => read_as::<4, 4_096>(image),
        (1 | 4, 65_536) => read_as::<4, 65_536>(image),
        (4, 131_072) => read_as::<4, 131_072>(image),
        (16, 8_192) => read_as::<16, 8_192>(image),
        (32, 131_072) => read_as::<32, 131_072>(image),
        (word, sector) => {
            Err(format!("no part here has words of {word} and sectors of {sector} bytes"))
        }
    }
}

fn read_as<const WORD: usize, const SECTOR: usize>(image: &Image) -> Result<Cells, String> {
    let mut flash = Nor::<WORD, SECTOR>::from_bytes(&image.bytes);
    let opened = finish(Store::<_, 8, 704>::open(&mut flash, &image.layout));
    let (mut store, report) = opened.map_err(|halt| halt.to_string())?;
    let cells = finish(async {
        let incarnation = store.load_cell::<Mark>()?.map(|mark| mark.incarnation);
        let epoch = store.load_cell::<BootEpoch>()?.map(|epoch| epoch.0);
        let chunk = store.configuration_chunk(0)?;
        let configuration = chunk.map(|chunk| (chunk.value.to_vec(), chunk.format));
        let keys = store.keys()?;
        let state = store.election(0)?.map(|election| election.state.to_vec());
        let is_wiped = store.is_wiped();
        Ok(Cells { report, incarnation, epoch, configuration, keys, is_wiped, state })
    });
    cells.map_err(|halt| halt.to_string())
}
