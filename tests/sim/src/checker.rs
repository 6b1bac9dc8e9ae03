//! The paper's assertions, checked on every change of any node's state vector.
//!
//! A node that is down or paused counts as Down, whatever its memory holds: that is what the paper
//! means by a failed node. Nothing here knows how an election works.

use bellwether::id::GroupId;
use bellwether::state::Status;
use rustc_hash::FxHashMap;

use crate::clock::Time;

/// Something that must never happen, and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub at: Time,
    pub rule: &'static str,
    pub what: String,
}

/// What the assertions speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Powered and running.
    pub live: bool,
    /// Stopped where it was; it may go on with the state that it had.
    pub paused: bool,
    pub status: Status,
    pub coordinator: Option<u8>,
    pub group: Option<GroupId>,
    pub definition: Option<u64>,
}

impl View {
    pub const DOWN: Self = Self {
        live: false,
        paused: false,
        status: Status::Down,
        coordinator: None,
        group: None,
        definition: None,
    };

    fn takes_part(&self) -> bool {
        self.live && matches!(self.status, Status::Reorganization | Status::Normal)
    }

    fn is_normal(&self) -> bool {
        self.live && self.status == Status::Normal
    }
}

#[derive(Debug)]
pub struct Checker {
    views: Vec<View>,
    /// Nodes that must never coordinate.
    observers: Vec<bool>,
    /// Assertion 1 is promised (Bully, ring), as long as its assumptions hold.
    assertion_1_promised: bool,
    assumptions_hold: bool,
    checked_since: Time,
    broken_at: Time,
    grace: Time,
    assertion_1_us: Time,
    /// The definition of every group that was ever Normal.
    definitions: FxHashMap<GroupId, u64>,
    /// Every group or election number that was ever created.
    created: FxHashMap<GroupId, ()>,
    /// What every call was about: (source, boot, call) to a digest of the message.
    calls: FxHashMap<(u8, u32, u32), u64>,
    pub violations: Vec<Violation>,
    /// Goes up with every change of any view.
    pub changes: u64,
}

impl Checker {
    /// `grace`: how long after a lost or late frame nodes may still act because of it.
    pub fn new(nodes: usize, assertion_1_promised: bool, grace: Time) -> Self {
        Self {
            views: vec![View::DOWN; nodes],
            observers: vec![false; nodes],
            assertion_1_promised,
            assumptions_hold: true,
            checked_since: 0,
            broken_at: 0,
            grace,
            assertion_1_us: 0,
            definitions: FxHashMap::default(),
            created: FxHashMap::default(),
            calls: FxHashMap::default(),
            violations: Vec::new(),
            changes: 0,
        }
    }

    /// The same checker for a flock with observers.
    #[must_use]
    pub fn with_observers(mut self, observers: &[usize]) -> Self {
        for node in observers {
            self.observers[*node] = true;
        }
        self
    }

    pub fn view(&self, node: usize) -> &View {
        &self.views[node]
    }

    pub fn violation(&mut self, at: Time, rule: &'static str, what: String) {
        self.violations.push(Violation { at, rule, what });
    }

    /// How long Assertion 1 was being checked until `now`.
    pub fn assertion_1_us(&self, now: Time) -> Time {
        let open = if self.assertion_1_promised && self.assumptions_hold {
            now - self.checked_since
        } else {
            0
        };
        self.assertion_1_us + open
    }

    /// A frame was lost or late: Assertion 1 is not promised until the flock is settled again.
    pub fn assumption_broken(&mut self, now: Time) {
        self.assertion_1_us = self.assertion_1_us(now);
        self.assumptions_hold = false;
        self.broken_at = now;
    }

    /// The exemption ends in a settled state on which nothing that went before weighs any more.
    fn end_exemption(&mut self, now: Time) {
        if self.assumptions_hold || now < self.broken_at + self.grace {
            return;
        }
        // A paused node is not seen here, but what it missed may still come to light.
        let all_seen = !self.views.iter().any(|view| view.paused);
        if all_seen && self.is_settled(0..self.views.len()) {
            self.assumptions_hold = true;
            self.checked_since = now;
        }
    }

    /// Whether one of these nodes is alive and may coordinate.
    pub fn has_candidate(&self, mut nodes: impl Iterator<Item = usize>) -> bool {
        nodes.any(|node| !self.observers[node] && self.views[node].live)
    }

    /// All live nodes of `nodes` Normal, with one live coordinator, one group, one definition; if
    /// there are only observers, all without a coordinator.
    pub fn is_settled(&self, nodes: impl Iterator<Item = usize> + Clone) -> bool {
        let mut live = nodes.clone().map(|node| &self.views[node]).filter(|view| view.live);
        if !self.has_candidate(nodes) {
            return live.all(|view| !view.takes_part() && view.coordinator.is_none());
        }
        let Some(first) = live.next() else { return true };
        let coordinator = first.coordinator.map(|id| &self.views[usize::from(id) - 1]);
        first.is_normal() && coordinator == Some(first) && live.all(|view| view == first)
    }

    /// A node's state vector changed, or it went down, paused or came back.
    pub fn update(&mut self, now: Time, node: usize, view: View) {
        self.end_exemption(now);
        let before = std::mem::replace(&mut self.views[node], view);
        if before == view {
            return;
        }
        self.changes += 1;
        if self.observers[node] && view.coordinator == Some(node as u8 + 1) {
            let what = format!("node {}: {view:?}", node + 1);
            self.violation(now, "an observer coordinates", what);
        }
        self.check_created(now, node, &before, &view);
        self.check_definition(now, node, &view);
        for other in 0..self.views.len() {
            if other != node {
                self.check_pair(now, node, other);
            }
        }
    }

    fn check_pair(&mut self, now: Time, one: usize, other: usize) {
        let (a, b) = (self.views[one], self.views[other]);
        if !a.takes_part() || !b.takes_part() {
            return;
        }
        let names = || format!("nodes {} and {}: {a:?} and {b:?}", one + 1, other + 1);
        let both_normal = a.is_normal() && b.is_normal();
        if self.assertion_1_promised && self.assumptions_hold {
            if a.coordinator != b.coordinator {
                self.violation(now, "assertion 1a: one coordinator", names());
            }
            if both_normal && a.definition != b.definition {
                self.violation(now, "assertion 1b: one definition", names());
            }
        }
        if a.group == b.group {
            if a.coordinator != b.coordinator {
                self.violation(now, "assertion 3a: same group, same coordinator", names());
            }
            if both_normal && a.definition != b.definition {
                self.violation(now, "assertion 3b: same group, same definition", names());
            }
        }
    }

    /// Stronger than Assertion 3b: a group has one definition for ever, not only at one moment.
    fn check_definition(&mut self, now: Time, node: usize, view: &View) {
        let (true, Some(group), Some(definition)) = (view.is_normal(), view.group, view.definition)
        else {
            return;
        };
        if *self.definitions.entry(group).or_insert(definition) != definition {
            let what = format!("node {}: {group:?} has another definition than before", node + 1);
            self.violation(now, "a group number has two contents", what);
        }
    }

    /// A group that a node newly coordinates must have a number that was never used.
    fn check_created(&mut self, now: Time, node: usize, before: &View, view: &View) {
        let Some(group) = view.group else { return };
        let own = usize::from(group.coordinator.get()) == node + 1;
        if own && before.group != view.group && self.created.insert(group, ()).is_some() {
            let what = format!("node {} made {group:?} again", node + 1);
            self.violation(now, "a group number was used twice", what);
        }
    }

    /// The same call number must not be seen with two contents.
    /// Says whether it was seen before.
    pub fn check_call(&mut self, now: Time, call: (u8, u32, u32), digest: u64) -> bool {
        let known = self.calls.insert(call, digest);
        if known.is_some_and(|known| known != digest) {
            let what = format!("(source, boot, call) = {call:?}");
            self.violation(now, "a call number has two contents", what);
        }
        known.is_some()
    }
}
