//! Torn erases with random bits, in both regions in turn.

use bellwether::cells::{Path, Progress, Which};

use crate::cuts::{Allowed, Tally, check};
use crate::nor::Tear;
use crate::scenario::{Bench, Model, Step, finish};

/// Variants of each torn erase: how far it came, and whether the recovery is torn as well.
const VARIANTS: usize = 16;

/// Tears erases until there were `count` of them. Each starts from the flash that the one before
/// left, so that debris of many generations piles up.
pub fn tear_erases<const WORD: usize, const SECTOR: usize>(
    bench: &Bench<WORD, SECTOR>,
    count: u64,
    seed: u64,
) -> Tally {
    let mut tally = Tally::default();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut flash = bench.flash(seed);
    let mut model = Model::default();
    let provision = Step::Provision { chunks: vec![vec![1; 90], vec![2; 200]], first_epoch: 1000 };
    let steps = [provision.clone(), Step::Boot, Step::WriteOldNote(5)];
    for step in &steps {
        let result = bench.open(&mut flash).and_then(|(mut store, _)| bench.run(&mut store, step));
        match result {
            Ok(epoch) => model = model.after(step, epoch),
            Err(halt) => tally.fail(format!("{step:?}: {halt}")),
        }
    }
    let mut turn = Which::A;
    while tally.erases_torn < count && tally.violations_total == 0 {
        turn = turn.other();
        // Elections until this region wants an erase, and every move before it.
        let ready = until_erase(bench, &mut flash, &mut model, turn, &mut random);
        if let Err(what) = ready {
            tally.fail(what);
            break;
        }
        let mut next = None;
        for _ in 0..VARIANTS {
            let mut torn = flash.clone();
            torn.random.seed(random.u64(..));
            torn.tear = Tear::Bits;
            torn.flicker = random.bool();
            let Ok((mut store, _)) = bench.open(&mut torn) else {
                tally.fail("the flash before the erase does not open".into());
                break;
            };
            let progress = random.u32(..SECTOR as u32);
            store.flash_mut().cut_in_erase(progress);
            while let Ok(Progress::More) = finish(store.prepare_step(turn)) {}
            torn.power_up();
            tally.cuts += 1;
            tally.erases_torn += 1;
            if random.bool() {
                // The recovery erases the sector again: tear that as well, if it comes to it.
                torn.cut_in_erase(random.u32(..SECTOR as u32));
                if let Ok((mut store, _)) = bench.open(&mut torn) {
                    let _ = finish(store.prepare());
                }
                if torn.is_dead() {
                    tally.cuts += 1;
                    tally.second += 1;
                    tally.erases_torn += 1;
                }
                torn.power_up();
            }
            let allowed = Allowed { before: &model, after: &model, acknowledged: true };
            let place = format!("torn erase in region {turn:?} at {progress}");
            check(bench, torn.clone(), &allowed, &provision, &place, &mut tally);
            next = Some(torn);
        }
        if let Some(torn) = next {
            flash = torn;
        }
    }
    tally
}

/// Saves elections until the next step of preparing a region is an erase.
fn until_erase<const WORD: usize, const SECTOR: usize>(
    bench: &Bench<WORD, SECTOR>,
    flash: &mut crate::Nor<WORD, SECTOR>,
    model: &mut Model,
    which: Which,
    random: &mut fastrand::Rng,
) -> Result<(), String> {
    flash.power_up();
    let (mut store, _) = bench.open(flash).map_err(|halt| halt.to_string())?;
    finish(store.prepare()).map_err(|halt| format!("prepare: {halt}"))?;
    while !store.needs_preparing(which) {
        let length = 50 * (bench.sectors - 2) + random.usize(..100);
        let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
        let half = length / 2;
        let save = store.save_election(1, &bytes[..half], &bytes[half..], Path::Answer, true);
        match finish(save) {
            Ok(()) => *model = model.after(&Step::Election(bytes), 0),
            Err(halt) => return Err(format!("save: {halt}")),
        }
    }
    Ok(())
}
