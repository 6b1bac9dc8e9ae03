//! A datagram that is not for this node, or not what it should be, is dropped, counted by its
//! reason, and changes nothing.

use super::*;
use crate::link::seal::{self, VERSION};
use crate::node::testing::keys;
use crate::node::testing::{BOOT, PEER_BOOT, group_of, id, set};
use crate::state::Status;
use crate::wire::{DATAGRAM_BYTES_MAX, Destination, Envelope, Kind, Lap, Reject, Token};
use std::vec;
use std::vec::Vec;

/// Feeds `bytes` and holds the node to dropping them for this reason and no other.
#[track_caller]
fn dropped(bench: &mut Bench<1>, bytes: &[u8], reason: Reject) {
    let state = bench.state().clone();
    let deadline = bench.node.next_deadline();
    let mut expected = *bench.node.counters();
    expected.reject(reason);
    bench.receive(bytes).none();
    assert_eq!(bench.state(), &state);
    assert_eq!(bench.node.next_deadline(), deadline);
    assert_eq!(*bench.node.counters(), expected, "{reason:?} alone is counted, once");
}

/// A request that both algorithms answer, from node 2 to node 3.
fn question(bench: &Bench<1>) -> Vec<u8> {
    let message = Message::AreYouThere { group: None, status: Status::Down };
    bench.datagram(2, Destination::Node(id(3)), 9, Envelope::Request, message)
}

fn with_byte(mut bytes: Vec<u8>, at: usize, value: u8) -> Vec<u8> {
    bytes[at] = value;
    bytes
}

#[track_caller]
fn is_dropped(change: impl Fn(Vec<u8>) -> Vec<u8>, reason: Reject) {
    for algorithm in ALL {
        let mut bench = awake(algorithm);
        let good = question(&bench);
        assert_eq!(bench.receive(&good).unicast().0, 2, "the good one is answered");
        let bad = change(good);
        dropped(&mut bench, &bad, reason);
        dropped(&mut bench, &bad, reason);
    }
}

#[test]
fn a_truncated_header_is_dropped() {
    for len in [0, 1, 13, 14, 15, 34] {
        is_dropped(|good| good[..len].to_vec(), Reject::TooShort);
    }
}

/// Seals `text` (all that is sealed) as another datagram of node 2 to node 3.
fn sealed(bench: &Bench<1>, text: &[u8]) -> Vec<u8> {
    let peer_sequence = bench.peer_sequence.get() + 1;
    bench.peer_sequence.set(peer_sequence);
    let header = bench.header(2, Destination::Node(id(3)), Kind::AreYouThere);
    seal::seal_text(&header, &keys().send.key, text)
}

/// The text of the question: call number, boot of node 3, no group, a status.
fn text_of_question() -> Vec<u8> {
    [&9u32.to_le_bytes()[..], &BOOT.to_le_bytes(), &[0; 9], &[Status::Down as u8]].concat()
}

/// Each time under a number of its own, and properly sealed: the content alone is at fault.
#[track_caller]
fn text_is_dropped(change: impl Fn(Vec<u8>) -> Vec<u8>, reason: Reject) {
    for algorithm in ALL {
        let mut bench = awake(algorithm);
        let good = sealed(&bench, &text_of_question());
        assert_eq!(bench.receive(&good).unicast().0, 2, "the good one is answered");
        for _ in 0..2 {
            let bad = sealed(&bench, &change(text_of_question()));
            dropped(&mut bench, &bad, reason);
        }
    }
}

#[test]
fn a_truncated_or_longer_body_is_dropped() {
    text_is_dropped(|good| good[..good.len() - 1].to_vec(), Reject::Length);
    text_is_dropped(|good| good[..8].to_vec(), Reject::Length);
    text_is_dropped(|good| good[..7].to_vec(), Reject::Length);
    text_is_dropped(|good| good[..4].to_vec(), Reject::Length);
    text_is_dropped(|good| [&good[..], &[0]].concat(), Reject::Length);
}

#[test]
fn an_oversized_datagram_is_dropped() {
    is_dropped(|good| [good, vec![0; DATAGRAM_BYTES_MAX]].concat(), Reject::TooLong);
}

#[test]
fn another_version_is_dropped() {
    is_dropped(|good| with_byte(good, 0, VERSION + 1), Reject::Version);
    is_dropped(|good| with_byte(good, 0, crate::wire::VERSION), Reject::Version);
    is_dropped(|good| with_byte(good, 0, 0), Reject::Version);
}

#[test]
fn another_network_is_dropped() {
    is_dropped(|good| with_byte(good, 2, 2), Reject::Network);
    is_dropped(|good| with_byte(good, 3, 1), Reject::Network);
}

#[test]
fn an_unknown_kind_is_dropped() {
    is_dropped(|good| with_byte(good, 1, 0), Reject::Kind);
    is_dropped(|good| with_byte(good, 1, 64), Reject::Kind);
}

#[test]
fn an_unknown_sender_is_dropped() {
    is_dropped(|good| with_byte(good, 4, 0), Reject::UnknownSender);
    is_dropped(|good| with_byte(good, 4, 6), Reject::UnknownSender);
    is_dropped(|good| with_byte(good, 4, 255), Reject::UnknownSender);
}

#[test]
fn what_is_addressed_to_others_is_dropped() {
    is_dropped(|good| with_byte(good, 5, 4), Reject::NotForMe);
    is_dropped(|good| with_byte(good, 5, 255), Reject::NotForMe);
}

#[test]
fn an_impossible_field_is_dropped() {
    text_is_dropped(|good| with_byte(good, 17, 4), Reject::Field);
    text_is_dropped(|good| with_byte(good, 8, 65), Reject::Capacity);
}

#[test]
fn an_earlier_boot_is_dropped() {
    is_dropped(|good| with_byte(good, 6, PEER_BOOT as u8 - 1), Reject::OldBoot);
}

/// One reply of each kind, with `true` wherever one can say so.
fn replies() -> [Message<'static, 1>; 10] {
    let group = Some(group_of(5, 1));
    [
        Message::AytAns { yes: true },
        Message::AynAns { normal: true },
        Message::HaltAck,
        Message::NcAck { accepted: true },
        Message::ReadyAck { accepted: true },
        Message::ReadyAns { ok: true },
        Message::AycAns { yes: true, group, up: Default::default() },
        Message::AcceptAns { ok: true },
        Message::HopAck,
        Message::Heard { heard: set([5]) },
    ]
}

#[test]
fn a_reply_to_nothing_is_dropped() {
    for algorithm in ALL {
        let mut bench = awake(algorithm);
        // In Bully and in the ring the node has asked; whoever answers first ends the round.
        bench.station_mut().call.close();
        for message in replies() {
            let bytes = bench.reply_datagram(4, message);
            dropped(&mut bench, &bytes, Reject::NotAwaited);
        }
    }
}

#[test]
fn a_reply_to_another_call_or_boot_is_dropped() {
    let mut bench = awake(Algorithm::Bully);
    let call = bench.station_mut().call.number();
    for (requester_boot, call) in [(BOOT, call + 1), (BOOT - 2, call), (PEER_BOOT, call)] {
        for message in replies() {
            let envelope = Envelope::Reply { requester_boot };
            let bytes = bench.datagram(4, Destination::Node(id(3)), call, envelope, message);
            dropped(&mut bench, &bytes, Reject::NotAwaited);
        }
    }
}

#[test]
fn a_reply_of_a_node_that_was_not_asked_is_dropped() {
    for algorithm in ALL {
        let mut bench = awake(algorithm);
        if algorithm == Algorithm::Invitation {
            let leave = bench.state().group.unwrap();
            bench.request(5, invite(group_of(5, 1), leave)).ignore();
        }
        for message in replies() {
            let bytes = bench.reply_datagram(1, message);
            dropped(&mut bench, &bytes, Reject::NotAwaited);
        }
    }
}

#[test]
fn the_requests_of_another_algorithm_are_dropped() {
    let group = group_of(5, 1);
    let of_bully: [Message<'_, 1>; 3] = [
        Message::AreYouNormal { group },
        Message::Halt { group, binding: true },
        Message::NewCoordinator { group },
    ];
    let of_invitation: [Message<'_, 1>; 3] = [
        Message::AreYouCoordinator { group, roll_call: true },
        invite(group, group_of(3, 1)),
        Message::Accept { group },
    ];
    let of_ring = [Message::Token(Token {
        lap: Lap::Elect,
        run: group,
        round: 1,
        list: set([5]),
        suspects: NodeSet::EMPTY,
        incumbent: None,
        definition: b"",
    })];
    for (algorithm, messages) in [
        (Algorithm::Bully, [of_invitation.as_slice(), &of_ring].concat()),
        (Algorithm::Invitation, [of_bully.as_slice(), &of_ring].concat()),
        // Its coordinators ask whether their members are Normal, too.
        (Algorithm::Ring, [&of_bully[1..], &of_invitation].concat()),
    ] {
        let mut bench = awake(algorithm);
        for message in messages {
            let envelope = Envelope::Broadcast { awaited: set([3]) };
            let bytes = bench.datagram(5, Destination::All, 9, envelope, message);
            dropped(&mut bench, &bytes, Reject::WrongAlgorithm);
            let bytes = bench.datagram(5, Destination::Node(id(3)), 9, Envelope::Request, message);
            dropped(&mut bench, &bytes, Reject::WrongAlgorithm);
        }
    }
}

#[test]
fn every_kind_is_a_request_or_a_reply_that_these_tests_know() {
    let replies = replies().map(|message| message.kind());
    for kind in Kind::ALL {
        assert_eq!(kind.is_reply(), replies.contains(&kind), "{kind:?}");
    }
}

#[test]
fn a_datagram_before_the_epoch_is_durable_is_dropped() {
    for algorithm in ALL {
        let mut bench = Bench::off(config(3, 5, algorithm));
        let bytes = question(&bench);
        dropped(&mut bench, &bytes, Reject::Down);
        bench.step(Event::Boot { stored_epoch: Some(1) }).ignore();
        dropped(&mut bench, &bytes, Reject::Down);
    }
}

#[test]
fn a_reply_of_the_wrong_kind_changes_nothing() {
    let mut bench = awake(Algorithm::Bully);
    bench.fire(Timer::Phase).ignore();
    let bytes = bench.reply_datagram(1, Message::AytAns { yes: true });
    dropped(&mut bench, &bytes, Reject::NotAwaited);
    bench.reply(1, Message::HaltAck).none();
    assert_eq!(bench.up(), [1], "the right answer still counts");
}
