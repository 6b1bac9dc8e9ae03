//! The user's side: what a task of the flock has to offer.

use crate::id::{GroupId, NodeId, NodeSet};
use crate::state::Definition;

/// A task that the flock shares out among its members.
///
/// A node calls `stop` before it leaves a group and `start` when it is Normal in a new one; between
/// the two the task must not act. The coordinator alone calls `reorganize`, once per group, and the
/// result reaches every member, the coordinator included, through `start`.
pub trait Application<const W: usize> {
    /// Stop working on the task of the old group, before this call returns.
    fn stop(&mut self);

    /// Share out the work among `members` (the coordinator included) of `group`.
    fn reorganize(&mut self, group: GroupId, members: &NodeSet<W>) -> Definition;

    /// Work on the task. An empty definition is that of a node that is alone.
    fn start(&mut self, me: NodeId, definition: &Definition);
}
