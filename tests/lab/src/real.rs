//! The boards that can be bought: built here, run by whoever has one.

use std::path::PathBuf;

use bellwether_flock::board::{ALL, Board};

use crate::{boards, budget, tools};

/// The boards with a debug port, or the one of this name.
pub fn named(name: Option<&str>) -> Result<Vec<&'static Board>, String> {
    let all = ALL.iter().filter(|board| board.chip().is_some());
    let chosen: Vec<_> = all.clone().filter(|board| name.is_none_or(|n| n == board.name)).collect();
    if chosen.is_empty() {
        let names: Vec<_> = all.map(|board| board.name).collect();
        let name = name.unwrap_or_default();
        return Err(format!("there is no board {name:?} to buy; allowed: {}", names.join(", ")));
    }
    Ok(chosen)
}

/// Builds the firmware of a board and says where the image is.
pub fn build(board: &Board) -> Result<PathBuf, String> {
    tools::firmware_file(boards::named(board.name)?)
}

/// Builds all, or one, measures the images and names them.
pub fn build_all(name: Option<&str>) -> Result<u8, String> {
    for (index, board) in named(name)?.into_iter().enumerate() {
        let board = boards::named(board.name)?;
        let image = tools::firmware(board)?;
        if index == 0 {
            println!("{}", budget::header());
        }
        println!("{}", budget::lines(board, &budget::measure(&image)?));
        let shown = image.path.strip_prefix(tools::root()).unwrap_or(&image.path);
        println!("{:<16} {}", "", shown.display());
    }
    Ok(0)
}
