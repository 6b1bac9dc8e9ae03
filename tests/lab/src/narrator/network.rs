//! Who can hear whom, as far as the actions of the lab tell.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_scenario::{Action, NodeId};

use super::words::Ids;

/// Whether a frame arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Surely,
    /// The link loses frames now and then: only the switch knows which.
    Perhaps,
    Never,
}

#[derive(Debug, Clone, Default)]
pub struct Network {
    /// Empty: the network is whole.
    sets: Vec<Vec<NodeId>>,
    unplugged: Ids,
    /// Links, from and to, that lose frames.
    lossy: BTreeMap<(NodeId, NodeId), Reach>,
}

impl Network {
    pub fn act(&mut self, action: &Action) {
        match action {
            Action::Partition { sets } => self.sets.clone_from(sets),
            Action::Heal => (self.sets, self.lossy) = (Vec::new(), BTreeMap::new()),
            Action::Unplug { nodes } => self.unplugged.extend(nodes),
            Action::Plug { nodes } => self.unplugged.retain(|id| !nodes.contains(id)),
            Action::Link { from, to, quality } => {
                for link in from.iter().flat_map(|from| to.iter().map(|to| (*from, *to))) {
                    match quality.loss {
                        0.0 => drop(self.lossy.remove(&link)),
                        1.0.. => drop(self.lossy.insert(link, Reach::Never)),
                        _ => drop(self.lossy.insert(link, Reach::Perhaps)),
                    }
                }
            }
            _ => {}
        }
    }

    pub fn is_unplugged(&self, id: NodeId) -> bool {
        self.unplugged.contains(&id)
    }

    /// A number of the part of the network that a node is in; nodes of one part have the same.
    fn part(&self, id: NodeId) -> (usize, NodeId) {
        let alone = (usize::MAX, id);
        if self.unplugged.contains(&id) {
            return alone;
        }
        match self.sets.iter().position(|set| set.contains(&id)) {
            _ if self.sets.is_empty() => (0, 0),
            Some(index) => (index, 0),
            None => alone,
        }
    }

    /// The nodes by the part of the network that they are in. Links count for nothing here.
    pub fn parts(&self, nodes: impl Iterator<Item = NodeId>) -> Vec<BTreeSet<NodeId>> {
        let mut parts: BTreeMap<_, BTreeSet<NodeId>> = BTreeMap::new();
        for id in nodes {
            parts.entry(self.part(id)).or_default().insert(id);
        }
        parts.into_values().collect()
    }

    pub fn reach(&self, from: NodeId, to: NodeId) -> Reach {
        if self.part(from) != self.part(to) {
            return Reach::Never;
        }
        self.lossy.get(&(from, to)).copied().unwrap_or(Reach::Surely)
    }
}

#[cfg(test)]
mod tests {
    use bellwether_scenario::LinkQuality;

    use super::*;

    #[test]
    fn a_partition_and_a_cable_keep_nodes_apart() {
        let mut network = Network::default();
        assert_eq!(network.parts(1..=5), [(1..=5).collect()]);
        network.act(&Action::Partition { sets: vec![vec![1, 2], vec![3, 4]] });
        network.act(&Action::Unplug { nodes: vec![4] });
        let parts = [[1, 2].into(), [3].into(), [4].into(), [5].into()];
        assert_eq!(network.parts(1..=5), parts);
        assert_eq!(network.reach(1, 2), Reach::Surely);
        assert_eq!(network.reach(2, 3), Reach::Never);
        // A heal leaves cables as they are.
        network.act(&Action::Heal);
        assert_eq!(network.parts(1..=5), [[1, 2, 3, 5].into(), [4].into()]);
        network.act(&Action::Plug { nodes: vec![4] });
        assert_eq!(network.reach(4, 1), Reach::Surely);
    }

    #[test]
    fn a_link_has_a_direction() {
        let mut network = Network::default();
        let link = |loss| Action::Link {
            from: vec![1],
            to: vec![2, 3],
            quality: LinkQuality { loss, ..LinkQuality::default() },
        };
        network.act(&link(1.0));
        assert_eq!((network.reach(1, 3), network.reach(3, 1)), (Reach::Never, Reach::Surely));
        network.act(&link(0.2));
        assert_eq!(network.reach(1, 2), Reach::Perhaps);
        network.act(&link(0.0));
        assert_eq!(network.reach(1, 2), Reach::Surely);
    }
}
