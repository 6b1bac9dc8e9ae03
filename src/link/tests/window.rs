//! Boots and numbers: what is old changes nothing.

use super::*;
use crate::node::testing::{BOOT, PEER_BOOT, group_of};
use crate::wire::Reject;

/// Feeds `bytes` and holds the node to dropping them for this reason, before or after the tag.
#[track_caller]
fn dropped(bench: &mut Bench<1>, bytes: &[u8], reason: Reject) {
    let state = bench.state().clone();
    let before = bench.rejected(reason);
    let accepted = bench.node.counters().datagrams_accepted;
    bench.receive(bytes).none();
    assert_eq!(bench.state(), &state);
    assert_eq!(bench.rejected(reason), before + 1, "{reason:?}");
    assert_eq!(bench.node.counters().datagrams_accepted, accepted);
}

#[test]
fn the_same_datagram_counts_once() {
    let mut bench = awake();
    let question = question(&bench, BOOT, |_| {});
    assert_eq!(bench.receive(&question).unicast().0, 2);
    dropped(&mut bench, &question, Reject::Replayed);
    dropped(&mut bench, &question, Reject::Replayed);
}

#[test]
fn what_was_overtaken_is_dropped() {
    let mut bench = awake();
    let earlier = question(&bench, BOOT, |_| {});
    let later = question(&bench, BOOT, |_| {});
    assert_eq!(bench.receive(&later).unicast().0, 2);
    dropped(&mut bench, &earlier, Reject::Replayed);
    let from_other = bench.datagram(1, Destination::Node(id(3)), 9, Envelope::Request, QUESTION);
    assert_eq!(bench.receive(&from_other).unicast().0, 1, "each sender has numbers of its own");
}

#[test]
fn a_forged_datagram_moves_no_window() {
    let mut bench = awake();
    for change in [(|header: &mut Header| header.sequence += 1000) as fn(&mut Header), |header| {
        header.boot += 1000
    }] {
        let mut forged = question(&bench, BOOT, change);
        *forged.last_mut().unwrap() ^= 1;
        bench.receive(&forged).ignore();
    }
    assert_eq!(bench.rejected(Reject::Forged), 2);
    let question = question(&bench, BOOT, |_| {});
    assert_eq!(bench.receive(&question).unicast().0, 2, "it goes on as before");
}

#[test]
fn an_earlier_boot_is_dropped_before_any_cryptography() {
    let mut bench = awake();
    for boot in [0, 1, PEER_BOOT - 1] {
        let mut old = question(&bench, BOOT, |header| header.boot = boot);
        dropped(&mut bench, &old, Reject::OldBoot);
        *old.last_mut().unwrap() ^= 1;
        dropped(&mut bench, &old, Reject::OldBoot);
    }
}

#[test]
fn a_new_boot_of_a_peer_must_be_proven_first() {
    let mut bench = awake();
    let old = question(&bench, BOOT, |_| {});
    // Of a boot of its own, but it does not know this one.
    let new = question(&bench, 0, |header| header.boot = PEER_BOOT + 2);
    dropped(&mut bench, &new, Reject::Unproven);
    let wrong = question(&bench, BOOT - 2, |header| header.boot = PEER_BOOT + 2);
    dropped(&mut bench, &wrong, Reject::Unproven);
    assert_eq!(bench.receive(&old).unicast().0, 2, "a claim alone ends nothing");
    let old = question(&bench, BOOT, |_| {});
    let proven = question(&bench, BOOT, |header| header.boot = PEER_BOOT + 2);
    assert_eq!(bench.receive(&proven).unicast().0, 2);
    dropped(&mut bench, &old, Reject::OldBoot);
    let group = group_of(5, 1);
    let halt = Message::Halt { group, binding: true };
    assert_eq!(bench.hear(5, &[3], halt).unicast(), (5, Message::HaltAck), "others as before");
}

/// What came before its proof and was refused stays refused, also when the proof was overtaken.
#[test]
fn what_was_refused_as_unproven_is_not_accepted_later() {
    let mut bench = awake();
    let proof = question(&bench, BOOT, |header| header.boot = PEER_BOOT + 2);
    let ahead = question(&bench, 0, |header| header.boot = PEER_BOOT + 2);
    dropped(&mut bench, &ahead, Reject::Unproven);
    dropped(&mut bench, &proof, Reject::Replayed);
    let proof = question(&bench, BOOT, |header| header.boot = PEER_BOOT + 2);
    assert_eq!(bench.receive(&proof).unicast().0, 2);
    dropped(&mut bench, &ahead, Reject::Replayed);
}

#[test]
fn a_broadcast_of_a_proven_boot_needs_to_name_nobody() {
    let mut bench = awake();
    let group = group_of(5, 1);
    let halt = Message::Halt { group, binding: true };
    assert_eq!(bench.hear(5, &[3], halt).unicast(), (5, Message::HaltAck));
}

/// The recording of a boot that this node had proven itself to, played to its next boot.
#[test]
fn a_recording_from_before_a_reboot_of_this_node_changes_nothing() {
    let bench = awake();
    let mut recorded = Vec::new();
    for receiver in [BOOT - 2, 0] {
        recorded.push(question(&bench, receiver, |_| {}));
    }
    let envelope = Envelope::Broadcast { awaited: crate::node::testing::set([3]) };
    let halt = Message::Halt { group: group_of(5, 1), binding: true };
    recorded.push(bench.datagram(5, Destination::All, 9, envelope, halt));
    // Whether the greeting goes on or is over.
    let mut over = waking();
    over.fire(crate::timers::Timer::Greeting).none();
    over.fire(crate::timers::Timer::Greeting).ignore();
    for mut bench in [waking(), over] {
        for bytes in &recorded {
            dropped(&mut bench, bytes, Reject::Unproven);
        }
    }
}

/// One mad member cannot eat the node.
#[test]
fn requests_beyond_the_budget_of_a_member_are_refused_until_the_next_period() {
    use crate::link::hello::REQUESTS_PER_T_MAX;
    let mut bench = awake();
    for _ in 0..REQUESTS_PER_T_MAX {
        let question = question(&bench, BOOT, |_| {});
        assert_eq!(bench.receive(&question).unicast().0, 2);
    }
    for _ in 0..100 {
        let question = question(&bench, BOOT, |_| {});
        dropped(&mut bench, &question, Reject::Budget);
    }
    let other = bench.datagram(1, Destination::Node(id(3)), 9, Envelope::Request, QUESTION);
    assert_eq!(bench.receive(&other).unicast().0, 1, "the others are heard");
    bench.pass(bench.timing().t).ignore();
    let question = question(&bench, BOOT, |_| {});
    assert_eq!(bench.receive(&question).unicast().0, 2);
}
