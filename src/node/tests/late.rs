//! Assumption 9: a node that is late has failed, and knows it before it acts.

use super::*;
use crate::effects::{Effect, FailCause, Ticket};
use crate::node::testing::{Act, Acts, group_of, id, set};
use crate::state::Status;
use crate::time::Duration;
use crate::wire::{Destination, Envelope};
use std::vec::Vec;

const FAILED: Act<1> = Act::Other(Effect::FailSelf(FailCause::Deadline));

#[track_caller]
fn has_failed(bench: &mut Bench<1>, acts: &Acts<1>) {
    assert_eq!(acts.0, [FAILED]);
    assert_eq!((bench.status(), bench.node.next_deadline()), (Status::Down, None));
    bench.step(Event::Tick).none();
    bench.step(Event::Timer).none();
    let bytes = question(bench);
    bench.receive(&bytes).none();
}

fn question(bench: &Bench<1>) -> Vec<u8> {
    let message = Message::AreYouThere { group: None, status: Status::Down };
    bench.datagram(2, Destination::Node(id(3)), 9, Envelope::Request, message)
}

#[test]
fn a_tick_that_is_later_than_tp_fails_the_node() {
    for algorithm in ALL {
        let mut bench = awake(algorithm);
        bench.sleep(bench.timing().tp + Duration(1));
        let acts = bench.step(Event::Tick);
        has_failed(&mut bench, &acts);
    }
}

#[test]
fn a_tick_just_in_time_does_not() {
    for algorithm in ALL {
        let mut bench = awake(algorithm);
        bench.step(Event::Tick).none();
        for _ in 0..3 {
            bench.sleep(bench.timing().tp);
            bench.step(Event::Tick).none();
        }
        assert!(bench.node.next_deadline().is_some());
    }
}

#[test]
fn any_event_without_a_tick_in_time_fails_the_node_before_it_acts() {
    let events: [fn(&mut Bench<1>) -> Acts<1>; 4] = [
        |bench| bench.step(Event::Timer),
        |bench| {
            let bytes = question(bench);
            bench.receive(&bytes)
        },
        |bench| bench.saved(Ticket(1)),
        |bench| bench.reorganized(group_of(3, 1), b""),
    ];
    for algorithm in ALL {
        for event in events {
            let mut bench = awake(algorithm);
            // Timers are due, too: the election or the Beat that they would cause does not happen.
            bench.sleep(bench.timing().check);
            let acts = event(&mut bench);
            has_failed(&mut bench, &acts);
        }
    }
}

#[test]
fn a_late_epoch_save_fails_the_node() {
    let mut bench = Bench::<1>::off(config(3, 5, Algorithm::Bully));
    bench.step(Event::Boot { stored_epoch: Some(1) }).ignore();
    bench.sleep(bench.timing().tp + Duration(1));
    let acts = bench.step(Event::EpochSaved { read_back: Some(3) });
    has_failed(&mut bench, &acts);
}

/// Lets a question wait for `waited` between the interrupt and the step, with ticks in time.
fn answer_after(bench: &mut Bench<1>, waited: Duration) -> Acts<1> {
    let received = bench.now;
    bench.pass(waited).ignore();
    let bytes = question(bench);
    bench.receive_late(received, &bytes)
}

#[test]
fn an_answer_later_than_tp_after_the_reception_fails_the_node() {
    for algorithm in ALL {
        let mut bench = awake(algorithm);
        let tp = bench.timing().tp;
        let acts = answer_after(&mut bench, tp + Duration(1));
        has_failed(&mut bench, &acts);
    }
}

#[test]
fn an_answer_in_time_leaves_and_its_time_is_noted() {
    for algorithm in ALL {
        let mut bench = awake(algorithm);
        let tp = bench.timing().tp;
        let acts = answer_after(&mut bench, tp);
        assert_eq!(acts.unicast().0, 2);
        assert_eq!(bench.node.handling().max_us(), tp.0);
        assert_eq!(acts.failed(), None);
    }
}

#[test]
fn the_shell_is_told_until_when_an_answer_may_leave() {
    for algorithm in ALL {
        let mut bench = awake(algorithm);
        let (received, tp) = (bench.now, bench.timing().tp);
        answer_after(&mut bench, tp.fraction(1, 2)).ignore();
        assert_eq!(bench.leaves_by(), Some(received + tp));
        // What is not an answer has only its own step to be in time for.
        bench.step(Event::Tick).ignore();
        assert_eq!(bench.leaves_by(), None);
    }
}

#[test]
fn under_strict_durability_the_save_ahead_of_an_answer_counts() {
    let mut strict = config(3, 5, Algorithm::Bully);
    strict.durability = crate::config::Durability::Strict;
    let in_time = strict.timing.tp.minus(strict.timing.ts);
    let (mut bench, acts) = Bench::<1>::booted(strict.clone());
    acts.ignore();
    assert_eq!(answer_after(&mut bench, in_time).unicast().0, 2);
    let (mut bench, acts) = Bench::<1>::booted(strict);
    acts.ignore();
    let acts = answer_after(&mut bench, in_time + Duration(1));
    assert_eq!(acts.failed(), Some(FailCause::Deadline));
    assert_eq!(acts.messages(), []);
}

#[test]
fn a_halt_that_waited_too_long_is_not_acknowledged() {
    let mut bench = awake(Algorithm::Bully);
    let received = bench.now;
    bench.pass(bench.timing().tp + Duration(1)).ignore();
    let message = Message::Halt { group: group_of(5, 1), binding: true };
    let envelope = Envelope::Broadcast { awaited: set([3]) };
    let bytes = bench.datagram(5, Destination::All, 9, envelope, message);
    let acts = bench.receive_late(received, &bytes);
    assert_eq!((acts.messages(), acts.failed()), ([].into(), Some(FailCause::Deadline)));
    assert_eq!(bench.status(), Status::Down);
}

/// Node 3 with the Ready of node 5 in its hands, whose save takes `waited`.
fn save_takes(waited: Duration) -> (Bench<1>, Acts<1>) {
    let mut bench = awake(Algorithm::Bully);
    let group = group_of(5, 1);
    bench.hear(5, &[3], Message::Halt { group, binding: true }).ignore();
    bench.hear(5, &[3], Message::NewCoordinator { group }).ignore();
    let acts = bench.hear(5, &[3], Message::Ready { group, up: set([3]), definition: b"d" });
    bench.pass(waited).none();
    let acts = bench.saved(acts.save());
    (bench, acts)
}

#[test]
fn the_answer_to_ready_has_ts_more_time() {
    let timing = crate::node::testing::timing();
    let (bench, acts) = save_takes(timing.tp + timing.ts);
    assert_eq!(acts.unicast(), (5, Message::ReadyAck { accepted: true }));
    assert_eq!(bench.status(), Status::Normal);
    let (bench, acts) = save_takes(timing.tp + timing.ts + Duration(1));
    assert_eq!((acts.messages(), acts.failed()), ([].into(), Some(FailCause::Deadline)));
    assert_eq!(bench.status(), Status::Down);
}

#[test]
fn a_save_that_took_too_long_fails_the_node_before_its_task_starts() {
    let timing = crate::node::testing::timing();
    let (_, acts) = save_takes(timing.tp + timing.ts + Duration(1));
    assert_eq!(acts.0, [FAILED]);
}

#[test]
fn a_ready_in_answer_to_a_late_question_fails_the_node() {
    let (mut bench, acts) = Bench::<1>::booted(config(5, 5, Algorithm::Invitation));
    acts.ignore();
    bench.fire(Timer::Check).ignore();
    let group = Some(group_of(1, 1));
    bench.reply(1, Message::AycAns { yes: true, group, up: set([]) }).none();
    bench.fire(Timer::Phase).ignore();
    let group = bench.state().group.unwrap();
    bench.request(1, Message::Accept { group }).ignore();
    let acts = bench.reorganized(group, b"d");
    bench.saved(acts.save()).none();
    bench.reply(1, Message::ReadyAns { ok: true }).ignore();
    let received = bench.now;
    bench.pass(bench.timing().tp + Duration(1)).ignore();
    let message = Message::AreYouThere { group: Some(group), status: Status::Reorganization };
    let bytes = bench.datagram(1, Destination::Node(id(5)), 9, Envelope::Request, message);
    let acts = bench.receive_late(received, &bytes);
    assert_eq!(acts.0, [FAILED]);
}

/// Answers to one broadcast are spread by the place of the answering node among those named.
#[test]
fn a_spread_answer_leaves_at_its_turn_and_is_held_to_tp() {
    let mut spread = config(3, 5, Algorithm::Bully);
    spread.timing.answer_spacing = Duration::from_millis(1);
    let (mut bench, acts) = Bench::<1>::booted(spread);
    acts.ignore();
    let message = Message::AreYouThere { group: None, status: Status::Down };
    bench.hear(2, &[1, 2, 3, 4], message).none();
    assert_eq!(bench.due_in(Timer::Answer), Some(Duration::from_millis(2)), "two before it");
    let acts = bench.fire(Timer::Answer);
    assert_eq!(acts.unicast(), (2, Message::AytAns { yes: true }));
    assert_eq!(bench.due_in(Timer::Answer), None);
    bench.hear(2, &[1, 2, 3, 4], message).none();
    let quarter = bench.timing().tp.fraction(1, 4);
    for _ in 0..5 {
        bench.sleep(quarter);
        bench.step(Event::Tick).none();
    }
    let acts = bench.step(Event::Timer);
    has_failed(&mut bench, &acts);
}
