//! Configuration, and why one is refused.

mod error;
mod timing;

pub use error::ConfigError;
pub use timing::Timing;

use crate::errata::Errata;
use crate::id::{NodeId, NodeSet, PerNode};
use crate::link::Gaps;
use crate::time::Duration;

/// Which election a flock runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Bully,
    Invitation,
    Ring,
}

/// How a member finds out that its coordinator has failed: see [`crate::detector`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detector {
    /// It calls the coordinator, and an unanswered call is a failure. Only with Bully.
    Reliable,
    /// A fixed silence is suspicious.
    #[default]
    Heartbeat,
    /// What silence is suspicious follows from how late signs of life have been.
    Adaptive,
    /// A fixed silence is suspicious if others share it.
    Indirect,
}

/// What must be durable before what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The state vector once per node and formed group, before the answer to Ready.
    Group,
    /// The paper's literal policy: every change of the state vector before any datagram that
    /// follows it.
    Strict,
}

/// Everything that a node is told before it starts.
#[derive(Debug, Clone)]
pub struct Config<const W: usize> {
    pub id: NodeId,
    /// Tells flocks on one wire apart.
    pub network: u16,
    pub algorithm: Algorithm,
    pub durability: Durability,
    pub timing: Timing,
    /// Take members that speak version 1, in the clear, while a flock is being moved to the sealed
    /// version. Everything in their names can be forged meanwhile.
    pub accept_version_1: bool,
    pub gaps: Gaps,
    pub detector: Detector,
    /// The longest silence that an adaptive detector ever bears.
    pub quiet_max: Duration,
    pub errata: Errata,
    /// Whether a higher node that wakes takes over from a coordinator that is at work.
    pub preempt: bool,
    /// A node that reboots twice within this span is not let in before it has been up for as long.
    /// Zero: everybody is let in at once.
    pub hold_off: Duration,
    /// Members that never coordinate. They rank below all others.
    pub observers: NodeSet<W>,
    members: NodeSet<W>,
    preference: PerNode<u8, W>,
    higher: NodeSet<W>,
}

/// A configuration that can work: [`Config::validated`] alone makes it.
#[derive(Debug, Clone)]
pub struct Valid<const W: usize>(pub(crate) Config<W>);

impl<const W: usize> Config<W> {
    /// A configuration whose member table holds nobody yet.
    #[inline(never)] // so that the spans are copied as a whole, not one by one
    pub fn new(id: NodeId, algorithm: Algorithm, durability: Durability, timing: Timing) -> Self {
        Self {
            id,
            network: 1,
            algorithm,
            durability,
            timing,
            detector: Detector::default(),
            quiet_max: timing.quiet.times(4),
            preempt: true,
            hold_off: Duration::ZERO,
            observers: NodeSet::EMPTY,
            accept_version_1: false,
            errata: Errata::default(),
            gaps: Gaps::default(),
            members: NodeSet::EMPTY,
            preference: PerNode::all(0),
            higher: NodeSet::EMPTY,
        }
    }

    /// Adds a node, this one included, to the member table.
    pub fn add_member(&mut self, id: u8, preference: u8) -> Result<(), ConfigError> {
        let id = NodeId::new(id).ok_or(ConfigError::IdZero)?;
        if !NodeSet::<W>::fits(id) {
            let capacity = NodeSet::<W>::CAPACITY;
            return Err(ConfigError::Capacity { id: id.get(), capacity });
        }
        if self.members.contains(id) {
            return Err(ConfigError::MemberTwice(id));
        }
        self.members.insert(id);
        self.preference[id] = preference;
        Ok(())
    }

    /// Checks everything that can be wrong and works out who is higher. Called by `Node::new`.
    pub fn validated(mut self) -> Result<Valid<W>, ConfigError> {
        if !NodeSet::<W>::fits(self.id) || !self.members.contains(self.id) {
            return Err(ConfigError::NotAMember(self.id));
        }
        self.check_timing()?;
        if self.members.is_subset(&self.observers) {
            return Err(ConfigError::OnlyObservers);
        }
        if self.detector == Detector::Reliable && self.algorithm != Algorithm::Bully {
            return Err(ConfigError::ReliableNeedsBully);
        }
        self.higher = self.members.iter().filter(|id| self.outranks(*id, self.id)).collect();
        Ok(Valid(self))
    }

    fn check_timing(&self) -> Result<(), ConfigError> {
        let t = &self.timing;
        if t.tm == Duration::ZERO {
            return Err(ConfigError::TmZero);
        }
        if t.tp == Duration::ZERO {
            return Err(ConfigError::TpZero);
        }
        // What is computed from a span that ended at the longest one would be wrong.
        let nodes = self.members.len();
        if t.check.max(t.limit()).max(t.run_limit(nodes)) == Duration::MAX {
            return Err(ConfigError::TooLong);
        }
        if t.t < t.t_min() {
            return Err(ConfigError::TTooShort { t: t.t, least: t.t_min() });
        }
        if t.check < t.t {
            return Err(ConfigError::CheckTooShort { check: t.check, least: t.t });
        }
        let spans = [
            (t.beat, "the period of Beats"),
            (t.repeat, "the period of repeats"),
            (t.accept, "Tacc"),
            (t.reorganize, "Tr"),
            (Duration(t.patience), "the patience of rounds"),
        ];
        if let Some((_, name)) = spans.into_iter().find(|(span, _)| *span == Duration::ZERO) {
            return Err(ConfigError::ZeroSpan(name));
        }
        let least = t.beat + t.tm;
        if t.quiet < least {
            return Err(ConfigError::QuietTooShort { quiet: t.quiet, least });
        }
        let least = t.beat + t.tm.times(2);
        if self.detector == Detector::Adaptive && self.quiet_max < least {
            return Err(ConfigError::QuietMaxTooShort { most: self.quiet_max, least });
        }
        let spread = t.answer_spacing.times(self.members.len() as u32);
        let most = t.tp.fraction(1, 2);
        if spread > most {
            return Err(ConfigError::SpacingTooWide { spread, most });
        }
        Ok(())
    }

    /// Refuses a Ts below what the board's safe storage states for its flash part.
    pub fn check_save_time(&self, least: Duration) -> Result<(), ConfigError> {
        let ts = self.timing.ts;
        if ts < least { Err(ConfigError::TsTooShort { ts, least }) } else { Ok(()) }
    }

    #[must_use]
    pub fn members(&self) -> &NodeSet<W> {
        &self.members
    }

    /// The preference of a member; it comes before the id.
    #[must_use]
    pub fn preference(&self, id: NodeId) -> u8 {
        self.preference[id]
    }

    /// Priority is the pair (preference, id); observers come last.
    #[must_use]
    pub fn outranks(&self, one: NodeId, other: NodeId) -> bool {
        let priority = |id| (!self.observers.contains(id), self.preference[id], id);
        priority(one) > priority(other)
    }

    /// Whether a node that wakes asks everybody before it takes over, because somebody may keep the
    /// role of the coordinator.
    #[must_use]
    pub fn asks_when_it_wakes(&self) -> bool {
        !self.preempt || self.hold_off != Duration::ZERO
    }

    /// Whether this node never coordinates.
    #[must_use]
    pub fn is_observer(&self) -> bool {
        self.observers.contains(self.id)
    }

    /// The members of higher priority than this node.
    #[must_use]
    pub fn higher(&self) -> &NodeSet<W> {
        &self.higher
    }

    /// The members of lower priority than this node.
    #[must_use]
    pub fn lower(&self) -> NodeSet<W> {
        self.members.difference(&self.higher).without(self.id)
    }

    /// All members but this node.
    #[must_use]
    pub fn others(&self) -> NodeSet<W> {
        self.members.without(self.id)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    fn config(timing: Timing) -> Config<1> {
        let id = NodeId::new(2).unwrap();
        let mut config = Config::new(id, Algorithm::Bully, Durability::Group, timing);
        for id in 1..=3 {
            config.add_member(id, if id == 1 { 9 } else { 0 }).unwrap();
        }
        config
    }

    fn timing() -> Timing {
        let ms = Duration::from_millis;
        Timing::derive(ms(20), ms(10), ms(5))
    }

    #[test]
    fn priority_is_preference_then_id() {
        let config = config(timing()).validated().unwrap().0;
        let ids = |set: NodeSet<1>| set.iter().map(NodeId::get).collect::<std::vec::Vec<_>>();
        assert_eq!(ids(*config.higher()), [1, 3]);
        assert_eq!(ids(config.lower()), []);
    }

    #[test]
    fn t_covers_two_ways_one_answer_drift_and_tick() {
        let t = timing().t;
        assert!(t > Duration::from_millis(50) && t < Duration::from_millis(51), "{t}");
        assert_eq!(timing().halt_window(), Duration::ZERO);
    }

    #[test]
    fn impossible_configurations_are_refused_with_the_reason() {
        let refused = |timing: Timing| config(timing).validated().unwrap_err();
        let ms = Duration::from_millis;
        let good = timing();
        assert_eq!(refused(Timing { tm: ms(0), ..good }), ConfigError::TmZero);
        assert_eq!(refused(Timing { tp: ms(0), ..good }), ConfigError::TpZero);
        let hour = ms(3_600_000);
        for long in [Timing { t: hour, ..good }, Timing { ts: hour, ..good }] {
            assert_eq!(refused(Timing { check: hour, ..long }), ConfigError::TooLong);
        }
        assert_eq!(refused(Timing { check: Duration::MAX, ..good }), ConfigError::TooLong);
        let short = refused(Timing { t: ms(49), ..good });
        assert!(matches!(short, ConfigError::TTooShort { .. }));
        assert!(short.to_string().contains("cannot hold"), "{short}");
        let check = refused(Timing { check: ms(20), ..good });
        assert!(matches!(check, ConfigError::CheckTooShort { .. }));
        let quiet = refused(Timing { quiet: ms(30), ..good });
        assert!(matches!(quiet, ConfigError::QuietTooShort { .. }));
        let spacing = refused(Timing { answer_spacing: ms(2), ..good });
        assert!(matches!(spacing, ConfigError::SpacingTooWide { .. }));
        assert!(matches!(refused(Timing { patience: 0, ..good }), ConfigError::ZeroSpan(_)));
        assert_eq!(config(good).check_save_time(good.ts), Ok(()));
        let slow = config(good).check_save_time(ms(1000));
        assert!(matches!(slow, Err(ConfigError::TsTooShort { .. })));
    }

    #[test]
    fn the_member_table_is_checked() {
        let mut table = config(timing());
        assert_eq!(table.add_member(0, 0), Err(ConfigError::IdZero));
        assert!(matches!(table.add_member(3, 0), Err(ConfigError::MemberTwice(_))));
        assert_eq!(table.add_member(65, 0), Err(ConfigError::Capacity { id: 65, capacity: 64 }));
        let stranger = Config { id: NodeId::new(9).unwrap(), ..table };
        assert!(matches!(stranger.validated(), Err(ConfigError::NotAMember(_))));
    }
}
