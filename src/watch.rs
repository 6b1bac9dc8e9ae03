//! How a member watches its coordinator and how a coordinator shows that it lives, where that is the
//! same in several algorithms.

use crate::config::Algorithm;
use crate::detector::FailureDetector;
use crate::effects::Note;
use crate::id::{GroupId, NodeId, NodeSet};
use crate::phase::Phase;
use crate::state::Status;
use crate::station::Turn;
use crate::time::Duration;
use crate::timers::Timer;
use crate::wire::{Kind, Message};

impl<const W: usize> Turn<W> {
    /// Suspicion is staggered by rank, so that the highest member probes and the others hear it.
    pub fn arm_quiet(&mut self) {
        let node = &self.node;
        let mut higher = node.state.up.intersection(node.config.higher());
        if let Some(coordinator) = node.state.coordinator {
            higher.remove(coordinator);
        }
        let stagger = node.config.timing.stagger.times(higher.len() as u32);
        let span = node.watch.patience(&node.config) + stagger;
        self.set_timer(Timer::Quiet, span);
    }

    /// Leave the probing of the coordinator to another node for two T, and what else it may need.
    pub fn postpone_quiet(&mut self, more: Duration) {
        let earliest = self.node.now + self.node.config.timing.t.times(2) + more;
        if self.node.timers.at(Timer::Quiet) < earliest {
            self.node.timers.set(Timer::Quiet, earliest);
        }
    }

    /// Wait for no more than a usual silence, whatever was left to others.
    pub fn hasten_quiet(&mut self) {
        let timing = &self.node.config.timing;
        let latest = self.node.now + timing.quiet;
        if self.node.timers.deadline(Timer::Quiet).is_some_and(|quiet| quiet > latest) {
            self.node.timers.set(Timer::Quiet, latest);
        }
    }

    pub fn suspect(&mut self, coordinator: NodeId) {
        self.note(Note::Suspected(coordinator));
        self.node.counters.suspicions += 1;
    }

    /// The coordinator has been silent for too long: is it there?
    pub fn probe(&mut self, coordinator: NodeId) {
        self.suspect(coordinator);
        self.node.phase = Phase::Probe;
        self.open_round(Kind::AytAns, NodeSet::only(coordinator), self.node.config.timing.t);
        self.send_probe();
        self.arm_early_repeat();
    }

    /// A broadcast, so that the other members know that they need not ask.
    pub fn send_probe(&mut self) {
        let (group, status) = (self.node.state.group, self.node.state.status);
        self.broadcast_round(Message::AreYouThere { group, status });
    }

    /// A probe: whether it is of this very group, and whether this node coordinates its sender there.
    pub fn probed(&self, from: NodeId, group: Option<GroupId>) -> (bool, bool) {
        let state = &self.node.state;
        let same = group.is_some_and(|group| group.is(&state.group));
        (same, same && self.node.is_coordinator() && state.up.contains(from))
    }

    /// The coordinator has been silent for too long; `true` if others are asked about it first.
    pub fn ask_about_coordinator(&mut self, coordinator: NodeId) -> bool {
        self.status() == Status::Normal && self.inquire(NodeSet::only(coordinator))
    }

    /// A Check ends: the members that have been silent in too many of them in a row.
    pub fn members_gone(&mut self) -> NodeSet<W> {
        let node = &mut self.node;
        node.silence.heard(node.call.answered());
        let silent = node.state.up.intersection(node.call.awaited());
        node.silence.unheard(&silent, node.config.timing.silent_checks_max)
    }

    /// Members are gone; `true` if others are asked about one of them first.
    pub fn ask_about(&mut self, gone: &NodeSet<W>) -> bool {
        let one = gone.iter().next().map_or(NodeSet::EMPTY, NodeSet::only);
        self.node.silence.heard(&one);
        self.inquire(one)
    }

    /// An observer without a coordinator, in a group number that serves only to be invited by.
    pub fn is_lone_observer(&self) -> bool {
        let state = &self.node.state;
        state.status == Status::Election && state.coordinator.is_none() && state.group.is_some()
    }

    /// A sign of life, if this node is a Normal coordinator (in Bully: or about to be) or wants to be found
    /// by one.
    pub fn beat(&mut self) {
        let node = &self.node;
        let early = node.state.status == Status::Reorganization
            && node.config.algorithm == Algorithm::Bully;
        let normal = node.state.status == Status::Normal;
        let coordinates = (early || normal) && node.is_coordinator();
        // Where members call, nobody listens for Beats.
        if node.watch.calls() || !coordinates && !self.is_lone_observer() {
            return;
        }
        if let Some(group) = self.node.state.group {
            self.announce(Message::Beat { group, normal });
            self.arm_beat();
        }
    }
}
