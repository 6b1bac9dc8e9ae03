//! Why a configuration is refused, in words.

use crate::id::NodeId;
use crate::time::Duration;

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
