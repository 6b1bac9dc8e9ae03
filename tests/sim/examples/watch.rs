//! A task of one's own: the members of the flock take turns at keeping watch.
//!
//! The coordinator writes the list of members; each member looks up its place in it.

use bellwether::application::Application;
use bellwether::id::{GroupId, NodeId, NodeSet};
use bellwether::state::Definition;

struct Watch;

impl<const W: usize> Application<W> for Watch {
    fn stop(&mut self) {
        println!("  a node leaves its watch");
    }

    fn reorganize(&mut self, group: GroupId, members: &NodeSet<W>) -> Definition {
        println!("node {} shares out the watches", group.coordinator);
        let turns: Vec<u8> = members.iter().map(NodeId::get).collect();
        Definition::new(&turns).unwrap_or(Definition::SINGLE)
    }

    fn start(&mut self, me: NodeId, definition: &Definition) {
        let turns = definition.as_bytes();
        match turns.iter().position(|id| *id == me.get()) {
            Some(turn) => println!("  node {me} has watch {} of {}", turn + 1, turns.len()),
            None => println!("  node {me} watches alone"),
        }
    }
}

fn main() {
    // Three nodes in the simulator; the coordinator dies after two seconds.
    bellwether_sim::demo::run(3, |_| Box::new(Watch));
}
