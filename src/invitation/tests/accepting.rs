//! An invitation, seen from the invitee: I7, I9, I10, I20.

use super::*;
use crate::effects::Effect;
use crate::node::testing::Act;
use crate::wire::Destination;

#[test]
fn i7_a_normal_node_leaves_its_group_and_accepts() {
    let (bench, acts) = accepting();
    assert_eq!(acts.0.first(), Some(&Act::Other(Effect::StopApplication)));
    let group = group_of(5, 2);
    assert_eq!(acts.unicast(), (5, Message::Accept { group }));
    assert_eq!((bench.status(), bench.coordinator()), (Status::Election, Some(5)));
    assert_eq!((bench.state().group, bench.up()), (Some(group), [].into()));
    assert_eq!(bench.due_in(Timer::Limit), Some(bench.timing().limit()));
}

/// An invitation to node 3, Normal and alone, or in the group of node 5, that changes nothing.
#[track_caller]
fn is_void(mut bench: Bench<1>, from: u8, message: Message<'static, 1>) {
    let before = (bench.state().clone(), bench.node.next_deadline());
    bench.hear(from, &[3], message).none();
    assert_eq!((bench.state().clone(), bench.node.next_deadline()), before);
}

#[test]
fn i7_an_invitation_to_leave_another_group_is_void() {
    is_void(awake(3), 5, invite(group_of(5, 2), &[(own_group(3, 2), &[3])]));
    is_void(awake(3), 5, invite(group_of(5, 2), &[(group_of(4, 1), &[3, 4])]));
    is_void(member(), 4, invite(group_of(4, 2), &[(own_group(3, 1), &[3])]));
}

#[test]
fn i7_a_duplicate_after_the_group_was_joined_or_left_is_void() {
    let message = invite(group_of(5, 2), &[(own_group(3, 1), &[3])]);
    is_void(member(), 5, message);
    let mut bench = member();
    bench.fire(Timer::Quiet).ignore();
    bench.reply(5, Message::AytAns { yes: false }).ignore();
    is_void(bench, 5, message);
}

#[test]
fn i7_an_invitation_that_names_others_is_void() {
    is_void(awake(3), 5, invite(group_of(5, 2), &[(own_group(3, 1), &[1, 2])]));
    is_void(awake(3), 5, invite(group_of(5, 2), &[]));
}

#[test]
fn i7_only_a_normal_node_accepts() {
    is_void(confirmed(), 4, invite(group_of(4, 2), &[(group_of(5, 2), &[3])]));
    let (bench, acts) = accepting();
    acts.ignore();
    is_void(bench, 4, invite(group_of(4, 2), &[(group_of(5, 2), &[3])]));
}

#[test]
fn i7_nobody_accepts_its_own_invitation_when_it_comes_back() {
    let (bench, acts) = merging(&[1, 4]);
    acts.ignore();
    let message = invite(own_group(5, 2), &[(own_group(5, 1), &[5])]);
    is_void(bench, 4, message);
    // Nor when it is Normal again, in the very group that it is asked to leave.
    is_void(awake(5), 4, invite(own_group(5, 2), &[(own_group(5, 1), &[5])]));
}

#[test]
fn i7_the_accept_leaves_before_the_forward() {
    let mut bench = coordinator(&[1, 2]);
    let message = invite(group_of(4, 2), &[(own_group(5, 2), &[5])]);
    let acts = bench.hear(4, &[5], message);
    let [first, second] = acts.sent()[..] else { panic!("{acts:?}") };
    assert_eq!(first.to, Destination::Node(crate::node::testing::id(4)));
    assert_eq!(first.message, Message::Accept { group: group_of(4, 2) });
    assert_eq!(second.to, Destination::All);
    let entries = [(own_group(5, 2), [1, 2].into())].into();
    assert_eq!(invited(&second.message), (group_of(4, 2), entries));
}

#[test]
fn i7_only_members_whom_the_invitation_does_not_name_get_it_forwarded() {
    let mut bench = coordinator(&[1, 2, 3]);
    let message = invite(group_of(4, 2), &[(own_group(5, 2), &[1, 3, 5])]);
    let acts = bench.hear(4, &[1, 3, 5], message);
    let entries = [(own_group(5, 2), [2].into())].into();
    assert_eq!(invited(&acts.messages()[1]), (group_of(4, 2), entries));
    let mut bench = coordinator(&[1, 2]);
    let message = invite(group_of(4, 2), &[(own_group(5, 2), &[1, 2, 5])]);
    let acts = bench.hear(4, &[1, 2, 5], message);
    assert_eq!(acts.unicast().0, 4, "nobody is left to tell");
}

#[test]
fn i7_the_forward_does_not_go_back_to_whoever_sent_the_invitation() {
    let mut bench = coordinator(&[1, 2]);
    let message = invite(group_of(1, 2), &[(own_group(5, 2), &[5])]);
    let acts = bench.hear(1, &[5], message);
    let entries = [(own_group(5, 2), [2].into())].into();
    assert_eq!(invited(&acts.messages()[1]), (group_of(1, 2), entries));
}

#[test]
fn i7_a_member_forwards_nothing() {
    let mut bench = member();
    let message = invite(group_of(4, 2), &[(group_of(5, 2), &[3])]);
    let acts = bench.hear(4, &[3], message);
    assert_eq!(acts.unicast(), (4, Message::Accept { group: group_of(4, 2) }));
}

#[test]
fn i7_a_forwarded_invitation_is_accepted_at_the_inviter() {
    let mut bench = member();
    let message = invite(group_of(4, 2), &[(group_of(5, 2), &[1, 2, 3])]);
    let acts = bench.hear(5, &[1, 2, 3], message);
    assert_eq!(acts.unicast(), (4, Message::Accept { group: group_of(4, 2) }));
    assert_eq!(bench.coordinator(), Some(4));
}

#[test]
fn i9_a_confirmed_accept_leads_to_reorganization() {
    let (mut bench, acts) = accepting();
    acts.ignore();
    let limit = bench.due_in(Timer::Limit);
    bench.reply(5, Message::AcceptAns { ok: true }).none();
    assert_eq!((bench.status(), bench.coordinator()), (Status::Reorganization, Some(5)));
    assert_eq!(bench.due_in(Timer::Phase), None);
    assert_eq!(bench.due_in(Timer::Quiet), Some(bench.timing().quiet));
    assert_eq!(bench.due_in(Timer::Limit), limit, "counted from when it left Normal");
}

#[test]
fn i9_a_refused_accept_leads_to_recovery() {
    let (mut bench, acts) = accepting();
    acts.ignore();
    let acts = bench.reply(5, Message::AcceptAns { ok: false });
    alone(&bench, &acts, 2);
}

#[test]
fn i9_the_answer_to_an_earlier_accept_is_void() {
    let (mut bench, acts) = accepting();
    acts.ignore();
    let late = bench.reply_datagram(5, Message::AcceptAns { ok: true });
    bench.reply(5, Message::AcceptAns { ok: false }).ignore();
    let message = invite(group_of(5, 3), &[(own_group(3, 2), &[3])]);
    bench.hear(5, &[3], message).ignore();
    bench.receive(&late).none();
    assert_eq!(bench.status(), Status::Election);
}

#[test]
fn i10_the_accept_is_repeated() {
    let (mut bench, first) = accepting();
    let acts = bench.fire(Timer::Repeat);
    assert_eq!(acts.unicast(), (5, Message::Accept { group: group_of(5, 2) }));
    assert_eq!(acts.sent()[0].call, first.sent()[0].call);
}

#[test]
fn i10_an_inviter_that_never_answers_is_given_up() {
    let (mut bench, acts) = accepting();
    acts.ignore();
    let began = bench.now;
    let acts = bench.fire(Timer::Phase);
    alone(&bench, &acts, 2);
    let timing = bench.timing();
    assert_eq!(bench.now.since(began), timing.t.times(timing.patience));
}

#[test]
fn i20_a_group_that_never_becomes_normal_is_given_up_after_r() {
    let (mut bench, acts) = accepting();
    acts.ignore();
    let began = bench.now;
    bench.reply(5, Message::AcceptAns { ok: true }).none();
    // The coordinator is there all the time, and yet nothing comes of it.
    let beat = Message::Beat { group: group_of(5, 2), normal: true };
    while bench.due_in(Timer::Limit).is_some_and(|due| due > bench.timing().beat) {
        bench.pass(bench.timing().beat).none();
        bench.hear(5, &[], beat).none();
    }
    let acts = bench.fire(Timer::Limit);
    alone(&bench, &acts, 2);
    assert_eq!(bench.now.since(began), bench.timing().limit());
}

#[test]
fn i20_a_normal_member_has_no_limit() {
    assert_eq!(member().due_in(Timer::Limit), None);
}

#[test]
fn an_invitation_again_while_accepting_is_accepted_again() {
    let (mut bench, first) = accepting();
    let message = invite(group_of(5, 2), &[(own_group(3, 1), &[3])]);
    let acts = bench.hear_again(5, &[3], message);
    assert_eq!(acts.unicast(), (5, Message::Accept { group: group_of(5, 2) }));
    assert_eq!(acts.sent()[0].call, first.sent()[0].call);
    let message = invite(group_of(5, 2), &[(group_of(4, 1), &[4])]);
    bench.hear_again(5, &[4], message).none();
}

#[test]
fn the_forward_is_repeated_with_the_accept() {
    let mut bench = coordinator(&[1, 2]);
    let message = invite(group_of(4, 2), &[(own_group(5, 2), &[5])]);
    let first = bench.hear(4, &[5], message).messages();
    assert_eq!(bench.fire(Timer::Repeat).messages(), first);
}
