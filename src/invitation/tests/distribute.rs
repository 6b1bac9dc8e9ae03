//! The definition reaches the members: I12 to I15.

use super::*;
use crate::effects::Effect;
use crate::node::testing::Act;
use crate::wire::DEFINITION_BYTES_MAX;

const OK: Message<'static, 1> = Message::ReadyAns { ok: true };
const NO: Message<'static, 1> = Message::ReadyAns { ok: false };

#[test]
fn i12_the_definition_is_distributed_while_it_is_saved() {
    let (bench, acts) = distributing(&[1, 4]);
    assert_eq!(acts.broadcast(), ([1, 4].into(), ready(own_group(5, 2), &[1, 4])));
    acts.save();
    assert_eq!((bench.status(), bench.definition()), (Status::Reorganization, Some(TASK)));
    assert_eq!(bench.due_in(Timer::Phase), Some(bench.timing().distribute()));
}

#[test]
fn i12_a_definition_for_another_group_or_a_second_one_is_ignored() {
    let (mut bench, acts) = distributing(&[1, 4]);
    acts.ignore();
    bench.reorganized(own_group(5, 2), b"again").none();
    bench.reorganized(own_group(5, 1), b"other").none();
    assert_eq!(bench.definition(), Some(TASK));
}

#[test]
fn i12_an_application_that_fails_leads_to_recovery() {
    let (mut bench, acts) = merging(&[1]);
    acts.ignore();
    accept(&mut bench, 1, 2).ignore();
    let acts = bench.reorganized(own_group(5, 2), &[0; DEFINITION_BYTES_MAX + 1]);
    alone(&bench, &acts, 3);
    let (mut bench, acts) = merging(&[1]);
    acts.ignore();
    accept(&mut bench, 1, 2).ignore();
    let acts = bench.fire(Timer::Phase);
    alone(&bench, &acts, 3);
}

#[test]
fn i13_the_definition_is_durable_before_the_answer() {
    let mut bench = confirmed();
    let acts = bench.hear(5, &[3, 4], ready(group_of(5, 2), &[3, 4]));
    assert_eq!(acts.messages(), [], "not before it is durable");
    assert_eq!(bench.status(), Status::Reorganization);
    let acts = bench.saved(acts.save());
    assert!(acts.starts());
    assert_eq!(acts.unicast(), (5, OK));
    assert_eq!((bench.status(), bench.definition()), (Status::Normal, Some(TASK)));
    assert_eq!(bench.up(), [4, 5], "all others of the group, the coordinator too");
}

#[test]
fn i13_ready_may_overtake_the_answer_to_accept() {
    let (mut bench, acts) = accepting();
    acts.ignore();
    let acts = bench.hear(5, &[3, 4], ready(group_of(5, 2), &[3, 4]));
    assert_eq!(bench.status(), Status::Reorganization);
    let acts = bench.saved(acts.save());
    assert_eq!(acts.unicast(), (5, OK));
    assert_eq!(bench.status(), Status::Normal);
    assert_eq!(bench.due_in(Timer::Phase), None);
}

#[test]
fn i13_repeated_is_accepted_again_and_saved_once() {
    let mut bench = member();
    let acts = bench.hear(5, &[3], ready(group_of(5, 2), &[1, 2, 3, 4]));
    assert_eq!(acts.unicast(), (5, OK));
    assert_eq!(acts.0.len(), 1, "no second save and no second start: {acts:?}");
}

#[test]
fn i13_repeated_while_it_is_being_saved_waits_for_that_save() {
    let mut bench = confirmed();
    let message = ready(group_of(5, 2), &[3, 4]);
    let acts = bench.hear(5, &[3, 4], message);
    bench.hear_again(5, &[3], message).none();
    assert!(bench.saved(acts.save()).starts());
}

#[test]
fn i13_the_ready_of_another_group_is_refused() {
    for mut bench in [awake(3), accepting().0, confirmed(), member()] {
        let before = bench.state().clone();
        let acts = bench.hear(5, &[3], ready(group_of(5, 3), &[1, 2, 3, 4]));
        assert_eq!(acts.unicast(), (5, NO));
        assert_eq!(bench.state(), &before);
    }
}

#[test]
fn i13_a_ready_without_this_node_leads_to_recovery() {
    let mut bench = confirmed();
    let acts = bench.hear(5, &[4], ready(group_of(5, 2), &[4]));
    alone(&bench, &acts, 2);
}

#[test]
fn i13_a_save_that_ends_after_the_group_was_left_changes_nothing() {
    let mut bench = confirmed();
    let acts = bench.hear(5, &[3, 4], ready(group_of(5, 2), &[3, 4]));
    let ticket = acts.save();
    let acts = bench.hear(5, &[], Message::Beat { group: group_of(5, 3), normal: true });
    alone(&bench, &acts, 2);
    bench.saved(ticket).none();
    assert_eq!(bench.state().group, Some(own_group(3, 2)));
}

#[test]
fn i14_normal_when_all_have_answered_and_the_own_save_is_done() {
    let (mut bench, acts) = distributing(&[1, 4]);
    let ticket = acts.save();
    bench.reply(1, OK).none();
    bench.reply(1, OK).none();
    bench.saved(ticket).none();
    assert_eq!(bench.status(), Status::Reorganization, "node 4 has not answered");
    let acts = bench.reply(4, OK);
    assert!(acts.starts());
    let group = own_group(5, 2);
    assert_eq!(acts.broadcast(), ([].into(), Message::Beat { group, normal: true }));
    assert_eq!((bench.status(), bench.up()), (Status::Normal, [1, 4].into()));
    assert_eq!(bench.due_in(Timer::Check), Some(bench.timing().check));
    let (mut bench, acts) = distributing(&[1]);
    bench.reply(1, OK).none();
    assert_eq!(bench.status(), Status::Reorganization, "not durable yet");
    assert!(bench.saved(acts.save()).starts());
}

#[test]
fn i15_after_silence_those_who_answered_form_a_new_group() {
    let (mut bench, acts) = distributing(&[1, 2, 4]);
    let ticket = acts.save();
    bench.reply(1, OK).none();
    bench.reply(4, OK).none();
    let acts = bench.fire(Timer::Phase);
    let entries = [(own_group(5, 2), [1, 4].into())].into();
    let (named, message) = acts.broadcast();
    assert_eq!((named, invited(&message)), ([1, 4].into(), (own_group(5, 3), entries)));
    assert_eq!(bench.status(), Status::Election);
    bench.saved(ticket).none();
    assert_eq!(bench.status(), Status::Election, "the old save makes nothing Normal");
}

#[test]
fn i15_after_a_refusal_the_others_form_a_new_group() {
    let (mut bench, acts) = distributing(&[1, 2, 4]);
    acts.ignore();
    bench.reply(1, OK).none();
    let acts = bench.reply(4, NO);
    let (group, entries) = invited(&acts.broadcast().1);
    assert_eq!(group, own_group(5, 3));
    assert_eq!(entries, [(own_group(5, 2), [1].into())]);
}

#[test]
fn i15_when_nobody_answered_the_coordinator_is_alone_under_a_new_number() {
    let (mut bench, acts) = distributing(&[1]);
    acts.ignore();
    let acts = bench.fire(Timer::Phase);
    alone(&bench, &acts, 3);
    assert!(!acts.stops(), "its task had not started");
}

#[test]
fn ready_is_repeated_to_those_who_have_not_answered() {
    let (mut bench, first) = distributing(&[1, 4]);
    bench.reply(1, OK).none();
    let acts = bench.fire(Timer::Repeat);
    assert_eq!(acts.broadcast(), ([4].into(), ready(own_group(5, 2), &[1, 4])));
    assert_eq!(acts.sent()[0].call, first.sent()[0].call);
}

#[test]
fn the_application_of_a_member_stops_when_it_is_invited_away() {
    let mut bench = member();
    let message = invite(group_of(4, 2), &[(group_of(5, 2), &[1, 2, 3])]);
    let acts = bench.hear(4, &[1, 2, 3], message);
    assert_eq!(acts.0.first(), Some(&Act::Other(Effect::StopApplication)));
}
