//! Recorded runs, and what is told of them.
//!
//! `recorded/*.log` are lines of real boards in the order in which the lab read them, with the actions of the
//! lab between them; `recorded/*.txt` are the stories. A changed story is a failed test: if it is a better
//! one, put what the test prints into the file.

use bellwether_scenario::{
    Action, Algorithm, LinkQuality, NodeEvent, ResetCause, Scenario, Watch, What,
};

use super::*;

/// An action as a recording has it: `kill 5`, `partition 1 2 | 3 4 5`.
fn action(text: &str) -> Action {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let ids = |text: &str| text.split_whitespace().map(|id| id.parse().unwrap()).collect();
    let nodes = || ids(rest);
    match word {
        "kill" => Action::Kill { nodes: nodes() },
        "boot" => Action::Boot { nodes: nodes() },
        "pause" => Action::Pause { nodes: nodes() },
        "resume" => Action::Resume { nodes: nodes() },
        "reset" => Action::Reset { nodes: nodes() },
        "leave" => Action::Leave { nodes: nodes() },
        "unplug" => Action::Unplug { nodes: nodes() },
        "plug" => Action::Plug { nodes: nodes() },
        "partition" => Action::Partition { sets: rest.split('|').map(ids).collect() },
        "heal" => Action::Heal,
        "loss" => {
            let ids: Vec<u8> = nodes();
            let quality = LinkQuality { loss: 0.2, ..LinkQuality::default() };
            Action::Link { from: vec![ids[0]], to: vec![ids[1]], quality }
        }
        _ => panic!("{text}"),
    }
}

/// What the line means for the state of the node, as the chronicle has it.
fn events(node: u8, at_us: u64, line: &Line) -> Vec<NodeEvent> {
    let mut whats = Vec::new();
    if line.word == "start" {
        let cause = line.cause().filter(|cause| *cause != ResetCause::Power);
        whats.extend(cause.map(|cause| What::Reset { cause }));
        whats.push(What::Boot);
    }
    whats.extend(line.event());
    whats.into_iter().map(|what| NodeEvent { at_us, node, uncertainty_us: None, what }).collect()
}

/// Tells a recording: lines of `MICROSECONDS NODE LINE` and `MICROSECONDS lab ACTION`.
fn told(nodes: u8, recording: &str) -> Vec<String> {
    let mut watch = Watch::new(&Scenario::undisturbed(Algorithm::Bully, nodes, 0));
    let (mut narrator, mut now_us, mut story) = (Narrator::default(), 0, Vec::new());
    for entry in recording.lines().map(str::trim).filter(|entry| !entry.is_empty()) {
        let mut fields = entry.splitn(3, ' ');
        let mut next = || fields.next().unwrap();
        let (at_us, who, rest) = (next().parse::<u64>().unwrap(), next(), next());
        now_us = at_us.max(now_us);
        if who == "lab" {
            let action = action(rest);
            narrator.act(at_us, &action);
            watch.act(&action);
        } else {
            let (node, line) = (who.parse().unwrap(), Line::parse(rest).unwrap());
            let said = Said { node, at_us, events: events(node, at_us, &line), line };
            said.events.iter().for_each(|event| watch.note(event));
            narrator.hear(&said);
        }
        story.extend(narrator.look(now_us, watch.seen()));
    }
    story.extend(narrator.rest());
    story.iter().map(|(at_us, text)| format!("{:>9.3}  {text}", *at_us as f64 / 1e6)).collect()
}

fn check(recording: &str, story: &str) {
    let told = told(5, recording);
    assert!(told.iter().all(|line| line.len() <= 100), "too long: {told:#?}");
    assert!(told == story.lines().collect::<Vec<_>>(), "told:\n{}\n", told.join("\n"));
}

macro_rules! recorded {
    ($($name:ident = $file:literal,)*) => {$(
        #[test]
        fn $name() {
            check(
                include_str!(concat!("recorded/", $file, ".log")),
                include_str!(concat!("recorded/", $file, ".txt")),
            );
        }
    )*};
}

recorded! {
    a_coordinator_crashes_and_returns_in_bully = "crash-bully",
    a_coordinator_crashes_and_returns_in_invitation = "crash-invitation",
    a_coordinator_crashes_and_returns_in_the_ring = "crash-ring",
    the_network_splits_and_heals = "partition-invitation",
    a_pause_ends_in_a_reset = "pause-bully",
    nodes_leave = "leaving-bully",
    a_member_is_missed = "member-loss-bully",
    a_cable_is_pulled = "cable-invitation",
}

/// The sentences alone.
fn words(recording: &str) -> Vec<String> {
    told(3, recording).iter().map(|line| line[11..].to_owned()).collect()
}

#[test]
fn a_mute_node_is_told_and_not_waited_for() {
    let state = "state status=Normal coordinator=1 group=1 number=1 up=0 defined=true definition=a";
    let recording = format!(
        "1000 1 0 start cause=power
         2000 2 0 start cause=power
         3000 3 0 start cause=power
         4000 2 1 mute reason=blank
         5000 3 1 mute reason=ts-below-board
         900000 1 1 {state}"
    );
    let story = [
        "nodes 1 2 3 start",
        "node 2 stays mute: its flash is not provisioned",
        "node 3 stays mute: ts-below-board",
        "settled under 1: 1 (0.9 s after the start)",
    ];
    assert_eq!(words(&recording), story);
}

#[test]
fn an_id_clash_is_told_once() {
    let recording = "1000 3 9 note what=id-clash node=2 number=0
        2000 1 9 note what=id-clash node=2 number=0
        2500 2 9 mute reason=id-clash
        400000 1 10 note what=not-authentic node=2 number=0";
    let story = [
        "nodes 1 3 warn: there are two boards with the id 2",
        "node 2 stays mute: another board has its id and was there before",
        "node 1 gets forged datagrams in the name of 2",
    ];
    assert_eq!(words(recording), story);
}

#[test]
fn causes_of_starts_are_told() {
    let recording = "1000 1 0 start cause=power
        2000 2 0 start cause=watchdog
        900000 1 0 start cause=panic
        900100 1 1 last place=\"a.rs\" line=7 status=3 coordinator=1 group=1 number=1 what=\"no way\"
        1900000 1 0 start cause=power
        2900000 1 0 start cause=deadline
        2900010 2 0 start cause=deadline";
    let story = [
        "node 1 starts",
        "node 2 starts again: it hung, and its watchdog bit",
        "node 1 starts again: it panicked",
        "node 1 says why its last boot ended: \"no way\"",
        "node 1 starts again: it was reset",
        "nodes 1 2 start again: they missed their deadline",
    ];
    assert_eq!(words(recording), story);
}

#[test]
fn a_cable_that_the_lab_did_not_touch_is_told() {
    let recording = "1000 1 0 start cause=power
        2000 1 1 link up=false
        3000 1 2 link up=true
        900000 1 3 link up=false
        950000 1 4 link up=true
        1000000 lab unplug 1
        1010000 1 5 link up=false
        1500000 lab plug 1
        1510000 1 6 link up=true
        1600000 1 7 keys send=2 other=0
        1600001 1 8 fault what=save-not-prepared
        1600002 1 9 fault what=send";
    let story = [
        "node 1 starts",
        "node 1 has lost its link",
        "node 1 has its link back",
        "node 1 has its cable pulled",
        "node 1 gets its cable back",
        "node 1 now sends with key 2 and accepts no other",
        "node 1 reports a fault: send",
    ];
    assert_eq!(words(recording), story);
}

/// Repeats of a message are no news, those of the next election are.
#[test]
fn every_election_is_told_once() {
    let recording = "1000 2 0 note what=election node=2 number=7
        1001 2 1 send to=0 message=Halt bytes=47
        1500 1 0 send to=2 message=HaltAck bytes=39
        61000 2 2 send to=0 message=Halt bytes=47
        900000 2 3 note what=election node=2 number=8
        900001 2 4 send to=0 message=Halt bytes=47
        1900000 3 0 note what=election node=3 number=9";
    let story = [
        "node 2 halts 1",
        "node 2 calls an election: it halts all below it",
        "node 3 calls an election",
    ];
    assert_eq!(words(recording), story);
}

/// Only Beats that can have arrived count.
#[test]
fn a_suspicion_says_how_long_no_beat_came() {
    let beats = "1000 1 0 start cause=power
        1001 2 0 start cause=power
        1002 3 0 start cause=power
        400000 3 1 send to=0 message=Beat bytes=46
        900000 lab partition 1 | 2 3
        1000000 3 2 send to=0 message=Beat bytes=46";
    let recording = format!(
        "{beats}
         1500000 1 1 note what=suspected node=3 number=0
         1500001 2 1 note what=suspected node=3 number=0
         1500002 3 3 note what=suspected node=2 number=0"
    );
    let story = [
        "node 1 suspects 3: no Beat for 1.1 s",
        "node 2 suspects 3: no Beat for 0.5 s",
        "node 3 suspects 2: no sign of life",
    ];
    assert_eq!(words(&recording)[2..], story);
}

/// Boards are read one after the other.
#[test]
fn lines_that_come_late_are_told_in_their_place() {
    let recording = "1000 1 0 start cause=power
        700000 1 1 note what=suspected node=3 number=0
        600000 2 1 note what=suspicion-wrong node=3 number=0";
    let story = [
        "node 1 starts",
        "node 2 finds that 3 is there after all",
        "node 1 suspects 3: no sign of life",
    ];
    assert_eq!(words(recording), story);
}

#[test]
fn a_group_that_falls_apart_by_itself_is_told() {
    let state = |status, number| {
        format!(
            "state status={status} coordinator=1 group=1 number={number} up=6 defined=true definition=a"
        )
    };
    let mut recording = String::new();
    for node in 1..=3 {
        recording +=
            &format!("1000 {node} 0 start cause=power\n2000 {node} 1 {}\n", state("Normal", 1));
    }
    recording += &format!("900000 2 2 {}\n", state("Election", 1));
    let story = [
        "nodes 1 2 3 start",
        "settled under 1: 1 2 3 (1 ms after the start)",
        "no longer settled: node 2 is in an election",
    ];
    assert_eq!(words(&recording), story);
}

/// Of a link that loses frames nobody can say which Beat was the last to arrive.
#[test]
fn a_suspicion_over_a_bad_link_claims_no_time() {
    let recording = "1000 1 0 start cause=power
        400000 lab loss 3 1
        500000 3 1 send to=0 message=Beat bytes=46
        800000 1 1 note what=suspected node=3 number=0";
    assert_eq!(words(recording)[2..], ["node 1 suspects 3: no Beat arrives"]);
}

/// A member of the inviter's guest is invited by its old coordinator, and accepts late.
#[test]
fn an_invitation_is_passed_on() {
    let state = |coordinator| {
        format!(
            "state status=Election coordinator={coordinator} group=3 number=9 up=0 defined=true definition=a"
        )
    };
    let recording = format!(
        "1000 3 0 {}
         1001 3 1 note what=election node=3 number=9
         1002 3 2 send to=0 message=Invitation bytes=58
         1500 2 1 {}
         1501 2 2 send to=3 message=Accept bytes=48
         1502 2 3 send to=1 message=Invitation bytes=58
         300000 2 4 send to=3 message=Accept bytes=48
         310000 1 5 send to=3 message=Accept bytes=48",
        state(3),
        state(3)
    );
    let story = [
        "node 3 invites 2, which accepts",
        "node 2 passes the invitation of 3 on to 1",
        "node 1 accepts the invitation of 3",
    ];
    assert_eq!(words(&recording), story);
}

#[test]
fn a_coordinator_that_has_not_noticed_a_cut_is_not_settled() {
    let scenario = Scenario::undisturbed(Algorithm::Bully, 3, 0);
    let mut seen = Watch::new(&scenario).seen().clone();
    for view in &mut seen.nodes {
        view.status = Status::Normal;
        (view.coordinator, view.group) = (Some(3), Some((3, 1)));
        view.up = vec![1, 2];
    }
    let mut narrator = Narrator::default();
    narrator.act(0, &Action::Heal);
    narrator.look(0, &seen);
    assert_eq!(narrator.standing(), "settled under node 3");
    narrator.act(1000, &Action::Partition { sets: vec![vec![1], vec![2, 3]] });
    narrator.look(1000, &seen);
    assert_eq!(narrator.standing(), "not settled");
    seen.nodes[2].up = vec![2];
    narrator.act(2000, &Action::Resume { nodes: vec![2] });
    narrator.look(2000, &seen);
    assert_eq!(narrator.standing(), "1 of 2 parts settled");
}
