//! The answers to other nodes' calls: B5, B8, B11.

use super::*;
use crate::effects::{Effect, Note};
use crate::node::testing::{Act, id};
use crate::wire::Reject;

#[test]
fn b5_a_halt_from_above_halts() {
    let mut bench = awake(3);
    let group = group_of(5, 1);
    let acts = bench.hear(5, &[1, 2, 3, 4], halt(group));
    assert_eq!(acts.unicast(), (5, Message::HaltAck));
    assert_eq!((bench.status(), bench.state().halted_by), (Status::Election, Some(group)));
    assert_eq!((bench.coordinator(), bench.state().group), (None, None));
    assert_eq!(bench.due_in(Timer::Phase), None, "whatever was under way is void");
    assert_eq!(bench.due_in(Timer::Quiet), Some(bench.timing().t.times(2)));
}

#[test]
fn b5_the_application_stops_before_the_acknowledgement() {
    let mut bench = member();
    let acts = bench.hear(5, &[1, 2, 3, 4], halt(group_of(5, 2)));
    assert_eq!(acts.0.first(), Some(&Act::Other(Effect::StopApplication)));
    assert_eq!(acts.unicast(), (5, Message::HaltAck));
    assert_eq!(bench.up(), []);
}

#[test]
fn b5_a_halt_ends_ones_own_election() {
    let (mut bench, acts) = distributing(3, &[1, 2]);
    let ticket = acts.save();
    let acts = bench.hear(4, &[1, 2, 3], halt(group_of(4, 1)));
    assert_eq!(acts.unicast(), (4, Message::HaltAck));
    bench.reply(1, Message::ReadyAck { accepted: true }).none();
    bench.reply(2, Message::ReadyAck { accepted: true }).none();
    bench.saved(ticket).none();
    assert_eq!((bench.status(), bench.coordinator()), (Status::Election, None));
}

#[test]
fn b5_a_halt_from_below_is_dropped_with_an_alarm() {
    let mut bench = halted();
    let before = bench.state().clone();
    let acts = bench.hear(2, &[1, 3], halt(group_of(2, 1)));
    assert_eq!(acts.0, [Act::Other(Effect::Note(Note::HaltFromBelow(id(2))))]);
    assert_eq!(bench.state(), &before);
    assert_eq!(bench.rejected(Reject::HaltFromBelow), 1);
}

#[test]
fn b5_a_halt_in_the_name_of_another_node_is_dropped() {
    let mut bench = awake(3);
    bench.hear(4, &[1, 2, 3], halt(group_of(5, 1))).none();
    assert_eq!(bench.rejected(Reject::Field), 1);
    assert_eq!(bench.status(), Status::Down);
}

#[test]
fn b5_an_older_halt_of_the_same_halter_is_void() {
    let mut bench = awake(3);
    bench.hear(5, &[3], halt(group_of(5, 2))).ignore();
    bench.hear(5, &[3], halt(group_of(5, 1))).none();
    assert_eq!(bench.state().halted_by, Some(group_of(5, 2)));
    assert_eq!(bench.rejected(Reject::NotAwaited), 1);
}

#[test]
fn b5_the_latest_halter_counts() {
    let mut bench = awake(3);
    bench.hear(4, &[1, 2, 3], halt(group_of(4, 1))).ignore();
    let acts = bench.hear(5, &[1, 2, 3, 4], halt(group_of(5, 1)));
    assert_eq!(acts.unicast(), (5, Message::HaltAck));
    assert_eq!(bench.state().halted_by, Some(group_of(5, 1)));
    let late = Message::NewCoordinator { group: group_of(4, 1) };
    let acts = bench.hear(4, &[1, 2, 3], late);
    assert_eq!(acts.unicast(), (4, Message::NcAck { accepted: false }));
    assert_eq!(bench.status(), Status::Election);
}

#[test]
fn b8_the_halter_becomes_the_coordinator() {
    let mut bench = halted();
    let group = group_of(5, 1);
    let acts = bench.hear(5, &[1, 2, 3, 4], Message::NewCoordinator { group });
    assert_eq!(acts.unicast(), (5, Message::NcAck { accepted: true }));
    assert_eq!((bench.status(), bench.coordinator()), (Status::Reorganization, Some(5)));
    assert_eq!(bench.state().group, Some(group));
}

#[test]
fn b8_repeated_is_accepted_again() {
    let mut bench = announced();
    bench.pass(bench.timing().tm.times(2)).ignore();
    let before = bench.state().clone();
    let message = Message::NewCoordinator { group: group_of(5, 1) };
    let acts = bench.hear_again(5, &[3], message);
    assert_eq!(acts.unicast(), (5, Message::NcAck { accepted: true }));
    assert_eq!(bench.state(), &before);
}

#[test]
fn b8_refused_unless_halted_in_that_very_election() {
    let refused = (5, Message::NcAck { accepted: false });
    let mut bench = awake(3);
    let acts = bench.hear(5, &[3], Message::NewCoordinator { group: group_of(5, 1) });
    assert_eq!(acts.unicast(), refused, "never halted");
    assert_eq!((bench.status(), bench.coordinator()), (Status::Down, None));
    let mut bench = halted();
    let acts = bench.hear(5, &[3], Message::NewCoordinator { group: group_of(5, 2) });
    assert_eq!(acts.unicast(), refused, "halted in another election");
    assert_eq!((bench.status(), bench.coordinator()), (Status::Election, None));
    let acts = bench.hear(4, &[3], Message::NewCoordinator { group: group_of(4, 1) });
    assert_eq!(acts.unicast(), (4, Message::NcAck { accepted: false }), "halted by another");
}

#[test]
fn b8_refused_while_normal_in_another_group() {
    let mut bench = member();
    let before = bench.state().clone();
    let acts = bench.hear(5, &[3], Message::NewCoordinator { group: group_of(5, 2) });
    assert_eq!(acts.unicast(), (5, Message::NcAck { accepted: false }));
    assert_eq!(bench.state(), &before);
}

#[test]
fn b11_the_definition_is_durable_before_the_answer() {
    let mut bench = announced();
    let acts = bench.hear(5, &[1, 2, 3, 4], ready(group_of(5, 1), &[1, 2, 3, 4]));
    assert_eq!(acts.messages(), [], "not before it is durable");
    assert!(!acts.starts());
    assert_eq!(bench.status(), Status::Reorganization);
    let acts = bench.saved(acts.save());
    assert!(acts.starts());
    assert_eq!(acts.unicast(), (5, Message::ReadyAck { accepted: true }));
    assert_eq!((bench.status(), bench.definition()), (Status::Normal, Some(TASK)));
    assert_eq!(bench.up(), [1, 2, 4, 5], "all others of the group, the coordinator too");
}

#[test]
fn b11_repeated_is_accepted_again_and_saved_once() {
    let mut bench = member();
    let acts = bench.hear(5, &[3], ready(group_of(5, 1), &[1, 2, 3, 4]));
    assert_eq!(acts.unicast(), (5, Message::ReadyAck { accepted: true }));
    assert_eq!(acts.0.len(), 1, "no second save and no second start: {acts:?}");
}

#[test]
fn b11_repeated_while_it_is_being_saved_waits_for_that_save() {
    let mut bench = announced();
    let message = ready(group_of(5, 1), &[1, 2, 3, 4]);
    let acts = bench.hear(5, &[1, 2, 3, 4], message);
    bench.hear_again(5, &[3], message).none();
    assert!(bench.saved(acts.save()).starts());
}

#[test]
fn b11_refused_unless_this_election_was_accepted() {
    let refused = Message::ReadyAck { accepted: false };
    let mut bench = halted();
    let acts = bench.hear(5, &[3], ready(group_of(5, 1), &[1, 2, 3, 4]));
    assert_eq!(acts.messages(), [refused], "NewCoordinator was never heard");
    assert_eq!((bench.status(), bench.definition()), (Status::Election, None));
    let mut bench = announced();
    let acts = bench.hear(5, &[3], ready(group_of(5, 2), &[1, 2, 3, 4]));
    assert_eq!(acts.messages(), [refused], "another election");
    assert_eq!((bench.status(), bench.definition()), (Status::Reorganization, None));
}

#[test]
fn b11_a_halt_during_the_save_makes_it_void() {
    let mut bench = announced();
    let acts = bench.hear(5, &[1, 2, 3, 4], ready(group_of(5, 1), &[1, 2, 3, 4]));
    bench.hear(5, &[1, 2, 3, 4], halt(group_of(5, 2))).ignore();
    bench.saved(acts.save()).none();
    assert_eq!(bench.status(), Status::Election);
}

#[test]
fn are_you_there_is_answered_in_every_state() {
    let question = Message::AreYouThere { group: None, status: Status::Down };
    for mut bench in [awake(3), halted(), announced(), member(), halting(3).0] {
        for from in [1, 5] {
            let acts = bench.hear(from, &[3], question);
            assert_eq!(acts.messages(), [Message::AytAns { yes: true }]);
        }
    }
}

#[test]
fn are_you_normal_is_answered_for_the_group_in_question() {
    let normal_in = |bench: &mut Bench<1>, group| {
        let acts = bench.hear(5, &[1, 2, 3, 4], Message::AreYouNormal { group });
        acts.unicast().1
    };
    let mut bench = member();
    let yes = Message::AynAns { normal: true };
    let no = Message::AynAns { normal: false };
    assert_eq!(normal_in(&mut bench, group_of(5, 1)), yes);
    assert_eq!(normal_in(&mut bench, group_of(5, 2)), no);
    assert_eq!(normal_in(&mut announced(), group_of(5, 1)), no);
    assert_eq!(normal_in(&mut halted(), group_of(5, 1)), no);
}
