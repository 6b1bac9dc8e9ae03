//! How members watch their coordinator, and what they do about what they hear: R17, R19 to R22.

use super::*;
use crate::effects::Note;
use crate::node::testing::id;

const PROBE: fn(GroupId) -> Message<'static, 1> =
    |run| Message::AreYouThere { group: Some(run), status: Status::Normal };

fn beat(group: GroupId) -> Message<'static, 1> {
    Message::Beat { group, normal: true }
}

#[test]
fn r17_a_silent_coordinator_is_asked_and_all_hear_it() {
    let (mut bench, run) = member();
    let acts = bench.fire(Timer::Quiet);
    assert_eq!(acts.broadcast(), ([5].into(), PROBE(run)));
    assert_eq!(acts.notes(), [Note::Suspected(id(5))]);
}

#[test]
fn r17_no_answer_starts_a_run_that_spares_the_dead_node() {
    let (mut bench, _) = member();
    bench.fire(Timer::Quiet).ignore();
    assert_eq!(bench.due_in(Timer::Phase), Some(bench.timing().t));
    let acts = bench.fire(Timer::Phase);
    starts_a_run(&acts, 3, 2, &[5]);
}

#[test]
fn r17_yes_clears_the_coordinator_and_no_starts_a_run() {
    let (mut bench, _) = member();
    bench.fire(Timer::Quiet).ignore();
    let acts = bench.reply(5, Message::AytAns { yes: true });
    assert_eq!(acts.notes(), [Note::SuspicionWrong(id(5))]);
    assert_eq!(bench.status(), Status::Normal);
    bench.fire(Timer::Quiet).ignore();
    let acts = bench.reply(5, Message::AytAns { yes: false });
    starts_a_run(&acts, 3, 2, &[]);
}

#[test]
fn r17_the_coordinator_says_yes_to_its_members_alone() {
    let mut bench = coordinator();
    let run = own_group(5, 1);
    let acts = bench.hear(2, &[5], PROBE(run));
    assert_eq!(acts.unicast(), (2, Message::AytAns { yes: true }));
    let acts = bench.hear(2, &[5], PROBE(group_of(2, 1)));
    assert_eq!(acts.unicast(), (2, Message::AytAns { yes: false }));
    let (mut bench, run) = member();
    let acts = bench.hear(2, &[3], PROBE(run));
    assert_eq!(acts.unicast(), (2, Message::AytAns { yes: false }), "no coordinator");
}

#[test]
fn r17_a_higher_member_that_asks_spares_the_others_the_question() {
    let (mut bench, run) = member();
    bench.fire(Timer::Quiet).ignore();
    bench.hear(4, &[5], PROBE(run)).none();
    assert_eq!(bench.due_in(Timer::Phase), None, "left to node 4");
    let patience = bench.timing().t.times(2) + bench.timing().lap(5);
    assert_eq!(bench.due_in(Timer::Quiet), Some(patience));
    // A lower one does not.
    bench.fire(Timer::Quiet).ignore();
    bench.hear(1, &[5], PROBE(run)).none();
    assert!(bench.due_in(Timer::Phase).is_some());
}

#[test]
fn r17_suspicion_is_staggered_by_rank() {
    let (bench, _) = member();
    let timing = bench.timing();
    assert_eq!(bench.due_in(Timer::Quiet), Some(timing.quiet + timing.stagger), "4 is before 3");
}

#[test]
fn only_a_beat_of_this_group_and_its_coordinator_counts() {
    let (mut bench, run) = member();
    let full = bench.due_in(Timer::Quiet);
    bench.pass(bench.timing().tm).none();
    bench.hear(4, &[], beat(run)).none();
    bench.hear(4, &[], beat(group_of(4, 1))).none();
    assert!(bench.due_in(Timer::Quiet) < full);
    bench.hear(5, &[], beat(run)).none();
    assert_eq!(bench.due_in(Timer::Quiet), full);
    bench.pass(bench.timing().tm).none();
    let acts = bench.hear(5, &[3], Message::AreYouNormal { group: run });
    assert_eq!(acts.unicast(), (5, Message::AynAns { normal: true }));
    assert_eq!(bench.due_in(Timer::Quiet), full);
}

#[test]
fn r19_a_coordinator_that_has_gone_on_is_asked_at_once() {
    let (mut bench, run) = member();
    let acts = bench.hear(5, &[], beat(group_of(1, 9)));
    assert_eq!(acts.broadcast(), ([5].into(), PROBE(run)));
}

#[test]
fn r21_a_foreign_beat_shortens_a_long_wait_for_ones_own_coordinator() {
    let (mut bench, run) = member();
    bench.hear(4, &[5], PROBE(run)).none();
    let quiet = bench.timing().quiet;
    assert!(bench.due_in(Timer::Quiet) > Some(quiet), "left to node 4");
    bench.hear(4, &[], beat(group_of(4, 1))).none();
    assert_eq!(bench.due_in(Timer::Quiet), Some(quiet));
    // The next one does not put it off.
    bench.pass(bench.timing().tm).none();
    bench.hear(4, &[], beat(group_of(4, 1))).none();
    assert!(bench.due_in(Timer::Quiet) < Some(quiet));
}

#[test]
fn r20_the_higher_of_two_coordinators_starts_a_run() {
    let mut bench = coordinator();
    let acts = bench.hear(2, &[], beat(group_of(1, 1)));
    assert_eq!(acts.notes()[0], Note::ProvokedBy(id(2)));
    starts_a_run(&acts, 5, 2, &[]);
}

#[test]
fn r20_the_lower_leaves_it_to_the_higher() {
    // Node 3 is the coordinator of 1 and 2.
    let (mut bench, acts) = started(3);
    acts.ignore();
    bench.reply(4, Message::HopAck).none();
    let run = own_group(3, 1);
    bench.request(2, elect(run, 1, &[1, 2, 3])).ignore();
    bench.reply(1, Message::HopAck).none();
    bench.request(2, token(Lap::Coord, run, 1, &[1, 2, 3])).ignore();
    let ticket = bench.reorganized(run, TASK).save();
    bench.saved(ticket).none();
    bench.reply(1, Message::HopAck).none();
    bench.request(2, token(Lap::Ready, run, 1, &[1, 2, 3])).ignore();
    assert_eq!((bench.status(), bench.coordinator()), (Status::Normal, Some(3)));
    bench.hear(5, &[], beat(group_of(5, 1))).none();
    let acts = bench.hear(1, &[], beat(group_of(1, 1)));
    assert_eq!(acts.notes(), [Note::ProvokedBy(id(1))]);
    assert!(acts.has(Effect::Election(own_group(3, 2))));
}

#[test]
fn r22_a_node_that_was_left_out_of_its_own_run_says_so() {
    for (mut bench, run) in [joined(), announced()] {
        let acts = bench.hear(5, &[], beat(run));
        starts_a_run(&acts, 3, 2, &[]);
    }
}

#[test]
fn r22_a_group_that_beats_on_after_a_lap_has_left_this_node_out() {
    let (mut bench, _) = joined();
    let foreign = beat(group_of(4, 9));
    bench.hear(4, &[], foreign).none();
    bench.pass(bench.timing().lap(5)).none();
    bench.hear(4, &[], foreign).none();
    bench.pass(bench.timing().tick).none();
    let acts = bench.hear(4, &[], foreign);
    starts_a_run(&acts, 3, 2, &[]);
}
