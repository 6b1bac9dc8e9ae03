//! The paper's assertions, as far as one node can show them.

use super::*;
use crate::effects::Effect;
use crate::node::testing::{Act, BOOT, id};
use crate::wire::{Destination, Envelope, Reject};

/// (1a) At any moment all nodes in Normal or Reorganization have the same coordinator: whoever is
/// halted has left its group before the halter can know of it.
#[test]
fn assertion_1a_a_halted_node_has_left_its_group_before_it_says_so() {
    let (mut bench, acts) = distributing(3, &[1, 2]);
    bench.saved(acts.save()).none();
    bench.reply(1, Message::ReadyAck { accepted: true }).ignore();
    bench.reply(2, Message::ReadyAck { accepted: true }).ignore();
    assert_eq!((bench.status(), bench.coordinator()), (Status::Normal, Some(3)));
    let acts = bench.hear(5, &[1, 2, 3, 4], halt(group_of(5, 1)));
    assert_eq!(acts.0.first(), Some(&Act::Other(Effect::StopApplication)));
    assert_eq!(acts.unicast(), (5, Message::HaltAck));
    assert_eq!((bench.status(), bench.coordinator()), (Status::Election, None));
}

/// (1a) An acknowledgement that an earlier boot asked for elects nobody.
#[test]
fn assertion_1a_an_answer_to_an_earlier_boot_or_call_elects_nobody() {
    let (mut bench, acts) = halting(3);
    let call = acts.sent()[0].call;
    let me = Destination::Node(id(3));
    for (requester_boot, call) in [(BOOT - 2, call), (BOOT, call - 1), (BOOT, call + 1)] {
        let envelope = Envelope::Reply { requester_boot };
        let bytes = bench.datagram(1, me, call, envelope, Message::HaltAck);
        bench.receive(&bytes).none();
    }
    assert_eq!(bench.up(), []);
    assert_eq!(bench.rejected(Reject::NotAwaited), 3);
    let acts = bench.fire(Timer::Phase);
    assert_eq!(acts.reorganize().1, [3]);
}

/// (1a) Nobody works for two coordinators: the second one has to halt it first.
#[test]
fn assertion_1a_another_coordinator_must_halt_before_it_is_followed() {
    for mut bench in [announced(), member()] {
        let before = bench.state().clone();
        bench.hear(4, &[3], Message::NewCoordinator { group: group_of(4, 1) }).ignore();
        bench.hear(4, &[3], ready(group_of(4, 1), &[1, 2, 3])).ignore();
        assert_eq!(bench.state(), &before);
    }
}

/// (1b) The nodes in Normal have the same definition: the first one stays.
#[test]
fn assertion_1b_a_second_definition_of_the_same_election_is_not_taken() {
    let mut bench = member();
    let (group, up) = (group_of(5, 1), set([1, 2, 3, 4]));
    bench.hear(5, &[3], Message::Ready { group, up, definition: b"other" }).ignore();
    assert_eq!(bench.definition(), Some(TASK));
}

/// (1b) Also while the first one is being made durable.
#[test]
fn assertion_1b_a_second_definition_during_the_save_is_not_taken() {
    let mut bench = announced();
    let (group, up) = (group_of(5, 1), set([1, 2, 3, 4]));
    let acts = bench.hear(5, &[3], ready(group, &[1, 2, 3, 4]));
    bench.hear(5, &[3], Message::Ready { group, up, definition: b"other" }).none();
    bench.saved(acts.save()).ignore();
    assert_eq!((bench.status(), bench.definition()), (Status::Normal, Some(TASK)));
}

/// (1b) A failed attempt leads to a new election number, never to a second definition.
#[test]
fn assertion_1b_each_election_number_has_one_definition() {
    let (mut bench, acts) = distributing(5, &[2]);
    acts.ignore();
    bench.reply(2, Message::ReadyAck { accepted: false }).ignore();
    bench.reply(2, Message::HaltAck).none();
    bench.fire(Timer::Phase).ignore();
    let acts = bench.reply(2, Message::NcAck { accepted: true });
    assert_eq!(acts.reorganize().0, own_group(5, 2));
}

/// (2) With no failures the flock becomes Normal again: whoever is not Normal, or follows somebody,
/// has a deadline of its own that leads to an election.
#[test]
fn assertion_2_nobody_waits_for_ever() {
    for mut bench in [halted(), announced(), member()] {
        let acts = bench.pass(bench.timing().t.times(4));
        let halts = |message: &Message<'_, 1>| matches!(message, Message::Halt { .. });
        assert!(acts.messages().iter().any(halts), "{acts:?}");
    }
}
