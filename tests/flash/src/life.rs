//! How long a part lives, and what an election costs it: computed, and beside it measured.

use bellwether::cells::{Lifetime, Wear};

use crate::parts::{BOARDS, Board};
use crate::scenario::Bench;
use crate::wear::{Worn, wear};

/// What the command is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Elections in a day.
    pub elections_per_day: f64,
    /// Boots in a day.
    pub boots_per_day: f64,
    /// Erases that a sector survives, where not the board's own.
    pub endurance: Option<u32>,
    /// Sectors of a region, where not the board's own.
    pub sectors: Option<u32>,
    /// Only this board.
    pub board: Option<String>,
    /// Value bytes of an election record.
    pub lengths: Vec<u32>,
    /// Saves measured per line; 0 for none.
    pub measured: u64,
}

impl Default for Question {
    fn default() -> Self {
        Self {
            elections_per_day: 24.0,
            boots_per_day: 1.0,
            endurance: None,
            sectors: None,
            board: None,
            lengths: vec![48, 100, 640],
            measured: 3_000,
        }
    }
}

/// One line per board and record length. The second value says whether every bound was kept.
pub fn table(question: &Question) -> Result<(String, bool), String> {
    let mut text = format!(
        "{} elections and {} boots a day; erases per election are of both copies together\n\
         {:16} {:>6} {:>7} {:>8} | {:>9} {:>9} {:>9} | {:>9} {:>10} | {:>8} {:>8}\n",
        question.elections_per_day,
        question.boots_per_day,
        "board",
        "value",
        "sector",
        "sectors",
        "programs",
        "erases",
        "allowed",
        "Ts ms",
        "worst/year",
        "years",
        "fit idle"
    );
    let mut kept = true;
    let mut any = false;
    for board in &BOARDS {
        if question.board.as_deref().is_some_and(|name| name != board.name) {
            continue;
        }
        any = true;
        let mut board = *board;
        if let Some(endurance) = question.endurance {
            board.part.endurance_erases = endurance;
        }
        if let Some(sectors) = question.sectors {
            board.geometry.sectors = sectors;
        }
        for length in &question.lengths {
            let (line, good) = line(&board, *length, question)?;
            text.push_str(&line);
            kept &= good;
        }
    }
    if !any {
        let names: Vec<_> = BOARDS.iter().map(|board| board.name).collect();
        return Err(format!("no such board; there are {}", names.join(", ")));
    }
    Ok((text, kept))
}

fn line(board: &Board, length: u32, question: &Question) -> Result<(String, bool), String> {
    let geometry = board.geometry;
    // Everything but the election ring changes rarely: mark, epoch, head and chunks.
    let cold_bytes = [4, 4, 8, 204, 516].iter().map(|bytes| geometry.item_bytes(*bytes)).sum();
    let stored = length + 8;
    let use_ = Wear {
        election_bytes: stored,
        elections_per_day: question.elections_per_day,
        boots_per_day: question.boots_per_day,
        cold_bytes,
    };
    let life = Lifetime::of(&board.part, &geometry, &use_);
    let measured = match question.measured {
        0 => None,
        saves => Some(measure(board, length, saves)?),
    };
    let programs = board.part.programs_max(&geometry, stored);
    let erases = measured.as_ref().map_or(life.erases_per_election, |worn| worn.erases_per_save);
    // Whichever is worse, arithmetic or measurement.
    let per_year = (erases * question.elections_per_day * 365.25 / f64::from(2 * geometry.sectors))
        .max(life.sector_erases_per_year);
    let years = f64::from(board.part.endurance_erases) / per_year;
    let ts_ms = board.part.save_us_max(&geometry, stored, 648, true) / 1000;
    let live = cold_bytes + 8 * geometry.item_bytes(stored);
    let mut text = format!(
        "{:16} {:>6} {:>7} {:>8} | {:>4}/{:>4} {:>9.5} {:>9.5} | {:>9} {:>10.1} | {:>8.1} {:>8}\n",
        board.name,
        length,
        geometry.sector_bytes,
        geometry.sectors,
        measured.as_ref().map_or("-".into(), |worn| worn.programs_max.to_string()),
        programs,
        erases,
        life.erases_per_election_max,
        ts_ms,
        per_year,
        years,
        geometry.writes_guaranteed(board.spare_sectors, live, stored),
    );
    // The years follow from the arithmetic, and nothing else would tell if that were wrong.
    let sensible = life.erases_per_election <= life.erases_per_election_max;
    if !sensible {
        let computed = life.erases_per_election;
        text.push_str(&format!(
            "^ computed: {computed:.5} erases per election, more than allowed\n"
        ));
    }
    let good = sensible
        && erases <= life.erases_per_election_max
        && measured.is_none_or(|worn| worn.programs_max <= u64::from(programs));
    Ok((text, good))
}

/// Saves on a flash with the board's geometry.
fn measure(board: &Board, length: u32, saves: u64) -> Result<Worn, String> {
    let sectors = board.geometry.sectors as usize;
    let page = board.part.program_page_bytes;
    let length = length as usize;
    // Enough saves for some laps of the ring.
    let lap = u64::from(board.geometry.items_per_sector(length as u32 + 8)) * sectors as u64;
    let saves = saves.max(3 * lap);
    match (board.geometry.word_bytes, board.geometry.sector_bytes) {
        (1, 65_536) => wear(&Bench::<1, 65_536>::new(sectors), saves, length, page),
        (4, 4_096) => wear(&Bench::<4, 4_096>::new(sectors), saves, length, page),
        (4, 131_072) => wear(&Bench::<4, 131_072>::new(sectors), saves, length, page),
        (16, 8_192) => wear(&Bench::<16, 8_192>::new(sectors), saves, length, page),
        (32, 131_072) => wear(&Bench::<32, 131_072>::new(sectors), saves, length, page),
        other => Err(format!("no flash with this geometry: {other:?}")),
    }
}
