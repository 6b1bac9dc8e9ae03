//! How a member watches its coordinator and how a coordinator shows that it lives, where that is the
//! same in several algorithms.

use crate::effects::{Effect, Note};
use crate::id::{GroupId, NodeId, NodeSet};
use crate::state::Status;
use crate::station::Turn;
use crate::time::Duration;
use crate::timers::Timer;
use crate::wire::{Kind, Message};

impl<const W: usize> Turn<'_, W> {
    /// Suspicion is staggered by rank, so that the highest member probes and the others hear it.
    pub fn arm_quiet(&mut self) {
        let node = &self.node;
        let mut higher = node.state.up.intersection(node.config.higher());
        if let Some(coordinator) = node.state.coordinator {
            higher.remove(coordinator);
        }
        let timing = &node.config.timing;
        let span = timing.quiet + timing.stagger.times(higher.len() as u64);
        self.set_timer(Timer::Quiet, span);
    }

    /// Leave the probing of the coordinator to another node for two T, and what else it may need.
    pub fn postpone_quiet(&mut self, more: Duration) {
        let earliest = self.now + self.node.config.timing.t.times(2) + more;
        if self.node.timers.deadline(Timer::Quiet).is_some_and(|quiet| quiet < earliest) {
            self.node.timers.set(Timer::Quiet, earliest);
        }
    }

    /// Wait for no more than a usual silence, whatever was left to others.
    pub fn hasten_quiet(&mut self) {
        let timing = &self.node.config.timing;
        let latest = self.now + timing.quiet;
        if self.node.timers.deadline(Timer::Quiet).is_some_and(|quiet| quiet > latest) {
            self.node.timers.set(Timer::Quiet, latest);
        }
    }

    pub fn suspect(&mut self, coordinator: NodeId) {
        self.note(Note::Suspected(coordinator));
        self.node.counters.suspicions += 1;
    }

    pub fn clear_of_suspicion(&mut self, coordinator: NodeId) {
        self.note(Note::SuspicionWrong(coordinator));
        self.node.counters.suspicions_wrong += 1;
    }

    /// The coordinator has been silent for too long: is it there?
    pub fn probe(&mut self, coordinator: NodeId) {
        self.suspect(coordinator);
        let timing = self.node.config.timing;
        self.open_round(NodeSet::only(coordinator), Kind::AytAns, timing.t);
        self.send_probe();
        self.arm_repeat(timing.repeat.fraction(1, 2));
    }

    /// A broadcast, so that the other members know that they need not ask.
    pub fn send_probe(&mut self) {
        let (group, status) = (self.node.state.group, self.node.state.status);
        self.broadcast_round(Message::AreYouThere { group, status });
    }

    /// Asks the application for the definition of `group`, which this node coordinates.
    pub fn reorganize(&mut self, group: GroupId) {
        self.set_timer(Timer::Phase, self.node.config.timing.reorganize);
        let members = self.node.state.up.with(self.me());
        self.out.push(Effect::Reorganize { group, members });
    }

    /// A sign of life, if this node is a Normal coordinator.
    pub fn beat(&mut self) {
        if self.status() != Status::Normal || !self.node.is_coordinator() {
            return;
        }
        if let Some(group) = self.node.state.group {
            self.announce(Message::Beat { group, normal: true });
            self.set_timer(Timer::Beat, self.node.config.timing.beat);
        }
    }
}
