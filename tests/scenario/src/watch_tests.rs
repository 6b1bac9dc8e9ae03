//! What events and actions do to the views, and scenarios judged from traces.

use crate::scenario::*;
use crate::trace::*;
use crate::watch::Watch;
use crate::{Unmet, judge_trace};

fn scenario(tail: &str) -> Scenario {
    let head = "name = \"x\"\nalgorithm = \"bully\"\nnodes = 2\nduration_ms = 100\n\
                tm_ms = 2\ntp_ms = 1\n";
    Scenario::parse("x.toml", &format!("{head}{tail}")).unwrap()
}

fn event(ms: u64, node: NodeId, what: What) -> NodeEvent {
    NodeEvent { at_us: ms * 1000, node, uncertainty_us: None, what }
}

fn normal(coordinator: NodeId, counter: u64) -> What {
    What::State {
        status: Status::Normal,
        coordinator: Some(coordinator),
        group: Some((coordinator, counter)),
        up: vec![],
        definition: Some(counter),
    }
}

fn reset(cause: ResetCause) -> What {
    What::Reset { cause }
}

fn alive(watch: &Watch) -> Vec<bool> {
    watch.seen().nodes.iter().map(|view| view.alive).collect()
}

#[test]
fn power_and_pause_are_followed() {
    let mut watch = Watch::new(&scenario("boot = [1]\n"));
    assert_eq!(alive(&watch), [true, false]);
    watch.act(&Action::Boot { nodes: vec![2] });
    watch.act(&Action::Pause { nodes: vec![1] });
    assert_eq!(alive(&watch), [false, true]);
    watch.act(&Action::Heal);
    watch.act(&Action::Resume { nodes: vec![1] });
    assert_eq!(alive(&watch), [true, true]);
    // A pause ends with the power.
    watch.act(&Action::Pause { nodes: vec![1] });
    watch.act(&Action::Kill { nodes: vec![1, 2] });
    assert_eq!(alive(&watch), [false, false]);
    watch.act(&Action::Boot { nodes: vec![1] });
    assert_eq!(alive(&watch), [true, false]);
    // The events of a trace say the same.
    watch.note(&event(1, 2, What::Boot));
    watch.note(&event(1, 1, What::Kill));
    assert_eq!(alive(&watch), [false, true]);
}

#[test]
fn a_state_is_forgotten_with_the_power_and_at_a_reset() {
    let forgetting: [&dyn Fn(&mut Watch); 5] = [
        &|watch| watch.act(&Action::Kill { nodes: vec![1] }),
        &|watch| watch.note(&event(2, 1, What::Kill)),
        &|watch| watch.note(&event(2, 1, What::Boot)),
        &|watch| watch.note(&event(2, 1, reset(ResetCause::Panic))),
        &|watch| {
            watch.act(&Action::Kill { nodes: vec![1] });
            watch.note(&event(2, 1, normal(2, 1)));
            watch.act(&Action::Boot { nodes: vec![1] });
        },
    ];
    for forget in forgetting {
        let mut watch = Watch::new(&scenario(""));
        watch.note(&event(1, 1, normal(2, 1)));
        assert_eq!(watch.seen().nodes[0].status, Status::Normal);
        assert_eq!(watch.seen().nodes[0].coordinator, Some(2));
        assert_eq!(watch.seen().nodes[0].group, Some((2, 1)));
        assert_eq!(watch.seen().nodes[0].definition, Some(1));
        forget(&mut watch);
        assert_eq!(watch.seen().nodes[0].status, Status::Down);
        assert_eq!(watch.seen().nodes[0].coordinator, None);
        assert_eq!(watch.seen().nodes[0].group, None);
        assert_eq!(watch.seen().nodes[0].definition, None);
    }
}

#[test]
fn what_a_node_said_after_its_boot_is_kept() {
    let mut watch = Watch::new(&scenario("boot = [1]\n"));
    watch.note(&event(1, 2, What::Boot));
    watch.note(&event(1, 2, normal(2, 1)));
    watch.act(&Action::Boot { nodes: vec![2] });
    assert_eq!(watch.seen().nodes[1].status, Status::Normal);
}

#[test]
fn resets_are_counted_by_cause_over_the_whole_run() {
    let mut watch = Watch::new(&scenario(""));
    watch.note(&event(1, 2, reset(ResetCause::Deadline)));
    watch.note(&event(1, 2, What::Kill));
    watch.note(&event(2, 2, What::Boot));
    watch.note(&event(2, 2, reset(ResetCause::Deadline)));
    watch.note(&event(2, 2, reset(ResetCause::Panic)));
    let wanted = [(ResetCause::Deadline, 2), (ResetCause::Panic, 1)].into();
    assert_eq!(watch.seen().nodes[1].resets, wanted);
    assert!(watch.seen().nodes[0].resets.is_empty());
}

#[test]
fn a_group_is_formed_once_and_by_its_coordinator() {
    let mut watch = Watch::new(&scenario(""));
    let electing = What::State {
        status: Status::Reorganization,
        coordinator: Some(2),
        group: Some((2, 2)),
        up: vec![],
        definition: None,
    };
    watch.note(&event(1, 1, normal(2, 1)));
    watch.note(&event(2, 2, normal(2, 1)));
    watch.note(&event(3, 2, normal(2, 1)));
    watch.note(&event(4, 2, electing));
    watch.note(&event(5, 2, normal(2, 2)));
    watch.note(&event(6, 2, normal(2, 1)));
    assert_eq!(watch.seen().formed, [(2_000, (2, 1)), (5_000, (2, 2))]);
}

#[test]
fn events_of_strangers_are_ignored() {
    let mut watch = Watch::new(&scenario(""));
    let before = watch.seen().clone();
    watch.note(&event(1, 9, What::Boot));
    watch.note(&event(1, 9, reset(ResetCause::Panic)));
    assert_eq!(*watch.seen(), before);
}

fn unmet_lines(scenario: &Scenario, factor: f64, events: &[NodeEvent]) -> Vec<usize> {
    let run = Run {
        algorithm: scenario.algorithm,
        nodes: scenario.nodes,
        tm_us: scenario.tm_us,
        tp_us: scenario.tp_us,
        factor,
    };
    let unmet: Vec<Unmet> = judge_trace(scenario, &run, events);
    unmet.into_iter().map(|unmet| unmet.line).collect()
}

const TWO_NODES: &str = "
[[expect]]
ms = 10
nodes = [1, 2]
settled = true
coordinator = 2

[[at]]
ms = 10
do = \"kill\"
nodes = [2]

[[at]]
ms = 20
do = \"pause\"
nodes = [1]

[[expect]]
ms = 20
node = 1
settled = false

[[expect]]
node = 1
coordinator = 1
";

fn two_nodes_events() -> Vec<NodeEvent> {
    vec![
        event(0, 1, What::Boot),
        event(0, 2, What::Boot),
        event(9, 1, normal(2, 1)),
        event(10, 2, normal(2, 1)),
        event(10, 2, What::Kill),
        event(15, 1, normal(1, 1)),
    ]
}

#[test]
fn a_trace_is_judged_in_the_order_of_the_file() {
    // Node 1 stays paused to the end, so the last expectation cannot hold.
    let scenario = scenario(TWO_NODES);
    assert_eq!(unmet_lines(&scenario, 1.0, &two_nodes_events()), [29]);
    // Without the state of node 2 at the instant of the first expectation that fails too.
    let mut events = two_nodes_events();
    events.remove(3);
    assert_eq!(unmet_lines(&scenario, 1.0, &events), [8, 29]);
}

#[test]
fn a_stretched_trace_is_judged_at_stretched_times() {
    let mut events = two_nodes_events();
    for event in &mut events {
        event.at_us *= 3;
    }
    let scenario = scenario(TWO_NODES);
    assert_eq!(unmet_lines(&scenario, 3.0, &events), [29]);
    assert_eq!(unmet_lines(&scenario, 1.0, &events), [8, 29]);
}

#[test]
fn killed_and_booted_in_one_instant_counts_as_booted() {
    let tail = "
at = [{ ms = 5, do = \"kill\", nodes = [1] }, { ms = 5, do = \"boot\", nodes = [1] }]
expect = [{ node = 1, settled = true }]
";
    let scenario = scenario(tail);
    let events = [
        event(0, 1, What::Boot),
        event(5, 1, What::Kill),
        event(5, 1, What::Boot),
        event(5, 1, normal(1, 2)),
    ];
    assert!(unmet_lines(&scenario, 1.0, &events).is_empty());
    assert_eq!(unmet_lines(&scenario, 1.0, &events[..3]), [9]);
}
