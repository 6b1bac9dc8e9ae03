//! Small words: who, how long, why.

use std::collections::BTreeSet;

use bellwether_scenario::{NodeId, ResetCause};

pub type Ids = BTreeSet<NodeId>;

/// More than these are told as ranges, so that a sentence of sixty boards fits its line.
const LISTED_MAX: usize = 8;

/// `1 2 3`, or `1-9 12-16` where there are many.
pub fn list(ids: &Ids) -> String {
    let mut ranges: Vec<(NodeId, NodeId)> = Vec::new();
    for id in ids {
        match ranges.last_mut() {
            Some((_, last)) if ids.len() > LISTED_MAX && *last + 1 == *id => *last = *id,
            _ => ranges.push((*id, *id)),
        }
    }
    let shown = |(first, last): &(NodeId, NodeId)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(shown).collect::<Vec<_>>().join(" ")
}

/// `node 3 starts`, `nodes 1 2 start`.
pub fn clause(ids: &Ids, one: &str, many: &str) -> String {
    match ids.len() {
        1 => format!("node {} {one}", list(ids)),
        _ => format!("nodes {} {many}", list(ids)),
    }
}

/// A span of time, as exact as an eye can follow.
pub fn span(us: u64) -> String {
    match us {
        0..100_000 => format!("{} ms", us / 1000),
        _ => format!("{:.1} s", us as f64 / 1e6),
    }
}

/// Why one node, or several, have started again.
pub fn reset(cause: ResetCause, several: bool) -> &'static str {
    match (cause, several) {
        (ResetCause::Deadline, false) => "it missed its deadline",
        (ResetCause::Deadline, true) => "they missed their deadline",
        (ResetCause::Watchdog, false) => "it hung, and its watchdog bit",
        (ResetCause::Watchdog, true) => "they hung, and their watchdogs bit",
        (ResetCause::Panic, false) => "it panicked",
        (ResetCause::Panic, true) => "they panicked",
        (ResetCause::Request, false) => "it reset itself",
        (ResetCause::Request, true) => "they reset themselves",
        (ResetCause::Power, false) => "it was reset",
        (ResetCause::Power, true) => "they were reset",
    }
}

/// Why a node may not speak. Reasons without words of their own are told as they are.
pub fn mute(reason: &str) -> String {
    let known = match reason {
        "id-clash" => "another board has its id and was there before",
        "blank" | "unprovisioned" => "its flash is not provisioned",
        "newer-format" => "its flash is of a newer format",
        "other-network" => "its flash is of another network",
        "keys-missing" => "its flash has no keys",
        "no-epoch" | "epoch-not-durable" => "its boot epoch is not safe in flash",
        "epoch-exhausted" => "its boot epochs are used up",
        "state-not-durable" => "its state cannot be saved",
        other => other,
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_nodes_are_ranges() {
        assert_eq!(list(&[1, 2, 4].into()), "1 2 4");
        assert_eq!(list(&(1..=8).collect()), "1 2 3 4 5 6 7 8");
        assert_eq!(list(&(1..=16).filter(|id| ![3, 5].contains(id)).collect()), "1-2 4 6-16");
    }

    #[test]
    fn one_node_starts_and_two_nodes_start() {
        assert_eq!(clause(&[3].into(), "starts", "start"), "node 3 starts");
        assert_eq!(clause(&[1, 2].into(), "starts", "start"), "nodes 1 2 start");
    }

    #[test]
    fn short_spans_are_milliseconds() {
        assert_eq!(span(99_999), "99 ms");
        assert_eq!(span(540_000), "0.5 s");
    }
}
