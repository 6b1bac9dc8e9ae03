//! The `[[at]]` entries: what happens to nodes and links, and when.

use std::collections::BTreeSet;

use crate::bad::BadFile;
use crate::power::PowerStates;
use crate::scenario::{Action, LinkQuality, NodeId, TimedAction};
use crate::time::Ms;
use crate::toml_table::{Field, Table};

#[derive(Clone, Copy, Debug)]
enum Kind {
    Kill,
    Boot,
    Pause,
    Resume,
    Leave,
    Reset,
    Partition,
    Link,
    Unplug,
    Plug,
    Heal,
}

const KINDS: [(&str, Kind); 11] = [
    ("kill", Kind::Kill),
    ("boot", Kind::Boot),
    ("pause", Kind::Pause),
    ("resume", Kind::Resume),
    ("leave", Kind::Leave),
    ("reset", Kind::Reset),
    ("partition", Kind::Partition),
    ("link", Kind::Link),
    ("unplug", Kind::Unplug),
    ("plug", Kind::Plug),
    ("heal", Kind::Heal),
];

/// Every key that some action knows.
const ALL_KEYS: [&str; 11] = [
    "ms",
    "do",
    "nodes",
    "sets",
    "from",
    "to",
    "loss",
    "delay_ms",
    "jitter_ms",
    "duplicate",
    "reorder",
];

impl Kind {
    fn keys(self) -> &'static [&'static str] {
        match self {
            Kind::Kill
            | Kind::Boot
            | Kind::Pause
            | Kind::Resume
            | Kind::Leave
            | Kind::Reset
            | Kind::Unplug
            | Kind::Plug => &["ms", "do", "nodes"],
            Kind::Partition => &["ms", "do", "sets"],
            Kind::Link => {
                &["ms", "do", "from", "to", "loss", "delay_ms", "jitter_ms", "duplicate", "reorder"]
            }
            Kind::Heal => &["ms", "do"],
        }
    }
}

pub(crate) fn parse_actions(
    document: Table<'_>,
    nodes: NodeId,
    duration_us: u64,
    boot: &[NodeId],
) -> Result<Vec<TimedAction>, BadFile> {
    let allowed = "[[at]] tables";
    let entries = match document.get("at") {
        Some(field) => field.list(allowed)?,
        None => Vec::new(),
    };
    let mut power = PowerStates::new(boot);
    let mut actions = Vec::with_capacity(entries.len());
    let mut earliest_us = 0;
    for entry in entries {
        let timed =
            parse_action(entry.table(allowed)?, nodes, earliest_us, duration_us, &mut power)?;
        earliest_us = timed.at_us;
        actions.push(timed);
    }
    Ok(actions)
}

fn parse_action(
    entry: Table<'_>,
    nodes: NodeId,
    earliest_us: u64,
    duration_us: u64,
    power: &mut PowerStates,
) -> Result<TimedAction, BadFile> {
    entry.allow_only(&ALL_KEYS)?;
    let at = entry.need("ms", "the time of the action")?;
    let at_us = at.time_us()?;
    if !(earliest_us..=duration_us).contains(&at_us) {
        let (earliest, latest) = (Ms(earliest_us), Ms(duration_us));
        return Err(at.bad(
            format!("`ms` is {}", Ms(at_us)),
            format!("allowed: {earliest} (the entry before) to {latest} (`duration_ms`)"),
        ));
    }
    let do_field = entry.need("do", "the action")?;
    let kind = do_field.one_of(&KINDS)?;
    let name = do_field.text()?;
    let stranger = (entry.keys().into_iter()).find(|(key, _)| !kind.keys().contains(key));
    if let Some((key, line)) = stranger {
        return Err(entry.source.bad(
            line,
            format!("`{key}` does not belong to do = \"{name}\""),
            format!("allowed with it: {}", kind.keys().join(", ")),
        ));
    }

    let nodes_of = || entry.need("nodes", "the ids that the action is for");
    let action = match kind {
        Kind::Kill => Action::Kill { nodes: power.kill(nodes_of()?, nodes)? },
        Kind::Boot => Action::Boot { nodes: power.boot(nodes_of()?, nodes)? },
        Kind::Pause => Action::Pause { nodes: power.pause(nodes_of()?, nodes)? },
        Kind::Resume => Action::Resume { nodes: power.resume(nodes_of()?, nodes)? },
        Kind::Leave => Action::Leave { nodes: power.leave(nodes_of()?, nodes)? },
        Kind::Reset => Action::Reset { nodes: power.reset(nodes_of()?, nodes)? },
        Kind::Partition => parse_partition(entry, nodes)?,
        Kind::Link => parse_link(entry, nodes)?,
        Kind::Unplug => Action::Unplug { nodes: power.cable(nodes_of()?, nodes, name)? },
        Kind::Plug => Action::Plug { nodes: power.cable(nodes_of()?, nodes, name)? },
        Kind::Heal => Action::Heal,
    };
    Ok(TimedAction { at_us, line: entry.line, action })
}

/// No sets at all is legal: a node in no set is alone, so everybody is.
fn parse_partition(entry: Table<'_>, nodes: NodeId) -> Result<Action, BadFile> {
    let field = entry.need("sets", "the sets inside which frames pass")?;
    let mut seen = BTreeSet::new();
    let sets: Result<Vec<_>, _> = field
        .list("a list of lists of node ids")?
        .iter()
        .map(|set| set.ids_not_in(nodes, &mut seen))
        .collect();
    Ok(Action::Partition { sets: sets? })
}

fn parse_link(entry: Table<'_>, nodes: NodeId) -> Result<Action, BadFile> {
    let from = entry.need("from", "the ids that send")?.ids(nodes)?;
    let to = entry.need("to", "the ids that receive")?.ids(nodes)?;
    if from.len() == 1 && from == to {
        return Err(entry.bad(
            format!("the only pair is node {0} to node {0}", from[0]),
            "allowed: `from` and `to` with at least one pair of different nodes",
        ));
    }
    let probability = |key| entry.get(key).map_or(Ok(0.0), |field: Field<'_>| field.probability());
    let time_us = |key| entry.get(key).map_or(Ok(0), |field: Field<'_>| field.time_us());
    let quality = LinkQuality {
        loss: probability("loss")?,
        delay_us: time_us("delay_ms")?,
        jitter_us: time_us("jitter_ms")?,
        duplicate: probability("duplicate")?,
        reorder: probability("reorder")?,
    };
    Ok(Action::Link { from, to, quality })
}
