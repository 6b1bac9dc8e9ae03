//! Arithmetic about a flash part: how long a save takes at worst, how many fit between two idle
//! moments, and how long the part lives.

use super::erasing::NOTE_VALUE_BYTES;
use super::record::padded_bytes;
use super::region::Sizes;

/// The shape of a region, as the board lays it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes that are programmed at once: 1 to 32. Fewer than four count as four.
    pub word_bytes: u32,
    /// Bytes of an erase sector.
    pub sector_bytes: u32,
    /// Sectors of one region.
    pub sectors: u32,
}

/// What the data sheet says, at its worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The longest program of one page (or word, where there are no pages).
    pub program_us_max: u32,
    /// Bytes of a program page; a write across its border is two programs.
    pub program_page_bytes: u32,
    /// The longest erase of one sector.
    pub erase_us_max: u32,
    /// How long a running erase takes to suspend, where the part and its driver can.
    pub suspend_us_max: Option<u32>,
    /// Reading 1024 bytes.
    pub read_us_per_kib: u32,
    /// Erases that a sector survives.
    pub endurance_erases: u32,
}

impl Geometry {
    const fn sizes(&self) -> Sizes {
        Sizes {
            word: if self.word_bytes < 4 { 4 } else { self.word_bytes },
            sector: self.sector_bytes,
        }
    }

    /// Bytes that one value takes in a region, with everything around it.
    #[must_use]
    pub const fn item_bytes(&self, value_bytes: u32) -> u32 {
        let sizes = self.sizes();
        sizes.item_overhead() + padded_bytes(value_bytes as usize, sizes.word as usize) as u32
    }

    /// Values of one length that fit into a sector.
    #[must_use]
    pub const fn items_per_sector(&self, value_bytes: u32) -> u32 {
        self.sizes().payload() / self.item_bytes(value_bytes)
    }

    /// The most bytes, overhead included, that the cells of a node may take together; beyond it a
    /// save is refused as full.
    #[must_use]
    pub const fn live_bytes_max(&self, largest_value_bytes: u32) -> u32 {
        let largest = self.item_bytes(largest_value_bytes);
        let full_sectors = self.sectors.saturating_sub(2);
        (full_sectors * self.sizes().payload().saturating_sub(largest)).saturating_sub(largest)
    }

    /// How many saves are sure to fit after idle time has made everything ready, whatever the
    /// fill of the head is: with `spare_sectors` open ones, and `live_bytes` to be kept.
    #[must_use]
    pub const fn writes_guaranteed(
        &self,
        spare_sectors: u32,
        live_bytes: u32,
        value_bytes: u32,
    ) -> u32 {
        let payload = self.sizes().payload();
        let item = self.item_bytes(value_bytes);
        let per_sector = payload / item;
        // The last open sector but one must still take what the oldest sector holds.
        let reserve = if live_bytes < payload { live_bytes } else { payload }
            + item
            + 4 * self.item_bytes(NOTE_VALUE_BYTES);
        let whole = spare_sectors.saturating_sub(2) * per_sector;
        whole + payload.saturating_sub(reserve) / item
    }

    /// Whether the worst election fits between two idle moments; a configuration that fails this
    /// is refused at boot.
    #[must_use]
    pub const fn election_fits(
        &self,
        spare_sectors: u32,
        live_bytes: u32,
        value_bytes: u32,
        saves_per_election_max: u32,
    ) -> bool {
        self.writes_guaranteed(spare_sectors, live_bytes, value_bytes) >= saves_per_election_max
    }
}

impl Part {
    /// The most page programs that `bytes` in one write can take, wherever they lie.
    #[must_use]
    const fn programs_for(&self, bytes: u32, word: u32) -> u32 {
        bytes.saturating_sub(word).div_ceil(self.program_page_bytes) + 1
    }

    /// The most page programs of one copy of a value: header, record, and either a border inside
    /// the header or the two markers of a sector switch.
    #[must_use]
    pub const fn programs_max(&self, geometry: &Geometry, value_bytes: u32) -> u32 {
        let sizes = geometry.sizes();
        let record = padded_bytes(value_bytes as usize, sizes.word as usize) as u32;
        let within = 1 + self.programs_for(record, sizes.word);
        // In a new sector the record lies right behind marker and header.
        let fresh = sizes.word + sizes.item_overhead() + record;
        let switching = 2 + 1 + fresh.div_ceil(self.program_page_bytes);
        let header_split = 2 + record.div_ceil(self.program_page_bytes);
        let worst = if within > switching { within } else { switching };
        if worst > header_split { worst } else { header_split }
    }

    const fn copy_us(&self, geometry: &Geometry, value_bytes: u32, verify: bool) -> u32 {
        let programs = self.programs_max(geometry, value_bytes) * self.program_us_max;
        let read = geometry.item_bytes(value_bytes) * self.read_us_per_kib / 1024 + 1;
        programs + if verify { read } else { 0 }
    }

    /// What a running step of idle work can make a save wait: an erase (or its suspension) with
    /// its notes and the check that the sector is blank, or one record on its way to another sector.
    #[must_use]
    pub const fn wait_us_max(&self, geometry: &Geometry, largest_value_bytes: u32) -> u32 {
        let blank = geometry.sector_bytes / 1024 * self.read_us_per_kib;
        let notes = 4 * self.copy_us(geometry, NOTE_VALUE_BYTES, true);
        let erase = match self.suspend_us_max {
            Some(suspend) => suspend + blank + notes,
            None => self.erase_us_max + blank + notes,
        };
        let read = geometry.item_bytes(largest_value_bytes) * self.read_us_per_kib / 1024 + 1;
        let moved = read + self.copy_us(geometry, largest_value_bytes, true);
        if erase > moved { erase } else { moved }
    }

    /// Ts: the longest that a save can take, both copies and the wait included.
    #[must_use]
    pub const fn save_us_max(
        &self,
        geometry: &Geometry,
        value_bytes: u32,
        largest_value_bytes: u32,
        verify: bool,
    ) -> u32 {
        self.wait_us_max(geometry, largest_value_bytes)
            + 2 * self.copy_us(geometry, value_bytes, verify)
    }
}

/// How a node uses its flash.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wear {
    /// Value bytes of an election record.
    pub election_bytes: u32,
    /// Elections in a day.
    pub elections_per_day: f64,
    /// Boots in a day.
    pub boots_per_day: f64,
    /// Bytes, overhead included, that must be moved once per lap because they change rarely.
    pub cold_bytes: u32,
}

/// What becomes of a part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lifetime {
    /// Erases of both regions together that one election costs.
    pub erases_per_election: f64,
    /// The bound that the design allows: 2.2 x record / (sector - live bytes).
    pub erases_per_election_max: f64,
    /// Erases of the most-worn sector in a year.
    pub sector_erases_per_year: f64,
    /// Years until the most-worn sector reaches its endurance.
    pub years: f64,
}

impl Lifetime {
    /// Sectors are erased in turn, so all wear alike: any sector is the most-worn one.
    #[must_use]
    pub fn of(part: &Part, geometry: &Geometry, wear: &Wear) -> Self {
        let election = f64::from(geometry.item_bytes(wear.election_bytes));
        let boot = f64::from(geometry.item_bytes(4));
        // A sector ends with a gap of less than one record.
        let per_sector = f64::from(geometry.items_per_sector(wear.election_bytes).max(1));
        let used = per_sector * election;
        let cold_per_sector = f64::from(wear.cold_bytes) / f64::from(geometry.sectors.max(1));
        // Each erase of either region leaves two notes in both.
        let notes = 4.0 * f64::from(geometry.item_bytes(NOTE_VALUE_BYTES));
        let gain = (used - cold_per_sector - notes).max(1.0);
        let erases_per_election = 2.0 * election / gain;
        let bytes_per_day = wear.elections_per_day * election + wear.boots_per_day * boot;
        let sector_erases_per_year =
            bytes_per_day * 365.25 / gain / f64::from(geometry.sectors.max(1));
        let room = f64::from(geometry.sector_bytes) - f64::from(wear.cold_bytes);
        Self {
            erases_per_election,
            erases_per_election_max: if room > 0.0 { 2.2 * election / room } else { f64::INFINITY },
            sector_erases_per_year,
            years: f64::from(part.endurance_erases) / sector_erases_per_year,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOR: Part = Part {
        program_us_max: 750,
        program_page_bytes: 256,
        erase_us_max: 2_000_000,
        suspend_us_max: None,
        read_us_per_kib: 400,
        endurance_erases: 100_000,
    };
    const SECTORS: Geometry = Geometry { word_bytes: 1, sector_bytes: 65_536, sectors: 4 };

    #[test]
    fn programs_stay_within_the_bounds_of_the_design() {
        assert!(NOR.programs_max(&SECTORS, 640 + 8) <= 7);
        assert!(NOR.programs_max(&SECTORS, 100) <= 4);
    }

    #[test]
    fn the_worst_save_waits_for_one_erase_unless_it_can_be_suspended() {
        let waiting = NOR.save_us_max(&SECTORS, 100, 648, true);
        assert!(waiting > 2_000_000 && waiting < 2_050_000, "{waiting}");
        let suspending = Part { suspend_us_max: Some(100), ..NOR };
        let waiting = suspending.save_us_max(&SECTORS, 100, 648, true);
        assert!(waiting < 50_000, "{waiting}");
    }

    /// By hand: of a lap of 4 sectors, so many records have room beside what must be moved and noted.
    #[test]
    fn a_life_is_what_the_sectors_have_room_for() {
        let wear = Wear {
            election_bytes: 100,
            elections_per_day: 24.0,
            boots_per_day: 1.0,
            cold_bytes: 1_000,
        };
        let life = Lifetime::of(&NOR, &SECTORS, &wear);
        let election = f64::from(SECTORS.item_bytes(100));
        let boot = f64::from(SECTORS.item_bytes(4));
        let notes = 4.0 * f64::from(SECTORS.item_bytes(NOTE_VALUE_BYTES));
        assert!(election > 100.0 && election < 150.0, "{election}");
        // A quarter of what changes rarely is moved with each sector.
        let room = f64::from(SECTORS.items_per_sector(100)) * election - 250.0 - notes;
        assert!(room > 64_000.0 && room < 65_536.0, "{room}");
        let close = |value: f64, expected: f64| (value / expected - 1.0).abs() < 1e-9;
        assert!(close(life.erases_per_election, 2.0 * election / room), "{life:?}");
        assert!(close(life.erases_per_election_max, 2.2 * election / 64_536.0), "{life:?}");
        let bytes_per_year = (24.0 * election + boot) * 365.25;
        let erases = bytes_per_year / room / 4.0;
        assert!(close(life.sector_erases_per_year, erases), "{life:?}");
        assert!(close(life.years, 100_000.0 / erases), "{life:?}");
        assert!(life.years > 10_000.0, "{life:?}");
    }

    #[test]
    fn an_election_that_needs_an_erase_is_found() {
        let small = Geometry { word_bytes: 4, sector_bytes: 4096, sectors: 8 };
        assert!(small.election_fits(2, 2000, 100, 3));
        assert!(!small.election_fits(2, 2000, 640, 67));
        assert!(!small.election_fits(7, 2000, 640, 67));
        assert!(SECTORS.election_fits(2, 8000, 640, 67));
    }
}
