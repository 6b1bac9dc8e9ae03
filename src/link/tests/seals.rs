//! What is sealed opens again as it was, and nothing else does.

use super::*;
use crate::key::{KEY_BYTES, Keys, LinkKey, Slot};
use crate::link::look_into;
use crate::link::seal::{HEADER_BYTES, TAG_BYTES, VERSION};
use crate::wire::Reject;
use proptest::collection::vec;
use proptest::prelude::*;

fn header(kind: u8, to: u8, numbers: (u16, u32, u32)) -> Header {
    let (network, boot, sequence) = numbers;
    Header {
        kind: crate::wire::Kind::ALL[usize::from(kind) % crate::wire::Kind::ALL.len()],
        network,
        source: id(7),
        destination: crate::id::NodeId::new(to).map_or(Destination::All, Destination::Node),
        boot,
        sequence,
        key: 1,
    }
}

proptest! {
    #[test]
    fn a_sealed_datagram_opens_as_it_was_and_seals_the_same_again(
        kind in any::<u8>(),
        to in 1u8..=255,
        numbers in any::<(u16, u32, u32)>(),
        text in vec(any::<u8>(), 8..300),
    ) {
        let header = header(kind, to, numbers);
        let sealed = seal::seal_text(&header, &keys().send.key, &text);
        prop_assert_eq!(sealed.len(), HEADER_BYTES + text.len() + TAG_BYTES);
        prop_assert_eq!(Header::new_checked(&sealed), Ok(header));
        let mut opened = sealed.clone();
        let frame = look_into(&keys(), &mut opened).unwrap().frame;
        let call = frame.call.to_le_bytes();
        prop_assert_eq!(&call[..], &text[..4]);
        let after_call = if header.kind.is_reply() { &text[4..] } else { &text[8..] };
        prop_assert_eq!(frame.body, after_call);
        let text = opened[HEADER_BYTES..opened.len() - TAG_BYTES].to_vec();
        prop_assert_eq!(seal::seal_text(&header, &keys().send.key, &text), sealed);
    }

    #[test]
    fn arbitrary_bytes_never_open_and_never_panic(bytes in vec(any::<u8>(), 0..1600)) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = VERSION;
        }
        prop_assert!(look_into(&keys(), &mut bytes).is_err());
    }
}

#[test]
fn no_datagram_with_one_bit_changed_is_accepted() {
    let bench = awake();
    let good = question(&bench, bench.node.boot_epoch(), |_| {});
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let mut bench = awake();
        let accepted = bench.node.counters().datagrams_accepted;
        let notes = bench.receive(&bad).sent();
        assert_eq!(notes, [], "bit {bit}");
        assert_eq!(bench.node.counters().datagrams_accepted, accepted, "bit {bit}");
        assert_eq!(bench.receive(&good).unicast().0, 2, "bit {bit}: the good one still counts");
    }
}

#[test]
fn a_datagram_under_another_key_is_forged_or_of_no_known_key() {
    let mut bench = awake();
    let good = question(&bench, bench.node.boot_epoch(), |header| header.key = 9);
    bench.receive(&good).ignore();
    assert_eq!(bench.rejected(Reject::Key), 1);
    let other = Slot { id: 9, key: LinkKey::new([0x99; KEY_BYTES]) };
    bench.node.set_keys(Keys { other: Some(other), ..keys() });
    bench.receive(&good).ignore();
    assert_eq!(bench.rejected(Reject::Forged), 1);
    assert_eq!(bench.node.authentication_failures(id(2)), 2);
    assert_eq!(bench.node.authentication_failures(id(1)), 0);
}

#[test]
fn failures_are_noted_ever_more_rarely() {
    let mut bench = awake();
    let bad = question(&bench, 0, |header| header.key = 9);
    let notes: Vec<_> = (1..=100).filter(|_| !bench.receive(&bad).notes().is_empty()).collect();
    assert_eq!(notes, [1, 2, 4, 8, 16, 32, 64]);
}

#[test]
fn both_slots_are_accepted_and_the_first_is_sent_with() {
    let mut bench = awake();
    let next = Slot { id: 2, key: LinkKey::new([0x77; KEY_BYTES]) };
    bench.node.set_keys(Keys { other: Some(next.clone()), ..keys() });
    let mut room = [0; 200];
    bench.peer_sequence.set(bench.peer_sequence.get() + 1);
    let header = Header { key: 2, ..bench.header(2, Destination::Node(id(3)), QUESTION.kind()) };
    let envelope = Envelope::Request;
    let len = seal::seal(&header, &next.key, (9, 0), &envelope, &QUESTION, &mut room).unwrap();
    assert_eq!(bench.receive(&room[..len]).unicast().0, 2, "and answered under the first key");
}

/// Two boots of one node, everything that they send: no nonce twice.
#[test]
fn no_nonce_is_used_twice_over_reboots() {
    use crate::effects::Effect;
    use crate::node::{Event, Node};
    use crate::time::Instant;
    let mut nonces = std::collections::BTreeSet::new();
    let mut sent = 0;
    let mut stored = 40;
    for algorithm in [Algorithm::Bully, Algorithm::Invitation] {
        for boot in 0..20 {
            let mut node = Node::<1>::new(config(5, 5, algorithm), keys(), 1).unwrap();
            let mut step = |now: u64, event: Event<'_>| {
                for effect in node.step(Instant(now), event).iter() {
                    if let Effect::Send { datagram, .. } = effect {
                        sent += 1;
                        let header = Header::new_checked(datagram).unwrap();
                        assert!(nonces.insert((header.boot, header.sequence)), "{header:?}");
                    }
                }
            };
            step(0, Event::Boot { stored_epoch: Some(stored) });
            stored += 2;
            step(0, Event::EpochSaved { read_back: Some(stored) });
            for ms in 0..boot * 50 {
                step(ms * 1000, Event::Tick);
                step(ms * 1000, Event::Timer);
            }
        }
    }
    assert!(sent > 200, "{sent}");
}

#[test]
fn when_sequence_numbers_end_the_node_fails_and_uses_none_twice() {
    let mut bench = awake();
    bench.station_mut().link.use_up_sequence();
    let question = question(&bench, bench.node.boot_epoch(), |_| {});
    let acts = bench.receive(&question);
    assert_eq!(acts.failed(), Some(crate::effects::FailCause::NumbersExhausted));
    assert_eq!(acts.messages(), []);
}
