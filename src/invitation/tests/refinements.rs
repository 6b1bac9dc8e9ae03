//! What the code does beyond the table.

use super::*;
use crate::effects::Note;
use crate::node::testing::id;
use crate::time::Duration;
use crate::wire::Reject;

fn beat(coordinator: u8, seq: u32) -> Message<'static, 1> {
    Message::Beat { group: group_of(coordinator, seq), normal: true }
}

/// Node 5, coordinator of nodes 1 and 2, when foreign Beats count again.
fn settled() -> Bench<1> {
    let mut bench = coordinator(&[1, 2]);
    bench.pass(bench.timing().beat).ignore();
    bench
}

#[test]
fn the_beat_of_a_lower_foreign_coordinator_causes_a_check_at_once() {
    let mut bench = settled();
    let acts = bench.hear(4, &[], beat(4, 1));
    assert_eq!(acts.notes(), [Note::Foreign(id(4))]);
    let group = own_group(5, 2);
    let question = Message::AreYouCoordinator { group, roll_call: false };
    assert_eq!(acts.broadcast(), ([3, 4].into(), question), "one's own members need not answer");
}

#[test]
fn a_beat_just_after_recovery_causes_no_check() {
    let mut bench = awake(5);
    bench.hear(4, &[], beat(4, 1)).none();
    let timing = bench.timing();
    bench.station_mut().timers.cancel(Timer::Check);
    bench.pass(timing.beat + timing.tm).ignore();
    let acts = bench.hear(4, &[], beat(4, 1));
    assert_eq!(acts.notes(), [Note::Foreign(id(4))]);
}

#[test]
fn a_coordinator_that_is_heard_but_does_not_hear_is_asked_less_and_less() {
    let mut bench = settled();
    let t = bench.timing().t;
    bench.station_mut().timers.cancel(Timer::Check);
    for pause in [t.times(2), t.times(4), t.times(8)] {
        assert_eq!(bench.hear(4, &[], beat(4, 1)).notes(), [Note::Foreign(id(4))]);
        bench.fire(Timer::Phase).none();
        bench.pass(pause.minus(Duration(1))).ignore();
        bench.hear(4, &[], beat(4, 1)).none();
        bench.pass(Duration(1)).ignore();
    }
}

#[test]
fn a_higher_foreign_coordinator_is_left_to_invite_first() {
    let mut bench = awake(3);
    let timing = bench.timing();
    bench.hear(5, &[], beat(5, 1)).none();
    for _ in 0..3 {
        bench.fire(Timer::Check).none();
        assert_eq!(bench.due_in(Timer::Check), Some(timing.t.times(2)));
        bench.pass(timing.t).ignore();
        bench.hear(5, &[], beat(5, 1)).none();
    }
    let acts = bench.fire(Timer::Check);
    assert_eq!(acts.broadcast().0, [1, 2, 4, 5], "but not for ever");
}

#[test]
fn while_a_higher_coordinator_is_near_a_lower_one_causes_no_check() {
    let mut bench = awake(3);
    bench.station_mut().timers.cancel(Timer::Check);
    bench.pass(bench.timing().check).ignore();
    bench.hear(5, &[], beat(5, 1)).none();
    bench.hear(1, &[], beat(1, 1)).none();
    bench.pass(bench.timing().beat.times(2) + bench.timing().tm).ignore();
    assert_eq!(bench.hear(1, &[], beat(1, 1)).notes(), [Note::Foreign(id(1))]);
}

#[test]
fn a_coordinator_that_has_gone_on_to_a_newer_group_is_not_waited_for() {
    for mut bench in [confirmed(), member()] {
        let acts = bench.hear(5, &[], beat(5, 3));
        alone(&bench, &acts, 2);
    }
    let mut bench = member();
    bench.hear(5, &[], beat(5, 1)).none();
    assert_eq!(bench.state().group, Some(group_of(5, 2)), "an old Beat means nothing");
}

#[test]
fn a_member_does_not_mind_foreign_beats() {
    let mut bench = member();
    let before = bench.state().clone();
    bench.hear(4, &[], beat(4, 7)).none();
    bench.hear(1, &[], beat(1, 7)).none();
    assert_eq!(bench.state(), &before);
}

#[test]
fn the_coordinator_beats_while_it_is_normal() {
    let mut bench = coordinator(&[1, 2]);
    for _ in 0..3 {
        let acts = bench.fire(Timer::Beat);
        let group = own_group(5, 2);
        assert_eq!(acts.broadcast(), ([].into(), Message::Beat { group, normal: true }));
        assert_eq!(bench.due_in(Timer::Beat), Some(bench.timing().beat));
    }
    bench.fire(Timer::Check).ignore();
    bench.reply(3, yes(group_of(3, 1), &[])).none();
    bench.fire(Timer::Phase).ignore();
    assert_eq!((bench.status(), bench.due_in(Timer::Beat)), (Status::Election, None));
    assert_eq!(member().due_in(Timer::Beat), None);
}

#[test]
fn the_same_call_is_not_answered_twice_within_a_round_trip() {
    let mut bench = coordinator(&[1, 2]);
    let question = Message::AreYouCoordinator { group: group_of(4, 1), roll_call: true };
    bench.hear(4, &[5], question).ignore();
    let round_trip = bench.timing().tm.times(2);
    bench.pass(round_trip.minus(Duration(1))).ignore();
    bench.hear_again(4, &[5], question).none();
    assert_eq!(bench.node.counters().answers_withheld, 1);
    bench.pass(Duration(1)).ignore();
    assert_eq!(bench.hear_again(4, &[5], question).unicast().0, 4);
}

#[test]
fn a_check_in_the_name_of_another_node_is_dropped() {
    let mut bench = coordinator(&[1, 2]);
    let group = group_of(4, 1);
    bench.hear(3, &[5], Message::AreYouCoordinator { group, roll_call: true }).none();
    bench.hear(3, &[5], Message::Beat { group, normal: true }).none();
    bench.hear(3, &[5], ready(group, &[3, 5])).none();
    assert_eq!(bench.rejected(Reject::Field), 3);
}
