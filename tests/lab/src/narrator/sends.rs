//! The messages of an election. Beats, Checks, their answers and Hellos are everyday, and repeats no news.

use bellwether_scenario::{NodeId, Status};

use super::Entry;
use super::network::Reach;
use super::teller::{Teller, gather};
use super::words::{Ids, clause, list};
use crate::line::Line;

/// Replies, and Accept, which follows an Invitation.
pub fn is_reply(message: &str) -> bool {
    message.ends_with("Ack") || message.ends_with("Ans") || message == "Accept"
}

impl Teller {
    pub(super) fn sends(
        &mut self,
        at_us: u64,
        id: NodeId,
        line: &Line,
        after: &mut [Entry],
    ) -> Option<String> {
        let message = line.get("message")?;
        let to = NodeId::try_from(line.number("to")?).ok()?;
        self.watch(at_us, id, to, message);
        match message {
            "Accept" => self.accepts(id, to, after),
            "AreYouThere" | "HaveYouHeard" => self.asks(id, message, after),
            "Halt" if self.first(id, message) => Some(match answers(id, "HaltAck", after) {
                ids if ids.is_empty() => {
                    format!("node {id} calls an election: it halts all below it")
                }
                ids => format!("node {id} halts {}", list(&ids)),
            }),
            "NewCoordinator" if self.first(id, message) => {
                let ids = answers(id, "NcAck", after);
                let whom =
                    if ids.is_empty() { String::new() } else { format!(" to {}", list(&ids)) };
                Some(format!("node {id} announces itself{whom}"))
            }
            "Invitation" => self.invites(id, to, after),
            "Ready" | "RingReady" if self.first(id, message) && self.coordinates(id) => {
                let whom = list(&self.node(id).up);
                Some(format!("node {id} hands out the work to {whom} ({message})"))
            }
            "Elect" => self.elects(id, after),
            "Coord" if self.first(id, message) => {
                let run = self.node(id).election;
                Some(match named(run, after) {
                    Some(winner) => format!("the Coord lap names {winner}"),
                    None => format!("node {id} begins the Coord lap"),
                })
            }
            _ => None,
        }
    }

    /// Keeps account of who shows that it lives.
    fn watch(&mut self, at_us: u64, id: NodeId, to: NodeId, message: &str) {
        match message {
            "Beat" | "AytAns" | "Halt" | "NewCoordinator" | "Ready" | "RingReady" => {
                self.sign_of_life(at_us, id, to);
            }
            "AreYouNormal" | "AreYouCoordinator" => {
                if message == "AreYouNormal" {
                    self.sign_of_life(at_us, id, to);
                }
                let node = self.node(id);
                let last_us = std::mem::replace(&mut node.checked_us, at_us);
                // What follows sooner repeats the Check before, for those who have not answered.
                if node.t_us.is_some_and(|t_us| at_us.saturating_sub(last_us) > t_us) {
                    for member in &node.up {
                        *node.unanswered.entry(*member).or_default() += 1;
                    }
                }
            }
            "AynAns" | "AycAns" if self.network.reach(id, to) != Reach::Never => {
                let asker = self.node(to);
                asker.unanswered.remove(&id);
                asker.answered_us.insert(id, at_us);
            }
            _ => {}
        }
    }

    /// Whether this is the first such message of the election that the node takes part in.
    fn first(&mut self, id: NodeId, message: &str) -> bool {
        let (whose, number) = self.node(id).election;
        self.told.insert((message.to_owned(), whose, number))
    }

    fn coordinates(&mut self, id: NodeId) -> bool {
        self.node(id).coordinator == Some(id)
    }

    fn asks(&mut self, id: NodeId, message: &str, after: &mut [Entry]) -> Option<String> {
        let node = self.node(id);
        if !node.sent.insert(message.to_owned()) {
            return None;
        }
        let coordinator = node.coordinator.filter(|other| *other != id);
        Some(match (message, coordinator) {
            ("AreYouThere", Some(whom)) => format!("node {id} asks whether {whom} is there"),
            ("AreYouThere", None) => {
                let mut ids = gather(after, |other, line| {
                    let alike =
                        self.nodes.get(&other).is_some_and(|node| node.coordinator.is_none());
                    alike && line.get("message") == Some(message)
                });
                ids.insert(id);
                for other in &ids {
                    self.node(*other).sent.insert(message.to_owned());
                }
                clause(&ids, "asks", "ask") + " whether a higher node is there"
            }
            (_, Some(whom)) => format!("node {id} asks others whether they hear {whom}"),
            (_, None) => format!("node {id} asks others about a silent member"),
        })
    }

    fn invites(&mut self, id: NodeId, to: NodeId, after: &mut [Entry]) -> Option<String> {
        if !self.coordinates(id) {
            // Members whom the inviter does not know hear of it from their old coordinator.
            let node = self.node(id);
            let (inviter, passed) = (node.coordinator?, node.sent.insert("Invitation".into()));
            let whom = if to == 0 { "its members".to_owned() } else { to.to_string() };
            let sentence = format!("node {id} passes the invitation of {inviter} on to {whom}");
            return passed.then_some(sentence);
        }
        if !self.first(id, "Invitation") {
            return None;
        }
        let ids = self.acceptors(Ids::new(), id, after);
        Some(match ids.len() {
            0 => format!("node {id} invites all that it has heard of"),
            1 => format!("node {id} invites {}, which accepts", list(&ids)),
            _ => format!("node {id} invites {}, which accept", list(&ids)),
        })
    }

    /// Those who accept an invitation late.
    fn accepts(&mut self, id: NodeId, to: NodeId, after: &mut [Entry]) -> Option<String> {
        let ids = self.acceptors([id].into(), to, after);
        let verb = clause(&ids, "accepts", "accept");
        (!ids.is_empty()).then(|| format!("{verb} the invitation of {to}"))
    }

    /// These and all others that accept the invitation of `inviter` soon, without repeats.
    fn acceptors(&mut self, mut ids: Ids, inviter: NodeId, after: &mut [Entry]) -> Ids {
        let (whose, number) = self.node(inviter).election;
        ids.extend(gather(this_election(inviter, after), |_, line| {
            let to = line.number("to");
            line.get("message") == Some("Accept") && to == Some(u64::from(inviter))
        }));
        ids.retain(|id| self.told.insert((format!("Accept of {id}"), whose, number)));
        ids
    }

    /// The token of a new run; who passes it on says nothing new.
    fn elects(&mut self, id: NodeId, after: &[Entry]) -> Option<String> {
        if self.node(id).election.0 != u64::from(id) || !self.first(id, "Elect") {
            return None;
        }
        let mut ids = Ids::from([id]);
        for (other, line) in after.iter().filter_map(Entry::said) {
            // One that is Normal has a reason of its own, which is told.
            let wakes = self.node(other).status != Some(Status::Normal);
            if wakes && line.word == "note" && line.get("what") == Some("election") {
                let number = line.number("number").unwrap_or(0);
                self.told.insert(("Elect".into(), other.into(), number));
                ids.insert(other);
            }
        }
        Some(match ids.len() {
            1 => format!("node {id} sends the token round: Elect"),
            _ => format!("nodes {} send tokens round: Elect", list(&ids)),
        })
    }
}

/// What follows before the node calls its next election.
fn this_election(id: NodeId, after: &mut [Entry]) -> &mut [Entry] {
    let calls = |entry: &Entry| {
        entry.said().is_some_and(|(from, line)| from == id && line.get("what") == Some("election"))
    };
    let end = after.iter().position(calls).unwrap_or(after.len());
    &mut after[..end]
}

/// Who answers a message soon.
fn answers(id: NodeId, reply: &str, after: &mut [Entry]) -> Ids {
    let mine = |line: &Line| {
        line.get("message") == Some(reply) && line.number("to") == Some(u64::from(id))
    };
    let said = this_election(id, after).iter().filter_map(Entry::said);
    said.filter(|(_, line)| mine(line)).map(|(from, _)| from).collect()
}

/// The coordinator that a run of the ring names, as the first node says that learns of it.
fn named((whose, number): (u64, u64), after: &[Entry]) -> Option<u64> {
    let of_run = |line: &&Line| {
        line.word == "state"
            && line.number("group") == Some(whose)
            && line.number("number") == Some(number)
    };
    let mut states = after.iter().filter_map(Entry::said).map(|(_, line)| line).filter(of_run);
    states.find_map(|line| line.number("coordinator").filter(|id| *id != 0))
}
