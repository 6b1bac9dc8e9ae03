//! What was expected against what was seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::scenario::{
    Expectation, ExpectedElections, ExpectedResets, Group, NodeId, ResetCause, Status,
};
use crate::time::Ms;

/// How often a node restarted itself; a cause that is missing did not occur.
pub type ResetCounts = BTreeMap<ResetCause, u64>;

/// One node at the time of the judgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    pub id: NodeId,
    /// Powered and not paused.
    pub alive: bool,
    pub status: Status,
    pub coordinator: Option<NodeId>,
    pub group: Option<Group>,
    pub up: Vec<NodeId>,
    pub definition: Option<u64>,
    pub resets: ResetCounts,
}

/// A run as far as it has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    pub nodes: Vec<NodeView>,
    /// When which group was formed, that is: its coordinator turned Normal in it for the first
    /// time.
    pub formed: Vec<(u64, Group)>,
}

/// An expectation that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// Where the expectation stands in the scenario.
    pub line: usize,
    /// What was expected and what was seen.
    pub sentence: String,
}

impl NodeView {
    /// A node that has not said anything yet.
    pub fn new(id: NodeId, alive: bool) -> NodeView {
        NodeView {
            id,
            alive,
            status: Status::Down,
            coordinator: None,
            group: None,
            up: Vec::new(),
            definition: None,
            resets: ResetCounts::new(),
        }
    }
}

/// Judges all that the expectation says; the first thing that does not hold is told.
pub fn judge(expectation: &Expectation, seen: &Observation) -> Result<(), Unmet> {
    match find_unmet(expectation, seen) {
        None => Ok(()),
        Some(what) => Err(Unmet {
            line: expectation.line,
            sentence: format!("at {} ms {what}", Ms(expectation.at_us)),
        }),
    }
}

fn find_unmet(expectation: &Expectation, seen: &Observation) -> Option<String> {
    let mut views = Vec::with_capacity(expectation.nodes.len());
    for &id in &expectation.nodes {
        match seen.nodes.iter().find(|view| view.id == id) {
            Some(view) => views.push(view),
            None => return Some(format!("node {id} was to be judged, but was never seen")),
        }
    }
    let settled = expectation.settled.and_then(|wanted| unmet_settled(wanted, &views));
    settled
        .or_else(|| (expectation.coordinator).and_then(|id| unmet_coordinator(id, &views)))
        .or_else(|| expectation.resets.and_then(|wanted| unmet_resets(wanted, &views)))
        .or_else(|| (expectation.elections).and_then(|wanted| unmet_elections(wanted, seen)))
}

fn unmet_settled(wanted: bool, views: &[&NodeView]) -> Option<String> {
    match (wanted, why_unsettled(views)) {
        (true, Some(why)) => Some(format!(
            "{} expected to be settled, but {why}; seen: {}",
            were(views),
            Seen(views)
        )),
        (false, None) => Some(format!(
            "{} expected not to be settled, but all agree; seen: {}",
            were(views),
            Seen(views)
        )),
        _ => None,
    }
}

/// `None`: all are alive and Normal, with one coordinator, one group and one definition.
fn why_unsettled(views: &[&NodeView]) -> Option<String> {
    if let Some(view) = views.iter().find(|view| !view.alive) {
        return Some(format!("node {} has no power or is paused", view.id));
    }
    if let Some(view) = views.iter().find(|view| view.status != Status::Normal) {
        return Some(format!("node {} is in {}", view.id, view.status));
    }
    disagreement(views, "coordinator", |view| view.coordinator)
        .or_else(|| disagreement(views, "group", |view| view.group))
        .or_else(|| disagreement(views, "definition", |view| view.definition))
}

/// Nodes that all have none do not agree: there is nothing that they agree on.
fn disagreement<T: Ord>(
    views: &[&NodeView],
    name: &str,
    value: impl Fn(&NodeView) -> Option<T>,
) -> Option<String> {
    if let Some(view) = views.iter().find(|view| value(view).is_none()) {
        return Some(format!("node {} has no {name}", view.id));
    }
    let different: BTreeSet<T> = views.iter().filter_map(|view| value(view)).collect();
    (different.len() > 1).then(|| format!("there are {} {name}s", different.len()))
}

fn unmet_coordinator(wanted: NodeId, views: &[&NodeView]) -> Option<String> {
    let wrong = (views.iter()).find(|view| !view.alive || view.coordinator != Some(wanted))?;
    let why = match (wrong.alive, wrong.coordinator) {
        (false, _) => format!("node {} has no power or is paused", wrong.id),
        (true, Some(other)) => format!("node {} follows node {other}", wrong.id),
        (true, None) => format!("node {} has no coordinator", wrong.id),
    };
    Some(format!(
        "{} expected to have coordinator {wanted}, but {why}; seen: {}",
        were(views),
        Seen(views)
    ))
}

fn unmet_resets(wanted: ExpectedResets, views: &[&NodeView]) -> Option<String> {
    views.iter().find_map(|view| {
        let count = view.resets.get(&wanted.cause).copied().unwrap_or(0);
        (!wanted.count.contains(count)).then(|| {
            format!(
                "node {} was expected to have reset itself {} times because of {}, but did so {count} times",
                view.id, wanted.count, wanted.cause
            )
        })
    })
}

fn unmet_elections(wanted: ExpectedElections, seen: &Observation) -> Option<String> {
    let formed: Vec<Group> = (seen.formed.iter())
        .filter(|(at_us, _)| *at_us >= wanted.since_us)
        .map(|(_, group)| *group)
        .collect();
    if wanted.count.contains(formed.len() as u64) {
        return None;
    }
    let mut sentence = format!(
        "{} groups were expected to have been formed since {} ms, but {} were",
        wanted.count,
        Ms(wanted.since_us),
        formed.len()
    );
    // The first few show who it was; a livelock forms thousands.
    for (index, group) in formed.iter().take(10).enumerate() {
        sentence.push_str(if index == 0 { ": " } else { ", " });
        sentence.push_str(&shown_group(group));
    }
    if formed.len() > 10 {
        sentence.push_str(", …");
    }
    Some(sentence)
}

fn shown_group((owner, counter): &Group) -> String {
    format!("{owner}.{counter}")
}

fn were(views: &[&NodeView]) -> String {
    let ids: Vec<String> = views.iter().map(|view| view.id.to_string()).collect();
    match ids.as_slice() {
        [id] => format!("node {id} was"),
        _ => format!("nodes {} were", ids.join(", ")),
    }
}

struct Seen<'v>(&'v [&'v NodeView]);

impl fmt::Display for Seen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, view) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{view}")?;
        }
        Ok(())
    }
}

impl fmt::Display for NodeView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.id)?;
        if !self.alive {
            return f.write_str(" off");
        }
        write!(f, " {}", self.status)?;
        if let Some(coordinator) = self.coordinator {
            write!(f, " under {coordinator}")?;
        }
        if let Some(group) = &self.group {
            write!(f, " in {}", shown_group(group))?;
        }
        match self.definition {
            Some(definition) => write!(f, " with {definition:016x}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.sentence)
    }
}

impl std::error::Error for Unmet {}
