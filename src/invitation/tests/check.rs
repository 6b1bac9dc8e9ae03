//! Recovery and Check: I1 to I5, and the roll call of I21.

use super::*;
use crate::effects::Effect;
use crate::effects::Note;
use crate::node::testing::id;
use crate::wire::Reject;

#[test]
fn i1_a_node_wakes_alone_and_normal() {
    let (bench, acts) = Bench::booted(invitation(3));
    alone(&bench, &acts, 1);
    let timing = bench.timing();
    assert_eq!(bench.due_in(Timer::Check), Some(timing.beat + timing.tm), "it asks soon");
}

#[test]
fn i1_recovery_stops_the_application_before_it_starts_again() {
    let mut bench = member();
    bench.fire(Timer::Quiet).ignore();
    let acts = bench.reply(5, Message::AytAns { yes: false });
    alone(&bench, &acts, 2);
    let stop = acts.position(crate::effects::Effect::StopApplication);
    assert_eq!(stop, Some(0));
}

#[test]
fn i2_everybody_is_asked_who_coordinates() {
    let (bench, acts) = checking(3);
    let group = own_group(3, 1);
    let question = Message::AreYouCoordinator { group, roll_call: true };
    assert_eq!(acts.broadcast(), ([1, 2, 4, 5].into(), question));
    assert_eq!(bench.due_in(Timer::Phase), Some(bench.timing().roll_call()));
    assert_eq!(bench.due_in(Timer::Check), Some(bench.timing().check));
}

#[test]
fn i2_only_a_normal_coordinator_asks() {
    let mut bench = member();
    bench.station_mut().timers.cancel(Timer::Quiet);
    bench.fire(Timer::Check).none();
    let (mut bench, acts) = accepting();
    acts.ignore();
    let now = bench.now;
    bench.station_mut().timers.set(Timer::Check, now);
    bench.fire(Timer::Check).none();
}

#[test]
fn i2_a_phase_that_is_under_way_is_not_disturbed() {
    let (mut bench, acts) = merging(&[1, 2]);
    acts.ignore();
    let now = bench.now;
    bench.station_mut().timers.set(Timer::Check, now);
    bench.fire(Timer::Check).none();
    assert_eq!(bench.due_in(Timer::Check), Some(bench.timing().check));
    assert_eq!(bench.status(), Status::Election);
}

#[test]
fn i3_a_normal_coordinator_says_yes_and_who_would_come_along() {
    let question = |group| Message::AreYouCoordinator { group, roll_call: true };
    let mut bench = coordinator(&[1, 2]);
    let acts = bench.hear(4, &[5], question(group_of(4, 1)));
    assert_eq!(acts.unicast(), (4, yes(own_group(5, 2), &[1, 2])));
}

#[test]
fn i3_members_answer_the_roll_call_of_their_own_coordinator_alone() {
    let no = Message::AycAns { yes: false, group: Some(group_of(5, 2)), up: set([]) };
    let ask = |bench: &mut Bench<1>, from, group, roll_call| {
        bench.hear(from, &[1, 2, 3, 4], Message::AreYouCoordinator { group, roll_call })
    };
    let mut bench = member();
    assert_eq!(ask(&mut bench, 5, group_of(5, 2), true).unicast(), (5, no));
    ask(&mut bench, 5, group_of(5, 2), false).none();
    ask(&mut bench, 5, group_of(5, 3), true).none();
    ask(&mut bench, 4, group_of(4, 1), true).none();
}

#[test]
fn i3_nobody_says_yes_while_it_is_not_normal() {
    let (mut merging, acts) = merging(&[1, 2]);
    acts.ignore();
    let question = Message::AreYouCoordinator { group: group_of(4, 1), roll_call: true };
    merging.hear(4, &[5], question).none();
    let (mut accepting, acts) = accepting();
    acts.ignore();
    accepting.hear(4, &[3], question).none();
}

#[test]
fn i4_the_coordinators_that_answer_are_remembered() {
    let (_, acts) = merging(&[1, 4]);
    let (group, entries) = invited(&acts.broadcast().1);
    assert_eq!(group, own_group(5, 2));
    assert_eq!(entries, [(group_of(1, 1), [1].into()), (group_of(4, 1), [4].into())]);
}

#[test]
fn i4_a_no_a_foreign_name_and_an_old_call_are_not() {
    let (mut bench, acts) = checking(5);
    acts.ignore();
    let no = Message::AycAns { yes: false, group: Some(group_of(4, 1)), up: set([]) };
    bench.reply(1, no).none();
    bench.reply(2, yes(group_of(4, 1), &[])).none();
    bench.reply(3, Message::AycAns { yes: true, group: None, up: set([]) }).none();
    let late = bench.reply_datagram(4, yes(group_of(4, 1), &[]));
    bench.fire(Timer::Phase).none();
    bench.fire(Timer::Check).ignore();
    bench.receive(&late).none();
    assert_eq!(bench.rejected(Reject::NotAwaited), 1);
    bench.fire(Timer::Phase).none();
    assert_eq!(bench.state().group, Some(own_group(5, 1)));
}

#[test]
fn i5_nobody_else_and_it_rests() {
    let (mut bench, acts) = checking(3);
    acts.ignore();
    bench.fire(Timer::Phase).none();
    assert_eq!((bench.status(), bench.due_in(Timer::Phase)), (Status::Normal, None));
    assert_eq!(bench.state().group, Some(own_group(3, 1)));
}

#[test]
fn i5_the_highest_merges_at_once() {
    let (mut bench, acts) = checking(3);
    acts.ignore();
    bench.reply(1, yes(group_of(1, 1), &[])).none();
    bench.reply(2, yes(group_of(2, 1), &[])).none();
    let acts = bench.fire(Timer::Phase);
    assert!(acts.has(Effect::Election(own_group(3, 2))));
    assert_eq!(acts.broadcast().0, [1, 2]);
}

#[test]
fn i5_the_round_ends_early_when_all_have_answered() {
    let (_, acts) = merging(&[1, 2, 3, 4]);
    assert_eq!(acts.broadcast().0, [1, 2, 3, 4]);
}

#[test]
fn i5_others_wait_by_rank_for_the_higher_ones() {
    for (answering, higher) in [(&[1, 4][..], 1), (&[4, 5][..], 2)] {
        let (mut bench, acts) = checking(3);
        acts.ignore();
        for other in answering {
            bench.reply(*other, yes(group_of(*other, 1), &[])).none();
        }
        bench.fire(Timer::Phase).none();
        let span = bench.timing().check.times(2).times(higher);
        let end = bench.now + span;
        // As long as a higher one is heard.
        let beat = Message::Beat { group: group_of(4, 1), normal: true };
        while bench.now + bench.timing().beat < end {
            bench.pass(bench.timing().beat).ignore();
            bench.hear(4, &[], beat).none();
            assert_eq!(bench.status(), Status::Normal, "it works on meanwhile");
        }
        while !bench.fire(Timer::Phase).has(Effect::Election(own_group(3, 2))) {}
        assert_eq!(bench.now, end, "then it invites itself");
    }
}

#[test]
fn i5_a_higher_one_that_is_heard_no_more_is_not_waited_for() {
    let (mut bench, acts) = checking(3);
    acts.ignore();
    bench.reply(4, yes(group_of(4, 1), &[])).none();
    bench.fire(Timer::Phase).none();
    let timing = bench.timing();
    assert_eq!(bench.due_in(Timer::Phase), Some(timing.beat.times(2) + timing.tm));
    let acts = bench.fire(Timer::Phase);
    assert!(matches!(acts.broadcast().1, Message::AreYouCoordinator { roll_call: true, .. }));
}

#[test]
fn i21_a_member_that_misses_a_roll_call_is_left_out() {
    let mut bench = coordinator(&[1, 2]);
    let here = Message::AycAns { yes: false, group: Some(own_group(5, 2)), up: set([]) };
    bench.fire(Timer::Check).ignore();
    bench.reply(1, here).none();
    let acts = bench.pass(bench.timing().roll_call());
    assert_eq!(acts.notes(), [Note::Suspected(id(2))]);
    let invitation = acts.messages().into_iter().find_map(|message| match message {
        Message::Invitation { .. } => Some(invited(&message)),
        _ => None,
    });
    let entries = [(own_group(5, 2), [1].into())].into();
    assert_eq!(invitation, Some((own_group(5, 3), entries)));
    assert!(acts.stops());
}

#[test]
fn i21_an_answer_to_any_of_the_questions_is_enough() {
    let mut bench = coordinator(&[1]);
    bench.fire(Timer::Check).ignore();
    let last = bench.timing().roll_call().minus(bench.timing().tm);
    bench.pass(last).ignore();
    let group = Some(own_group(5, 2));
    bench.reply(1, Message::AycAns { yes: false, group, up: set([]) }).none();
    bench.fire(Timer::Phase).none();
    assert_eq!(bench.state().group, Some(own_group(5, 2)));
}

#[test]
fn i21_a_member_answers_the_roll_call_however_often_it_is_asked() {
    let mut bench = member();
    let group = bench.state().group.unwrap();
    let roll_call = Message::AreYouCoordinator { group, roll_call: true };
    let answer = Message::AycAns { yes: false, group: Some(group), up: set([]) };
    let coordinator = group.coordinator.get();
    assert_eq!(bench.hear(coordinator, &[3], roll_call).unicast(), (coordinator, answer));
    bench.pass(bench.timing().insistence()).none();
    assert_eq!(bench.hear_again(coordinator, &[3], roll_call).unicast(), (coordinator, answer));
}

#[test]
fn i21_the_last_member_gone_leaves_the_coordinator_alone() {
    let mut bench = coordinator(&[1]);
    bench.pass(bench.timing().check.times(2)).ignore();
    assert_eq!((bench.status(), bench.up()), (Status::Normal, [].into()));
    assert_eq!(bench.state().group, Some(own_group(5, 3)));
    assert_eq!(bench.definition(), Some(&[][..]));
}

#[test]
fn the_roll_call_goes_on_while_members_are_silent() {
    let mut bench = coordinator(&[1, 2]);
    bench.fire(Timer::Check).ignore();
    let began = bench.now;
    let here = Message::AycAns { yes: false, group: Some(own_group(5, 2)), up: set([]) };
    bench.reply(1, here).none();
    let group = own_group(5, 2);
    let question = Message::AreYouCoordinator { group, roll_call: true };
    for _ in 0..9 {
        assert_eq!(bench.fire(Timer::Repeat).broadcast(), ([2, 3, 4].into(), question));
    }
    assert_eq!(bench.due_in(Timer::Repeat), None, "no answer could come in time");
    let timing = bench.timing();
    let all = timing.roll_call();
    assert_eq!(bench.now.since(began) + bench.due_in(Timer::Phase).unwrap(), all);
}

#[test]
fn i21_with_indirect_others_are_asked_about_a_silent_member_first() {
    let mut bench = coordinator(&[1, 2]);
    bench.station_mut().watch = crate::detector::Watch::new(crate::config::Detector::Indirect);
    let group = own_group(5, 2);
    bench.fire(Timer::Check).ignore();
    bench.reply(1, Message::AycAns { yes: false, group: Some(group), up: set([]) }).none();
    bench.fire(Timer::Repeat).ignore();
    let acts = bench.fire(Timer::Phase);
    let question = Message::HaveYouHeard { group, about: set([2]) };
    assert_eq!(acts.broadcast(), ([1].into(), question));
    let acts = bench.fire(Timer::Phase);
    assert_eq!(acts.notes(), [Note::Suspected(id(2))]);
    assert!(acts.has(Effect::Election(own_group(5, 3))), "re-formed without it");
}

/// Otherwise nobody would be asked: this node takes them all for its members.
#[test]
fn a_member_that_is_heard_from_another_group_causes_a_roll_call() {
    let mut bench = coordinator(&[1, 2, 3, 4]);
    let acts = bench.hear(4, &[], Message::Beat { group: group_of(4, 7), normal: true });
    let question = Message::AreYouCoordinator { group: own_group(5, 2), roll_call: true };
    assert_eq!(acts.broadcast(), ([1, 2, 3, 4].into(), question));
    let left = Message::AycAns { yes: true, group: Some(group_of(4, 7)), up: set([3]) };
    bench.reply(4, left).none();
    let here = Message::AycAns { yes: false, group: Some(own_group(5, 2)), up: set([]) };
    bench.reply(1, here).none();
    bench.reply(2, here).none();
    bench.fire(Timer::Repeat).ignore();
    let acts = bench.fire(Timer::Phase);
    assert!(acts.has(Effect::Election(own_group(5, 3))), "a merge");
}

/// A member that is heard and does not hear is left out, but not with every Beat anew.
#[test]
fn a_roll_call_that_a_beat_caused_in_vain_is_not_repeated_with_the_next() {
    let mut bench = coordinator(&[1, 2]);
    let beat = Message::Beat { group: group_of(4, 7), normal: true };
    let here = Message::AycAns { yes: false, group: Some(own_group(5, 2)), up: set([]) };
    bench.hear(2, &[], Message::Beat { group: group_of(2, 7), normal: true }).ignore();
    bench.reply(1, here).none();
    bench.reply(2, here).none();
    bench.reply(3, here).none();
    bench.reply(4, here).none();
    assert_eq!(bench.due_in(Timer::Phase), None, "all have answered");
    bench.hear(4, &[], beat).none();
    bench.pass(bench.timing().t.times(2)).ignore();
    assert!(!bench.hear(4, &[], beat).sent().is_empty());
}

#[test]
fn another_coordinator_is_not_kept_waiting_for_silent_members() {
    let mut bench = coordinator(&[1, 2]);
    bench.fire(Timer::Check).ignore();
    let began = bench.now;
    bench.reply(4, Message::AycAns { yes: true, group: Some(group_of(4, 1)), up: set([]) }).none();
    bench.fire(Timer::Repeat).ignore();
    let acts = bench.fire(Timer::Phase);
    assert_eq!(bench.now.since(began), bench.timing().t);
    assert!(acts.has(Effect::Election(own_group(5, 3))), "a merge");
}
