//! The smallest task that can be shared out: everybody knows who takes part.

use crate::application::Application;
use crate::id::{GroupId, NodeId, NodeSet};
use crate::state::Definition;

/// An application whose definition is the group and its members, in order of their ids.
#[derive(Debug, Default)]
pub struct Sharing {
    /// Between `start` and `stop`.
    pub runs: bool,
}

impl<const W: usize> Application<W> for Sharing {
    fn stop(&mut self) {
        self.runs = false;
    }

    fn reorganize(&mut self, group: GroupId, members: &NodeSet<W>) -> Definition {
        let mut bytes = heapless::Vec::<u8, 264>::new();
        let all = [group.coordinator.get()]
            .into_iter()
            .chain(group.number.to_le_bytes())
            .chain(members.iter().map(NodeId::get));
        for byte in all {
            // 9 + 255 bytes at most: there is always room.
            let _ = bytes.push(byte);
        }
        Definition::new(&bytes).unwrap_or(Definition::SINGLE)
    }

    fn start(&mut self, _me: NodeId, _definition: &Definition) {
        self.runs = true;
    }
}
