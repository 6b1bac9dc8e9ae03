//! A scenario: who takes part, what happens to them and when, and what must be true afterwards.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Ids are 1..=nodes; 0 is never used.
pub type NodeId = u8;

/// A group is named by the node that created it and that node's counter.
pub type Group = (NodeId, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    Bully,
    Invitation,
    Ring,
}

/// How a member finds out that its coordinator has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Detector {
    Reliable,
    #[default]
    Heartbeat,
    Adaptive,
    Indirect,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// The state vector is saved once per formed group.
    #[default]
    Group,
    /// Every change of the state vector is saved before every answer.
    Strict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Status {
    Down,
    Election,
    Reorganization,
    Normal,
}

/// Why a node restarted itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResetCause {
    Deadline,
    Watchdog,
    Panic,
    Request,
    Power,
}

/// A scenario that was read and found consistent.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    pub name: String,
    pub algorithm: Algorithm,
    pub nodes: NodeId,
    pub seed: u64,
    pub duration_us: u64,
    pub tm_us: u64,
    pub tp_us: u64,
    /// T, where the file states it. [`Scenario::round_us`] gives the T to use.
    pub t_us: Option<u64>,
    /// P, the period of Check. `None`: the node's own default.
    pub check_us: Option<u64>,
    /// Q, the silence before suspicion. `None`: the node's own default.
    pub quiet_us: Option<u64>,
    /// The longest silence that the adaptive detector bears. `None`: the node's own default.
    pub quiet_max_us: Option<u64>,
    pub detector: Detector,
    pub preempt: bool,
    /// A node that reboots twice within this span is let in only when it has been up for as long.
    pub hold_off_us: Option<u64>,
    pub durability: Durability,
    /// Nodes that never coordinate, in ascending order.
    pub observers: Vec<NodeId>,
    /// Powered at time 0, in ascending order.
    pub boot: Vec<NodeId>,
    /// Preferences that the file states; a node that is missing has preference 0.
    pub preference: BTreeMap<NodeId, u8>,
    /// In file order, which is time order.
    pub actions: Vec<TimedAction>,
    /// In file order, which need not be time order.
    pub expectations: Vec<Expectation>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TimedAction {
    pub at_us: u64,
    /// Line of the file, to order events of equal time and to name the entry in messages.
    pub line: usize,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Cut the power: RAM is lost, flash stays as it is at that instant.
    Kill { nodes: Vec<NodeId> },
    /// Power on again, with the same flash.
    Boot { nodes: Vec<NodeId> },
    /// Stop executing where the node is.
    Pause { nodes: Vec<NodeId> },
    /// Go on executing.
    Resume { nodes: Vec<NodeId> },
    /// Ask nodes to leave the flock: they say so, and are silent until their next boot.
    Leave { nodes: Vec<NodeId> },
    /// Pull the reset pin: RAM is lost, and the firmware starts again at once.
    Reset { nodes: Vec<NodeId> },
    /// Frames pass only inside a set; a node in no set is alone. Replaces an earlier partition.
    Partition { sets: Vec<Vec<NodeId>> },
    /// Every pair from x to without self, that direction only. Replaces these links' setting.
    Link { from: Vec<NodeId>, to: Vec<NodeId>, quality: LinkQuality },
    /// Pull the cable: the board sees its link go down, and goes on running.
    Unplug { nodes: Vec<NodeId> },
    /// Put the cable back.
    Plug { nodes: Vec<NodeId> },
    /// All links perfect again, no partition. Cables stay as they are.
    Heal,
}

/// What one direction of a link does to frames. The default is a perfect link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkQuality {
    /// Probability, 0 to 1.
    pub loss: f64,
    pub delay_us: u64,
    /// Up to this much more, per frame.
    pub jitter_us: u64,
    /// Probability, 0 to 1.
    pub duplicate: f64,
    /// Probability, 0 to 1.
    pub reorder: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    pub at_us: u64,
    /// The file gives no `ms`: judged after everything else.
    pub at_end: bool,
    pub line: usize,
    pub nodes: Vec<NodeId>,
    pub settled: Option<bool>,
    pub coordinator: Option<NodeId>,
    pub resets: Option<ExpectedResets>,
    pub elections: Option<ExpectedElections>,
}

/// Both ends belong to the range; no upper end means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub at_least: u64,
    pub at_most: Option<u64>,
}

/// Holds for each of the listed nodes by itself, counted from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedResets {
    pub cause: ResetCause,
    pub count: Bounds,
}

/// Groups formed by anybody in the run, from `since_us` on; the listed nodes play no part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedElections {
    pub since_us: u64,
    pub count: Bounds,
}

/// One entry of a scenario's timeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step<'s> {
    Act(&'s TimedAction),
    Judge(&'s Expectation),
}

impl Step<'_> {
    pub fn at_us(&self) -> u64 {
        match self {
            Step::Act(timed) => timed.at_us,
            Step::Judge(expectation) => expectation.at_us,
        }
    }

    fn order(&self) -> (u64, bool, usize) {
        match self {
            Step::Act(timed) => (timed.at_us, false, timed.line),
            Step::Judge(wanted) => (wanted.at_us, wanted.at_end, wanted.line),
        }
    }
}

impl Scenario {
    /// A run without faults and expectations, for programs that are started without a file.
    pub fn undisturbed(algorithm: Algorithm, nodes: NodeId, duration_us: u64) -> Scenario {
        Scenario {
            name: format!("{nodes} nodes, {algorithm}, undisturbed"),
            algorithm,
            nodes,
            seed: DEFAULT_SEED,
            duration_us,
            tm_us: 20_000,
            tp_us: 10_000,
            t_us: None,
            check_us: None,
            quiet_us: None,
            quiet_max_us: None,
            detector: Detector::default(),
            preempt: true,
            hold_off_us: None,
            durability: Durability::default(),
            observers: Vec::new(),
            boot: (1..=nodes).collect(),
            preference: BTreeMap::new(),
            actions: Vec::new(),
            expectations: Vec::new(),
        }
    }

    /// T, the longest a round may take: as the file states it, or 2 Tm + Tp.
    pub fn round_us(&self) -> u64 {
        self.t_us.unwrap_or(2 * self.tm_us + self.tp_us)
    }

    /// Actions and expectations in the order in which they take place: by time, then in file
    /// order; expectations without a time of their own come last.
    pub fn timeline(&self) -> Vec<Step<'_>> {
        let mut steps: Vec<Step<'_>> = (self.actions.iter().map(Step::Act))
            .chain(self.expectations.iter().map(Step::Judge))
            .collect();
        steps.sort_by_key(Step::order);
        steps
    }

    /// The same scenario with every time of it multiplied, as the lab does on a slow host.
    pub fn stretched(&self, factor: f64) -> Scenario {
        let stretch = |us: u64| (us as f64 * factor).round() as u64;
        let mut scenario = self.clone();
        scenario.duration_us = stretch(self.duration_us);
        scenario.tm_us = stretch(self.tm_us);
        scenario.tp_us = stretch(self.tp_us);
        // Each value is rounded by itself, which must not turn a legal scenario into one whose
        // round is shorter than 2 Tm + Tp or whose Check is shorter than its round.
        let round_us_min = 2 * scenario.tm_us + scenario.tp_us;
        scenario.t_us = self.t_us.map(|us| stretch(us).max(round_us_min));
        let round_us = scenario.round_us();
        scenario.check_us = self.check_us.map(|us| stretch(us).max(round_us));
        scenario.quiet_us = self.quiet_us.map(stretch);
        scenario.quiet_max_us = self.quiet_max_us.map(stretch);
        scenario.hold_off_us = self.hold_off_us.map(stretch);
        for timed in &mut scenario.actions {
            timed.at_us = stretch(timed.at_us);
            if let Action::Link { quality, .. } = &mut timed.action {
                quality.delay_us = stretch(quality.delay_us);
                quality.jitter_us = stretch(quality.jitter_us);
            }
        }
        for expectation in &mut scenario.expectations {
            expectation.at_us = stretch(expectation.at_us);
            if let Some(elections) = &mut expectation.elections {
                elections.since_us = stretch(elections.since_us);
            }
        }
        scenario
    }
}

/// Used where neither the file nor the command line names a seed.
pub(crate) const DEFAULT_SEED: u64 = 1;

impl Algorithm {
    pub const ALL: [Algorithm; 3] = [Algorithm::Bully, Algorithm::Invitation, Algorithm::Ring];

    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Bully => "bully",
            Algorithm::Invitation => "invitation",
            Algorithm::Ring => "ring",
        }
    }

    pub fn from_name(name: &str) -> Option<Algorithm> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}

impl Detector {
    pub const ALL: [Detector; 4] =
        [Detector::Reliable, Detector::Heartbeat, Detector::Adaptive, Detector::Indirect];

    pub fn name(self) -> &'static str {
        match self {
            Detector::Reliable => "reliable",
            Detector::Heartbeat => "heartbeat",
            Detector::Adaptive => "adaptive",
            Detector::Indirect => "indirect",
        }
    }

    pub fn from_name(name: &str) -> Option<Detector> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}

impl ResetCause {
    pub const ALL: [ResetCause; 5] = [
        ResetCause::Deadline,
        ResetCause::Watchdog,
        ResetCause::Panic,
        ResetCause::Request,
        ResetCause::Power,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ResetCause::Deadline => "deadline",
            ResetCause::Watchdog => "watchdog",
            ResetCause::Panic => "panic",
            ResetCause::Request => "request",
            ResetCause::Power => "power",
        }
    }

    pub fn from_name(name: &str) -> Option<ResetCause> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}

impl Durability {
    pub const ALL: [Durability; 2] = [Durability::Group, Durability::Strict];

    pub fn name(self) -> &'static str {
        match self {
            Durability::Group => "group",
            Durability::Strict => "strict",
        }
    }

    pub fn from_name(name: &str) -> Option<Durability> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}

impl Bounds {
    pub fn contains(&self, count: u64) -> bool {
        count >= self.at_least && self.at_most.is_none_or(|most| count <= most)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.at_least, self.at_most) {
            (least, Some(most)) if least == most => write!(f, "exactly {least}"),
            (0, Some(most)) => write!(f, "at most {most}"),
            (least, Some(most)) => write!(f, "{least} to {most}"),
            (least, None) => write!(f, "at least {least}"),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for ResetCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
