//! The way of the token through a node that does what it should: R1 to R12.

use super::*;
use crate::effects::Effect;
use crate::node::testing::id;
use crate::time::Duration;
use crate::wire::Reject;

#[test]
fn r1_a_node_that_has_just_woken_is_deaf_and_mute_for_a_while() {
    let (mut bench, acts) = Bench::booted(ring(3));
    acts.none();
    bench.request(2, elect(group_of(5, 1), 1, &[5, 1, 2])).none();
    bench.hear(5, &[3], Message::AreYouNormal { group: group_of(5, 1) }).none();
    assert_eq!((bench.status(), bench.rejected(Reject::Down)), (Status::Down, 2));
    assert_eq!(bench.due_in(Timer::Phase), Some(bench.timing().waking()));
    bench.pass(bench.timing().waking().minus(Duration(1))).none();
}

#[test]
fn r1_a_run_that_passed_over_a_waking_node_does_not_find_it_in_a_smaller_one() {
    let (mut bench, acts) = Bench::booted(ring(3));
    acts.none();
    bench.request(2, elect(group_of(5, 1), 7, &[5, 1, 2])).none();
    bench.request(2, elect(group_of(4, 1), 6, &[4, 5, 1, 2])).none();
    let acts = bench.fire(Timer::Phase);
    let rounds: Vec<_> = (acts.messages().into_iter())
        .filter_map(|message| match message {
            Message::Token(token) => Some(token.round),
            _ => None,
        })
        .collect();
    assert_eq!(rounds, [8]);
}

#[test]
fn r2_r3_then_it_starts_a_run() {
    let (mut bench, acts) = started(3);
    assert_eq!(hop(&acts), (4, Lap::Elect, [3].into(), [].into()));
    assert_eq!(bench.status(), Status::Election);
    assert_eq!(bench.state().halted_by, Some(own_group(3, 1)));
    assert_eq!(bench.due_in(Timer::Limit), Some(bench.timing().run_limit(5)));
    bench.reply(4, Message::HopAck).none();
    assert_eq!(bench.due_in(Timer::Phase), None);
}

#[test]
fn r3_the_ring_closes_behind_the_highest_id() {
    let (_, acts) = started(5);
    assert_eq!(hop(&acts).0, 1);
}

#[test]
fn r4_a_larger_run_stops_the_task_and_takes_the_node_along() {
    let (mut bench, _) = member();
    let run = group_of(1, 7);
    let acts = bench.request(2, elect(run, 2, &[1, 2]));
    assert!(acts.stops());
    assert!(acts.position(Effect::StopApplication) < acts.first_sent());
    assert_eq!(acks(&acts), [2]);
    assert_eq!(hop(&acts), (4, Lap::Elect, [1, 2, 3].into(), [].into()));
    let state = bench.state();
    assert_eq!((state.status, state.halted_by), (Status::Election, Some(run)));
    assert_eq!((state.coordinator, state.group), (None, None));
    assert!(state.up.is_empty());
}

#[test]
fn r4_of_two_runs_of_one_round_the_higher_initiator_goes_on() {
    let (mut bench, _) = joined();
    let acts = bench.request(2, elect(group_of(4, 9), 1, &[4]));
    assert_eq!((acts.sent().len(), acks(&acts)), (1, [2].into()), "extinct: {acts:?}");
    let (mut bench, acts) = started(3);
    acts.ignore();
    let acts = bench.request(2, elect(group_of(4, 1), 1, &[4, 5, 1, 2]));
    assert_eq!(hop(&acts), (4, Lap::Elect, [1, 2, 3, 4, 5].into(), [].into()));
    assert_eq!(bench.state().halted_by, Some(group_of(4, 1)));
}

#[test]
fn r4_a_later_round_goes_on_whoever_began_it() {
    let (mut bench, _) = joined();
    let acts = bench.request(2, elect(group_of(1, 1), 2, &[1, 2]));
    assert_eq!(hop(&acts).0, 4);
    assert_eq!(bench.state().halted_by, Some(group_of(1, 1)));
}

#[test]
fn r5_the_coord_lap_begins_behind_the_highest_of_the_list() {
    let (mut bench, acts) = started(3);
    acts.ignore();
    bench.reply(4, Message::HopAck).none();
    let run = own_group(3, 1);
    // 5 is dead, 4 is the highest; the lap begins at 1 and ends at 4.
    let acts = bench.request(2, elect(run, 1, &[1, 2, 3, 4]));
    assert_eq!(acks(&acts), [2]);
    assert_eq!(hop(&acts), (1, Lap::Coord, [1, 2, 3, 4].into(), [].into()));
    assert_eq!((bench.status(), bench.coordinator()), (Status::Election, None));
    bench.reply(1, Message::HopAck).none();
    let acts = bench.request(2, token(Lap::Coord, run, 1, &[1, 2, 3, 4]));
    assert_eq!(hop(&acts), (4, Lap::Coord, [1, 2, 3, 4].into(), [].into()));
    assert_eq!((bench.status(), bench.coordinator()), (Status::Reorganization, Some(4)));
}

#[test]
fn r5_the_initiator_behind_the_highest_takes_the_coord_lap_at_once() {
    let (mut bench, acts) = started(1);
    acts.ignore();
    bench.reply(2, Message::HopAck).none();
    let acts = bench.request(5, elect(own_group(1, 1), 1, &[1, 2, 3, 4, 5]));
    assert_eq!(hop(&acts), (2, Lap::Coord, [1, 2, 3, 4, 5].into(), [].into()));
    assert_eq!((bench.status(), bench.coordinator()), (Status::Reorganization, Some(5)));
}

#[test]
fn r5_priority_is_preference_then_id() {
    let mut config = Config::new(
        id(3),
        Algorithm::Ring,
        crate::config::Durability::Group,
        crate::node::testing::timing(),
    );
    for node in 1..=5 {
        config.add_member(node, if node == 2 { 9 } else { 0 }).expect("a good table");
    }
    let (mut bench, acts) = Bench::<1>::booted(config);
    acts.none();
    bench.fire(Timer::Phase).ignore();
    bench.reply(4, Message::HopAck).none();
    let acts = bench.request(2, elect(own_group(3, 1), 1, &[1, 2, 3, 4, 5]));
    // Behind 2 comes this node itself.
    assert_eq!((hop(&acts).0, bench.coordinator()), (4, Some(2)));
}

#[test]
fn r6_a_normal_node_answers_a_run_of_the_past_with_a_new_one() {
    let (mut bench, _) = member();
    let acts = bench.request(2, elect(group_of(2, 9), 1, &[2]));
    assert_eq!(acks(&acts), [2]);
    starts_a_run(&acts, 3, 2, &[]);
    let larger = acts
        .messages()
        .into_iter()
        .any(|message| matches!(message, Message::Token(token) if token.round == 2));
    assert!(larger, "{acts:?}");
}

#[test]
fn r6_but_not_for_ever() {
    let (mut bench, _) = member();
    let mut runs = 0;
    for boot in 0..6 {
        // The group forms again each time.
        let run = group_of(5, 10 + boot);
        let round = 100 + boot;
        bench.request(2, elect(run, round, &[5, 1, 2])).ignore();
        bench.request(2, token(Lap::Coord, run, round, &[1, 2, 3, 4, 5])).ignore();
        let acts = bench.request(2, token(Lap::Ready, run, round, &[1, 2, 3, 4, 5]));
        bench.saved(acts.save()).ignore();
        let acts = bench.request(2, elect(group_of(2, boot), 1, &[2]));
        let begins = |act: &&Act<1>| matches!(act, Act::Other(Effect::Election(_)));
        runs += acts.0.iter().filter(begins).count();
        assert_eq!(acts.notes().len(), acts.0.iter().filter(begins).count(), "who provoked it");
    }
    assert_eq!(runs, 3);
}

#[test]
fn r7_coord_makes_the_highest_of_the_list_the_coordinator() {
    let (bench, run) = announced();
    let state = bench.state();
    assert_eq!((state.status, state.group), (Status::Reorganization, Some(run)));
    assert_eq!(bench.coordinator(), Some(5));
    assert!(bench.up().is_empty(), "the members are known with Ready");
}

#[test]
fn r8_at_the_highest_the_application_is_asked_once() {
    let (mut bench, acts) = reorganizing();
    assert_eq!(acks(&acts), [4]);
    assert_eq!(acts.reorganize(), (own_group(5, 1), [1, 2, 3, 4, 5].into()));
    assert_eq!((bench.status(), bench.coordinator()), (Status::Reorganization, Some(5)));
    assert_eq!(bench.up(), [1, 2, 3, 4]);
    // A second copy of the token.
    let again = bench.request(4, token(Lap::Coord, own_group(5, 1), 1, &[1, 2, 3, 4, 5]));
    assert_eq!((again.0.len(), acks(&again)), (1, [4].into()));
}

#[test]
fn r8_an_application_that_overruns_tr_costs_a_run() {
    let (mut bench, _) = reorganizing();
    assert_eq!(bench.due_in(Timer::Phase), Some(bench.timing().reorganize));
    let acts = bench.fire(Timer::Phase);
    starts_a_run(&acts, 5, 2, &[]);
    bench.reorganized(own_group(5, 1), TASK).none();
}

#[test]
fn r9_the_definition_is_saved_while_it_goes_round() {
    let (mut bench, acts) = reorganizing();
    let acts = bench.reorganized(acts.reorganize().0, TASK);
    assert_eq!(hop(&acts), (1, Lap::Ready, [1, 2, 3, 4, 5].into(), [].into()));
    acts.save();
    assert_eq!(bench.definition(), Some(TASK));
    assert_eq!(bench.status(), Status::Reorganization);
}

#[test]
fn r10_ready_is_made_durable_before_it_is_acknowledged_or_passed_on() {
    let (mut bench, run) = announced();
    let ready = token(Lap::Ready, run, 1, &[1, 2, 3, 4, 5]);
    let acts = bench.request(2, ready);
    let ticket = acts.save();
    assert_eq!(acts.messages(), []);
    assert_eq!(bench.status(), Status::Reorganization);
    bench.request_again(2, ready).none();
    let acts = bench.saved(ticket);
    assert_eq!(acks(&acts), [2]);
    assert!(acts.starts());
    assert_eq!(hop(&acts).0, 4);
    assert_eq!((bench.status(), bench.definition()), (Status::Normal, Some(TASK)));
    assert_eq!(bench.up(), [1, 2, 4, 5]);
    assert_eq!(bench.due_in(Timer::Limit), None);
}

#[test]
fn r10_the_definition_reaches_the_next_node_as_it_came() {
    let (mut bench, run) = announced();
    let acts = bench.request(2, token(Lap::Ready, run, 1, &[1, 2, 3, 4, 5]));
    let sent = bench.saved(acts.save()).messages();
    let same = |message: &Message<'_, 1>| matches!(message, Message::Token(token) if token.definition == TASK && token.run == run);
    assert!(sent.iter().any(same), "{sent:?}");
}

#[test]
fn r11_the_coordinator_is_normal_when_ready_has_come_back_and_its_own_save_is_done() {
    let (mut bench, acts) = reorganizing();
    let (run, _) = acts.reorganize();
    let ticket = bench.reorganized(run, TASK).save();
    bench.reply(1, Message::HopAck).none();
    let back = token(Lap::Ready, run, 1, &[1, 2, 3, 4, 5]);
    bench.request(4, back).none();
    assert_eq!(bench.status(), Status::Reorganization, "its own save is not done");
    bench.saved(ticket).none();
    let acts = bench.request_again(4, back);
    assert_eq!(acks(&acts), [4]);
    assert!(acts.starts());
    assert_eq!(bench.status(), Status::Normal);
    assert!(bench.due_in(Timer::Beat).is_some() && bench.due_in(Timer::Check).is_some());
}

#[test]
fn r12_a_hop_that_was_taken_is_only_acknowledged_again() {
    let (mut bench, acts) = started(3);
    acts.ignore();
    let message = elect(group_of(5, 1), 1, &[5, 1, 2]);
    bench.request(2, message).ignore();
    let again = bench.request_again(2, message);
    assert_eq!((again.0.len(), acks(&again)), (1, [2].into()));
    // The same lap from another node: a second copy.
    let copy = bench.request(1, elect(group_of(5, 1), 1, &[5, 1]));
    assert_eq!((copy.0.len(), acks(&copy)), (1, [1].into()));
}

#[test]
fn r12_coord_and_ready_of_another_run_are_not_answered() {
    let (mut bench, _) = joined();
    for lap in [Lap::Coord, Lap::Ready] {
        for run in [group_of(5, 2), group_of(1, 1)] {
            bench.request(2, token(lap, run, 1, &[1, 2, 3, 4, 5])).none();
        }
    }
    // Nor one that counts on others only, nor Ready before Coord.
    bench.request(2, token(Lap::Coord, group_of(5, 1), 1, &[1, 2, 4, 5])).none();
    bench.request(2, token(Lap::Ready, group_of(5, 1), 1, &[1, 2, 3, 4, 5])).none();
    assert_eq!((bench.status(), bench.rejected(Reject::NotAwaited)), (Status::Election, 6));
    // Nor a Ready that could not get back to the coordinator.
    let (mut bench, run) = announced();
    bench.request(2, token(Lap::Ready, run, 1, &[2, 3])).none();
    assert_eq!(bench.rejected(Reject::NotAwaited), 1);
}

#[test]
fn a_token_goes_to_one_node() {
    let (mut bench, _) = joined();
    bench.hear(2, &[], elect(group_of(5, 9), 9, &[5, 1, 2])).none();
    assert_eq!(bench.rejected(Reject::Field), 1);
}

#[test]
fn a_node_without_peers_is_a_group_of_its_own() {
    let (mut bench, acts) = Bench::<1>::booted(config(1, 1, Algorithm::Ring));
    acts.none();
    let acts = bench.fire(Timer::Phase);
    assert_eq!(acts.reorganize(), (own_group(1, 1), [1].into()));
    let acts = bench.reorganized(own_group(1, 1), b"");
    let acts = bench.saved(acts.save());
    assert!(acts.starts());
    assert_eq!((bench.status(), bench.coordinator()), (Status::Normal, Some(1)));
}
