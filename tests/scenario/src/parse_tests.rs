//! What a legal file means.

use std::num::NonZeroU8;

use crate::scenario::*;
use crate::{Overrides, Scenario};

/// The sample of the interface description, word for word.
const SAMPLE: &str = include_str!("sample.toml");

fn expectation(line: usize, nodes: &[NodeId]) -> Expectation {
    Expectation {
        at_us: 20_000_000,
        at_end: true,
        line,
        nodes: nodes.to_vec(),
        settled: None,
        coordinator: None,
        resets: None,
        elections: None,
    }
}

fn at(ms: u64, line: usize, action: Action) -> TimedAction {
    TimedAction { at_us: ms * 1000, line, action }
}

#[test]
fn the_sample_of_the_interface_is_read_in_full() {
    let cut = LinkQuality { loss: 1.0, ..LinkQuality::default() };
    let wanted = Scenario {
        name: "coordinator dies and comes back".to_owned(),
        algorithm: Algorithm::Invitation,
        nodes: 5,
        seed: 7,
        duration_us: 20_000_000,
        tm_us: 20_000,
        tp_us: 10_000,
        t_us: None,
        check_us: None,
        quiet_us: None,
        quiet_max_us: None,
        detector: Detector::Heartbeat,
        preempt: true,
        hold_off_us: None,
        durability: Durability::Group,
        observers: vec![],
        boot: vec![1, 2, 3, 4, 5],
        preference: Default::default(),
        actions: vec![
            at(4000, 13, Action::Kill { nodes: vec![5] }),
            at(8000, 18, Action::Boot { nodes: vec![5] }),
            at(10_000, 23, Action::Partition { sets: vec![vec![1, 2], vec![3, 4, 5]] }),
            at(13_000, 28, Action::Link { from: vec![1], to: vec![2], quality: cut }),
            at(14_000, 39, Action::Pause { nodes: vec![2] }),
            at(14_200, 44, Action::Resume { nodes: vec![2] }),
            at(15_000, 49, Action::Heal),
        ],
        expectations: vec![
            Expectation {
                settled: Some(true),
                coordinator: Some(5),
                ..expectation(53, &[1, 2, 3, 4, 5])
            },
            Expectation {
                resets: Some(ExpectedResets {
                    cause: ResetCause::Deadline,
                    count: Bounds { at_least: 1, at_most: None },
                }),
                ..expectation(58, &[2])
            },
        ],
    };
    assert_eq!(Scenario::parse("sample.toml", SAMPLE), Ok(wanted));
}

#[test]
fn every_optional_key_is_read() {
    let text = r#"
name = "all keys"
algorithm = "bully"
nodes = 3
duration_ms = 1000.5
tm_ms = 0.25
tp_ms = 0.125
t_ms = 0.7
check_ms = 7
quiet_ms = 1.05
quiet_max_ms = 4
detector = "adaptive"
preempt = false
hold_off_ms = 70
durability = "strict"
observers = [2, 1]
boot = [3, 1]

[preference]
2 = 10
3 = 0

[[at]]
ms = 0.001
do = "link"
from = [1, 2]
to = [2, 3]
loss = 1
delay_ms = 1.5
jitter_ms = 2
duplicate = 0.25
reorder = 0.5

[[at]]
ms = 0.001
do = "partition"
sets = []

[[expect]]
ms = 900
node = 2
settled = false
elections = { since_ms = 800, at_least = 1, at_most = 2 }
"#;
    let scenario = Scenario::parse("all.toml", text).unwrap();
    assert_eq!(scenario.duration_us, 1_000_500);
    assert_eq!((scenario.tm_us, scenario.tp_us), (250, 125));
    assert_eq!((scenario.t_us, scenario.round_us()), (Some(700), 700));
    assert_eq!(scenario.check_us, Some(7_000));
    assert_eq!(scenario.quiet_us, Some(1_050));
    assert_eq!(scenario.quiet_max_us, Some(4_000));
    assert_eq!(scenario.detector, Detector::Adaptive);
    assert!(!scenario.preempt);
    assert_eq!(scenario.hold_off_us, Some(70_000));
    assert_eq!(scenario.durability, Durability::Strict);
    assert_eq!(scenario.observers, [1, 2]);
    assert_eq!(scenario.boot, [1, 3]);
    assert_eq!(scenario.preference, [(2, 10), (3, 0)].into());
    assert_eq!(scenario.seed, 1);
    let quality =
        LinkQuality { loss: 1.0, delay_us: 1_500, jitter_us: 2_000, duplicate: 0.25, reorder: 0.5 };
    let link = Action::Link { from: vec![1, 2], to: vec![2, 3], quality };
    assert_eq!(scenario.actions[0].at_us, 1);
    assert_eq!(scenario.actions[0].action, link);
    assert_eq!(scenario.actions[1].action, Action::Partition { sets: vec![] });
    let wanted = Expectation {
        at_us: 900_000,
        at_end: false,
        settled: Some(false),
        elections: Some(ExpectedElections {
            since_us: 800_000,
            count: Bounds { at_least: 1, at_most: Some(2) },
        }),
        ..expectation(39, &[2])
    };
    assert_eq!(scenario.expectations, [wanted]);
}

#[test]
fn a_file_may_stop_after_what_is_required() {
    let text = "name = \"short\"\nalgorithm = \"ring\"\nnodes = 255\n\
                duration_ms = 10\ntm_ms = 20\ntp_ms = 10\n";
    let scenario = Scenario::parse("short.toml", text).unwrap();
    assert_eq!(scenario.algorithm, Algorithm::Ring);
    assert_eq!(scenario.boot, (1..=255).collect::<Vec<_>>());
    assert_eq!(scenario.round_us(), 50_000);
    assert!(scenario.preempt);
    assert!(scenario.timeline().is_empty());
}

#[test]
fn the_command_line_replaces_what_the_file_says_before_it_is_checked() {
    let overrides = Overrides {
        algorithm: Some(Algorithm::Bully),
        nodes: NonZeroU8::new(9),
        seed: Some(u64::MAX),
        detector: Some(Detector::Indirect),
        preempt: Some(false),
    };
    let scenario = Scenario::parse_with("sample.toml", SAMPLE, overrides).unwrap();
    assert_eq!(scenario.algorithm, Algorithm::Bully);
    assert_eq!((scenario.nodes, scenario.seed), (9, u64::MAX));
    assert_eq!(scenario.detector, Detector::Indirect);
    assert!(!scenario.preempt);

    let overrides = Overrides { nodes: NonZeroU8::new(3), ..Overrides::default() };
    let bad = Scenario::parse_with("sample.toml", SAMPLE, overrides).unwrap_err();
    assert_eq!(bad.to_string(), "sample.toml:8: `boot` is 4; allowed: a node id from 1 to 3");
}

#[test]
fn a_paused_node_may_be_killed_and_is_not_paused_after_its_boot() {
    let text = "name = \"p\"\nalgorithm = \"bully\"\nnodes = 2\n\
                duration_ms = 10\ntm_ms = 20\ntp_ms = 10\n\
                at = [{ ms = 1, do = \"pause\", nodes = [1] },\n\
                { ms = 2, do = \"kill\", nodes = [1] },\n\
                { ms = 3, do = \"boot\", nodes = [1] },\n\
                { ms = 4, do = \"pause\", nodes = [1] }]\n";
    let scenario = Scenario::parse("p.toml", text).unwrap();
    let lines: Vec<usize> = scenario.actions.iter().map(|timed| timed.line).collect();
    assert_eq!(lines, [7, 8, 9, 10]);
}

#[test]
fn the_timeline_is_by_time_then_by_line_with_the_end_last() {
    let text = r#"
name = "order"
algorithm = "bully"
nodes = 2
duration_ms = 20
tm_ms = 20
tp_ms = 10
[[expect]]
node = 1
settled = true
[[expect]]
ms = 20
node = 1
settled = true
[[at]]
ms = 10
do = "kill"
nodes = [1]
[[expect]]
ms = 10
node = 1
settled = false
[[expect]]
ms = 5
node = 1
settled = true
[[at]]
ms = 20
do = "boot"
nodes = [1]
"#;
    let scenario = Scenario::parse("order.toml", text).unwrap();
    let line = |step: Step<'_>| match step {
        Step::Act(timed) => timed.line,
        Step::Judge(expectation) => expectation.line,
    };
    let lines: Vec<usize> = scenario.timeline().into_iter().map(line).collect();
    assert_eq!(lines, [23, 15, 19, 11, 27, 8]);
}

#[test]
fn stretching_moves_every_time_and_nothing_else() {
    let text = r#"
name = "s"
algorithm = "bully"
nodes = 2
duration_ms = 20
tm_ms = 0.333
tp_ms = 0.333
t_ms = 0.999
check_ms = 0.999
quiet_ms = 2
[[at]]
ms = 10
do = "link"
from = [1]
to = [2]
loss = 0.5
delay_ms = 3
jitter_ms = 4
[[expect]]
ms = 12
node = 1
settled = false
elections = { since_ms = 11, at_most = 3 }
"#;
    let scenario = Scenario::parse("s.toml", text).unwrap();
    assert_eq!(scenario.stretched(1.0), scenario);

    let stretched = scenario.stretched(2.5);
    // 832.5 is rounded up three times but 2497.5 only once: T gives way.
    assert_eq!((stretched.tm_us, stretched.tp_us), (833, 833));
    assert_eq!(stretched.t_us, Some(2_499));
    assert_eq!(stretched.check_us, Some(2_499));
    assert_eq!(stretched.quiet_us, Some(5_000));
    assert_eq!(stretched.duration_us, 50_000);
    assert_eq!(stretched.actions[0].at_us, 25_000);
    let quality =
        LinkQuality { loss: 0.5, delay_us: 7_500, jitter_us: 10_000, ..LinkQuality::default() };
    let link = Action::Link { from: vec![1], to: vec![2], quality };
    assert_eq!(stretched.actions[0].action, link);
    assert_eq!(stretched.expectations[0].at_us, 30_000);
    let elections = stretched.expectations[0].elections.unwrap();
    assert_eq!((elections.since_us, elections.count.at_most), (27_500, Some(3)));
}
