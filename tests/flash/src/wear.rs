//! Wear and cost of saves, measured.

use bellwether::cells::{Path, Which};

use crate::nor::Record;
use crate::scenario::{Bench, Step, finish};

/// What saves of one length did to a flash.
#[derive(Debug, Clone, PartialEq)]
pub struct Worn {
    /// Values saved.
    pub saves: u64,
    /// Erases of the least and the most worn sector: region A, then B.
    pub erases: [(u32, u32); 2],
    /// The most page programs of one copy of one value.
    pub programs_max: u64,
    /// Erases of both regions for one save, on average.
    pub erases_per_save: f64,
    /// The longest save, on the flash's clock; no save started an erase.
    pub save_us_max: u64,
    /// Bytes that the store had to keep, with their overhead.
    pub live_bytes: u32,
}

/// Saves `saves` values of `length` bytes, with idle time after each.
pub fn wear<const WORD: usize, const SECTOR: usize>(
    bench: &Bench<WORD, SECTOR>,
    saves: u64,
    length: usize,
    page_bytes: u32,
) -> Result<Worn, String> {
    let mut flash = bench.flash(1);
    flash.timing.page_bytes = page_bytes;
    let (mut store, _) = bench.open(&mut flash).map_err(|halt| halt.to_string())?;
    let provision = Step::Provision { chunks: vec![vec![1; 200], vec![2; 512]], first_epoch: 1 };
    for step in [provision, Step::Boot] {
        bench.run(&mut store, &step).map_err(|halt| format!("{step:?}: {halt}"))?;
    }
    let middle = bench.layout().b.start;
    let mut value = vec![0_u8; length];
    let mut worn = Worn {
        saves,
        erases: [(0, 0); 2],
        programs_max: 0,
        erases_per_save: 0.0,
        save_us_max: 0,
        live_bytes: 0,
    };
    for number in 0..saves {
        for (byte, new) in value.iter_mut().zip(number.to_le_bytes()) {
            *byte = new;
        }
        store.flash_mut().record(Record::Log);
        let begun = store.flash_mut().elapsed_ns;
        finish(store.save_election(1, &value, &[], Path::Answer, true))
            .map_err(|halt| format!("save {number}: {halt}"))?;
        let took = store.flash_mut().elapsed_ns - begun;
        worn.save_us_max = worn.save_us_max.max(took / 1000);
        let mut programs = [0_u64; 2];
        for operation in &store.flash_mut().operations {
            if operation.erase {
                return Err(format!("save {number} started an erase"));
            }
            let pages = (operation.address + operation.bytes - 1) / page_bytes
                - operation.address / page_bytes
                + 1;
            programs[usize::from(operation.address >= middle)] += u64::from(pages);
        }
        worn.programs_max = worn.programs_max.max(programs[0]).max(programs[1]);
        store.flash_mut().record(Record::Nothing);
        if Which::BOTH.iter().any(|which| store.needs_preparing(*which)) {
            finish(store.prepare()).map_err(|halt| format!("prepare {number}: {halt}"))?;
        }
    }
    worn.live_bytes = store.live_bytes();
    let (a, b) = flash.erases.split_at(bench.sectors);
    for (erases, region) in worn.erases.iter_mut().zip([a, b]) {
        let least = region.iter().min().copied().unwrap_or(0);
        let most = region.iter().max().copied().unwrap_or(0);
        *erases = (least, most);
    }
    let total: u64 = flash.erases.iter().map(|erases| u64::from(*erases)).sum();
    worn.erases_per_save = total as f64 / saves as f64;
    Ok(worn)
}
