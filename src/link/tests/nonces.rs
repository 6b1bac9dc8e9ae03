//! The bytes of a seal, and that no two datagrams share a keystream.
//!
//! A seal that both sides compute alike opens, whatever it is worth: under a nonce of zeros all else
//! works. So here it is held to RFC 8439, with a nonce and authenticated data put together by hand.

use super::*;
use crate::id::GroupId;
use crate::key::{KEY_BYTES, LinkKey};
use crate::link::Gaps;
use crate::link::seal::{HEADER_BYTES, TAG_BYTES};
use crate::wire::{Kind, Reject};
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Nonce, Tag};

fn key() -> [u8; KEY_BYTES] {
    core::array::from_fn(|byte| byte as u8)
}

fn header() -> Header {
    Header {
        kind: Kind::Halt,
        network: 0x2211,
        source: id(7),
        destination: Destination::Node(id(3)),
        boot: 0x6655_4433,
        sequence: 0xaa99_8877,
        key: 5,
    }
}

/// That header in bytes.
const CLEAR: [u8; HEADER_BYTES] =
    [2, 3, 0x11, 0x22, 7, 3, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 5];
/// Network, source, 0, boot epoch, sequence.
const NONCE: [u8; 12] = [0x11, 0x22, 7, 0, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa];
/// Call number, the receiver's boot epoch, coordinator, number, binding.
const TEXT: [u8; 18] = [1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 4, 8, 7, 6, 5, 4, 3, 2, 1, 1];

/// Computed from the text of RFC 8439 by another program, in another language.
const SEALED: [u8; HEADER_BYTES + TEXT.len() + TAG_BYTES] = [
    0x02, 0x03, 0x11, 0x22, 0x07, 0x03, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0x05, 0xae,
    0xa3, 0x16, 0xee, 0xf5, 0xbf, 0x47, 0x4d, 0x8b, 0x69, 0x1d, 0xe5, 0xbe, 0x50, 0x52, 0x99, 0x05,
    0x46, 0x33, 0x3a, 0xcd, 0x70, 0xab, 0xd8, 0xf1, 0x5f, 0xda, 0x23, 0x89, 0xe8, 0x7a, 0x28, 0xbd,
    0x71,
];

fn sealed() -> Vec<u8> {
    let group = GroupId { coordinator: id(4), number: 0x0102_0304_0506_0708 };
    let halt: Message<'_, 1> = Message::Halt { group, binding: true };
    let numbers = (0x0403_0201, 0x1413_1211);
    let mut room = [0; 200];
    let key = LinkKey::new(key());
    let len = seal::seal(&header(), &key, numbers, &Envelope::Request, &halt, &mut room).unwrap();
    room[..len].to_vec()
}

#[test]
fn a_seal_has_the_bytes_that_it_always_had() {
    assert_eq!(sealed(), SEALED);
}

#[test]
fn a_seal_is_that_of_rfc_8439() {
    let cipher = ChaCha20Poly1305::new(&key().into());
    let mut text = TEXT;
    let nonce = Nonce::from(NONCE);
    let tag = cipher.encrypt_inout_detached(&nonce, &CLEAR, (&mut text[..]).into()).unwrap();
    assert_eq!(sealed(), [&CLEAR[..], &text, &tag].concat());
}

/// Headers that differ from the first in one part of the nonce each.
fn neighbours() -> [(&'static str, Header); 9] {
    let other = |change: fn(&mut Header)| {
        let mut header = header();
        change(&mut header);
        header
    };
    [
        ("the first", header()),
        ("the next datagram", other(|header| header.sequence += 1)),
        ("one much later", other(|header| header.sequence ^= 0xff00_0000)),
        ("the next boot", other(|header| header.boot += 2)),
        ("one much later", other(|header| header.boot ^= 0xff00_0000)),
        ("another sender", other(|header| header.source = id(8))),
        ("another network", other(|header| header.network += 1)),
        ("its other half", other(|header| header.network ^= 0xff00)),
        (
            "boot for sequence",
            other(|header| {
                core::mem::swap(&mut header.boot, &mut header.sequence);
            }),
        ),
    ]
}

#[test]
fn no_two_datagrams_share_a_keystream() {
    let key = LinkKey::new(key());
    // Of a text of zeros the keystream is what is left.
    let keystream = |header: &Header| {
        let sealed = seal::seal_text(header, &key, &[0; 64]);
        sealed[HEADER_BYTES..sealed.len() - TAG_BYTES].to_vec()
    };
    for (name, header) in &neighbours() {
        for (other_name, other) in &neighbours() {
            if header != other {
                let (one, other) = (keystream(header), keystream(other));
                let equal = one.iter().zip(&other).filter(|(one, other)| one == other).count();
                assert!(equal < 16, "{name} and {other_name}: {equal} of 64 bytes");
            }
        }
    }
}

#[test]
fn what_one_datagram_seals_opens_under_no_other_nonce() {
    let key = LinkKey::new(key());
    for (name, header) in &neighbours() {
        let sealed = seal::seal_text(header, &key, &TEXT);
        for (other_name, other) in &neighbours() {
            let same = header == other;
            // The header of the other one, in front of what this one sealed.
            let other_head = &seal::seal_text(other, &key, &[])[..HEADER_BYTES];
            let mut moved = [other_head, &sealed[HEADER_BYTES..]].concat();
            let opened = seal::open(other, &key, Gaps::default(), &mut moved).map(drop);
            let wanted = if same { Ok(()) } else { Err(Reject::Forged) };
            assert_eq!(opened, wanted, "{name} under the header of {other_name}");
            // Its nonce alone.
            let mut nonce: [u8; 12] = other_head[2..14].try_into().unwrap();
            nonce[3] = 0;
            let opened = opens_under(nonce, &sealed);
            assert_eq!(opened, same, "{name} under the nonce of {other_name}");
        }
    }
}

/// Whether a datagram opens under a nonce of the caller's choice.
fn opens_under(nonce: [u8; 12], sealed: &[u8]) -> bool {
    let (clear, rest) = sealed.split_at(HEADER_BYTES);
    let (text, tag) = rest.split_last_chunk::<TAG_BYTES>().unwrap();
    let cipher = ChaCha20Poly1305::new(&key().into());
    let (nonce, tag) = (Nonce::from(nonce), Tag::from(*tag));
    let mut text = text.to_vec();
    cipher.decrypt_inout_detached(&nonce, clear, (&mut text[..]).into(), &tag).is_ok()
}
