//! The procedure Election: B1 to B4, B6, B7, B9, B10, B12, B13.

use super::*;
use crate::effects::Effect;
use crate::id::NodeSet;
use crate::node::testing::{Act, id};
use crate::wire::{DEFINITION_BYTES_MAX, Reject};

#[test]
fn b1_a_node_wakes_down_and_calls_an_election() {
    let (bench, acts) = Bench::booted(bully(3));
    let question = Message::AreYouThere { group: None, status: Status::Down };
    assert_eq!(acts.broadcast(), ([4, 5].into(), question));
    assert_eq!((bench.status(), bench.state().halted_by), (Status::Down, None));
}

#[test]
fn b2_asks_all_higher_nodes_and_waits_t() {
    let bench = awake(3);
    assert_eq!(bench.due_in(Timer::Phase), Some(bench.timing().t));
    assert_eq!(bench.due_in(Timer::Quiet), None);
}

#[test]
fn b2_with_nobody_higher_halts_at_once() {
    let (bench, acts) = Bench::booted(bully(5));
    assert_eq!(acts.broadcast(), ([1, 2, 3, 4].into(), halt(own_group(5, 1))));
    assert_eq!(bench.status(), Status::Election);
}

#[test]
fn b2_priority_is_preference_first() {
    let mut config = Config::new(
        id(3),
        Algorithm::Bully,
        crate::config::Durability::Group,
        crate::node::testing::timing(),
    );
    for node in 1..=5 {
        config.add_member(node, u8::from(node == 1)).unwrap();
    }
    let (_, acts) = Bench::<1>::booted(config);
    assert_eq!(acts.broadcast().0, [1, 4, 5]);
}

#[test]
fn b3_the_first_answer_ends_the_round() {
    let mut bench = awake(3);
    bench.reply(4, Message::AytAns { yes: true }).none();
    assert_eq!(bench.due_in(Timer::Phase), None);
    assert_eq!(bench.due_in(Timer::Repeat), None);
    let timing = bench.timing();
    assert_eq!(bench.due_in(Timer::Quiet), Some(timing.t.times(2) + timing.stagger));
    assert_eq!(bench.status(), Status::Down);
    bench.reply(5, Message::AytAns { yes: true }).none();
    assert_eq!(bench.rejected(Reject::NotAwaited), 1, "the round is over");
}

#[test]
fn b4_when_nobody_higher_answers_all_lower_are_halted() {
    let (bench, acts) = halting(3);
    let group = own_group(3, 1);
    assert!(acts.has(Effect::Election(group)));
    assert_eq!(acts.broadcast(), ([1, 2].into(), halt(group)));
    assert_eq!(bench.status(), Status::Election);
    assert_eq!(bench.state().halted_by, Some(group));
    assert_eq!((bench.coordinator(), bench.state().group), (None, None));
    assert_eq!(bench.up(), []);
    assert_eq!(bench.due_in(Timer::Phase), Some(bench.timing().t));
    assert_eq!(bench.node.counters().elections, 1);
}

#[test]
fn b4_stops_the_application_before_anything_leaves() {
    let mut bench = member();
    bench.fire(Timer::Quiet).ignore();
    let acts = bench.fire(Timer::Phase);
    assert!(acts.position(Effect::StopApplication) < acts.first_sent());
    let first = [Effect::Election(own_group(3, 1)), Effect::StopApplication].map(Act::Other);
    assert_eq!(acts.0.get(..2), Some(first.as_slice()), "only a line of the log comes before");
    assert_eq!(acts.broadcast().1, halt(own_group(3, 1)));
    assert_eq!(bench.up(), [], "the old members are forgotten");
}

#[test]
fn b4_with_nobody_lower_reaches_the_election_point_at_once() {
    let (bench, acts) = halting(1);
    assert_eq!(acts.messages(), []);
    assert_eq!(acts.reorganize(), (own_group(1, 1), [1].into()));
    assert_eq!((bench.status(), bench.coordinator()), (Status::Reorganization, Some(1)));
}

#[test]
fn b6_acknowledgements_are_collected_in_a_set() {
    let (mut bench, acts) = halting(3);
    acts.ignore();
    bench.reply(1, Message::HaltAck).none();
    assert_eq!(bench.up(), [1]);
    bench.reply(1, Message::HaltAck).none();
    assert_eq!(bench.up(), [1]);
    assert_eq!(bench.rejected(Reject::NotAwaited), 1, "the second one changes nothing");
    bench.reply(5, Message::HaltAck).none();
    assert_eq!(bench.up(), [1], "node 5 was not halted");
}

#[test]
fn b7_the_halt_round_lasts_its_whole_t() {
    let (mut bench, acts) = halting(3);
    acts.ignore();
    let end = bench.due_in(Timer::Phase);
    bench.reply(1, Message::HaltAck).none();
    bench.reply(2, Message::HaltAck).none();
    assert_eq!(bench.due_in(Timer::Phase), end, "everybody has answered, and it goes on");
    assert_eq!((bench.status(), bench.coordinator()), (Status::Election, None));
    let began = bench.now;
    let acts = bench.fire(Timer::Phase);
    assert_eq!(bench.now.since(began), bench.timing().t);
    let group = own_group(3, 1);
    assert_eq!(acts.broadcast(), ([1, 2].into(), Message::NewCoordinator { group }));
    assert_eq!((bench.status(), bench.coordinator()), (Status::Reorganization, Some(3)));
    assert_eq!(bench.state().group, Some(group));
}

#[test]
fn b7_announces_itself_to_those_alone_who_were_halted() {
    let (bench, acts) = announcing(5, &[2, 4]);
    assert_eq!(acts.broadcast().0, [2, 4]);
    let timing = bench.timing();
    assert_eq!(bench.due_in(Timer::Phase), Some(timing.t.times(timing.patience)));
}

#[test]
fn b9_the_application_is_asked_when_all_have_accepted() {
    let (mut bench, acts) = announcing(5, &[2, 4]);
    acts.ignore();
    bench.reply(2, Message::NcAck { accepted: true }).none();
    bench.reply(2, Message::NcAck { accepted: true }).none();
    let acts = bench.reply(4, Message::NcAck { accepted: true });
    assert_eq!(acts.reorganize(), (own_group(5, 1), [2, 4, 5].into()));
    assert_eq!(bench.due_in(Timer::Phase), Some(bench.timing().reorganize));
    bench.reply(4, Message::NcAck { accepted: true }).none();
}

#[test]
fn b10_the_definition_is_distributed_while_it_is_saved() {
    let (bench, acts) = distributing(5, &[2, 4]);
    assert_eq!(acts.broadcast(), ([2, 4].into(), ready(own_group(5, 1), &[2, 4])));
    acts.save();
    assert_eq!(bench.definition(), Some(TASK));
    assert_eq!(bench.status(), Status::Reorganization);
    assert_eq!(bench.due_in(Timer::Phase), Some(bench.timing().distribute()));
}

#[test]
fn b10_a_definition_for_another_election_is_ignored() {
    let (mut bench, acts) = reorganizing(5, &[2, 4]);
    let (group, _) = acts.reorganize();
    bench.reorganized(own_group(5, 2), b"other").none();
    assert_eq!(bench.definition(), None);
    bench.reorganized(group, TASK).ignore();
    bench.reorganized(group, b"again").none();
    assert_eq!(bench.definition(), Some(TASK), "computed once");
}

#[test]
fn b12_normal_when_all_have_accepted_and_the_own_save_is_done() {
    let (mut bench, acts) = distributing(5, &[2, 4]);
    let ticket = acts.save();
    bench.reply(2, Message::ReadyAck { accepted: true }).none();
    bench.reply(4, Message::ReadyAck { accepted: true }).none();
    assert_eq!(bench.status(), Status::Reorganization, "not durable yet");
    let acts = bench.saved(ticket);
    assert_eq!(acts.0, [Act::Other(Effect::StartApplication)]);
    assert_eq!(bench.status(), Status::Normal);
    assert_eq!(bench.due_in(Timer::Phase), None);
    assert_eq!(bench.due_in(Timer::Check), Some(bench.timing().check));
}

#[test]
fn b12_a_missing_or_doubled_answer_does_not_make_it_normal() {
    let (mut bench, acts) = distributing(5, &[2, 4]);
    bench.saved(acts.save()).none();
    bench.reply(2, Message::ReadyAck { accepted: true }).none();
    bench.reply(2, Message::ReadyAck { accepted: true }).none();
    assert_eq!(bench.status(), Status::Reorganization);
    assert!(bench.reply(4, Message::ReadyAck { accepted: true }).starts());
    assert_eq!(bench.status(), Status::Normal);
}

#[test]
fn b12_a_save_of_another_step_does_not_make_it_normal() {
    let (mut bench, acts) = distributing(5, &[]);
    let ticket = acts.save();
    bench.saved(crate::effects::Ticket(ticket.0.wrapping_sub(1))).none();
    assert_eq!(bench.status(), Status::Reorganization);
    assert!(bench.saved(ticket).starts());
}

#[test]
fn b12_a_reply_of_another_kind_does_not_make_it_normal() {
    let (mut bench, acts) = distributing(5, &[2]);
    bench.reply(2, Message::HaltAck).none();
    bench.saved(acts.save()).none();
    assert_eq!(bench.status(), Status::Reorganization, "node 2 has not accepted");
}

/// The attempt has failed: node 3 coordinates nothing and asks again.
#[track_caller]
fn failed(bench: &Bench<1>, acts: &Acts<1>) {
    assert_eq!(bench.status(), Status::Election);
    assert_eq!((bench.coordinator(), bench.state().group), (None, None));
    let question = Message::AreYouThere { group: None, status: Status::Election };
    assert_eq!(acts.broadcast(), ([4, 5].into(), question));
}

#[test]
fn b13_silence_in_announce_fails_the_attempt() {
    let (mut bench, acts) = announcing(3, &[1, 2]);
    acts.ignore();
    bench.reply(1, Message::NcAck { accepted: true }).none();
    let acts = bench.fire(Timer::Phase);
    failed(&bench, &acts);
}

#[test]
fn b13_a_refusal_in_announce_fails_the_attempt() {
    let (mut bench, acts) = announcing(3, &[1, 2]);
    acts.ignore();
    let acts = bench.reply(1, Message::NcAck { accepted: false });
    failed(&bench, &acts);
}

#[test]
fn b13_an_application_that_overruns_tr_fails_the_attempt() {
    let (mut bench, acts) = reorganizing(3, &[1, 2]);
    let (group, _) = acts.reorganize();
    let acts = bench.fire(Timer::Phase);
    failed(&bench, &acts);
    bench.reorganized(group, TASK).none();
}

#[test]
fn b13_a_definition_that_is_too_long_fails_the_attempt() {
    let (mut bench, acts) = reorganizing(3, &[1, 2]);
    let (group, _) = acts.reorganize();
    let acts = bench.reorganized(group, &[0; DEFINITION_BYTES_MAX + 1]);
    failed(&bench, &acts);
}

#[test]
fn b13_silence_in_distribute_fails_the_attempt() {
    let (mut bench, acts) = distributing(3, &[1, 2]);
    let ticket = acts.save();
    bench.reply(1, Message::ReadyAck { accepted: true }).none();
    let acts = bench.fire(Timer::Phase);
    failed(&bench, &acts);
    bench.saved(ticket).none();
    assert_eq!(bench.status(), Status::Election, "a late save does not bring the group back");
}

#[test]
fn b13_a_refusal_in_distribute_fails_the_attempt() {
    let (mut bench, acts) = distributing(3, &[1, 2]);
    acts.ignore();
    let acts = bench.reply(2, Message::ReadyAck { accepted: false });
    failed(&bench, &acts);
}

#[test]
fn b13_the_next_attempt_has_a_new_number() {
    let (mut bench, acts) = announcing(5, &[2]);
    acts.ignore();
    let acts = bench.reply(2, Message::NcAck { accepted: false });
    assert_eq!(acts.broadcast(), ([1, 2, 3, 4].into(), halt(own_group(5, 2))));
    assert_eq!(bench.state().up, NodeSet::EMPTY);
}
