//! Tells a run in words: `node 4 suspects 5: no Beat for 0.5 s`.
//!
//! The narrator knows what a display is shown, the lines of the boards, the actions of the lab and how the
//! nodes are, and nothing else: no clock, no file. What is fed in the same order is told in the same words.
//!
//! Boards are read one after the other, so that their lines come a little out of order, and one sentence
//! may need the lines of several boards. All waits for [`HOLD_US`], then it is told in the order in which
//! it happened.

mod lab;
mod network;
mod sends;
mod teller;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;

use bellwether_scenario::{Action, Group, NodeId, NodeView, Observation, Status};

use crate::chronicle::Said;
use crate::display::settled;
use crate::line::Line;
use network::Network;
use teller::Teller;
use words::Ids;

/// When, and what.
pub type Sentence = (u64, String);

/// How long a line waits for others that happened before it, or that belong to it.
const HOLD_US: u64 = 300_000;
/// Lines of this span can make one sentence. The rest of the wait is for boards that are read late.
const GATHER_US: u64 = 200_000;
/// Clocks of boards are known to about a millisecond: a reply may seem to precede its request.
const SKEW_US: u64 = 5_000;

/// A group that has settled.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Settled {
    coordinator: NodeId,
    group: Option<Group>,
    members: Ids,
}

#[derive(Debug)]
enum Happening {
    Said(NodeId, Line),
    Act(Action),
    Settled(Settled),
    /// A group is settled no more, and why.
    Unsettled(String),
}

#[derive(Debug)]
struct Entry {
    at_us: u64,
    /// Its place in the story.
    order_us: u64,
    what: Happening,
    /// An earlier sentence has told it.
    told: bool,
}

impl Entry {
    fn said(&self) -> Option<(NodeId, &Line)> {
        match &self.what {
            Happening::Said(node, line) => Some((*node, line)),
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
pub struct Narrator {
    waiting: Vec<Entry>,
    teller: Teller,
    /// The network as it is now; the teller's is as it was when what it tells happened.
    network: Network,
    settled: Vec<Settled>,
    /// Of how many parts of the network.
    parts: usize,
    /// Nodes that have left, or may not speak: until they start anew nobody waits for them.
    silent: Ids,
    /// The last state of a node or action of the lab.
    changed_us: u64,
    changed: bool,
    /// When each node last went on or began anew: its clock may have stood still before.
    resumed_us: BTreeMap<NodeId, u64>,
    told_us: u64,
}

impl Narrator {
    pub fn hear(&mut self, said: &Said) {
        let resumed_us = self.resumed_us.get(&said.node).copied().unwrap_or(0);
        let at_us = said.at_us.max(resumed_us);
        if !said.events.is_empty() && said.line.word != "send" {
            self.changed = true;
            self.changed_us = self.changed_us.max(at_us);
        }
        let leaves = said.line.get("what") == Some("leaving")
            && said.line.number("node") == Some(said.node.into());
        self.changed |= match said.line.word.as_str() {
            "start" => self.silent.remove(&said.node),
            "mute" => self.silent.insert(said.node),
            "note" if leaves => self.silent.insert(said.node),
            _ => false,
        };
        self.keep(at_us, Happening::Said(said.node, said.line.clone()));
    }

    pub fn act(&mut self, at_us: u64, action: &Action) {
        self.changed = true;
        self.changed_us = self.changed_us.max(at_us);
        self.network.act(action);
        if let Action::Resume { nodes } | Action::Reset { nodes } | Action::Boot { nodes } = action
        {
            self.resumed_us.extend(nodes.iter().map(|id| (*id, at_us)));
        }
        self.keep(at_us, Happening::Act(action.clone()));
    }

    /// How the nodes are now; what there is to tell.
    pub fn look(&mut self, now_us: u64, seen: &Observation) -> Vec<Sentence> {
        if std::mem::take(&mut self.changed) {
            let spoken_for = |view: &&NodeView| view.alive && !self.silent.contains(&view.id);
            let live: Vec<&NodeView> = seen.nodes.iter().filter(spoken_for).collect();
            let parts = self.network.parts(live.iter().map(|view| view.id));
            let alone = parts.len() == 1;
            let group = |part: &Ids| settled_part(&live, part, alone);
            let groups: Vec<Settled> = parts.iter().filter_map(group).collect();
            let before = std::mem::replace(&mut self.settled, groups);
            self.parts = parts.len();
            let new: Vec<Settled> =
                self.settled.iter().filter(|group| !before.contains(group)).cloned().collect();
            if new.is_empty() && self.settled.len() < before.len() {
                self.keep(self.changed_us, Happening::Unsettled(unsettled_by(&live)));
            }
            new.into_iter().for_each(|group| self.keep(self.changed_us, Happening::Settled(group)));
        }
        self.tell(now_us.saturating_sub(HOLD_US))
    }

    /// The run is over: what is left to tell.
    pub fn rest(&mut self) -> Vec<Sentence> {
        self.tell(u64::MAX)
    }

    /// How things stand, for a title.
    pub fn standing(&self) -> String {
        match (self.settled.as_slice(), self.parts) {
            ([], _) => "not settled".into(),
            ([one], 1) => format!("settled under node {}", one.coordinator),
            (some, parts) => format!("{} of {parts} parts settled", some.len()),
        }
    }

    fn keep(&mut self, at_us: u64, what: Happening) {
        let mut entry = Entry { at_us, order_us: at_us, what, told: false };
        let message = entry.said().and_then(|(_, line)| line.get("message"));
        if message.is_some_and(sends::is_reply) {
            entry.order_us += SKEW_US;
        }
        self.waiting.push(entry);
    }

    fn tell(&mut self, until_us: u64) -> Vec<Sentence> {
        // Stable: what one board says at one moment keeps its order.
        self.waiting.sort_by_key(|entry| entry.order_us);
        let due = self.waiting.partition_point(|entry| entry.order_us <= until_us);
        let mut sentences = Vec::new();
        for index in 0..due {
            let (before, after) = self.waiting.split_at_mut(index + 1);
            if let Some(entry) = before.last().filter(|entry| !entry.told) {
                let horizon = entry.order_us + GATHER_US;
                let near = after.partition_point(|entry| entry.order_us <= horizon);
                let told = self.teller.tell(entry, &mut after[..near]);
                // Times in front of the sentences never go back.
                self.told_us = self.told_us.max(entry.at_us);
                sentences.extend(told.into_iter().map(|text| (self.told_us, text)));
            }
        }
        self.waiting.drain(..due);
        sentences
    }
}

/// The group of a part of the network, if the nodes that live there are settled.
fn settled_part(live: &[&NodeView], part: &Ids, whole: bool) -> Option<Settled> {
    let here = live.iter().filter(|view| part.contains(&view.id));
    let nodes: Vec<NodeView> = here.map(|view| (*view).clone()).collect();
    let seen = Observation { nodes, formed: Vec::new() };
    let coordinator = settled(&seen)?;
    let view = seen.nodes.iter().find(|view| view.id == coordinator)?;
    let members: Ids = view.up.iter().copied().chain([coordinator]).collect();
    // A coordinator that still counts on nodes beyond the cut has not noticed it.
    let aware = whole || members.is_subset(part);
    aware.then_some(Settled { coordinator, group: view.group, members })
}

/// What keeps the nodes from being settled, of the first node that does.
fn unsettled_by(live: &[&NodeView]) -> String {
    let Some(first) = live.first() else { return "no node is left".into() };
    if let Some(view) = live.iter().find(|view| view.status != Status::Normal) {
        return match view.status {
            Status::Down => format!("node {} is down", view.id),
            _ => format!("node {} is in an election", view.id),
        };
    }
    match live.iter().find(|view| view.group != first.group) {
        Some(view) => format!("nodes {} and {} are in different groups", first.id, view.id),
        None => "the coordinator is gone".into(),
    }
}
