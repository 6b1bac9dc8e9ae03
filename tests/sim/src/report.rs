//! What runs add up to.

use bellwether::config::Algorithm;
use serde_json::json;

use crate::world::World;

/// The numbers of the JSON line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub runs: u64,
    pub violations: u64,
    pub elections: u64,
    pub datagrams: u64,
    pub sim_us: u64,
    /// Simulated time of Bully runs.
    pub bully_us: u64,
    pub assertion_1_us: u64,
    pub saves: u64,
    pub writes_cut: u64,
    pub flash_repairs: u64,
    pub saves_retried: u64,
    pub resets: u64,
    pub overflows: u64,
    pub suspicions: u64,
    pub suspicions_wrong: u64,
    /// Datagrams that an attacker put in.
    pub hostile: u64,
}

impl Totals {
    pub fn of<const W: usize>(world: &World<W>) -> Self {
        let tally = &world.tally;
        let bully = world.settings.algorithm == Algorithm::Bully;
        Self {
            runs: 1,
            violations: world.checker.violations.len() as u64,
            elections: tally.elections,
            datagrams: tally.datagrams,
            sim_us: world.now,
            bully_us: if bully { world.now } else { 0 },
            assertion_1_us: world.checker.assertion_1_us(world.now),
            saves: tally.saves,
            writes_cut: tally.writes_cut,
            flash_repairs: tally.flash_repairs,
            saves_retried: tally.saves_retried,
            resets: tally.resets,
            overflows: tally.overflows,
            suspicions: tally.suspicions,
            suspicions_wrong: tally.suspicions_wrong,
            hostile: world.attacker.as_ref().map_or(0, |attacker| attacker.frames),
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.violations += other.violations;
        self.elections += other.elections;
        self.datagrams += other.datagrams;
        self.sim_us += other.sim_us;
        self.bully_us += other.bully_us;
        self.assertion_1_us += other.assertion_1_us;
        self.saves += other.saves;
        self.writes_cut += other.writes_cut;
        self.flash_repairs += other.flash_repairs;
        self.saves_retried += other.saves_retried;
        self.resets += other.resets;
        self.overflows += other.overflows;
        self.suspicions += other.suspicions;
        self.suspicions_wrong += other.suspicions_wrong;
        self.hostile += other.hostile;
    }

    pub fn json(&self, wall_seconds: f64) -> serde_json::Value {
        let seconds = |us: u64| us as f64 / 1e6;
        json!({
            "runs": self.runs,
            "violations": self.violations,
            "elections": self.elections,
            "datagrams": self.datagrams,
            "sim_seconds": seconds(self.sim_us),
            "bully_seconds": seconds(self.bully_us),
            "assertion1_seconds": seconds(self.assertion_1_us),
            "wall_seconds": wall_seconds,
            "saves": self.saves,
            "writes_cut": self.writes_cut,
            "flash_repairs": self.flash_repairs,
            "saves_retried": self.saves_retried,
            "resets": self.resets,
            "queue_overflows": self.overflows,
            "suspicions": self.suspicions,
            "suspicions_wrong": self.suspicions_wrong,
            "hostile_datagrams": self.hostile,
        })
    }
}
