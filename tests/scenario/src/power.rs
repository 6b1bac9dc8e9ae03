//! Who has power and who is paused, followed through the file.
//!
//! A scenario that kills a dead node was written with something else in mind than what it says;
//! it is refused before it runs.

use std::collections::BTreeSet;

use crate::bad::BadFile;
use crate::scenario::NodeId;
use crate::toml_table::Field;

#[derive(Debug)]
pub(crate) struct PowerStates {
    powered: BTreeSet<NodeId>,
    paused: BTreeSet<NodeId>,
}

impl PowerStates {
    pub fn new(boot: &[NodeId]) -> PowerStates {
        PowerStates { powered: boot.iter().copied().collect(), paused: BTreeSet::new() }
    }

    /// A paused node may be killed; it is not paused any more when it is powered again.
    pub fn kill(&mut self, field: Field<'_>, nodes: NodeId) -> Result<Vec<NodeId>, BadFile> {
        each(field, nodes, "kill", "a node with power", |id| {
            self.paused.remove(&id);
            self.powered.remove(&id).then_some(()).ok_or("dead")
        })
    }

    pub fn boot(&mut self, field: Field<'_>, nodes: NodeId) -> Result<Vec<NodeId>, BadFile> {
        each(field, nodes, "boot", "a node without power", |id| {
            self.powered.insert(id).then_some(()).ok_or("powered")
        })
    }

    pub fn pause(&mut self, field: Field<'_>, nodes: NodeId) -> Result<Vec<NodeId>, BadFile> {
        each(field, nodes, "pause", "a running node", |id| {
            if !self.powered.contains(&id) {
                return Err("dead");
            }
            self.paused.insert(id).then_some(()).ok_or("paused")
        })
    }

    /// A node that has left keeps its power: it can be killed, reset, or told to leave once more.
    pub fn leave(&mut self, field: Field<'_>, nodes: NodeId) -> Result<Vec<NodeId>, BadFile> {
        each(field, nodes, "leave", "a running node", |id| {
            if self.paused.contains(&id) {
                return Err("paused");
            }
            self.powered.contains(&id).then_some(()).ok_or("dead")
        })
    }

    /// A paused node runs again after a reset.
    pub fn reset(&mut self, field: Field<'_>, nodes: NodeId) -> Result<Vec<NodeId>, BadFile> {
        each(field, nodes, "reset", "a node with power", |id| {
            self.paused.remove(&id);
            self.powered.contains(&id).then_some(()).ok_or("dead")
        })
    }

    /// The cable of a board is moved: one without power finds it so when it boots, one that stands still
    /// cannot be told.
    pub fn cable(
        &self,
        field: Field<'_>,
        nodes: NodeId,
        name: &str,
    ) -> Result<Vec<NodeId>, BadFile> {
        each(field, nodes, name, "a node that is not paused", |id| {
            (!self.paused.contains(&id)).then_some(()).ok_or("paused")
        })
    }

    pub fn resume(&mut self, field: Field<'_>, nodes: NodeId) -> Result<Vec<NodeId>, BadFile> {
        each(field, nodes, "resume", "a paused node", |id| {
            self.paused.remove(&id).then_some(()).ok_or("not paused")
        })
    }
}

/// Reads the ids and applies the change to each; `change` says what the node is that forbids it.
fn each(
    field: Field<'_>,
    nodes: NodeId,
    name: &str,
    allowed: &str,
    mut change: impl FnMut(NodeId) -> Result<(), &'static str>,
) -> Result<Vec<NodeId>, BadFile> {
    let ids = field.ids(nodes)?;
    for (&id, element) in ids.iter().zip(field.elements().unwrap_or_default()) {
        change(id).map_err(|state| {
            element.bad(
                format!("`{name}` names node {id}, which is {state} at this time"),
                format!("allowed: {allowed}"),
            )
        })?;
    }
    Ok(ids)
}
