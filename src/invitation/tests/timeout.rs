//! The paper's Timeout, and what counts as a sign of life: I16 to I19.

use super::*;
use crate::effects::Note;
use crate::node::testing::id;

fn probe(group: GroupId, status: Status) -> Message<'static, 1> {
    Message::AreYouThere { group: Some(group), status }
}

#[test]
fn i16_a_silent_coordinator_is_probed() {
    for mut bench in [confirmed(), member()] {
        let status = bench.status();
        let acts = bench.fire(Timer::Quiet);
        assert_eq!(acts.broadcast(), ([5].into(), probe(group_of(5, 2), status)));
        assert_eq!(acts.notes(), [Note::Suspected(id(5))]);
        assert_eq!(bench.due_in(Timer::Phase), Some(bench.timing().t));
        assert_eq!((bench.status(), bench.coordinator()), (status, Some(5)), "only suspected");
    }
}

#[test]
fn i16_a_coordinator_does_not_suspect_itself() {
    assert_eq!(coordinator(&[1, 2]).due_in(Timer::Quiet), None);
    assert_eq!(awake(3).due_in(Timer::Quiet), None);
}

/// Whether hearing `message` of node `from` puts the suspicion of node 3 off.
fn puts_off_suspicion(from: u8, message: Message<'_, 1>) -> bool {
    let mut bench = member();
    bench.pass(bench.timing().tm).ignore();
    let before = bench.due_in(Timer::Quiet);
    bench.hear(from, &[1, 2, 4], message).ignore();
    bench.due_in(Timer::Quiet) > before
}

#[test]
fn i16_only_messages_of_this_very_group_count_as_heard() {
    let (mine, older) = (group_of(5, 2), group_of(5, 1));
    let beat = |group| Message::Beat { group, normal: true };
    assert!(puts_off_suspicion(5, beat(mine)));
    assert!(!puts_off_suspicion(5, beat(older)));
    assert!(!puts_off_suspicion(4, beat(group_of(4, 2))));
    assert!(puts_off_suspicion(5, ready(mine, &[1, 2, 3, 4])));
    assert!(!puts_off_suspicion(5, ready(older, &[1, 2, 3, 4])));
    let check = |group| Message::AreYouCoordinator { group, roll_call: true };
    assert!(puts_off_suspicion(5, check(mine)));
    assert!(!puts_off_suspicion(5, check(older)));
    let elsewhere = invite(group_of(5, 3), &[(group_of(4, 1), &[4])]);
    assert!(!puts_off_suspicion(5, elsewhere));
}

#[test]
fn i17_a_coordinator_answers_its_members_yes() {
    let mut bench = coordinator(&[1, 2]);
    let acts = bench.hear(1, &[5], probe(own_group(5, 2), Status::Normal));
    assert_eq!(acts.unicast(), (1, Message::AytAns { yes: true }));
}

#[test]
fn i17_anybody_else_is_answered_no() {
    let no = Message::AytAns { yes: false };
    let mut bench = coordinator(&[1, 2]);
    let acts = bench.hear(4, &[5], probe(own_group(5, 2), Status::Normal));
    assert_eq!(acts.unicast(), (4, no), "no member");
    let acts = bench.hear(1, &[5], probe(own_group(5, 1), Status::Normal));
    assert_eq!(acts.unicast(), (1, no), "another group");
    let question = Message::AreYouThere { group: None, status: Status::Normal };
    assert_eq!(bench.hear(1, &[5], question).unicast(), (1, no), "no group");
    let mut bench = member();
    let acts = bench.hear(1, &[3], probe(group_of(5, 2), Status::Normal));
    assert_eq!(acts.unicast(), (1, no), "no coordinator");
}

#[test]
fn i17_a_member_that_missed_ready_gets_it_again() {
    let mut bench = coordinator(&[1, 2]);
    let acts = bench.hear(1, &[5], probe(own_group(5, 2), Status::Reorganization));
    assert_eq!(acts.unicast(), (1, ready(own_group(5, 2), &[1, 2])));
}

#[test]
fn i17_before_the_group_is_normal_a_member_is_only_answered() {
    let (mut bench, acts) = distributing(&[1, 2]);
    acts.ignore();
    let acts = bench.hear(1, &[5], probe(own_group(5, 2), Status::Reorganization));
    assert_eq!(acts.unicast(), (1, Message::AytAns { yes: true }));
}

#[test]
fn i18_a_yes_shows_that_the_suspicion_was_wrong() {
    let mut bench = member();
    bench.fire(Timer::Quiet).ignore();
    let acts = bench.reply(5, Message::AytAns { yes: true });
    assert_eq!(acts.notes(), [Note::SuspicionWrong(id(5))]);
    assert_eq!(acts.messages(), []);
    assert_eq!((bench.status(), bench.coordinator()), (Status::Normal, Some(5)));
    assert_eq!(bench.due_in(Timer::Phase), None);
    let timing = bench.timing();
    assert_eq!(bench.due_in(Timer::Quiet), Some(timing.quiet + timing.stagger));
}

#[test]
fn i18_a_no_leads_to_recovery() {
    let mut bench = member();
    bench.fire(Timer::Quiet).ignore();
    let acts = bench.reply(5, Message::AytAns { yes: false });
    alone(&bench, &acts, 2);
}

#[test]
fn i18_only_the_coordinator_may_answer() {
    let mut bench = member();
    bench.fire(Timer::Quiet).ignore();
    bench.reply(4, Message::AytAns { yes: false }).none();
    bench.reply(4, Message::AytAns { yes: true }).none();
    assert!(bench.due_in(Timer::Phase).is_some());
}

#[test]
fn i19_without_an_answer_before_normal_it_recovers() {
    let mut bench = confirmed();
    bench.fire(Timer::Quiet).ignore();
    let acts = bench.fire(Timer::Phase);
    alone(&bench, &acts, 2);
}

#[test]
fn i19_a_definition_that_is_not_durable_yet_makes_no_heir() {
    let mut bench = confirmed();
    bench.hear(5, &[3, 4], ready(group_of(5, 2), &[3, 4])).save();
    assert_eq!(bench.up(), [4, 5]);
    bench.fire(Timer::Quiet).ignore();
    let acts = bench.fire(Timer::Phase);
    alone(&bench, &acts, 2);
}

#[test]
fn i19_the_heir_invites_the_members_of_the_dead_coordinator() {
    let mut bench = member();
    bench.fire(Timer::Quiet).ignore();
    let acts = bench.fire(Timer::Phase);
    assert!(acts.stops());
    let entries = [(group_of(5, 2), [1, 2, 4].into())].into();
    let (named, message) = acts.broadcast();
    assert_eq!((named, invited(&message)), ([1, 2, 4].into(), (own_group(3, 2), entries)));
    assert_eq!((bench.status(), bench.coordinator()), (Status::Election, Some(3)));
}

#[test]
fn the_highest_member_suspects_first() {
    let timing = member().timing();
    assert_eq!(member().due_in(Timer::Quiet), Some(timing.quiet + timing.stagger));
    let mut deputy = awake(4);
    let message = invite(group_of(5, 2), &[(own_group(4, 1), &[4])]);
    deputy.hear(5, &[4], message).ignore();
    let acts = deputy.hear(5, &[3, 4], ready(group_of(5, 2), &[1, 2, 3, 4]));
    deputy.saved(acts.save()).ignore();
    assert_eq!(deputy.due_in(Timer::Quiet), Some(timing.quiet));
}

#[test]
fn an_overheard_probe_of_a_higher_member_defers_ones_own() {
    let mut bench = member();
    let timing = bench.timing();
    bench.pass(timing.quiet).ignore();
    bench.hear(4, &[5], probe(group_of(5, 1), Status::Normal)).none();
    bench.hear(2, &[5], probe(group_of(5, 2), Status::Normal)).none();
    assert_eq!(bench.due_in(Timer::Quiet), Some(timing.stagger), "another group; a lower member");
    bench.hear(4, &[5], probe(group_of(5, 2), Status::Normal)).none();
    assert_eq!(bench.due_in(Timer::Quiet), Some(timing.t.times(2)));
    bench.fire(Timer::Quiet).ignore();
    bench.hear(4, &[5], probe(group_of(5, 2), Status::Normal)).none();
    assert_eq!(bench.due_in(Timer::Phase), None, "its own probe ends too");
}

#[test]
fn are_you_there_is_answered_however_often_it_is_asked() {
    let mut bench = coordinator(&[1, 2]);
    let question = probe(own_group(5, 2), Status::Normal);
    bench.hear(1, &[5], question).ignore();
    for _ in 0..3 {
        let acts = bench.hear_again(1, &[5], question);
        assert_eq!(acts.unicast(), (1, Message::AytAns { yes: true }));
    }
}
