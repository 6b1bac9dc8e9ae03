//! Configuration, and why one is refused.

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

/// All spans of time that a node goes by. [`Timing::derive`] fills in what follows from Tm and Tp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Tm: the longest way of a datagram, queues included.
    pub tm: Duration,
    /// Tp: from the reception of a request to its answer, if that waits for no save.
    pub tp: Duration,
    /// Ts: what a save adds to that.
    pub ts: Duration,
    /// T: how long a call waits for its answers. At least [`Timing::t_min`].
    pub t: Duration,
    /// P: the period of the coordinator's Check.
    pub check: Duration,
    /// Q: how long the coordinator may be silent before it is suspected.
    pub quiet: Duration,
    /// How often a coordinator gives a sign of life.
    pub beat: Duration,
    /// How much later each next member in rank suspects, so that one probe serves all.
    pub stagger: Duration,
    /// When a request is repeated inside its round. Questions whether a node is there are repeated
    /// twice as often.
    pub repeat: Duration,
    /// Tacc: how long an inviter waits for accepts (three hops: invite, forward, accept).
    pub accept: Duration,
    /// Tr: how long the application may take to reorganize.
    pub reorganize: Duration,
    /// How far answers to one broadcast are spread, per rank of the answering node.
    pub answer_spacing: Duration,
    /// How many T the rounds Announce and Distribute repeat before they give up.
    pub patience: u32,
    /// After how many silent Checks a member counts as gone.
    pub silent_checks_max: u8,
    /// rho: how far a clock may be off, in parts per million.
    pub drift_ppm: u32,
    /// The resolution of the timers.
    pub tick: Duration,
}

impl Timing {
    /// The defaults for a network with bounds `tm` and `tp` whose saves add `ts`.
    #[must_use]
    pub fn derive(tm: Duration, tp: Duration, ts: Duration) -> Self {
        let zero = Duration::ZERO;
        let timing = Self {
            tm,
            tp,
            ts,
            t: zero,
            check: zero,
            quiet: zero,
            beat: zero,
            stagger: tm.times(2),
            repeat: zero,
            accept: zero,
            reorganize: zero,
            answer_spacing: zero,
            patience: 3,
            silent_checks_max: 3,
            drift_ppm: 100,
            tick: Duration(50),
        };
        timing.with_t(timing.t_min())
    }

    /// For strict durability among `nodes` nodes: an answer may wait for a save, and so may each of
    /// the answers that are due before it.
    #[must_use]
    pub fn strict(self, nodes: usize) -> Self {
        let timing = Self { tp: self.tp + self.ts.times(nodes as u32), ..self };
        timing.with_t(timing.t_min())
    }

    /// Another T, and what follows from it. A T above the minimum leaves room for repeats of Halt,
    /// which a lossy network needs.
    #[must_use]
    pub fn with_t(self, t: Duration) -> Self {
        let beat = t.fraction(3, 5);
        Self {
            t,
            check: t.times(10),
            // One Beat may be lost, the next one may take all of Tm.
            quiet: beat.times(2) + self.tm,
            beat,
            repeat: t.fraction(1, 2),
            accept: self.allow_for_drift(self.tm.times(3) + self.tp.times(2)),
            reorganize: t,
            ..self
        }
    }

    /// The least T at which a node that is silent for T has certainly failed.
    #[must_use]
    pub fn t_min(&self) -> Duration {
        self.allow_for_drift(self.tm.times(2) + self.tp)
    }

    /// How far into the Halt round a repeat may still halt a node for the first time: everything that
    /// such a node sent before has then arrived when the round ends.
    #[must_use]
    #[inline(never)]
    pub fn halt_window(&self) -> Duration {
        self.t.minus(self.t_min())
    }

    /// How long a round with all its repeats may last.
    #[must_use]
    pub fn patient(&self) -> Duration {
        self.t.times(self.patience)
    }

    /// The same when every answer waits for a save.
    #[must_use]
    pub fn distribute(&self) -> Duration {
        self.patient() + self.ts
    }

    /// How long an inviter waits for those who have not accepted, with repeats.
    #[must_use]
    pub fn merge(&self) -> Duration {
        self.accept.times(self.patience)
    }

    /// R: nobody waits longer than this for a group that it accepted to become Normal.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.merge() + self.reorganize + self.distribute() + self.t
    }

    /// R of a ring of `nodes` nodes: a run that has lost nobody ends within it. (A dead node costs one
    /// T, and none of the three hops that a live one takes.)
    #[must_use]
    pub fn run_limit(&self, nodes: usize) -> Duration {
        let hops = (self.tm + self.tp).times(3).max(self.t);
        (hops + self.ts).times(nodes as u32) + self.reorganize + self.t
    }

    /// How long a node of a ring is deaf after it has woken: until every hop to its earlier life has
    /// ended, and any token that it did not hear is past the next node.
    #[must_use]
    pub fn waking(&self) -> Duration {
        self.t.fraction(3, 2)
    }

    /// How long the token may take once round a ring of `nodes` nodes, however many of them are dead.
    #[must_use]
    pub fn lap(&self, nodes: usize) -> Duration {
        self.t.times(nodes as u32)
    }

    fn allow_for_drift(&self, span: Duration) -> Duration {
        let million = 1_000_000;
        let drift = u64::from(self.drift_ppm.min(million / 2));
        let million = u64::from(million);
        let scaled = (span.us() * (million + drift)).div_ceil(million - drift);
        Duration::from_us(scaled) + self.tick
    }
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

/// Why a configuration is refused. The node does not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigError {
    /// An id above what this build can hold.
    Capacity { id: u8, capacity: usize },
    /// Ids start at 1.
    IdZero,
    /// An id stands twice in the member table.
    MemberTwice(NodeId),
    /// The node is not in its own member table.
    NotAMember(NodeId),
    /// Tm = 0: no network delivers at once.
    TmZero,
    /// Tp = 0: no processor answers at once.
    TpZero,
    /// T is shorter than 2 Tm + Tp with drift and tick: a live node would look dead.
    TTooShort { t: Duration, least: Duration },
    /// Ts is shorter than the longest save of the board's flash part.
    TsTooShort { ts: Duration, least: Duration },
    /// What follows from these times would be longer than [`Duration::MAX`].
    TooLong,
    /// P < T: a Check would overlap the one before.
    CheckTooShort { check: Duration, least: Duration },
    /// Q must outlast a period of Beats and the way of one.
    QuietTooShort { quiet: Duration, least: Duration },
    /// The adaptive detector must bear a period of Beats and 2 Tm.
    QuietMaxTooShort { most: Duration, least: Duration },
    /// Nobody could ever coordinate.
    OnlyObservers,
    /// Only Bully works without Beats: see `detector/reliable.rs`.
    ReliableNeedsBully,
    /// Beats, repeats, Tacc or Tr of zero, or no patience at all.
    ZeroSpan(&'static str),
    /// The answers of all members, spread as configured, do not fit into half of Tp.
    SpacingTooWide { spread: Duration, most: Duration },
}

impl core::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Capacity { id, capacity } => {
                write!(f, "node {id} is beyond the {capacity} nodes that this build can hold")
            }
            Self::IdZero => write!(f, "node ids start at 1"),
            Self::MemberTwice(id) => write!(f, "node {id} is in the member table twice"),
            Self::NotAMember(id) => write!(f, "node {id} is not in its own member table"),
            Self::TmZero => write!(f, "Tm = 0: no network delivers at once"),
            Self::TpZero => write!(f, "Tp = 0: no processor answers at once"),
            Self::TTooShort { t, least } => write!(
                f,
                "T = {t} cannot hold: 2 Tm + Tp with clock drift and timer tick is {least}"
            ),
            Self::TsTooShort { ts, least } => {
                write!(f, "Ts = {ts} cannot hold: a save on this flash part may take {least}")
            }
            Self::TooLong => write!(
                f,
                "the limit that follows from these times is longer than an hour: choose a shorter \
                 Tm, Tp, Ts or P"
            ),
            Self::CheckTooShort { check, least } => {
                write!(f, "P = {check} is shorter than T = {least}: Checks would overlap")
            }
            Self::QuietTooShort { quiet, least } => write!(
                f,
                "Q = {quiet} is shorter than a period of Beats and the way of one, {least}: \
                 every coordinator would be suspected"
            ),
            Self::QuietMaxTooShort { most, least } => write!(
                f,
                "the longest silence that is borne, {most}, is shorter than a period of Beats \
                 and 2 Tm, {least}"
            ),
            Self::OnlyObservers => write!(f, "all members are observers: nobody can coordinate"),
            Self::ReliableNeedsBully => write!(
                f,
                "the reliable detector is for Bully alone: it does without the Beats by which \
                 groups of the other algorithms find each other"
            ),
            Self::ZeroSpan(name) => write!(f, "{name} must not be zero"),
            Self::SpacingTooWide { spread, most } => {
                write!(f, "answers spread over {spread} do not fit into half of Tp, {most}")
            }
        }
    }
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
            (Duration(t.silent_checks_max.into()), "the number of silent Checks"),
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
