//! From what happened to sentences, one thing after the other.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_scenario::{Action, NodeId, ResetCause, Status, What};

use super::network::{Network, Reach};
use super::words::{Ids, clause, list, mute, reset, span};
use super::{Entry, Happening, Settled, lab};
use crate::line::Line;

/// A coordinator misses a member that has not answered so many of its Checks in a row.
const UNANSWERED_MIN: u32 = 2;
/// A flock that was settled for less than this was not: a node that goes on has not yet said that it starts anew.
const SETTLED_MIN_US: u64 = 50_000;
/// An election follows from what was noted if it begins within so many T.
const REASON_ROUNDS: u64 = 4;
/// A fault that is none: a save that made room first.
const HARMLESS: &str = "save-not-prepared";

/// What is known of a node.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// It has run before.
    known: bool,
    /// The lab has told why it starts.
    start_told: bool,
    pub(super) status: Option<Status>,
    pub(super) coordinator: Option<NodeId>,
    pub(super) up: Ids,
    /// The election, merge or run that it takes part in: whose, and its number.
    pub(super) election: (u64, u64),
    /// What it has sent since its status changed or it noted something: repeats are no news.
    pub(super) sent: BTreeSet<String>,
    /// When it last had a sign of life from another node, and whether that surely arrived.
    pub(super) heard: BTreeMap<NodeId, (u64, bool)>,
    /// T, as its boot has told.
    pub(super) t_us: Option<u64>,
    /// As a coordinator: the last Check, Checks without an answer, and the last answer.
    pub(super) checked_us: u64,
    pub(super) unanswered: BTreeMap<NodeId, u32>,
    pub(super) answered_us: BTreeMap<NodeId, u64>,
    /// What it has noted last since its status changed.
    noted: Option<String>,
    /// When a sentence told what may be the reason of its next election.
    reason_us: Option<u64>,
    link_up: bool,
    link_loss_told: bool,
}

#[derive(Debug, Default)]
pub struct Teller {
    pub(super) nodes: BTreeMap<NodeId, Node>,
    pub(super) network: Network,
    /// What was told once of each election: message, whose, number.
    pub(super) told: BTreeSet<(String, u64, u64)>,
    /// The last thing that happened to the flock, and when.
    cause: Option<(u64, String)>,
    coordinators: Ids,
    /// The group that was told of last, and when that was over.
    settled: Option<(Settled, u64)>,
    /// Something was told since the flock settled: that is why it is unsettled.
    news: bool,
}

impl Teller {
    /// `after`: what follows soon. What one of these sentences tells of it is marked so.
    pub fn tell(&mut self, entry: &Entry, after: &mut [Entry]) -> Vec<String> {
        let at_us = entry.at_us;
        let sentences = match &entry.what {
            Happening::Act(action) => vec![self.acts(at_us, action)],
            Happening::Settled(_) if over_soon(at_us, after) => vec![],
            Happening::Settled(group) if self.still(at_us, group) => vec![],
            Happening::Settled(group) => {
                self.settled = Some((group.clone(), u64::MAX));
                self.news = false;
                return vec![self.settles(at_us, group)];
            }
            Happening::Unsettled(why) => {
                self.settled.iter_mut().for_each(|(_, end_us)| *end_us = at_us);
                let told = (!self.news).then(|| format!("no longer settled: {why}"));
                told.into_iter().collect()
            }
            Happening::Said(node, line) => match line.word.as_str() {
                "start" => self.starts(at_us, *node, line, after).into_iter().collect(),
                "note" => self.notes(at_us, *node, line, after),
                "send" => self.sends(at_us, *node, line, after).into_iter().collect(),
                "state" => self.state(at_us, *node, line).into_iter().collect(),
                _ => self.other(*node, line).into_iter().collect(),
            },
        };
        self.news |= !sentences.is_empty();
        sentences
    }

    pub(super) fn node(&mut self, id: NodeId) -> &mut Node {
        self.nodes.entry(id).or_default()
    }

    fn acts(&mut self, at_us: u64, action: &Action) -> String {
        self.network.act(action);
        if let Action::Boot { nodes } | Action::Reset { nodes } = action {
            nodes.iter().for_each(|id| self.node(*id).start_told = true);
        }
        let (sentence, cause) = lab::told(action, &self.coordinators);
        self.cause = Some((at_us, cause));
        sentence
    }

    /// The group that was told of has only missed a moment: a node of it has left.
    fn still(&self, at_us: u64, group: &Settled) -> bool {
        let last = self.settled.as_ref().filter(|(last, _)| last == group);
        last.is_some_and(|(_, end_us)| at_us.saturating_sub(*end_us) < SETTLED_MIN_US)
    }

    fn settles(&mut self, at_us: u64, group: &Settled) -> String {
        let Settled { coordinator, members, .. } = group;
        // It leads them now, whoever did before.
        self.coordinators.retain(|id| !members.contains(id));
        self.coordinators.insert(*coordinator);
        let since = self.cause.as_ref().map_or(String::new(), |(from_us, cause)| {
            format!(" ({} after {cause})", span(at_us.saturating_sub(*from_us)))
        });
        format!("settled under {coordinator}: {}{since}", list(members))
    }

    fn starts(
        &mut self,
        at_us: u64,
        id: NodeId,
        line: &Line,
        after: &mut [Entry],
    ) -> Option<String> {
        let cause = line.cause();
        let (known, told) = self.start(id);
        if told && cause == Some(ResetCause::Power) {
            return None;
        }
        let mut ids = Ids::from([id]);
        for entry in after.iter_mut() {
            let Some((other, line)) = entry.said() else { continue };
            let (knows, told) =
                self.nodes.get(&other).map_or((false, false), |node| (node.known, node.start_told));
            let alike = knows == known && !told;
            if line.word == "start" && line.cause() == cause && alike && ids.insert(other) {
                self.start(other);
                entry.told = true;
            }
        }
        let (sentence, cause) = match cause {
            Some(cause) if known || cause != ResetCause::Power => {
                let again = clause(&ids, "starts again", "start again");
                let why = reset(cause, ids.len() > 1);
                (format!("{again}: {why}"), format!("{} started again", list(&ids)))
            }
            _ => (clause(&ids, "starts", "start"), "the start".into()),
        };
        self.cause = Some((at_us, cause));
        Some(sentence)
    }

    /// A node begins anew. Whether it has run before, and whether its start was told.
    fn start(&mut self, id: NodeId) -> (bool, bool) {
        let node = self.node(id);
        let before = (node.known, node.start_told);
        *node = Node { known: true, ..Node::default() };
        before
    }

    fn state(&mut self, at_us: u64, id: NodeId, line: &Line) -> Option<String> {
        let What::State { status, coordinator, up, .. } = line.event()? else { return None };
        let number = |key| line.number(key).unwrap_or(0);
        let node = self.node(id);
        let was = node.status.replace(status);
        if was != Some(status) {
            node.sent.clear();
            node.noted = None;
        }
        if let Some(other) = coordinator.filter(|_| coordinator != node.coordinator) {
            // It listens to that one from now on.
            node.heard.insert(other, (at_us, true));
        }
        let followed = node.coordinator.filter(|other| *other != id);
        let members: Ids = up.into_iter().collect();
        if status == Status::Normal {
            node.unanswered.retain(|member, _| members.contains(member));
        }
        (node.coordinator, node.up) = (coordinator, members);
        if number("halted") != 0 {
            node.election = (number("halted"), number("halted_number"));
        }
        let alone = status == Status::Normal && coordinator == Some(id) && node.up.is_empty();
        let lost = followed.filter(|_| alone && was != Some(Status::Down))?;
        Some(format!("node {id} goes on alone, without {lost}"))
    }

    fn notes(&mut self, at_us: u64, id: NodeId, line: &Line, after: &mut [Entry]) -> Vec<String> {
        let what = line.get("what").unwrap_or_default();
        let Some(whom) = line.number("node").and_then(|id| NodeId::try_from(id).ok()) else {
            return vec![];
        };
        let one = match what {
            "election" => {
                return self.election(at_us, id, line.number("number").unwrap_or(0), after);
            }
            "suspected" => self.suspects(at_us, id, whom),
            "suspicion-wrong" => format!("node {id} finds that {whom} is there after all"),
            "foreign" => format!("node {id} hears another coordinator, {whom}"),
            "provoked" => format!("node {id} finds {whom} outside its group"),
            "halt-from-below" => {
                format!("node {id} refuses a Halt from {whom}, which ranks below it")
            }
            "not-authentic" => format!("node {id} gets forged datagrams in the name of {whom}"),
            "in-the-clear" => format!("node {id} hears {whom} in the clear: that can be forged"),
            "only-observers" => format!("node {id} finds observers only: nobody can coordinate"),
            "leaving" if whom == id => format!("node {id} says that it leaves"),
            "leaving" => {
                self.node(id).reason_us = Some(at_us);
                return vec![];
            }
            "id-clash" => {
                let same = |other: &Line| other.word == line.word && other.text() == line.text();
                let mut ids = gather(after, |_, other| same(other));
                ids.insert(id);
                let warn = clause(&ids, "warns", "warn");
                return vec![format!("{warn}: there are two boards with the id {whom}")];
            }
            other => format!("node {id} notes: {other} {whom}"),
        };
        let node = self.node(id);
        node.reason_us = Some(at_us);
        if node.noted.as_ref() == Some(&one) {
            return vec![];
        }
        node.sent.clear();
        node.noted = Some(one.clone());
        vec![one]
    }

    fn suspects(&self, at_us: u64, id: NodeId, whom: NodeId) -> String {
        let heard = self.nodes.get(&id).and_then(|node| node.heard.get(&whom));
        match heard {
            Some((heard_us, true)) => {
                let silent = span(at_us.saturating_sub(*heard_us));
                format!("node {id} suspects {whom}: no Beat for {silent}")
            }
            // The link loses frames: nobody knows which was the last to arrive.
            Some((_, false)) => format!("node {id} suspects {whom}: no Beat arrives"),
            None => format!("node {id} suspects {whom}: no sign of life"),
        }
    }

    /// An election, merge or run begins; why, as far as no other sentence has told.
    fn election(&mut self, at_us: u64, id: NodeId, number: u64, after: &[Entry]) -> Vec<String> {
        let node = self.node(id);
        node.election = (id.into(), number);
        node.sent.clear();
        let missed = |member: &NodeId| {
            node.unanswered.get(member).is_some_and(|checks| *checks >= UNANSWERED_MIN)
        };
        let recent_us = REASON_ROUNDS * node.t_us.unwrap_or(0);
        let known = node.reason_us.take().is_some_and(|reason_us| at_us < reason_us + recent_us);
        let missed: Ids = node.unanswered.keys().copied().filter(missed).collect();
        let last = missed.iter().filter_map(|member| node.answered_us.get(member)).max().copied();
        node.unanswered.clear();
        let mut sentences = Vec::new();
        if !known && !missed.is_empty() {
            let since = last.map_or(String::new(), |last_us| {
                format!(" for {}", span(at_us.saturating_sub(last_us)))
            });
            sentences
                .push(format!("node {id} misses {}: no answer to Check{since}", list(&missed)));
        }
        // Usually a message follows at once, and says what begins.
        let follows = after.iter().filter_map(Entry::said).any(|(from, line)| {
            let message = line.get("message").unwrap_or_default();
            from == id && matches!(message, "Halt" | "Invitation" | "Elect")
        });
        if !follows {
            sentences.push(format!("node {id} calls an election"));
        }
        sentences
    }

    fn other(&mut self, id: NodeId, line: &Line) -> Option<String> {
        let of = |key| line.get(key).unwrap_or("?");
        match line.word.as_str() {
            "mute" => Some(format!("node {id} stays mute: {}", mute(of("reason")))),
            "last" => {
                let what = line.text().split_once("what=").map_or("", |(_, what)| what);
                Some(format!("node {id} says why its last boot ended: {what}"))
            }
            "repair" => Some(format!(
                "node {id} mends its flash: region {} {}",
                of("region"),
                of("verdict")
            )),
            "fault" if line.get("what") == Some(HARMLESS) => None,
            "fault" => Some(format!("node {id} reports a fault: {}", of("what"))),
            "keys" => {
                let other = match of("other") {
                    "0" => "no other".to_owned(),
                    key => key.to_owned(),
                };
                Some(format!("node {id} now sends with key {} and accepts {other}", of("send")))
            }
            "boot" => {
                self.node(id).t_us = line.number("t_us");
                None
            }
            "link" => self.link(id, of("up") == "true"),
            _ => None,
        }
    }

    /// A cable that nobody of the lab has touched. At its start a board has no link for a moment.
    fn link(&mut self, id: NodeId, up: bool) -> Option<String> {
        let pulled = self.network.is_unplugged(id);
        let node = self.node(id);
        let was = std::mem::replace(&mut node.link_up, up);
        if up {
            let told = std::mem::take(&mut node.link_loss_told);
            return told.then(|| format!("node {id} has its link back"));
        }
        node.link_loss_told = was && !pulled;
        node.link_loss_told.then(|| format!("node {id} has lost its link"))
    }

    /// Something of `from` that shows that it lives is on its way to `to`, or to all (0).
    pub(super) fn sign_of_life(&mut self, at_us: u64, from: NodeId, to: NodeId) {
        for (id, node) in self.nodes.iter_mut().filter(|(id, _)| to == 0 || **id == to) {
            match self.network.reach(from, *id) {
                Reach::Never => {}
                reach => drop(node.heard.insert(from, (at_us, reach == Reach::Surely))),
            }
        }
    }
}

/// A Settled at this moment is followed by its end.
fn over_soon(at_us: u64, after: &mut [Entry]) -> bool {
    let soon = |entry: &&mut Entry| {
        matches!(entry.what, Happening::Unsettled(_)) && entry.at_us < at_us + SETTLED_MIN_US
    };
    after.iter_mut().find(soon).map(|end| end.told = true).is_some()
}

/// All that say such a thing soon, which is told with what is told now.
pub(super) fn gather(after: &mut [Entry], such: impl Fn(NodeId, &Line) -> bool) -> Ids {
    let mut ids = Ids::new();
    for entry in after {
        let Some((id, line)) = entry.said() else { continue };
        if such(id, line) {
            ids.insert(id);
            entry.told = true;
        }
    }
    ids
}
