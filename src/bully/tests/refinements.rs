//! What the code does beyond the table.

use super::*;
use crate::effects::Note;
use crate::node::testing::id;
use crate::time::Duration;
use crate::wire::Reject;

/// The moments in the Halt round at which a Halt leaves, and whether it binds.
fn halts_of(bench: &mut Bench<1>, first: Acts<1>) -> std::vec::Vec<(Duration, bool)> {
    let began = bench.now;
    let mut halts = std::vec::Vec::new();
    let mut acts = first;
    while bench.status() == Status::Election {
        for message in acts.messages() {
            let Message::Halt { binding, .. } = message else { panic!("{message:?}") };
            halts.push((bench.now.since(began), binding));
        }
        acts = bench.next();
    }
    halts
}

#[test]
fn a_halt_binds_only_while_its_answer_can_arrive_within_the_round() {
    let mut config = bully(5);
    let least = config.timing.t_min();
    let t = least.times(2);
    config.timing = config.timing.with_t(t);
    let (mut bench, acts) = Bench::booted(config);
    let halts = halts_of(&mut bench, acts);
    let window = t.minus(least);
    let expected = [
        (Duration::ZERO, true),
        (window.fraction(1, 3), true),
        (window.fraction(2, 3), true),
        (window, true),
        (t.fraction(5, 8), false),
    ];
    assert_eq!(halts, expected);
}

#[test]
fn with_the_least_t_no_repeat_of_halt_binds() {
    let (mut bench, acts) = Bench::booted(bully(5));
    let t = bench.timing().t;
    assert_eq!(t, bench.timing().t_min());
    let halts = halts_of(&mut bench, acts);
    assert_eq!(halts, [(Duration::ZERO, true), (t.fraction(1, 2), false)]);
}

#[test]
fn a_halt_that_does_not_bind_halts_nobody_new() {
    let mut bench = member();
    let before = bench.state().clone();
    let message = Message::Halt { group: group_of(5, 2), binding: false };
    bench.hear(5, &[1, 2, 3, 4], message).none();
    assert_eq!(bench.state(), &before);
    assert_eq!(bench.rejected(Reject::NotAwaited), 1);
}

#[test]
fn a_halt_that_does_not_bind_is_acknowledged_by_those_who_are_halted() {
    let mut bench = halted();
    bench.pass(bench.timing().tm.times(2)).ignore();
    let message = Message::Halt { group: group_of(5, 1), binding: false };
    let acts = bench.hear_again(5, &[3], message);
    assert_eq!(acts.unicast(), (5, Message::HaltAck));
}

#[test]
fn a_repeated_halt_does_not_take_back_an_accepted_coordinator() {
    for mut bench in [announced(), member()] {
        bench.pass(bench.timing().tm.times(2)).ignore();
        let before = bench.state().clone();
        bench.hear(5, &[3], halt(group_of(5, 1))).none();
        assert_eq!(bench.state(), &before);
    }
}

#[test]
fn a_halted_node_whose_acknowledgement_was_lost_joins_by_its_ncack() {
    let (mut bench, acts) = announcing(5, &[2]);
    assert_eq!(acts.broadcast().0, [2]);
    bench.reply(3, Message::NcAck { accepted: true }).none();
    assert_eq!(bench.up(), [2, 3]);
    let acts = bench.reply(2, Message::NcAck { accepted: true });
    assert_eq!(acts.reorganize().1, [2, 3, 5]);
}

#[test]
fn a_refusal_of_a_node_that_was_not_awaited_means_nothing() {
    let (mut bench, acts) = announcing(5, &[2]);
    acts.ignore();
    bench.reply(3, Message::NcAck { accepted: false }).none();
    assert_eq!((bench.status(), bench.up()), (Status::Reorganization, [2].into()));
}

#[test]
fn a_halted_node_accepts_its_halter_even_if_it_is_not_named() {
    let mut bench = halted();
    let group = group_of(5, 1);
    let acts = bench.hear(5, &[1, 2], Message::NewCoordinator { group });
    assert_eq!(acts.unicast(), (5, Message::NcAck { accepted: true }));
    assert_eq!(bench.coordinator(), Some(5));
}

#[test]
fn nobody_refuses_what_it_was_not_asked() {
    let mut bench = member();
    bench.hear(5, &[1, 2], Message::NewCoordinator { group: group_of(5, 2) }).none();
    bench.hear(5, &[1, 2], ready(group_of(5, 2), &[1, 2])).none();
}

#[test]
fn a_member_that_joined_too_late_for_the_definition_asks() {
    let mut bench = announced();
    let acts = bench.hear(5, &[1, 2], ready(group_of(5, 1), &[1, 2]));
    assert_eq!(acts.notes(), [Note::Suspected(id(5))]);
    let group = Some(group_of(5, 1));
    let question = Message::AreYouThere { group, status: Status::Reorganization };
    assert_eq!(acts.broadcast(), ([4, 5].into(), question));
    assert_eq!(bench.definition(), None);
}

#[test]
fn a_normal_beat_tells_a_node_that_it_was_left_behind() {
    let beat = Message::Beat { group: group_of(5, 1), normal: true };
    let mut bench = announced();
    let acts = bench.hear(5, &[], beat);
    let group = Some(group_of(5, 1));
    let question = Message::AreYouThere { group, status: Status::Reorganization };
    assert_eq!(acts.broadcast(), ([4, 5].into(), question));
    let mut bench = halted();
    let acts = bench.hear(5, &[], beat);
    let question = Message::AreYouThere { group: None, status: Status::Election };
    assert_eq!(acts.broadcast(), ([4, 5].into(), question));
}

#[test]
fn the_same_call_is_not_answered_twice_within_a_round_trip() {
    let mut bench = halted();
    let again = halt(group_of(5, 1));
    bench.pass(bench.timing().tm.times(2).minus(Duration(1))).ignore();
    bench.hear_again(5, &[3], again).none();
    assert_eq!(bench.node.counters().answers_withheld, 1);
    bench.pass(Duration(1)).ignore();
    let acts = bench.hear_again(5, &[3], again);
    assert_eq!(acts.unicast(), (5, Message::HaltAck));
    assert_eq!(bench.node.counters().answers_withheld, 1);
}

#[test]
fn are_you_there_is_answered_however_often_it_is_asked() {
    let mut bench = member();
    let question = Message::AreYouThere { group: None, status: Status::Down };
    bench.hear(2, &[3, 4, 5], question).ignore();
    for _ in 0..3 {
        let acts = bench.hear_again(2, &[3, 4, 5], question);
        assert_eq!(acts.unicast(), (2, Message::AytAns { yes: true }));
    }
}

#[test]
fn nobody_answers_a_broadcast_that_does_not_name_it() {
    let mut bench = member();
    let question = Message::AreYouThere { group: None, status: Status::Down };
    bench.hear(2, &[4, 5], question).none();
    bench.hear(5, &[1, 2], Message::AreYouNormal { group: group_of(5, 1) }).none();
}

#[test]
fn questions_whether_a_node_is_there_are_repeated_twice_as_often() {
    let mut bench = awake(3);
    let quarter = bench.timing().repeat.fraction(1, 2);
    assert_eq!(bench.due_in(Timer::Repeat), Some(quarter));
    let acts = bench.fire(Timer::Repeat);
    assert_eq!(acts.broadcast().0, [4, 5]);
    let (bench, _) = announcing(5, &[2]);
    assert_eq!(bench.due_in(Timer::Repeat), Some(bench.timing().repeat));
}

#[test]
fn repeats_name_those_who_have_not_answered_and_keep_their_call_number() {
    let (mut bench, first) = announcing(5, &[2, 4]);
    bench.reply(2, Message::NcAck { accepted: true }).none();
    let acts = bench.fire(Timer::Repeat);
    let group = own_group(5, 1);
    assert_eq!(acts.broadcast(), ([4].into(), Message::NewCoordinator { group }));
    assert_eq!(acts.sent()[0].call, first.sent()[0].call);
}

#[test]
fn the_beat_of_a_higher_foreign_coordinator_hurries_a_node_without_group() {
    let mut bench = awake(3);
    bench.reply(5, Message::AytAns { yes: true }).none();
    let timing = bench.timing();
    assert_eq!(bench.due_in(Timer::Quiet), Some(timing.t.times(2) + timing.stagger));
    bench.hear(5, &[], Message::Beat { group: group_of(5, 3), normal: true }).none();
    assert_eq!(bench.due_in(Timer::Quiet), Some(timing.t + timing.stagger));
}

#[test]
fn a_halter_that_is_heard_answers_the_question_who_is_there() {
    let mut bench = halted();
    bench.fire(Timer::Quiet).ignore();
    assert!(bench.due_in(Timer::Phase).is_some());
    bench.hear(5, &[], Message::Beat { group: group_of(5, 1), normal: false }).none();
    assert_eq!(bench.due_in(Timer::Phase), None, "no election against a live halter");
    assert!(bench.due_in(Timer::Quiet).is_some());
}
