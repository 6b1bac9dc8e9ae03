//! What is compared: one thing varied at a time around a base point, and the corners that matter.

use std::sync::Arc;

use bellwether::config::{Algorithm, Detector, Timing};
use bellwether::time::Duration;
use bellwether_scenario as measured;

use crate::clock::Time;
use crate::measure::ALGORITHMS;
use crate::measure::detectors::{DETECTORS, fits};
use crate::settings::Settings;

/// What happens to the flock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Situation {
    /// All nodes get power at the same moment.
    ColdStart,
    /// The coordinator and the highest of the others lose their power, so many in all.
    Crash(u8),
    /// Two halves that worked apart meet again.
    Heal,
    /// The highest node loses its power and gets it back, again and again.
    Flapping,
    /// Nothing at all, for [`QUIET_T`] T.
    Quiet,
}

/// How long a quiet flock is watched, in T.
pub const QUIET_T: u64 = 100;

impl Situation {
    pub const fn name(self) -> &'static str {
        match self {
            Self::ColdStart => "cold start",
            Self::Crash(_) => "crash",
            Self::Heal => "heal",
            Self::Flapping => "flapping",
            Self::Quiet => "quiet",
        }
    }

    pub const fn crashed(self) -> u8 {
        match self {
            Self::Crash(nodes) => nodes,
            _ => 0,
        }
    }
}

/// From what range the one-way delays of frames are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delays {
    Short,
    Usual,
    Wide,
    Long,
    /// Beyond what the nodes were told.
    Late,
    /// As on some other network.
    Measured,
}

impl Delays {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Short => "Tm/20..Tm/10",
            Self::Usual => "Tm/20..Tm/2",
            Self::Wide => "Tm/20..Tm",
            Self::Long => "Tm/2..Tm",
            Self::Late => "Tm/20..2Tm",
            Self::Measured => "measured",
        }
    }

    const fn range_us(self, tm: Time) -> (Time, Time) {
        match self {
            Self::Short => (tm / 20, tm / 10),
            Self::Usual | Self::Measured => (tm / 20, tm / 2),
            Self::Wide => (tm / 20, tm),
            Self::Long => (tm / 2, tm),
            Self::Late => (tm / 20, 2 * tm),
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    pub situation: Situation,
    pub algorithm: Algorithm,
    pub detector: Detector,
    pub nodes: u8,
    pub loss_percent: u8,
    pub delays: Delays,
    /// T, in percent of the least one. More is room for repeats within a round.
    pub t_percent: u8,
}

/// The network that the cases are run on, and what its nodes are told of it.
#[derive(Debug, Clone)]
pub struct Ground {
    /// With the least T, which is the unit of all times.
    pub timing: Timing,
    pub measured: Option<Arc<measured::Delays>>,
}

impl Ground {
    pub fn usual() -> Self {
        let ms = Duration::from_millis;
        Self { timing: Timing::derive(ms(20), ms(10), ms(5)), measured: None }
    }

    /// With the Tm and Tp of the nodes on which the delays were measured.
    pub fn measured(delays: Arc<measured::Delays>) -> Self {
        let (tm, tp) = (Duration::from_us(delays.tm_us), Duration::from_us(delays.tp_us));
        let timing = Timing::derive(tm, tp, Duration::from_millis(5));
        Self { timing, measured: Some(delays) }
    }
}

impl Case {
    /// The base point.
    const fn base(situation: Situation, algorithm: Algorithm) -> Self {
        Self {
            situation,
            algorithm,
            detector: Detector::Heartbeat,
            nodes: 8,
            loss_percent: 0,
            delays: Delays::Usual,
            t_percent: 100,
        }
    }

    pub fn settings(&self, ground: &Ground, seed: u64) -> Settings {
        let least = &ground.timing;
        let timing = least.with_t(least.t.fraction(self.t_percent.into(), 100));
        let mut settings = Settings::new(self.nodes, self.algorithm, timing, seed);
        settings.base_delay_us = self.delays.range_us(settings.timing.tm.us());
        if let Some(measured) = &ground.measured {
            settings.replay(measured);
        }
        settings.detector = self.detector;
        settings
    }

    pub fn loss(&self) -> f64 {
        f64::from(self.loss_percent) / 100.0
    }

    /// How many runs a row is made of: fewer of those that take longer.
    pub fn runs(&self, runs: u64) -> u64 {
        match self.nodes {
            0..=16 => runs,
            17..=32 => runs.div_ceil(2),
            33..=64 => runs.div_ceil(5),
            65.. => runs.div_ceil(10),
        }
    }
}

/// The rows of one table: what is varied in it, and over what.
#[derive(Debug)]
pub struct Section {
    pub title: &'static str,
    pub cases: Vec<Case>,
}

pub const NODES: [u8; 7] = [3, 5, 8, 16, 32, 64, 128];
pub const LOSS_PERCENT: [u8; 5] = [0, 1, 5, 10, 20];
const DELAYS: [Delays; 5] =
    [Delays::Short, Delays::Usual, Delays::Wide, Delays::Long, Delays::Late];
const CRASHED: [u8; 4] = [1, 2, 4, 7];
/// Flocks at the ends of both scales.
const CORNERS: [(u8, u8); 4] = [(3, 20), (32, 10), (64, 5), (64, 20)];
/// Flocks to which a longer T is given.
const PATIENT: [(u8, u8); 6] = [(8, 0), (8, 10), (8, 20), (32, 10), (64, 5), (64, 20)];
const PATIENT_T_PERCENT: u8 = 160;

const SITUATIONS: [Situation; 5] = [
    Situation::ColdStart,
    Situation::Crash(1),
    Situation::Heal,
    Situation::Flapping,
    Situation::Quiet,
];

/// All sections. A case may be in several of them.
pub fn sections() -> Vec<Section> {
    let across = |situations: &[Situation], vary: &dyn Fn(Case) -> Vec<Case>| {
        let mut cases = Vec::new();
        for situation in situations {
            for algorithm in ALGORITHMS {
                cases.extend(vary(Case::base(*situation, algorithm)));
            }
        }
        cases
    };
    let nodes = |base| NODES.map(|nodes| Case { nodes, ..base }).to_vec();
    let loss = |base| LOSS_PERCENT.map(|loss_percent| Case { loss_percent, ..base }).to_vec();
    let delays = |base| DELAYS.map(|delays| Case { delays, ..base }).to_vec();
    let crashed =
        |base| CRASHED.map(|dead| Case { situation: Situation::Crash(dead), ..base }).to_vec();
    let corners =
        |base| CORNERS.map(|(nodes, loss_percent)| Case { nodes, loss_percent, ..base }).to_vec();
    let patient = |base| {
        let t_percent = PATIENT_T_PERCENT;
        PATIENT
            .map(|(nodes, loss_percent)| Case { nodes, loss_percent, t_percent, ..base })
            .to_vec()
    };
    let disturbances = &SITUATIONS[..4];
    vec![
        Section { title: "nodes", cases: across(&SITUATIONS, &nodes) },
        Section { title: "loss", cases: across(&SITUATIONS, &loss) },
        Section { title: "delays", cases: across(&SITUATIONS, &delays) },
        Section { title: "crashed at once", cases: across(&[Situation::Crash(1)], &crashed) },
        Section { title: "large or small, and lossy", cases: across(disturbances, &corners) },
        Section { title: "a longer T", cases: across(disturbances, &patient) },
        Section { title: "detectors", cases: across(&SITUATIONS[1..], &detectors) },
    ]
}

/// The same without larger flocks; and where delays are as they were measured, nothing else is.
pub fn sections_for(ground: &Ground, nodes_max: u8) -> Vec<Section> {
    let mut sections = sections();
    for section in &mut sections {
        section.cases.retain(|case| case.nodes <= nodes_max);
        if ground.measured.is_some() {
            section.cases.retain(|case| case.delays == Delays::Usual);
            section.cases.iter_mut().for_each(|case| case.delays = Delays::Measured);
        }
    }
    sections.retain(|section| ground.measured.is_none() || section.title != "delays");
    sections
}

/// Flocks in which the detectors are compared besides the usual one.
const WATCHED: [u8; 3] = [3, 64, 128];

/// What a detector is for shows where Beats are lost, or later than they should be.
fn detectors(base: Case) -> Vec<Case> {
    let fitting = DETECTORS.into_iter().filter(|one| fits(base.algorithm, *one));
    let on_networks = |detector| {
        let base = Case { detector, ..base };
        let lossy = |loss_percent| Case { loss_percent, ..base };
        let mut cases = vec![base, lossy(10), Case { delays: Delays::Late, ..base }];
        if matches!(base.situation, Situation::Crash(1) | Situation::Quiet) {
            cases.push(lossy(20));
            cases.extend(WATCHED.map(|nodes| Case { nodes, ..base }));
        }
        cases
    };
    fitting.flat_map(on_networks).collect()
}

/// Every case once, in the order of the sections.
pub fn cases(sections: &[Section]) -> Vec<Case> {
    let mut once: Vec<Case> = Vec::new();
    for case in sections.iter().flat_map(|section| &section.cases) {
        if !once.contains(case) {
            once.push(*case);
        }
    }
    once
}
