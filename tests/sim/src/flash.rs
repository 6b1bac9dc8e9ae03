//! A board's flash: the core's safe cells on a simulated NOR part.
//!
//! The part does what it is told at once, on a clock of its own, and keeps a journal. When the power
//! is cut before that clock has caught up, what had not happened yet is undone and what was under
//! way is torn.

use std::sync::OnceLock;

use bellwether::cells::{
    BootEpoch, Error, Geometry, Layout, Part, Path, Progress, Store, Verdict, Which,
};
use bellwether_flash::nor::Record;
use bellwether_flash::{Nor, Tear, Timing, Worn, until_cut};

use crate::clock::Time;

const WORD: usize = 4;
const SECTOR: usize = 4096;
const SECTORS_PER_REGION: usize = 4;
/// Sectors that idle time keeps open in each region: enough for a strict election.
const SPARE_SECTORS: u8 = 3;
/// The format of the core's state vector record.
const STATE_FORMAT: u8 = 1;
/// The largest state vector of a simulated flock, and the longest that fits the cells.
const STATE_BYTES_USUAL: u32 = 120;
const STATE_BYTES_MAX: u32 = 400;

type Chip = Nor<WORD, SECTOR>;
type Cells = Store<Chip, SECTORS_PER_REGION, 704>;

/// What flash does to a run.
#[derive(Debug, Clone, Copy)]
pub struct FlashSettings {
    pub program_us: Time,
    pub erase_us: Time,
    /// Every save takes a time of this range, whatever the part would need.
    pub fixed_save_us: Option<(Time, Time)>,
    pub tear: Tear,
    /// Torn bits read differently after each power-up.
    pub flicker: bool,
}

impl FlashSettings {
    /// Every save takes a time of this range.
    pub fn fixed(save_us: (Time, Time)) -> Self {
        let fixed_save_us = Some(save_us);
        Self { program_us: 0, erase_us: 0, fixed_save_us, tear: Tear::Clean, flicker: false }
    }

    /// Ts: the longest save that the store states for this part.
    pub fn save_us_max(&self) -> Time {
        if let Some((_, most)) = self.fixed_save_us {
            return most;
        }
        let part = Part {
            program_us_max: self.program_us as u32,
            program_page_bytes: 256,
            erase_us_max: self.erase_us as u32,
            suspend_us_max: None,
            read_us_per_kib: 205,
            endurance_erases: 100_000,
        };
        let geometry = Geometry {
            word_bytes: WORD as u32,
            sector_bytes: SECTOR as u32,
            sectors: SECTORS_PER_REGION as u32,
        };
        part.save_us_max(&geometry, STATE_BYTES_USUAL, STATE_BYTES_MAX, true).into()
    }

    fn timing(&self) -> Timing {
        if self.fixed_save_us.is_some() {
            return Timing { page_bytes: 256, program_ns: 0, erase_ns: 0, read_ns_per_byte: 0 };
        }
        Timing {
            page_bytes: 256,
            program_ns: self.program_us * 1000,
            erase_ns: self.erase_us * 1000,
            read_ns_per_byte: 200,
        }
    }
}

/// What a boot found.
#[derive(Debug)]
pub struct Found {
    /// `None`: nothing could be read, the node must stay mute.
    pub epoch: Option<u32>,
    pub record: Option<Box<[u8]>>,
    /// A region was torn, lost or rebuilt.
    pub repaired: bool,
    /// The worst election fits into what idle time makes ready.
    pub fits: bool,
}

/// The flash of one board, with power or without.
#[derive(Debug)]
pub struct Flash {
    settings: FlashSettings,
    unpowered: Option<Chip>,
    cells: Option<Cells>,
    /// When the part is done with what it was told.
    pub busy_until: Time,
    /// Saves that did not fit or failed at first.
    pub retried: u64,
    worn: bool,
}

fn layout() -> Layout {
    let region = (SECTORS_PER_REGION * SECTOR) as u32;
    Layout { a: 0..region, b: region..2 * region }
}

/// A provisioned chip: made once, copied for every node of every run.
fn provisioned() -> Chip {
    static TEMPLATE: OnceLock<Chip> = OnceLock::new();
    TEMPLATE
        .get_or_init(|| {
            let provision = async {
                let chip = Chip::new(2 * SECTORS_PER_REGION, 0);
                let (mut cells, _) = Cells::open(chip, &layout()).await?;
                cells.stage_chunk(0, 1, b"simulated").await?;
                cells.commit_configuration(1).await?;
                cells.complete_provisioning(1, BootEpoch(0)).await?;
                Ok::<_, Error>(cells.into_flash())
            };
            match until_cut(provision) {
                Some(Ok(chip)) => chip,
                // Nodes will find no epoch and stay mute, which every check reports.
                _ => Chip::new(2 * SECTORS_PER_REGION, 0),
            }
        })
        .clone()
}

impl Flash {
    pub fn new(settings: FlashSettings, seed: u64) -> Self {
        let mut chip = provisioned();
        chip.random = fastrand::Rng::with_seed(seed);
        chip.timing = settings.timing();
        chip.tear = settings.tear;
        chip.flicker = settings.flicker;
        Self {
            settings,
            unpowered: Some(chip),
            cells: None,
            busy_until: 0,
            retried: 0,
            worn: false,
        }
    }

    /// Power: opens the cells and repairs what the last cut left.
    pub fn power_up(&mut self, now: Time, saves_per_election: u32) -> Option<Found> {
        let mut chip = self.unpowered.take()?;
        chip.power_up();
        chip.record(Record::Journal);
        chip.elapsed_ns = now * 1000;
        let (cells, report) = until_cut(Cells::open(chip, &layout()))?.ok()?;
        let cells = self.cells.insert(cells);
        cells.set_spare_pages(SPARE_SECTORS);
        let epoch = cells.load_cell::<BootEpoch>().ok().flatten();
        let record = match cells.election(0) {
            Ok(Some(election)) => Some(election.state.into()),
            _ => None,
        };
        let fits = cells.check_election(STATE_BYTES_USUAL as usize, saves_per_election).is_ok();
        let verdicts = Which::BOTH.map(|which| report.region(which).verdict());
        self.busy_until = self.done_at(now);
        Some(Found {
            epoch: epoch.map(|epoch| epoch.0),
            record,
            repaired: verdicts.iter().any(|verdict| *verdict != Verdict::Good),
            fits,
        })
    }

    fn done_at(&mut self, now: Time) -> Time {
        let elapsed = self.cells.as_mut().map_or(0, |cells| cells.flash_mut().elapsed_ns);
        elapsed.div_ceil(1000).max(now)
    }

    /// The moment at which the part can begin with something new.
    fn begin(&mut self, now: Time) -> Option<&mut Cells> {
        let cells = self.cells.as_mut()?;
        let begin = self.busy_until.max(now);
        if self.busy_until <= now {
            // Everything before has happened for good.
            cells.flash_mut().record(Record::Journal);
        }
        cells.flash_mut().elapsed_ns = begin * 1000;
        Some(cells)
    }

    fn end(&mut self, now: Time, rng: &mut fastrand::Rng) -> Time {
        let begin = self.busy_until.max(now);
        self.busy_until = match self.settings.fixed_save_us {
            Some((least, most)) => begin + rng.u64(least..=most),
            None => self.done_at(begin),
        };
        self.busy_until
    }

    /// Saves the boot epoch and reads it back. When it will be durable, or why it cannot be.
    pub fn save_epoch(
        &mut self,
        now: Time,
        epoch: u32,
        rng: &mut fastrand::Rng,
    ) -> Result<Time, String> {
        let cells = self.begin(now).ok_or("no power")?;
        let saved = until_cut(cells.save_cell(&BootEpoch(epoch), Path::Idle, true));
        saved.ok_or("no power")?.map_err(|error| format!("{error:?}"))?;
        Ok(self.end(now, rng))
    }

    /// Saves the state vector. Where the path of an answer has no room, or a torn word is in the way,
    /// room is made first; the core's own deadline judges whether that was in time.
    pub fn save_state(
        &mut self,
        now: Time,
        record: &[u8],
        rng: &mut fastrand::Rng,
    ) -> Result<Time, String> {
        let cells = self.begin(now).ok_or("no power")?;
        let answer = cells.save_election(STATE_FORMAT, record, &[], Path::Answer, true);
        if until_cut(answer).ok_or("no power")?.is_err() {
            self.retried += 1;
            let cells = self.cells.as_mut().ok_or("no power")?;
            let again = async {
                cells.prepare().await?;
                cells.save_election(STATE_FORMAT, record, &[], Path::Idle, true).await
            };
            until_cut(again).ok_or("no power")?.map_err(|error| format!("{error:?}"))?;
        }
        Ok(self.end(now, rng))
    }

    /// Whether idle time has something to do.
    pub fn needs_preparing(&self) -> bool {
        let needs = |cells: &Cells| Which::BOTH.iter().any(|which| cells.needs_preparing(*which));
        self.cells.as_ref().is_some_and(needs)
    }

    /// One step of making room in idle time. When it will be done; `None` if there is nothing to do.
    pub fn prepare(&mut self, now: Time) -> Option<Time> {
        if self.busy_until > now {
            return Some(self.busy_until);
        }
        let cells = self.begin(now)?;
        let which = Which::BOTH.into_iter().find(|which| cells.needs_preparing(*which))?;
        match until_cut(cells.prepare_step(which))? {
            Ok(Progress::More) => {
                self.busy_until = self.done_at(now);
                Some(self.busy_until.max(now + 1))
            }
            Ok(Progress::Done) | Err(_) => None,
        }
    }

    /// The power is cut. `true` if a program or an erase was torn.
    pub fn cut(&mut self, now: Time) -> bool {
        let Some(cells) = self.cells.take() else { return false };
        let mut chip = cells.into_flash();
        let torn = self.busy_until > now && chip.cut_back(now * 1000);
        self.busy_until = now;
        self.unpowered = Some(chip);
        torn
    }

    /// Whether a sector can no longer be written.
    pub fn is_worn(&self) -> bool {
        self.worn
    }

    fn chip(&mut self) -> Option<&mut Chip> {
        match &mut self.cells {
            Some(cells) => Some(cells.flash_mut()),
            None => self.unpowered.as_mut(),
        }
    }

    /// A bit of region A decays. (The same cell in both regions would be beyond repair.)
    pub fn decay(&mut self, rng: &mut fastrand::Rng) {
        let address = rng.u32(0..(SECTORS_PER_REGION * SECTOR) as u32);
        let bit = rng.u8(0..8);
        if let Some(chip) = self.chip() {
            chip.decay(address, bit);
        }
    }

    /// A sector of region A can no longer be written.
    pub fn wear_out(&mut self, rng: &mut fastrand::Rng) {
        let sector = rng.u32(0..SECTORS_PER_REGION as u32);
        let how = if rng.bool() { Worn::Loud } else { Worn::Silent };
        self.worn = true;
        if let Some(chip) = self.chip() {
            chip.wear_out(sector, how);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flash() -> Flash {
        let settings = FlashSettings {
            program_us: 400,
            erase_us: 45_000,
            fixed_save_us: None,
            tear: Tear::Bits,
            flicker: true,
        };
        Flash::new(settings, 7)
    }

    #[test]
    fn a_cut_at_any_moment_of_a_save_leaves_the_old_or_the_new_state() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut torn = 0;
        for cut_at in (0..6000).step_by(7) {
            let mut flash = flash();
            flash.power_up(0, 1).expect("it boots");
            let done = flash.save_state(1_000_000, b"old", &mut rng).expect("it saves");
            let begin = done + 1000;
            let done = flash.save_state(begin, b"new", &mut rng).expect("it saves");
            torn += u32::from(flash.cut(begin + cut_at));
            let found = flash.power_up(2_000_000, 1).expect("it boots");
            let record = found.record.expect("a state is there");
            let acknowledged = begin + cut_at >= done;
            assert!(*record == *b"new" || (!acknowledged && *record == *b"old"), "{cut_at}");
            assert_eq!(found.epoch, Some(0));
        }
        assert!(torn > 100, "only {torn} writes were torn");
    }

    #[test]
    fn a_save_takes_no_longer_than_the_store_states() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut flash = flash();
        flash.power_up(0, 1).expect("it boots");
        let most = flash.settings.save_us_max();
        let record = [7; STATE_BYTES_USUAL as usize];
        let mut now = 1_000_000;
        for _ in 0..200 {
            // A save that arrives in the middle of an erase or of a moving record.
            flash.prepare(now);
            let done = flash.save_state(now, &record, &mut rng).expect("it saves");
            assert!(done - now <= most, "{} of {most} us", done - now);
            now = done + 1000;
        }
        assert_eq!(flash.retried, 0);
    }
}
