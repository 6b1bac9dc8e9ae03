//! Judgements that hold, and what is told of those that do not.

use crate::judge::*;
use crate::scenario::*;

fn settled_node(id: NodeId) -> NodeView {
    NodeView {
        status: Status::Normal,
        coordinator: Some(3),
        group: Some((3, 7)),
        definition: Some(0xd),
        ..NodeView::new(id, true)
    }
}

fn settled() -> Observation {
    Observation { nodes: vec![settled_node(1), settled_node(2), settled_node(3)], formed: vec![] }
}

fn about(nodes: &[NodeId]) -> Expectation {
    Expectation {
        at_us: 1_500,
        at_end: true,
        line: 42,
        nodes: nodes.to_vec(),
        settled: None,
        coordinator: None,
        resets: None,
        elections: None,
    }
}

fn expecting_settled(wanted: bool) -> Expectation {
    Expectation { settled: Some(wanted), ..about(&[1, 2, 3]) }
}

/// Both judgements of "settled" on three nodes of which the second was changed.
fn judge_changed(change: impl Fn(&mut NodeView)) -> String {
    let mut seen = settled();
    change(&mut seen.nodes[1]);
    assert_eq!(judge(&expecting_settled(false), &seen), Ok(()));
    judge(&expecting_settled(true), &seen).unwrap_err().sentence
}

#[test]
fn settled_nodes_are_settled() {
    assert_eq!(judge(&expecting_settled(true), &settled()), Ok(()));
    let unmet = judge(&expecting_settled(false), &settled()).unwrap_err();
    assert_eq!(
        unmet.to_string(),
        "line 42: at 1.5 ms nodes 1, 2, 3 were expected not to be settled, but all agree; \
         seen: node 1 Normal under 3 in 3.7 with 000000000000000d, \
         node 2 Normal under 3 in 3.7 with 000000000000000d, \
         node 3 Normal under 3 in 3.7 with 000000000000000d"
    );
}

#[test]
fn each_part_of_settled_is_judged() {
    let told = |sentence: String, why: &str| {
        let start = "at 1.5 ms nodes 1, 2, 3 were expected to be settled, but ";
        let wanted = format!("{start}{why}; seen: node 1 Normal under 3 in 3.7");
        assert!(sentence.starts_with(&wanted), "{sentence}");
    };
    told(judge_changed(|node| node.alive = false), "node 2 has no power or is paused");
    for status in [Status::Down, Status::Election, Status::Reorganization] {
        let sentence = judge_changed(|node| node.status = status);
        told(sentence, &format!("node 2 is in {status:?}"));
    }
    told(judge_changed(|node| node.coordinator = Some(2)), "there are 2 coordinators");
    told(judge_changed(|node| node.coordinator = None), "node 2 has no coordinator");
    told(judge_changed(|node| node.group = Some((3, 8))), "there are 2 groups");
    told(judge_changed(|node| node.group = None), "node 2 has no group");
    told(judge_changed(|node| node.definition = Some(0xe)), "there are 2 definitions");
    told(judge_changed(|node| node.definition = None), "node 2 has no definition");
}

#[test]
fn only_the_listed_nodes_are_judged() {
    let mut seen = settled();
    seen.nodes[2].alive = false;
    let wanted = Expectation { settled: Some(true), coordinator: Some(3), ..about(&[1, 2]) };
    assert_eq!(judge(&wanted, &seen), Ok(()));
}

#[test]
fn a_node_that_nobody_saw_fails_every_expectation() {
    let wanted = Expectation { settled: Some(false), ..about(&[4]) };
    let unmet = judge(&wanted, &settled()).unwrap_err();
    assert_eq!(unmet.sentence, "at 1.5 ms node 4 was to be judged, but was never seen");
}

#[test]
fn the_coordinator_is_judged_without_settled() {
    let wanted = Expectation { coordinator: Some(3), ..about(&[1, 2]) };
    let judged = |change: fn(&mut NodeView)| {
        let mut seen = settled();
        change(&mut seen.nodes[1]);
        judge(&wanted, &seen).map_err(|unmet| unmet.sentence)
    };
    let start = "at 1.5 ms nodes 1, 2 were expected to have coordinator 3, but ";
    let seen_1 = "seen: node 1 Normal under 3 in 3.7 with 000000000000000d";
    let seen_2 = "in 3.7 with 000000000000000d";
    assert_eq!(judged(|node| node.status = Status::Election), Ok(()));
    assert_eq!(
        judged(|node| node.coordinator = Some(2)).unwrap_err(),
        format!("{start}node 2 follows node 2; {seen_1}, node 2 Normal under 2 {seen_2}")
    );
    assert_eq!(
        judged(|node| node.coordinator = None).unwrap_err(),
        format!("{start}node 2 has no coordinator; {seen_1}, node 2 Normal {seen_2}")
    );
    assert_eq!(
        judged(|node| node.alive = false).unwrap_err(),
        format!("{start}node 2 has no power or is paused; {seen_1}, node 2 off")
    );
}

#[test]
fn settled_under_another_coordinator_is_unmet() {
    let wanted = Expectation { coordinator: Some(2), ..expecting_settled(true) };
    let sentence = judge(&wanted, &settled()).unwrap_err().sentence;
    assert!(sentence.contains("but node 1 follows node 3"), "{sentence}");
}

#[test]
fn resets_are_counted_for_each_node_and_cause() {
    let mut seen = settled();
    seen.nodes[1].resets = [(ResetCause::Deadline, 2), (ResetCause::Panic, 5)].into();
    let judged = |nodes: &[NodeId], at_least, at_most| {
        let wanted = Expectation {
            resets: Some(ExpectedResets {
                cause: ResetCause::Deadline,
                count: Bounds { at_least, at_most },
            }),
            ..about(nodes)
        };
        judge(&wanted, &seen).map_err(|unmet| unmet.sentence)
    };
    assert_eq!(judged(&[2], 2, Some(2)), Ok(()));
    assert_eq!(judged(&[2], 1, None), Ok(()));
    assert_eq!(judged(&[1], 0, Some(0)), Ok(()));
    assert_eq!(
        judged(&[2], 3, None).unwrap_err(),
        "at 1.5 ms node 2 was expected to have reset itself at least 3 times because of \
         deadline, but did so 2 times"
    );
    assert_eq!(
        judged(&[2], 0, Some(1)).unwrap_err(),
        "at 1.5 ms node 2 was expected to have reset itself at most 1 times because of \
         deadline, but did so 2 times"
    );
    let sentence = judged(&[2, 1], 2, Some(2)).unwrap_err();
    assert!(sentence.contains("node 1 was expected"), "{sentence}");
    assert!(sentence.contains("exactly 2 times"), "{sentence}");
}

#[test]
fn groups_are_counted_from_the_given_time() {
    let seen =
        Observation { formed: vec![(999, (1, 1)), (1_000, (2, 1)), (1_001, (3, 1))], ..settled() };
    let judged = |since_us, at_least, at_most| {
        let wanted = Expectation {
            elections: Some(ExpectedElections { since_us, count: Bounds { at_least, at_most } }),
            ..about(&[1])
        };
        judge(&wanted, &seen).map_err(|unmet| unmet.sentence)
    };
    assert_eq!(judged(0, 3, Some(3)), Ok(()));
    assert_eq!(judged(1_000, 2, Some(2)), Ok(()));
    assert_eq!(judged(1_002, 0, Some(0)), Ok(()));
    assert_eq!(
        judged(1_000, 0, Some(1)).unwrap_err(),
        "at 1.5 ms at most 1 groups were expected to have been formed since 1 ms, \
         but 2 were: 2.1, 3.1"
    );
    assert_eq!(
        judged(1_002, 1, None).unwrap_err(),
        "at 1.5 ms at least 1 groups were expected to have been formed since 1.002 ms, \
         but 0 were"
    );
}
