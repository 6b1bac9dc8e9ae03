//! Plays a scenario file: on settings that the lab derives from it as well.

use bellwether::config::{Algorithm, Detector, Durability, Timing};
use bellwether::time::Duration;
use bellwether_scenario::{self as scenario, Scenario};

use crate::settings::Settings;

#[cfg(feature = "worlds")]
mod run;
#[cfg(feature = "worlds")]
pub use run::{Played, play, play_with};

/// Why a scenario cannot be played although its file is in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CannotPlay(pub String);

impl std::fmt::Display for CannotPlay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What the core calls a scenario's detector.
pub const fn detector(of: scenario::Detector) -> Detector {
    match of {
        scenario::Detector::Reliable => Detector::Reliable,
        scenario::Detector::Heartbeat => Detector::Heartbeat,
        scenario::Detector::Adaptive => Detector::Adaptive,
        scenario::Detector::Indirect => Detector::Indirect,
    }
}

/// The spans of time of a scenario whose nodes save within `ts`.
pub fn timing(scenario: &Scenario, ts: Duration) -> Timing {
    let tm = Duration::from_us(scenario.tm_us);
    let mut timing = Timing::derive(tm, Duration::from_us(scenario.tp_us), ts);
    if scenario.durability == scenario::Durability::Strict {
        timing = timing.strict(scenario.nodes.into());
    }
    if let Some(t) = scenario.t_us {
        // The file's T knows nothing of drift and tick.
        timing = timing.with_t(Duration::from_us(t).max(timing.t_min()));
    }
    if let Some(check) = scenario.check_us {
        timing.check = Duration::from_us(check).max(timing.t);
    }
    if let Some(quiet) = scenario.quiet_us {
        timing.quiet = Duration::from_us(quiet);
        timing.beat = timing.beat.min(Duration::from_us(quiet).minus(tm).fraction(1, 2));
    }
    timing
}

/// The settings of a scenario. A node's own configuration check has the last word on them.
pub fn settings(scenario: &Scenario) -> Result<Settings, CannotPlay> {
    let algorithm = match scenario.algorithm {
        scenario::Algorithm::Bully => Algorithm::Bully,
        scenario::Algorithm::Invitation => Algorithm::Invitation,
        scenario::Algorithm::Ring => Algorithm::Ring,
    };
    let durability = match scenario.durability {
        scenario::Durability::Group => Durability::Group,
        scenario::Durability::Strict => Durability::Strict,
    };
    let timing = timing(scenario, Duration::from_millis(5));
    let mut settings = Settings::new(scenario.nodes, algorithm, timing, scenario.seed);
    settings.durability = durability;
    settings.detector = detector(scenario.detector);
    settings.quiet_max_us = scenario.quiet_max_us;
    settings.preempt = scenario.preempt;
    settings.hold_off_us = scenario.hold_off_us.unwrap_or(0);
    settings.observers = scenario.observers.iter().map(|id| usize::from(*id) - 1).collect();
    for (id, preference) in &scenario.preference {
        settings.preference[usize::from(*id) - 1] = *preference;
    }
    settings.check().map_err(|error| CannotPlay(error.to_string()))?;
    Ok(settings)
}
