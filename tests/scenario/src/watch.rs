//! The nodes as their events show them.

use std::collections::BTreeSet;

use crate::judge::{NodeView, Observation};
use crate::scenario::{Action, Group, NodeId, Scenario, Status};
use crate::trace::{NodeEvent, What};

/// Follows a run and keeps what [`crate::judge()`] needs.
///
/// A trace does not say that a node is paused, so the scenario's actions are followed too. Power
/// is followed from both: whoever plays a scenario live may report kills by either.
#[derive(Clone, Debug)]
pub struct Watch {
    seen: Observation,
    powered: BTreeSet<NodeId>,
    paused: BTreeSet<NodeId>,
    known_groups: BTreeSet<Group>,
}

impl Watch {
    pub fn new(scenario: &Scenario) -> Watch {
        let powered: BTreeSet<NodeId> = scenario.boot.iter().copied().collect();
        let nodes =
            (1..=scenario.nodes).map(|id| NodeView::new(id, powered.contains(&id))).collect();
        Watch {
            seen: Observation { nodes, formed: Vec::new() },
            powered,
            paused: BTreeSet::new(),
            known_groups: BTreeSet::new(),
        }
    }

    pub fn seen(&self) -> &Observation {
        &self.seen
    }

    /// An action of the scenario was carried out.
    pub fn act(&mut self, action: &Action) {
        let nodes = match action {
            Action::Kill { nodes }
            | Action::Boot { nodes }
            | Action::Pause { nodes }
            | Action::Resume { nodes }
            | Action::Reset { nodes } => nodes,
            Action::Partition { .. }
            | Action::Link { .. }
            | Action::Unplug { .. }
            | Action::Plug { .. }
            | Action::Leave { .. }
            | Action::Heal => return,
        };
        for &id in nodes {
            match action {
                Action::Kill { .. } => self.set_power(id, false),
                // A node that already reported its boot may have said more since; keep that.
                Action::Boot { .. } if self.powered.contains(&id) => {}
                Action::Boot { .. } => self.set_power(id, true),
                Action::Pause { .. } => {
                    self.paused.insert(id);
                }
                _ => {
                    self.paused.remove(&id);
                }
            }
            self.refresh_alive(id);
        }
    }

    /// Something happened. Events of nodes that the scenario does not have are ignored.
    pub fn note(&mut self, event: &NodeEvent) {
        let id = event.node;
        match &event.what {
            What::Boot => self.set_power(id, true),
            What::Kill => self.set_power(id, false),
            What::Send { .. } => {}
            What::Reset { cause } => {
                self.forget_state(id);
                if let Some(view) = self.view_mut(id) {
                    *view.resets.entry(*cause).or_default() += 1;
                }
            }
            What::State { status, coordinator, group, up, definition } => {
                if let Some(view) = self.view_mut(id) {
                    view.status = *status;
                    view.coordinator = *coordinator;
                    view.group = *group;
                    view.up.clone_from(up);
                    view.definition = *definition;
                }
                self.note_formed(event.at_us, id, *status, *coordinator, *group);
            }
        }
        self.refresh_alive(id);
    }

    /// A group counts once, when its coordinator turns Normal in it.
    fn note_formed(
        &mut self,
        at_us: u64,
        id: NodeId,
        status: Status,
        coordinator: Option<NodeId>,
        group: Option<Group>,
    ) {
        if status != Status::Normal || coordinator != Some(id) {
            return;
        }
        if let Some(group) = group
            && self.known_groups.insert(group)
        {
            self.seen.formed.push((at_us, group));
        }
    }

    /// RAM is lost either way: whatever the node said before does not count any more.
    fn set_power(&mut self, id: NodeId, on: bool) {
        if on {
            self.powered.insert(id);
        } else {
            self.powered.remove(&id);
            self.paused.remove(&id);
        }
        self.forget_state(id);
    }

    fn forget_state(&mut self, id: NodeId) {
        if let Some(view) = self.view_mut(id) {
            let resets = std::mem::take(&mut view.resets);
            *view = NodeView { resets, ..NodeView::new(id, view.alive) };
        }
    }

    fn refresh_alive(&mut self, id: NodeId) {
        let alive = self.powered.contains(&id) && !self.paused.contains(&id);
        if let Some(view) = self.view_mut(id) {
            view.alive = alive;
        }
    }

    fn view_mut(&mut self, id: NodeId) -> Option<&mut NodeView> {
        self.seen.nodes.iter_mut().find(|view| view.id == id)
    }
}
