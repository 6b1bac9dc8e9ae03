//! A power cut at every byte of every flash operation, and a second one in the recovery.

use bellwether::cells::{Path, Provisioning, Verdict, Which};

use crate::nor::{Nor, Record, Tear};
use crate::scenario::{Bench, Halt, Model, Step, finish, holds_key};

/// How thoroughly to cut.
#[derive(Debug, Clone, Copy)]
pub struct Depth {
    /// Try every n-th byte of programs.
    pub program_stride: u64,
    /// Try every n-th byte of erases.
    pub erase_stride: u64,
    /// After every n-th first cut, cut again in each operation of the recovery.
    pub second_every: u64,
    /// After every n-th first cut, a bit decays as well.
    pub decay_every: u64,
    /// How a running operation is torn.
    pub tears: &'static [Tear],
}

impl Depth {
    /// Every byte, every tear, every operation of the recovery.
    pub const DEEP: Depth = Depth {
        program_stride: 1,
        erase_stride: 1,
        second_every: 1,
        decay_every: 4,
        tears: &Tear::ALL,
    };
    /// A few tens of thousands.
    pub const REDUCED: Depth = Depth {
        program_stride: 1,
        erase_stride: 61,
        second_every: 9,
        decay_every: 3,
        tears: &[Tear::Bits],
    };
}

/// What was tried and found.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Power cuts.
    pub cuts: u64,
    /// Of them in a program that was running.
    pub programs_torn: u64,
    /// Of them in an erase that was running.
    pub erases_torn: u64,
    /// Of them in the recovery from another cut.
    pub second: u64,
    /// Bits decayed.
    pub decays: u64,
    /// Boots that found a region torn, lost or rebuilt: A, then B.
    pub verdicts: [[u64; 5]; 2],
    /// What went wrong, at most ten.
    pub violations: Vec<String>,
    /// How often something went wrong.
    pub violations_total: u64,
}

impl Tally {
    pub(crate) fn fail(&mut self, what: String) {
        self.violations_total += 1;
        if self.violations.len() < 10 {
            self.violations.push(what);
        }
    }

    /// Adds another tally.
    pub fn add(&mut self, other: Tally) {
        self.cuts += other.cuts;
        self.programs_torn += other.programs_torn;
        self.erases_torn += other.erases_torn;
        self.second += other.second;
        self.decays += other.decays;
        for (row, others) in self.verdicts.iter_mut().zip(other.verdicts) {
            for (count, more) in row.iter_mut().zip(others) {
                *count += more;
            }
        }
        self.violations_total += other.violations_total;
        self.violations.extend(other.violations);
        self.violations.truncate(10);
    }

    /// One line.
    #[must_use]
    pub fn line(&self) -> String {
        format!(
            "{} cuts ({} in programs, {} in erases, {} in recoveries), {} decayed bits; \
             regions good/torn/lost/rebuilt/failing A {:?} B {:?}; {} violations",
            self.cuts,
            self.programs_torn,
            self.erases_torn,
            self.second,
            self.decays,
            self.verdicts[0],
            self.verdicts[1],
            self.violations_total,
        )
    }
}

/// What may be found after a cut.
pub(crate) struct Allowed<'m> {
    pub before: &'m Model,
    pub after: &'m Model,
    /// The step ended: only `after` will do.
    pub acknowledged: bool,
}

/// Plays a life, and cuts it everywhere.
pub fn explore<const WORD: usize, const SECTOR: usize>(
    bench: &Bench<WORD, SECTOR>,
    steps: &[Step],
    depth: Depth,
    seed: u64,
) -> Tally {
    let mut tally = Tally::default();
    let mut base = bench.flash(seed);
    let mut model = Model::default();
    let mut random = fastrand::Rng::with_seed(seed ^ 0x5EED);
    let mut first_cuts = 0_u64;
    for (number, step) in steps.iter().enumerate() {
        let mut whole = base.clone();
        let result = attempt(bench, &mut whole, step, None, Record::Log);
        let epoch = match result {
            Ok(epoch) => epoch,
            Err(error) => {
                tally.fail(format!("step {number} {step:?} without a cut: {error}"));
                return tally;
            }
        };
        let after = model.after(step, epoch);
        for (start, length, erase) in spans(&whole) {
            let stride = if erase { depth.erase_stride } else { depth.program_stride };
            // The cut after the last byte is the cut before the next operation's first.
            for cut in (start..start + length).step_by(stride as usize) {
                for tear in depth.tears {
                    first_cuts += 1;
                    let mut flash = base.clone();
                    flash.tear = *tear;
                    flash.random.seed(random.u64(..));
                    let result = attempt(bench, &mut flash, step, Some(cut), Record::Nothing);
                    tally.cuts += 1;
                    tally.programs_torn += u64::from(!erase);
                    tally.erases_torn += u64::from(erase);
                    let allowed =
                        Allowed { before: &model, after: &after, acknowledged: result.is_ok() };
                    flash.power_up();
                    let place = format!("step {number} {}, byte {cut}, {tear:?}", name(step));
                    if first_cuts.is_multiple_of(depth.decay_every) {
                        let mut decayed = flash.clone();
                        let address = random.usize(..decayed.bytes().len()) as u32;
                        decayed.decay(address, random.u8(..8));
                        tally.decays += 1;
                        let place = format!("{place}, decay at {address:#x}");
                        check(bench, decayed, &allowed, step, &place, &mut tally);
                    }
                    if first_cuts.is_multiple_of(depth.second_every) {
                        second_cuts(bench, &flash, &allowed, step, &place, &mut random, &mut tally);
                    }
                    check(bench, flash, &allowed, step, &place, &mut tally);
                }
            }
        }
        // Go on from the uncut flash.
        base = whole;
        base.record(Record::Nothing);
        base.power_up();
        model = after;
        if tally.violations_total > 1000 {
            break;
        }
    }
    tally
}

fn name(step: &Step) -> String {
    match step {
        Step::Election(bytes) => format!("Election of {} bytes", bytes.len()),
        Step::Provision { .. } => "Provision".into(),
        Step::Reconfigure(_) => "Reconfigure".into(),
        other => format!("{other:?}"),
    }
}

/// Start, length and kind of every operation, in bytes from the start of the recording.
fn spans<const WORD: usize, const SECTOR: usize>(
    flash: &Nor<WORD, SECTOR>,
) -> Vec<(u64, u64, bool)> {
    let mut at = 0;
    flash
        .operations
        .iter()
        .map(|operation| {
            let start = at;
            at += u64::from(operation.bytes);
            (start, u64::from(operation.bytes), operation.erase)
        })
        .collect()
}

/// Opens the store and does a step, with the power cut after so many bytes of the step.
fn attempt<const WORD: usize, const SECTOR: usize>(
    bench: &Bench<WORD, SECTOR>,
    flash: &mut Nor<WORD, SECTOR>,
    step: &Step,
    cut: Option<u64>,
    record: Record,
) -> Result<u32, Halt> {
    let (mut store, _) = bench.open(flash)?;
    store.flash_mut().record(record);
    if let Some(bytes) = cut {
        store.flash_mut().cut_after(bytes);
    }
    bench.run(&mut store, step)
}

/// The recovery after a cut: open, and commit an epoch where that is possible.
fn recover<const WORD: usize, const SECTOR: usize>(
    bench: &Bench<WORD, SECTOR>,
    flash: &mut Nor<WORD, SECTOR>,
) {
    if let Ok((mut store, _)) = bench.open(flash) {
        let _ = bench.run(&mut store, &Step::Boot);
    }
}

/// Cuts again, in each operation of the recovery.
fn second_cuts<const WORD: usize, const SECTOR: usize>(
    bench: &Bench<WORD, SECTOR>,
    flash: &Nor<WORD, SECTOR>,
    allowed: &Allowed<'_>,
    step: &Step,
    place: &str,
    random: &mut fastrand::Rng,
    tally: &mut Tally,
) {
    let mut recording = flash.clone();
    recording.record(Record::Log);
    recover(bench, &mut recording);
    for (start, length, erase) in spans(&recording) {
        let mut again = flash.clone();
        let cut = start + random.u64(..length);
        again.tear = Tear::ALL[random.usize(..Tear::ALL.len())];
        again.random.seed(random.u64(..));
        again.cut_after(cut);
        recover(bench, &mut again);
        again.power_up();
        tally.cuts += 1;
        tally.second += 1;
        tally.programs_torn += u64::from(!erase);
        tally.erases_torn += u64::from(erase);
        let place = format!("{place}, second cut at byte {cut} of the recovery");
        check(bench, again, allowed, step, &place, tally);
    }
}

/// Boots, and looks whether everything is as it must be.
pub(crate) fn check<const WORD: usize, const SECTOR: usize>(
    bench: &Bench<WORD, SECTOR>,
    flash: Nor<WORD, SECTOR>,
    allowed: &Allowed<'_>,
    step: &Step,
    place: &str,
    tally: &mut Tally,
) {
    if let Err(what) = try_check(bench, flash, allowed, step, tally) {
        tally.fail(format!("{place}: {what}"));
    }
}

fn try_check<const WORD: usize, const SECTOR: usize>(
    bench: &Bench<WORD, SECTOR>,
    mut flash: Nor<WORD, SECTOR>,
    allowed: &Allowed<'_>,
    step: &Step,
    tally: &mut Tally,
) -> Result<(), String> {
    let (mut store, report) = bench.open(&mut flash).map_err(|error| error.to_string())?;
    for which in Which::BOTH {
        let row = &mut tally.verdicts[usize::from(which == Which::B)];
        row[match report.region(which).verdict() {
            Verdict::Good => 0,
            Verdict::Torn => 1,
            Verdict::Lost => 2,
            Verdict::Rebuilt => 3,
            Verdict::Failing => 4,
        }] += 1;
        if let Some(error) = report.region(which).failure {
            return Err(format!("not repaired: {error}"));
        }
    }
    let complete = report.provisioning == Provisioning::Complete;
    if !complete && (allowed.before.provisioned || allowed.acknowledged) {
        return Err(format!("values existed, but {:?}", report.provisioning));
    }
    if !complete {
        // A provisioning that was cut short is done again.
        finish(store.format()).map_err(|error| format!("format: {error}"))?;
        bench.run(&mut store, step).map_err(|error| format!("provisioning again: {error}"))?;
    }
    let lease = bench.run(&mut store, &Step::Boot).map_err(|error| format!("no epoch: {error}"))?;
    let used = if allowed.acknowledged { allowed.after.epoch } else { allowed.before.epoch };
    if lease <= used {
        return Err(format!("epoch {lease} again, {used} was used"));
    }
    let seen = Model::observe(&mut store).map_err(|error| format!("unreadable: {error}"))?;
    // Of all keys before the one in force nothing is left when the store has had time for it.
    if !store.is_wiped() {
        finish(store.prepare()).map_err(|error| format!("not wiped: {error}"))?;
    }
    if let Some(former) =
        (1..seen.key.unwrap_or(0)).find(|id| holds_key(store.flash_mut().bytes(), *id))
    {
        return Err(format!("key {former} is left in flash, {:?} is in force", seen.key));
    }
    let is_old = !allowed.acknowledged && allowed.before.is_seen_in(&seen);
    if !is_old && !allowed.after.is_seen_in(&seen) {
        return Err(format!(
            "neither old nor new (acknowledged: {}): elections {:?} for {:?} and {:?}",
            allowed.acknowledged,
            seen.indices(),
            allowed.before.indices(),
            allowed.after.indices(),
        ));
    }
    // And the store still works.
    let next = [0xA5; 50];
    finish(store.save_election(1, &next, &[], Path::Idle, true))
        .map_err(|error| format!("stuck: {error}"))?;
    let newest = store
        .election(0)
        .map_err(|error| format!("unreadable: {error}"))?
        .map(|election| election.state == next);
    if newest != Some(true) {
        return Err("a new value cannot be read".into());
    }
    if !bench.flicker && store.flash_mut().overwrites > 0 {
        return Err("a word was programmed twice".into());
    }
    Ok(())
}
