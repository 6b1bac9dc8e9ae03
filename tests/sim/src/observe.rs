//! What is seen of the nodes, and handed to the checker and the trace.

use bellwether::id::NodeId;
use bellwether::node::Node;
use bellwether::state::{Status, Summary};
use bellwether_scenario::{NodeEvent, What};

use crate::checker::View;
use crate::world::World;

impl<const W: usize> World<W> {
    /// Tells checker and trace what the node's state vector is now.
    pub(crate) fn observe(&mut self, node: usize) {
        let machine = &self.machines[node];
        let view = match &machine.node {
            Some(running) => {
                let state = running.state_vector();
                View {
                    live: machine.powered
                        && !machine.paused
                        && !running.is_mute()
                        && !running.has_left(),
                    paused: machine.paused,
                    status: state.status,
                    coordinator: state.coordinator.map(NodeId::get),
                    group: state.group,
                    definition: state.definition.as_ref().map(|d| d.digest()),
                }
            }
            None => View { live: machine.powered, ..View::DOWN },
        };
        if *self.checker.view(node) != view {
            self.check_members(node, &view);
            self.checker.update(self.now, node, view);
        }
    }

    /// A coordinator turns Normal only when every member has made the definition durable.
    fn check_members(&mut self, node: usize, view: &View) {
        let coordinates = view.coordinator == Some(node as u8 + 1);
        let (true, Status::Normal, Some(group)) = (coordinates, view.status, view.group) else {
            return;
        };
        let Some(state) = self.machines[node].node.as_ref().map(Node::state_vector) else { return };
        let missing = |member: &NodeId| {
            let member = &self.machines[usize::from(member.get()) - 1];
            !member.durable_groups.contains(&group)
        };
        if let Some(member) = state.up.iter().find(missing) {
            let what = format!("node {} in {group:?} without node {member}", node + 1);
            self.checker.violation(self.now, "a coordinator Normal before its members", what);
        }
    }

    pub(crate) fn record(&mut self, node: usize, what: What) {
        if self.settings.trace {
            let at_us = self.now;
            self.trace.push(NodeEvent { at_us, node: node as u8 + 1, uncertainty_us: None, what });
        }
    }

    pub fn summary(&self, node: usize) -> Option<Summary<W>> {
        self.machines[node].node.as_ref().map(|running| running.state_vector().summary())
    }

    pub fn is_coordinator(&self, node: usize) -> bool {
        let view = self.checker.view(node);
        view.live && view.coordinator == Some(node as u8 + 1)
    }

    /// Powered, started and not paused.
    pub fn is_running(&self, node: usize) -> bool {
        let machine = &self.machines[node];
        machine.node.is_some() && !machine.paused
    }

    /// How many nodes run and say nothing: they have left, or their flash is worn out.
    pub fn silent_nodes(&self) -> usize {
        let running = self.machines.iter().filter_map(|machine| machine.node.as_ref());
        running.filter(|node| node.is_mute() || node.has_left()).count()
    }

    /// Whether the live nodes among `nodes` are settled.
    pub fn is_settled(&self, nodes: &[usize]) -> bool {
        self.checker.is_settled(nodes.iter().copied())
    }
}
