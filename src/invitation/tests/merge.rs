//! Merge, seen from the inviter: I6, I8, I11.

use super::*;
use crate::effects::Effect;
use crate::node::testing::Act;

#[test]
fn i6_a_merge_founds_a_new_group_and_invites() {
    let (bench, acts) = merging(&[1, 4]);
    assert_eq!(acts.0.first(), Some(&Act::Other(Effect::StopApplication)));
    let (named, message) = acts.broadcast();
    let entries = [(group_of(1, 1), [1].into()), (group_of(4, 1), [4].into())].into();
    assert_eq!((named, invited(&message)), ([1, 4].into(), (own_group(5, 2), entries)));
    assert_eq!((bench.status(), bench.coordinator()), (Status::Election, Some(5)));
    assert_eq!((bench.state().group, bench.up()), (Some(own_group(5, 2)), [].into()));
    assert_eq!(bench.due_in(Timer::Phase), Some(bench.timing().accept));
}

#[test]
fn i6_ones_own_members_are_asked_to_leave_the_old_group() {
    let mut bench = coordinator(&[1, 2]);
    bench.fire(Timer::Check).ignore();
    bench.reply(4, yes(group_of(4, 9), &[3])).none();
    let acts = bench.fire(Timer::Phase);
    let (named, message) = acts.broadcast();
    assert_eq!(named, [1, 2, 3, 4]);
    let entries = [(own_group(5, 2), [1, 2].into()), (group_of(4, 9), [3, 4].into())];
    assert_eq!(invited(&message), (own_group(5, 3), entries.into()));
}

#[test]
fn i6_after_the_wait_for_higher_ones_it_invites_after_all() {
    let (mut bench, acts) = checking(3);
    acts.ignore();
    bench.reply(5, yes(group_of(5, 1), &[4])).none();
    bench.fire(Timer::Phase).none();
    let end = bench.now + bench.timing().check.times(2);
    let beat = Message::Beat { group: group_of(5, 1), normal: true };
    while bench.now + bench.timing().beat < end {
        bench.pass(bench.timing().beat).ignore();
        bench.hear(5, &[], beat).none();
    }
    let acts = bench.fire(Timer::Phase);
    let (named, message) = acts.broadcast();
    let entries = [(group_of(5, 1), [4, 5].into())].into();
    assert_eq!((named, invited(&message)), ([4, 5].into(), (own_group(3, 2), entries)));
    assert!(acts.stops());
}

#[test]
fn i6_a_node_that_joined_another_group_while_it_waited_invites_nobody() {
    let (mut bench, acts) = checking(3);
    acts.ignore();
    bench.reply(5, yes(group_of(5, 1), &[])).none();
    bench.fire(Timer::Phase).none();
    bench.hear(5, &[3], invite(group_of(5, 2), &[(own_group(3, 1), &[3])])).ignore();
    bench.reply(5, Message::AcceptAns { ok: true }).none();
    assert_eq!(bench.due_in(Timer::Phase), None);
    assert_eq!(bench.coordinator(), Some(5));
}

#[test]
fn i6_invitations_are_repeated_to_those_who_have_not_accepted() {
    let (mut bench, first) = merging(&[1, 4]);
    accept(&mut bench, 1, 2).none();
    let acts = bench.fire(Timer::Repeat);
    let (named, message) = acts.broadcast();
    let entries = [(group_of(4, 1), [4].into())].into();
    assert_eq!((named, invited(&message)), ([4].into(), (own_group(5, 2), entries)));
    assert_eq!(acts.sent()[0].call, first.sent()[0].call);
}

#[test]
fn i8_accepts_are_collected_in_a_set() {
    let (mut bench, acts) = merging(&[1, 2, 4]);
    acts.ignore();
    accept(&mut bench, 1, 2).none();
    assert_eq!(bench.up(), [1]);
    accept(&mut bench, 2, 2).none();
    assert_eq!(bench.up(), [1, 2]);
    assert_eq!(bench.status(), Status::Election);
}

#[test]
fn i8_an_accept_of_another_group_is_refused() {
    let (mut bench, acts) = merging(&[1, 2]);
    acts.ignore();
    let no = Message::AcceptAns { ok: false };
    for group in [own_group(5, 1), own_group(5, 3), group_of(4, 1)] {
        let acts = bench.request(1, Message::Accept { group });
        assert_eq!(acts.unicast(), (1, no));
    }
    assert_eq!(bench.up(), []);
}

#[test]
fn i8_an_accept_after_the_merge_has_closed_is_refused() {
    let no = Message::AcceptAns { ok: false };
    let (mut distributing, acts) = distributing(&[1]);
    acts.ignore();
    assert_eq!(accept(&mut distributing, 2, 2).unicast(), (2, no));
    assert_eq!(distributing.up(), [1]);
    let mut normal = coordinator(&[1]);
    assert_eq!(accept(&mut normal, 2, 2).unicast(), (2, no));
    let mut awake = awake(5);
    assert_eq!(accept(&mut awake, 2, 1).unicast(), (2, no), "nobody was ever invited");
    assert_eq!(awake.up(), []);
}

#[test]
fn i8_only_a_repeated_or_refused_accept_is_answered() {
    let (mut bench, acts) = merging(&[1, 2]);
    acts.ignore();
    accept(&mut bench, 1, 2).none();
    let ok = Message::AcceptAns { ok: true };
    assert_eq!(accept(&mut bench, 1, 2).unicast(), (1, ok), "while the merge goes on");
    let mut bench = coordinator(&[1]);
    assert_eq!(accept(&mut bench, 1, 2).unicast(), (1, ok), "and when it has closed");
}

#[test]
fn i8_a_node_to_which_the_invitation_was_forwarded_may_accept() {
    let (mut bench, acts) = merging(&[2]);
    acts.ignore();
    accept(&mut bench, 4, 2).none();
    assert_eq!(bench.up(), [4], "node 4 was not named, and comes along");
}

#[test]
fn i11_the_application_is_asked_once_all_who_were_invited_are_in() {
    let (mut bench, acts) = merging(&[1, 4]);
    acts.ignore();
    accept(&mut bench, 1, 2).none();
    let acts = accept(&mut bench, 4, 2);
    assert_eq!(acts.reorganize(), (own_group(5, 2), [1, 4, 5].into()));
    assert_eq!(acts.messages(), []);
    assert_eq!(bench.status(), Status::Reorganization);
    assert_eq!(bench.due_in(Timer::Phase), Some(bench.timing().reorganize));
}

#[test]
fn i11_whoever_has_not_accepted_in_time_is_left_out() {
    let (mut bench, acts) = merging(&[1, 4]);
    acts.ignore();
    let began = bench.now;
    accept(&mut bench, 1, 2).none();
    let mut acts = Acts([].into());
    while bench.status() == Status::Election {
        acts = bench.fire(Timer::Phase);
    }
    let timing = bench.timing();
    assert_eq!(bench.now.since(began), timing.accept.times(timing.patience));
    assert_eq!(acts.reorganize(), (own_group(5, 2), [1, 5].into()));
    let acts = accept(&mut bench, 4, 2);
    assert_eq!(acts.unicast(), (4, Message::AcceptAns { ok: false }), "Up is frozen");
    assert_eq!(bench.up(), [1]);
}

#[test]
fn i11_a_merge_that_nobody_joined_is_a_group_of_one() {
    let (mut bench, acts) = merging(&[1, 4]);
    acts.ignore();
    let mut acts = Acts([].into());
    while bench.status() == Status::Election {
        acts = bench.fire(Timer::Phase);
    }
    alone(&bench, &acts, 2);
}

#[test]
fn i6_one_entry_per_id_and_what_a_node_says_itself_wins() {
    let mut bench = coordinator(&[1, 2]);
    bench.fire(Timer::Check).ignore();
    bench.reply(2, yes(group_of(2, 7), &[])).none();
    let acts = bench.fire(Timer::Phase);
    let entries = [(own_group(5, 2), [1].into()), (group_of(2, 7), [2].into())];
    assert_eq!(invited(&acts.broadcast().1), (own_group(5, 3), entries.into()));
}

#[test]
fn i5_the_wait_for_higher_ones_ends_although_lower_ones_beat() {
    let (mut bench, acts) = checking(3);
    acts.ignore();
    let others = [yes(group_of(1, 1), &[]), yes(group_of(5, 1), &[])];
    for (from, answer) in [1, 5].into_iter().zip(others) {
        bench.reply(from, answer).none();
    }
    bench.fire(Timer::Phase).none();
    let end = bench.now + bench.timing().check.times(2);
    let beat = Message::Beat { group: group_of(1, 1), normal: true };
    while bench.now <= end + bench.timing().t {
        let mut asked = bench.pass(bench.timing().beat).messages();
        asked.extend(bench.hear(1, &[], beat).messages());
        if asked.iter().any(|message| matches!(message, Message::AreYouCoordinator { .. })) {
            for (from, answer) in [1, 5].into_iter().zip(others) {
                bench.reply(from, answer).ignore();
            }
        }
    }
    assert_eq!(bench.state().group, Some(own_group(3, 2)), "it invites after k * 2P");
}
