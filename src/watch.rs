//! How a member watches its coordinator, how a coordinator shows that it lives, and how it watches its
//! members, where that is the same in several algorithms.
//!
//! # Check
//!
//! Every P the coordinator calls the roll, which costs one datagram and the answers. Members that have not
//! answered after 3/4 T are asked again at once, and then every T/8; who has still not answered 9/4 T after the
//! first question is gone. So a dead member is noticed within **P + 9/4 T**. With `Indirect` it is not asked
//! more than twice: after T the coordinator asks others about it for 2 T, and the bound is P + 3 T. (Both as
//! long as the coordinator is otherwise idle: a Check is left out while something else is under way.)
//!
//! Nobody is called dead because of a few lost datagrams: at 10 % loss a question and its answer both arrive
//! four times in five, and there are eleven questions in time for an answer if a round trip takes T/4, eight if
//! it takes 2 Tm. At rest, where nothing is lost, nobody is asked twice.

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

    /// Begins a Check of these nodes; the question is yet to be sent.
    pub fn call_the_roll(&mut self, expects: Kind, asked: NodeSet<W>) {
        self.node.phase = Phase::Check;
        let timing = self.node.config.timing;
        self.open_round(expects, asked, timing.roll_call());
        self.set_timer(Timer::Repeat, timing.check_repeat());
    }

    /// A Check has been repeated. While members are silent it goes on (`insist`: unless there is something
    /// better to do); for others it is not worth it, and about those others may know more.
    pub fn arm_check_repeat(&mut self, insist: bool) {
        let timing = self.node.config.timing;
        if insist && !self.node.watch.asks_others() && !self.silent_members().is_empty() {
            self.arm_repeat(timing.insistence());
        } else {
            let rest = timing.t.minus(timing.check_repeat());
            self.set_timer(Timer::Phase, rest);
        }
    }

    /// The members that have not answered the Check that is under way.
    pub fn silent_members(&self) -> NodeSet<W> {
        self.node.state.up.intersection(self.node.call.awaited())
    }

    /// A Check ends: the members that have given no sign of life.
    pub fn missed_members(&self) -> NodeSet<W> {
        self.silent_members().difference(&self.overheard())
    }

    /// Members have been silent for a whole Check; `true` if others are asked about one of them first.
    /// Otherwise they are gone.
    pub fn ask_about_members(&mut self, silent: &NodeSet<W>) -> bool {
        let asked =
            self.next_to_ask_about(silent).is_some_and(|one| self.inquire(NodeSet::only(one)));
        if !asked {
            self.members_gone(silent);
        }
        asked
    }

    /// These members count as dead. One line says it of all: the group that follows tells who is missing.
    pub fn members_gone(&mut self, gone: &NodeSet<W>) {
        if let Some(one) = gone.iter().next() {
            self.suspect(one);
            self.node.bury(one);
        }
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
