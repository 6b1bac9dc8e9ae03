//! The coordinator's Check and its signs of life: B17.

use super::*;
use crate::effects::Note;
use crate::node::testing::id;

const YES: Message<'static, 1> = Message::AynAns { normal: true };
const NO: Message<'static, 1> = Message::AynAns { normal: false };

/// The coordinator 5 of nodes 2 and 4 in its Check; nodes 1 and 3 belong to no group.
fn checking() -> Bench<1> {
    let mut bench = coordinator(&[2, 4]);
    bench.fire(Timer::Check).ignore();
    bench
}

#[track_caller]
fn calls_an_election(acts: &Acts<1>) {
    assert_eq!(acts.broadcast(), ([1, 2, 3, 4].into(), halt(own_group(5, 2))));
    assert!(acts.stops());
}

#[test]
fn b17_every_p_all_nodes_are_asked() {
    let mut bench = coordinator(&[2, 4]);
    for _ in 0..3 {
        assert!(bench.due_in(Timer::Check).is_some_and(|due| due <= bench.timing().check));
        let acts = bench.fire(Timer::Check);
        let question = Message::AreYouNormal { group: own_group(5, 1) };
        assert_eq!(acts.broadcast(), ([1, 2, 3, 4].into(), question));
        assert_eq!(bench.due_in(Timer::Check), Some(bench.timing().check));
        for member in [2, 4] {
            bench.reply(member, YES).none();
        }
    }
    assert_eq!(bench.status(), Status::Normal);
}

#[test]
fn b17_only_a_normal_coordinator_checks() {
    for mut bench in [halted(), member()] {
        bench.station_mut().timers.cancel(Timer::Quiet);
        bench.fire(Timer::Check).none();
        assert_eq!(bench.due_in(Timer::Check), Some(bench.timing().check));
    }
}

#[test]
fn b17_a_no_calls_an_election() {
    let mut bench = checking();
    bench.reply(2, YES).none();
    let acts = bench.reply(4, NO);
    assert_eq!(acts.notes()[0], Note::ProvokedBy(id(4)));
    calls_an_election(&acts);
}

#[test]
fn b17_a_yes_from_a_non_member_calls_an_election() {
    let mut bench = checking();
    let acts = bench.reply(3, YES);
    calls_an_election(&acts);
}

#[test]
fn b17_silence_from_non_members_means_nothing() {
    let mut bench = coordinator(&[2, 4]);
    for _ in 0..9 {
        bench.fire(Timer::Check).ignore();
        bench.reply(2, YES).none();
        bench.reply(4, YES).none();
        bench.fire(Timer::Phase).none();
    }
    assert_eq!(bench.status(), Status::Normal);
    assert_eq!(bench.node.counters().elections, 1);
}

#[test]
fn b17_a_member_that_is_silent_for_a_whole_check_is_gone() {
    let mut bench = checking();
    let began = bench.now;
    bench.reply(2, YES).none();
    let acts = bench.fire(Timer::Phase);
    assert_eq!(bench.now.since(began), bench.timing().roll_call());
    assert_eq!(acts.notes(), [Note::Suspected(id(4))]);
    calls_an_election(&acts);
    // It is heard again, in the same life: that was wrong.
    let acts = bench.reply(4, Message::HaltAck);
    assert_eq!(acts.notes(), [Note::SuspicionWrong(id(4))]);
    assert_eq!(bench.node.counters().suspicions_wrong, 1);
}

#[test]
fn b17_a_silent_member_is_asked_again_and_again() {
    let mut bench = checking();
    let (began, timing) = (bench.now, bench.timing());
    let question = Message::AreYouNormal { group: own_group(5, 1) };
    bench.reply(2, YES).none();
    for time in 0..9 {
        let acts = bench.fire(Timer::Repeat);
        assert_eq!(acts.broadcast(), ([1, 3, 4].into(), question));
        let since = timing.check_repeat() + timing.insistence().times(time);
        assert_eq!(bench.now.since(began), since);
    }
    // No answer to a later question could come in time.
    assert_eq!(bench.due_in(Timer::Repeat), None);
    // One is enough.
    bench.reply(4, YES).none();
    bench.fire(Timer::Phase).none();
    assert_eq!((bench.status(), bench.node.counters().elections), (Status::Normal, 1));
}

#[test]
fn b17_who_is_no_member_is_asked_twice_and_not_waited_for_longer_than_t() {
    let mut bench = checking();
    let began = bench.now;
    bench.reply(2, YES).none();
    bench.reply(4, YES).none();
    let question = Message::AreYouNormal { group: own_group(5, 1) };
    assert_eq!(bench.fire(Timer::Repeat).broadcast(), ([1, 3].into(), question));
    assert_eq!(bench.due_in(Timer::Repeat), None);
    bench.fire(Timer::Phase).none();
    assert_eq!(bench.now.since(began), bench.timing().t);
}

#[test]
fn b17_a_member_answers_however_often_it_is_asked() {
    let mut bench = member();
    let question = Message::AreYouNormal { group: group_of(5, 1) };
    assert_eq!(bench.hear(5, &[3], question).unicast(), (5, YES));
    bench.pass(bench.timing().insistence()).none();
    assert_eq!(bench.hear_again(5, &[3], question).unicast(), (5, YES));
}

#[test]
fn b17_the_round_ends_early_when_all_have_answered() {
    let mut bench = coordinator(&[1, 2, 3, 4]);
    bench.fire(Timer::Check).ignore();
    for node in 1..=4 {
        assert!(bench.due_in(Timer::Phase).is_some());
        bench.reply(node, YES).none();
    }
    assert_eq!(bench.due_in(Timer::Phase), None);
}

#[test]
fn b17_the_question_is_repeated_to_those_who_are_still_awaited() {
    let mut bench = checking();
    bench.reply(2, YES).none();
    let acts = bench.fire(Timer::Repeat);
    let question = Message::AreYouNormal { group: own_group(5, 1) };
    assert_eq!(acts.broadcast(), ([1, 3, 4].into(), question));
}

#[test]
fn b17_between_checks_the_coordinator_beats() {
    let mut bench = coordinator(&[2, 4]);
    for _ in 0..3 {
        let acts = bench.fire(Timer::Beat);
        let beat = Message::Beat { group: own_group(5, 1), normal: true };
        assert_eq!(acts.broadcast(), ([].into(), beat));
        assert_eq!(bench.due_in(Timer::Beat), Some(bench.timing().beat));
    }
}

#[test]
fn b17_beats_start_at_the_election_point_and_say_that_it_is_not_normal_yet() {
    let (mut bench, acts) = reorganizing(5, &[2]);
    acts.ignore();
    let acts = bench.fire(Timer::Beat);
    let beat = Message::Beat { group: own_group(5, 1), normal: false };
    assert_eq!(acts.broadcast(), ([].into(), beat));
}

#[test]
fn b17_a_coordinator_that_lost_its_office_beats_no_more() {
    let mut bench = Bench::booted(bully(4)).0;
    bench.fire(Timer::Phase).ignore();
    bench.fire(Timer::Phase).ignore();
    assert!(bench.due_in(Timer::Beat).is_some());
    bench.hear(5, &[4], halt(group_of(5, 1))).ignore();
    bench.fire(Timer::Beat).none();
    assert_eq!(bench.due_in(Timer::Beat), None);
}

#[test]
fn b17_a_lower_coordinator_asks_the_higher_nodes_first() {
    let (mut bench, acts) = distributing(3, &[1]);
    bench.saved(acts.save()).none();
    bench.reply(1, Message::ReadyAck { accepted: true }).ignore();
    bench.fire(Timer::Check).ignore();
    let acts = bench.reply(1, NO);
    let question = Message::AreYouThere { group: Some(own_group(3, 1)), status: Status::Normal };
    assert_eq!(acts.broadcast(), ([4, 5].into(), question));
    assert!(!acts.stops(), "it goes on until it knows that nobody higher is there");
    bench.reply(4, Message::AytAns { yes: true }).none();
    assert_eq!(bench.status(), Status::Normal);
    assert_eq!(bench.due_in(Timer::Quiet), None, "it is its own coordinator");
}
