//! Boots and numbers: what is old changes nothing.

use super::*;
use crate::link::window::Window;
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
fn what_was_overtaken_counts_and_counts_once() {
    let mut bench = awake();
    let [first, second, third] = [(); 3].map(|()| question(&bench, BOOT, |_| {}));
    for bytes in [&third, &first, &second] {
        assert_eq!(bench.receive(bytes).unicast().0, 2);
    }
    for bytes in [&first, &second, &third] {
        dropped(&mut bench, bytes, Reject::Replayed);
    }
    let from_other = bench.datagram(1, Destination::Node(id(3)), 9, Envelope::Request, QUESTION);
    assert_eq!(bench.receive(&from_other).unicast().0, 1, "each sender has numbers of its own");
}

#[test]
fn what_the_window_has_left_behind_is_dropped() {
    let mut bench = awake();
    let latest = bench.peer_sequence.get() + 1000;
    let back = |back| question(&bench, BOOT, |header| header.sequence = latest - back);
    let [highest, last_inside, outside, outside_too] = [0, 63, 64, 65].map(back);
    assert_eq!(bench.receive(&highest).unicast().0, 2);
    dropped(&mut bench, &outside, Reject::Replayed);
    assert_eq!(bench.receive(&last_inside).unicast().0, 2);
    dropped(&mut bench, &last_inside, Reject::Replayed);
    dropped(&mut bench, &outside_too, Reject::Replayed);
}

/// Against a plain set of numbers.
#[test]
fn the_window_tells_64_numbers_apart() {
    let mut rng = 7u32;
    let (mut window, mut used, mut highest) = (Window::UNUSED, [false; 3000], 0usize);
    assert!(window.is_used(0), "no datagram has this number");
    for _ in 0..20_000 {
        rng = rng.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let low = highest.saturating_sub(80).max(1);
        let number = (low + (rng >> 16) as usize % 90).min(used.len() - 1);
        let known = used[number] || highest.saturating_sub(number) >= 64;
        assert_eq!(window.is_used(number as u32), known, "{number} at {highest}");
        if !known {
            window.use_up(number as u32);
            used[number] = true;
            highest = highest.max(number);
        }
    }
    assert!(highest > 1000, "{highest}");
    let mut window = Window::closed_up_to(u32::MAX - 1);
    assert!(window.is_used(u32::MAX - 1) && !window.is_used(u32::MAX));
    window.use_up(u32::MAX);
    assert!([0, u32::MAX - 64, u32::MAX - 63, u32::MAX].iter().all(|n| window.is_used(*n)));
    let mut far = Window::closed_up_to(5);
    far.use_up(1000);
    assert!(!far.is_used(999) && far.is_used(1000) && far.is_used(936));
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
    dropped(&mut bench, &ahead, Reject::Unproven);
    assert_eq!(bench.receive(&proof).unicast().0, 2, "overtaken, it proves as much");
    dropped(&mut bench, &proof, Reject::Replayed);
    dropped(&mut bench, &ahead, Reject::Replayed);
    let next = question(&bench, BOOT, |header| header.boot = PEER_BOOT + 2);
    assert_eq!(bench.receive(&next).unicast().0, 2);
    dropped(&mut bench, &ahead, Reject::Replayed);
}

/// Nor is what was sent before its proof and comes after it: nobody can tell whether it came before.
#[test]
fn a_proof_closes_the_window_below_it() {
    let mut bench = awake();
    let new = |receiver| question(&bench, receiver, |header| header.boot = PEER_BOOT + 2);
    let (before, proof) = (new(0), new(BOOT));
    assert_eq!(bench.receive(&proof).unicast().0, 2);
    dropped(&mut bench, &before, Reject::Replayed);
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
