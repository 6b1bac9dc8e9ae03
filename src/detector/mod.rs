//! Failure detectors: when a member suspects its coordinator.
//!
//! All members of a flock use the same one ([`Detector`]). What they promise:
//!
//! | detector | suspects | when that is wrong |
//! |---|---|---|
//! | [`Reliable`] | a coordinator that left a call unanswered for T | never, as long as Tm and Tp hold; Bully only |
//! | [`Heartbeat`] | after a fixed silence Q | a Beat was lost or late |
//! | [`Adaptive`] | after a silence that follows how late Beats have been | until it has learned of a change |
//! | [`Indirect`] | after a silence Q that other members confirm | not because of one broken link |
//!
//! A suspicion is not the end: the algorithm probes the coordinator for T before it acts. With
//! `Reliable` there is no silence to go by; the probe is the call itself, and its end the suspicion.
//! A coordinator watches its members by Check, the same with all detectors (`watch.rs` says how soon it
//! notices); but with `Indirect` it, too, asks others before it counts one as gone.
//!
//! An election sets the timer `Quiet` to [`FailureDetector::patience`] and tells every sign of life of
//! the coordinator by [`Turn::sign_of_life`]. On silence it asks others ([`Turn::ask_about_coordinator`];
//! only `Indirect` does) and then probes.
//!
//! Two things go round the trait, because a detector neither sends nor waits: the inquiry of `Indirect`
//! (`HaveYouHeard`, in `indirect.rs`, which the algorithms take part in by their phase `Inquire`), and that
//! with `Reliable` the probe is the suspicion and no Beats are sent ([`Watch::calls`], which the probes
//! and the Beats ask). Both are methods of [`Watch`] and [`Turn`], so that the algorithms need not know which
//! detector it is.

mod adaptive;
mod heartbeat;
mod indirect;
mod reliable;
#[cfg(test)]
mod tests;

pub use adaptive::Adaptive;
pub use heartbeat::Heartbeat;
pub use indirect::Indirect;
pub use reliable::Reliable;

use crate::config::{Config, Detector};
use crate::effects::Note;
use crate::id::{GroupId, NodeId};
use crate::station::Turn;
use crate::time::{Duration, Instant};

/// One detector watches one node: the coordinator of the group that its owner is a member of.
pub trait FailureDetector<const W: usize> {
    /// The coordinator, of this group, gave a sign of life.
    fn heard(&mut self, now: Instant, by: (NodeId, GroupId), config: &Config<W>);

    /// How long it may be silent from now on.
    fn patience(&self, config: &Config<W>) -> Duration;
}

/// The detector that the configuration chose.
#[derive(Debug)]
#[repr(u8)] // otherwise the discriminant would fill 64 bits
pub enum Watch<const W: usize> {
    Reliable(Reliable),
    Heartbeat(Heartbeat),
    Adaptive(Adaptive),
    Indirect(Indirect<W>),
}

impl<const W: usize> Watch<W> {
    pub fn new(detector: Detector) -> Self {
        match detector {
            Detector::Reliable => Self::Reliable(Reliable),
            Detector::Heartbeat => Self::Heartbeat(Heartbeat),
            Detector::Adaptive => Self::Adaptive(Adaptive::default()),
            Detector::Indirect => Self::Indirect(Indirect::default()),
        }
    }

    /// Whether others are asked about a node before it is suspected.
    pub fn asks_others(&self) -> bool {
        matches!(self, Self::Indirect(_))
    }

    /// Whether the coordinator is called after a silence, and suspected only if it does not answer.
    pub fn calls(&self) -> bool {
        matches!(self, Self::Reliable(_))
    }
}

impl<const W: usize> FailureDetector<W> for Watch<W> {
    fn heard(&mut self, now: Instant, by: (NodeId, GroupId), config: &Config<W>) {
        match self {
            Self::Reliable(one) => one.heard(now, by, config),
            Self::Heartbeat(one) => one.heard(now, by, config),
            Self::Adaptive(one) => one.heard(now, by, config),
            Self::Indirect(one) => one.heard(now, by, config),
        }
    }

    fn patience(&self, config: &Config<W>) -> Duration {
        match self {
            Self::Reliable(one) => one.patience(config),
            Self::Heartbeat(one) => one.patience(config),
            Self::Adaptive(one) => one.patience(config),
            Self::Indirect(one) => one.patience(config),
        }
    }
}

impl<const W: usize> Turn<W> {
    /// The coordinator of this node's group was heard.
    pub fn sign_of_life(&mut self) {
        let node = &mut self.node;
        if let (Some(coordinator), Some(group)) = (node.state.coordinator, node.state.group) {
            node.watch.heard(node.now, (coordinator, group), &node.config);
        }
    }

    /// A probe was answered. That proves a suspicion wrong, if there was one.
    pub fn answered_probe(&mut self, coordinator: NodeId) {
        if !self.node.watch.calls() {
            self.suspicion_proved_wrong(coordinator);
        }
    }

    /// A probe was not answered: the coordinator counts as dead.
    pub fn unanswered_probe(&mut self) {
        let Some(coordinator) = self.node.state.coordinator else { return };
        if self.node.watch.calls() {
            self.suspect(coordinator);
        }
        self.node.bury(coordinator);
    }

    pub fn suspicion_proved_wrong(&mut self, coordinator: NodeId) {
        self.note(Note::SuspicionWrong(coordinator));
        self.node.counters.suspicions_wrong += 1;
    }
}
