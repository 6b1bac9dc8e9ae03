//! How soon a flock must be settled: one formula per cause.
//!
//! The bounds are sums of what the algorithm waits for, in the order in which it does. A bound that
//! is far above everything observed hides defects; the random runs print both.

use bellwether::config::{Algorithm, Detector, Durability};

use crate::clock::Time;
use crate::settings::Settings;

/// What disturbed a settled flock, once, on a network without faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// Any number of faults of any kind, until now.
    Anything,
    /// The coordinator lost its power.
    Crash,
    /// All nodes got power at the same moment.
    ColdStart,
    /// A partition ended.
    Heal,
    /// A node came back.
    Return,
}

impl Cause {
    pub const ALL: [Self; 5] =
        [Self::Anything, Self::Crash, Self::ColdStart, Self::Heal, Self::Return];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Anything => "anything",
            Self::Crash => "crash",
            Self::ColdStart => "cold start",
            Self::Heal => "heal",
            Self::Return => "return",
        }
    }

    /// The formula, in words.
    pub const fn formula(self, algorithm: Algorithm) -> &'static str {
        match (algorithm, self) {
            (Algorithm::Bully, Self::Anything) => "V + crash",
            (Algorithm::Bully, Self::Crash) => "Tm + Q + T + E",
            (Algorithm::Bully, Self::ColdStart) => "boot + Tm + T + 2 E",
            (Algorithm::Bully, Self::Heal) => "B + Tm + T + E",
            (Algorithm::Bully, Self::Return) => "boot + 2 Tm + T + E",
            (Algorithm::Invitation, Self::Anything) => "V + P + crash",
            (Algorithm::Invitation, Self::Crash) => "Tm + Q + T + M",
            (Algorithm::Invitation, Self::ColdStart) => "boot + r + B + Tm + T + 2 M",
            (Algorithm::Invitation, Self::Heal) => "B + Tm + 2 T + M",
            (Algorithm::Invitation, Self::Return) => "boot + B + Tm + 2 T + M",
            (Algorithm::Ring, Self::Anything) => "V + 2 R + crash",
            (Algorithm::Ring, Self::Crash) => "Tm + Q + T + L",
            (Algorithm::Ring, Self::ColdStart) => "boot + W + T + 2 L",
            (Algorithm::Ring, Self::Heal) => "B + Tm + 2 L",
            (Algorithm::Ring, Self::Return) => "boot + r + W + Tm + L",
        }
    }
}

/// Within this time every component without outside links must be settled, and stay so.
pub fn bound_us(settings: &Settings, cause: Cause) -> Time {
    let timing = &settings.timing;
    let [tm, tp, t, ts] = [timing.tm.us(), timing.tp.us(), timing.t.us(), timing.ts.us()];
    let round_trip = 2 * tm + tp;
    // Strict durability makes every change of the state vector wait for a save.
    let (slow, reorganize) = (settings.flash.save_us_max(), settings.reorganize_us.1);
    let save = ts.max(slow);
    let boot = settings.boot_us + 2 * slow;
    // E: Halt for a whole T, NewCoordinator, reorganization, Ready.
    let election = t + 2 * round_trip + reorganize + save;
    // M: Invitation, reorganization, Ready.
    let merge = 2 * round_trip + reorganize + save;
    // L: three laps of hops, one save at each node, one reorganization.
    let strict = if settings.durability == Durability::Strict { save } else { 0 };
    let hop = tm + settings.handling_us + strict;
    let laps = u64::from(settings.nodes) * (3 * hop + save) + reorganize;
    // W: a node that has just woken waits.
    let waking = timing.waking().us();
    let beat = timing.beat.us();
    let crash = tm + settings.patience_us() + t;
    let check = timing.check.us();
    // Without Beats it is Check that finds another coordinator.
    let beat = if settings.detector == Detector::Reliable { check } else { beat };
    // V: a dead member is noticed, if the Check before has been left out.
    let roll_call = match settings.detector {
        Detector::Indirect => 3 * t,
        _ => timing.roll_call().us(),
    };
    let notice = 2 * check + roll_call;
    // A node that is held off is let in with the next of its questions or Beats after that.
    let held_off = if settings.hold_off_us > 0 { settings.hold_off_us + 3 * t } else { 0 };
    // Where a lower node may keep its role, that one asks the higher nodes in its turn.
    let keeps = !settings.preempt || settings.hold_off_us > 0;
    let ask = if keeps { 2 * t } else { t };
    match (settings.algorithm, cause) {
        (Algorithm::Bully, Cause::Anything) => notice + crash + election + held_off,
        (Algorithm::Bully, Cause::Crash) => crash + election,
        (Algorithm::Bully, Cause::ColdStart) => boot + tm + t + 2 * election,
        (Algorithm::Bully, Cause::Heal) => beat + tm + ask + election,
        // The greeting has asked everybody for T, and its last Hello has had Tm to arrive.
        (Algorithm::Bully, Cause::Return) => boot + 2 * tm + ask + election,
        // Who leaves it to a higher coordinator leaves out the Checks of two P.
        (Algorithm::Invitation, Cause::Anything) => notice + check + crash + merge + held_off,
        (Algorithm::Invitation, Cause::Crash) => crash + merge,
        // The round trip is that of a Hello which the greeting has missed.
        (Algorithm::Invitation, Cause::ColdStart) => boot + round_trip + beat + tm + t + 2 * merge,
        // A Check may be under way that began before.
        (Algorithm::Invitation, Cause::Heal) => beat + tm + 2 * t + merge,
        (Algorithm::Invitation, Cause::Return) => boot + beat + tm + 2 * t + merge,
        (Algorithm::Ring, Cause::Anything) => {
            let limit = timing.run_limit(settings.nodes.into()).us();
            notice + 2 * limit + crash + laps + held_off
        }
        (Algorithm::Ring, Cause::Crash) => crash + laps,
        // Whoever wakes a T later than the others is passed over, and asks for another run.
        (Algorithm::Ring, Cause::ColdStart) => boot + waking + t + 2 * laps,
        (Algorithm::Ring, Cause::Heal) => beat + tm + 2 * laps,
        // The round trip is that of the greeting.
        (Algorithm::Ring, Cause::Return) => boot + round_trip + waking + tm + laps,
    }
}
