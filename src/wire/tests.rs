//! The codec loses nothing, accepts nothing else, and says why.

extern crate std;

use super::*;
use crate::id::{GroupId, NodeSet};
use crate::state::Status;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::boxed::Box;
use std::vec;
use std::vec::Vec;

/// A whole datagram with its parts, the definition and the invitees kept as they are written.
#[derive(Debug, Clone)]
struct Letter<const W: usize> {
    head: Frame<'static>,
    envelope: Envelope<W>,
    message: Message<'static, W>,
}

impl<const W: usize> Letter<W> {
    fn bytes(&self) -> Vec<u8> {
        let mut room = [0; DATAGRAM_BYTES_MAX];
        let len = self.message.emit(&self.head, &self.envelope, &mut room).expect("it fits");
        room[..len].to_vec()
    }
}

fn node_id<const W: usize>() -> impl Strategy<Value = NodeId> {
    (1..=NodeSet::<W>::CAPACITY as u8).prop_map(|id| NodeId::new(id).unwrap())
}

fn node_set<const W: usize>() -> impl Strategy<Value = NodeSet<W>> {
    vec(node_id::<W>(), 0..9).prop_map(|ids| ids.into_iter().collect())
}

fn group<const W: usize>() -> impl Strategy<Value = GroupId> {
    (node_id::<W>(), any::<u64>()).prop_map(|(coordinator, number)| GroupId { coordinator, number })
}

fn status() -> impl Strategy<Value = Status> {
    (0u8..4).prop_map(|byte| Status::from_byte(byte).unwrap())
}

fn definition() -> impl Strategy<Value = &'static [u8]> {
    vec(any::<u8>(), 0..DEFINITION_BYTES_MAX + 1).prop_map(|bytes| &*Box::leak(bytes.into()))
}

fn invitees<const W: usize>() -> impl Strategy<Value = Invitees<'static, W>> {
    vec((group::<W>(), node_set::<W>()), 0..9).prop_map(|entries| {
        let list = Box::leak(Box::new(InviteeList::<1400>::default()));
        for (leave, invited) in entries {
            assert!(list.push(leave, &invited), "it fits");
        }
        list.entries()
    })
}

fn echoes() -> impl Strategy<Value = Echoes<'static>> {
    vec((node_id::<4>(), any::<u32>()), 0..9).prop_map(|entries| {
        let list = Box::leak(Box::new(EchoList::default()));
        entries.into_iter().for_each(|(id, epoch)| list.push(id, epoch));
        list.entries()
    })
}

fn token<const W: usize>() -> impl Strategy<Value = Token<'static, W>> {
    let lap = prop::sample::select(vec![Lap::Elect, Lap::Coord, Lap::Ready]);
    let sets = (node_set::<W>(), node_set::<W>());
    let incumbent = option::of((group::<W>(), any::<u8>()));
    (lap, group::<W>(), any::<u32>(), sets, incumbent, definition()).prop_map(
        |(lap, run, round, (list, suspects), incumbent, definition)| {
            let definition = if lap == Lap::Ready { definition } else { &[] };
            let incumbent =
                incumbent.map(|(of, members)| Incumbent { id: of.coordinator, members });
            Token { lap, run, round, list, suspects, incumbent, definition }
        },
    )
}

fn message<const W: usize>() -> impl Strategy<Value = Message<'static, W>> {
    let flag = any::<bool>;
    prop_oneof![
        (option::of(group::<W>()), status())
            .prop_map(|(group, status)| Message::AreYouThere { group, status }),
        flag().prop_map(|yes| Message::AytAns { yes }),
        group::<W>().prop_map(|group| Message::AreYouNormal { group }),
        flag().prop_map(|normal| Message::AynAns { normal }),
        (group::<W>(), flag()).prop_map(|(group, binding)| Message::Halt { group, binding }),
        Just(Message::HaltAck),
        group::<W>().prop_map(|group| Message::NewCoordinator { group }),
        flag().prop_map(|accepted| Message::NcAck { accepted }),
        (group::<W>(), node_set::<W>(), definition())
            .prop_map(|(group, up, definition)| Message::Ready { group, up, definition }),
        flag().prop_map(|accepted| Message::ReadyAck { accepted }),
        flag().prop_map(|ok| Message::ReadyAns { ok }),
        (group::<W>(), flag())
            .prop_map(|(group, roll_call)| Message::AreYouCoordinator { group, roll_call }),
        (flag(), option::of(group::<W>()), node_set::<W>())
            .prop_map(|(yes, group, up)| Message::AycAns { yes, group, up }),
        (group::<W>(), invitees::<W>())
            .prop_map(|(group, invitees)| Message::Invitation { group, invitees }),
        group::<W>().prop_map(|group| Message::Accept { group }),
        flag().prop_map(|ok| Message::AcceptAns { ok }),
        (group::<W>(), flag()).prop_map(|(group, normal)| Message::Beat { group, normal }),
        (flag(), flag(), any::<u32>(), any::<u32>(), echoes()).prop_map(
            |(asks, waking, uptime_ms, instance, echoes)| Message::Hello {
                asks,
                waking,
                uptime_ms,
                instance,
                echoes,
            }
        ),
        any::<u32>().prop_map(|instance| Message::Clash { instance }),
        token::<W>().prop_map(Message::Token),
        Just(Message::HopAck),
        (group::<W>(), node_set::<W>())
            .prop_map(|(group, about)| Message::HaveYouHeard { group, about }),
        option::of(group::<W>()).prop_map(|group| Message::Leaving { group }),
        node_set::<W>().prop_map(|heard| Message::Heard { heard }),
    ]
}

fn letter<const W: usize>() -> impl Strategy<Value = Letter<W>> {
    let numbers = (any::<u16>(), any::<u32>(), any::<u32>(), any::<u32>());
    let parties = (node_id::<W>(), option::of(node_id::<W>()), node_set::<W>());
    (message::<W>(), parties, numbers).prop_map(
        |(message, (source, to, awaited), (network, boot, call, requester_boot))| {
            let kind = message.kind();
            let (destination, envelope) = match to {
                _ if kind.is_reply() => {
                    let to = to.unwrap_or(source);
                    (Destination::Node(to), Envelope::Reply { requester_boot })
                }
                Some(to) => (Destination::Node(to), Envelope::Request),
                None => (Destination::All, Envelope::Broadcast { awaited }),
            };
            let head = Frame { kind, network, source, destination, boot, call, body: &[] };
            Letter { head, envelope, message }
        },
    )
}

fn parsed<const W: usize>(bytes: &[u8]) -> Result<(Envelope<W>, Message<'_, W>), Reject> {
    Message::parse(&Frame::new_checked(bytes)?)
}

fn round_trip<const W: usize>(letter: &Letter<W>) {
    let bytes = letter.bytes();
    let frame = Frame::new_checked(&bytes).unwrap();
    assert_eq!(Frame { body: &[], ..frame }, letter.head);
    let (envelope, message) = Message::<W>::parse(&frame).unwrap();
    assert_eq!((envelope, message), (letter.envelope, letter.message));
    let head = Frame { body: &[], ..frame };
    assert_eq!(Letter { head, envelope, message: letter.message }.bytes(), bytes);
    let mut room = [0; DATAGRAM_BYTES_MAX];
    let len = message.emit(&frame, &envelope, &mut room).unwrap();
    assert_eq!(&room[..len], bytes);
    assert_eq!(message.emit(&frame, &envelope, &mut room[..len - 1]), None, "no room");
}

fn other_lengths_are_refused<const W: usize>(letter: &Letter<W>) {
    let bytes = letter.bytes();
    for len in 0..bytes.len() {
        let why = parsed::<W>(&bytes[..len]).err();
        if len < HEADER_BYTES {
            assert_eq!(why, Some(Reject::TooShort), "cut to {len} bytes");
        } else {
            assert_eq!(why, Some(Reject::Length), "cut to {len} of {} bytes", bytes.len());
        }
    }
    for extra in [0, 1, 0xff] {
        let longer: Vec<_> = bytes.iter().copied().chain([extra]).collect();
        assert_eq!(parsed::<W>(&longer).err(), Some(Reject::Length));
    }
}

fn parse_and_write_back<const W: usize>(bytes: &[u8]) {
    let Ok(frame) = Frame::new_checked(bytes) else { return };
    let Ok((envelope, message)) = Message::<W>::parse(&frame) else { return };
    assert_eq!(message.kind(), frame.kind);
    if let Message::Invitation { invitees, .. } = message {
        assert!(invitees.iter().count() * 10 <= bytes.len());
    }
    let mut room = [0; DATAGRAM_BYTES_MAX];
    let len = message.emit(&frame, &envelope, &mut room).unwrap();
    assert_eq!(&room[..len], bytes);
}

/// Bytes that are a header more often than chance would have it.
fn nearly_a_datagram() -> impl Strategy<Value = Vec<u8>> {
    let kind = (0..Kind::ALL.len()).prop_map(|index| Kind::ALL[index] as u8);
    let small = prop_oneof![Just(0u8), Just(1), 0u8..12, any::<u8>()];
    (kind, 0u8..4, vec(small, 8..70)).prop_map(|(kind, to, rest)| {
        let start = [VERSION, kind, 1, 0, 3, to];
        start.into_iter().chain(rest).collect()
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back_for_64_nodes(letter in letter::<1>()) {
        round_trip(&letter);
    }

    #[test]
    fn what_is_written_reads_back_for_255_nodes(letter in letter::<4>()) {
        round_trip(&letter);
    }

    #[test]
    fn every_truncation_and_one_byte_more_is_rejected_for_64_nodes(letter in letter::<1>()) {
        other_lengths_are_refused(&letter);
    }

    #[test]
    fn every_truncation_and_one_byte_more_is_rejected_for_255_nodes(letter in letter::<4>()) {
        other_lengths_are_refused(&letter);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..1600)) {
        parse_and_write_back::<1>(&bytes);
        parse_and_write_back::<4>(&bytes);
    }

    #[test]
    fn what_parses_is_written_back_the_same(bytes in nearly_a_datagram()) {
        parse_and_write_back::<1>(&bytes);
        parse_and_write_back::<4>(&bytes);
    }

    #[test]
    fn one_changed_byte_never_panics_and_still_has_one_form(
        letter in letter::<4>(),
        place in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let mut bytes = letter.bytes();
        let place = place.index(bytes.len());
        bytes[place] = value;
        parse_and_write_back::<1>(&bytes);
        parse_and_write_back::<4>(&bytes);
    }
}

// --- one reason each ------------------------------------------------------------------------

fn id(n: u8) -> NodeId {
    NodeId::new(n).unwrap()
}

fn group_of(coordinator: u8) -> GroupId {
    GroupId { coordinator: id(coordinator), number: 42 << 32 | 1 }
}

fn head(kind: Kind, destination: Destination) -> Frame<'static> {
    Frame { kind, network: 1, source: id(3), destination, boot: 7, call: 9, body: &[] }
}

fn broadcast<const W: usize>(message: Message<'_, W>, awaited: NodeSet<W>) -> Vec<u8> {
    let mut room = [0; DATAGRAM_BYTES_MAX];
    let head = head(message.kind(), Destination::All);
    let len = message.emit(&head, &Envelope::Broadcast { awaited }, &mut room).expect("it fits");
    room[..len].to_vec()
}

/// A Beat that awaits nobody: header, an empty set at 14, the group at 15 to 23, the flag at 24.
fn beat() -> Vec<u8> {
    broadcast::<4>(Message::Beat { group: group_of(3), normal: true }, NodeSet::EMPTY)
}

fn with_byte(mut bytes: Vec<u8>, at: usize, value: u8) -> Vec<u8> {
    bytes[at] = value;
    bytes
}

/// A Beat whose set of awaited nodes is written as given.
fn beat_awaiting(set: &[u8]) -> Vec<u8> {
    let beat = beat();
    [&beat[..HEADER_BYTES], set, &beat[HEADER_BYTES + 1..]].concat()
}

#[test]
fn every_rejection_has_its_own_reason() {
    let why = |bytes: Vec<u8>| parsed::<4>(&bytes).err();
    assert_eq!(why(beat()), None);
    assert_eq!(why(Vec::new()), Some(Reject::TooShort));
    assert_eq!(why(vec![VERSION; DATAGRAM_BYTES_MAX + 1]), Some(Reject::TooLong));
    assert_eq!(why(with_byte(beat(), 0, VERSION + 1)), Some(Reject::Version));
    assert_eq!(why(with_byte(beat(), 4, 0)), Some(Reject::UnknownSender));
    assert_eq!(why(with_byte(beat(), 15, 0)), Some(Reject::Field), "a group without coordinator");
    assert_eq!(why(with_byte(beat(), 24, 2)), Some(Reject::Field), "a flag is 0 or 1");
}

#[test]
fn an_unknown_kind_is_rejected_as_such() {
    for byte in 0..=255 {
        let known = Kind::ALL.iter().any(|kind| *kind as u8 == byte);
        let why = Frame::new_checked(&with_byte(beat(), 1, byte)).map(|_| ()).err();
        match (known, byte >= 64) {
            (true, false) => assert_eq!(why, None, "kind {byte}"),
            (true, true) => assert_eq!(why, Some(Reject::Field), "a reply to all, kind {byte}"),
            _ => assert_eq!(why, Some(Reject::Kind), "kind {byte}"),
        }
    }
}

#[test]
fn a_reply_goes_to_one_node() {
    for kind in Kind::ALL.into_iter().filter(|kind| kind.is_reply()) {
        let bytes = with_byte(beat(), 1, kind as u8);
        assert_eq!(Frame::new_checked(&bytes).err(), Some(Reject::Field), "{kind:?}");
        assert!(Frame::new_checked(&with_byte(bytes, 5, 2)).is_ok(), "{kind:?}");
    }
}

#[test]
fn a_set_has_one_form_and_stays_below_the_capacity() {
    let why = |set: &[u8]| parsed::<1>(&beat_awaiting(set)).err();
    assert_eq!(why(&[0]), None);
    assert_eq!(why(&[1, 0x80]), None);
    assert_eq!(why(&[2, 0x80, 0]), Some(Reject::Field), "the last byte must not be zero");
    assert_eq!(why(&[8, 0, 0, 0, 0, 0, 0, 0, 0x80]), None, "node 64");
    assert_eq!(why(&[9, 0, 0, 0, 0, 0, 0, 0, 0, 1]), Some(Reject::Capacity), "node 65");
    assert_eq!(parsed::<4>(&beat_awaiting(&[9, 0, 0, 0, 0, 0, 0, 0, 0, 1])).err(), None);
    let mut longest = [0; 33];
    (longest[0], longest[32]) = (32, 0x40);
    assert_eq!(parsed::<4>(&beat_awaiting(&longest)).err(), None, "node 255");
    longest[32] = 0x80;
    assert_eq!(parsed::<4>(&beat_awaiting(&longest)).err(), Some(Reject::Capacity), "node 256");
    let mut too_long = [1; 34];
    too_long[0] = 33;
    assert_eq!(parsed::<4>(&beat_awaiting(&too_long)).err(), Some(Reject::Field));
}

#[test]
fn a_group_of_a_node_beyond_the_capacity_is_rejected() {
    let bytes = with_byte(beat(), 15, 65);
    assert_eq!(parsed::<1>(&bytes).err(), Some(Reject::Capacity));
    assert_eq!(parsed::<4>(&bytes).err(), None);
}

#[test]
fn a_status_and_the_absent_group_have_one_form() {
    let message: Message<1> = Message::AreYouThere { group: None, status: Status::Normal };
    let bytes = broadcast(message, NodeSet::EMPTY);
    assert_eq!(parsed::<1>(&bytes).err(), None);
    let last = bytes.len() - 1;
    assert_eq!(parsed::<1>(&with_byte(bytes.clone(), last, 4)).err(), Some(Reject::Field));
    assert_eq!(parsed::<1>(&with_byte(bytes, last - 1, 1)).err(), Some(Reject::Field));
}

#[test]
fn the_longest_ready_fits_one_datagram() {
    let everybody: NodeSet<4> = (1..=255).filter_map(NodeId::new).collect();
    let definition = &[7; DEFINITION_BYTES_MAX];
    let ready = Message::Ready { group: group_of(255), up: everybody, definition };
    let bytes = broadcast(ready, everybody);
    assert_eq!(bytes.len(), HEADER_BYTES + 33 + 9 + 33 + 2 + DEFINITION_BYTES_MAX);
    assert!(bytes.len() <= DATAGRAM_BYTES_MAX);
    assert_eq!(parsed::<4>(&bytes).unwrap().1, ready);
}

#[test]
fn the_longest_token_leaves_room_for_a_seal() {
    let everybody: NodeSet<4> = (1..=255).filter_map(NodeId::new).collect();
    let token = Message::Token(Token {
        lap: Lap::Ready,
        run: group_of(255),
        round: u32::MAX,
        list: everybody,
        suspects: everybody,
        incumbent: None,
        definition: &[7; DEFINITION_BYTES_MAX],
    });
    let mut room = [0; DATAGRAM_BYTES_MAX - 32];
    let head = head(token.kind(), Destination::Node(id(1)));
    let len = token.emit(&head, &Envelope::Request, &mut room).unwrap();
    assert_eq!(len, HEADER_BYTES + 9 + 4 + 33 + 33 + 2 + 2 + DEFINITION_BYTES_MAX);
    assert_eq!(parsed::<4>(&room[..len]).unwrap().1, token);
}

#[test]
fn a_longer_definition_is_rejected() {
    let definition = &[7; DEFINITION_BYTES_MAX + 1];
    let ready: Message<1> = Message::Ready { group: group_of(3), up: NodeSet::EMPTY, definition };
    assert_eq!(parsed::<1>(&broadcast(ready, NodeSet::EMPTY)).err(), Some(Reject::Field));
}

#[test]
fn an_entry_without_a_set_invites_the_coordinator_alone() {
    // A group and the length of an empty set: ten bytes are enough.
    let mut list = InviteeList::<10>::default();
    let only = NodeSet::<1>::only(id(2));
    assert!(list.push(group_of(2), &only));
    assert!(!list.push(group_of(2), &only), "there is no room for a second one");
    let entries: Vec<_> = list.entries::<1>().iter().collect();
    assert_eq!(entries, [(group_of(2), only)]);
}
