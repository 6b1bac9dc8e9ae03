//! The seal itself: the header in the clear, the text behind it, the tag. No state here.

#[cfg(test)]
extern crate std;

use chacha20poly1305::aead::inout::InOutBuf;
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Nonce, Tag};

use super::Gaps;
use crate::id::NodeId;
use crate::key::{Keys, LinkKey};
use crate::wire::{
    DATAGRAM_BYTES_MAX, Destination, Envelope, Frame, HEADER_BYTES as CLEAR_HEADER_BYTES, Head,
    Kind, Message, Reject, Writer,
};

/// The version of the protocol whose datagrams are sealed.
pub const VERSION: u8 = 2;
/// What stands in the clear; all of it is authenticated.
pub const HEADER_BYTES: usize = 15;
/// The tag at the end.
pub const TAG_BYTES: usize = 16;

const CALL_BYTES: usize = 4;
/// The boot epoch of the receiver, in what goes to one node.
const RECEIVER_BYTES: usize = 4;
/// No datagram is shorter.
const BYTES_MIN: usize = HEADER_BYTES + CALL_BYTES + TAG_BYTES;

// What sealing adds to a datagram, at most.
const _: () =
    assert!(HEADER_BYTES + CALL_BYTES + RECEIVER_BYTES + TAG_BYTES - CLEAR_HEADER_BYTES <= 32);

/// The header of a sealed datagram. Nothing in it is to be believed before the tag is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub kind: Kind,
    pub network: u16,
    pub source: NodeId,
    pub destination: Destination,
    /// The boot epoch of the source.
    pub boot: u32,
    /// Counts all datagrams of that boot, from 1.
    pub sequence: u32,
    /// The number of the key.
    pub key: u8,
}

/// An opened datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened<'a> {
    pub frame: Frame<'a>,
    pub sequence: u32,
    /// The boot epoch in which the sender knows the receiver; 0: not at all, or sent to all.
    pub receiver: u32,
}

impl Header {
    /// Reads a header, judging length, version, kind and ids.
    pub fn new_checked(datagram: &[u8]) -> Result<Self, Reject> {
        if datagram.len() > DATAGRAM_BYTES_MAX {
            return Err(Reject::TooLong);
        }
        match datagram.first() {
            Some(&VERSION) => {}
            // The other header is shorter, and has its own judge.
            Some(_) if datagram.len() >= CLEAR_HEADER_BYTES => return Err(Reject::Version),
            _ => return Err(Reject::TooShort),
        }
        let header = datagram.first_chunk::<HEADER_BYTES>();
        let Some(header) = header.filter(|_| datagram.len() >= BYTES_MIN) else {
            return Err(Reject::TooShort);
        };
        let [head @ .., s0, s1, s2, s3, key] = *header;
        let Head { kind, network, source, destination, boot } = Head::parse(head)?;
        let sequence = u32::from_le_bytes([s0, s1, s2, s3]);
        Ok(Self { kind, network, source, destination, boot, sequence, key })
    }

    fn emit(&self, w: &mut Writer<'_>) {
        let Self { kind, network, source, destination, boot, .. } = *self;
        Head { kind, network, source, destination, boot }.emit(VERSION, w);
        w.slice(&self.sequence.to_le_bytes());
        w.byte(self.key);
    }
}

/// The part of a header that stands for network, source, boot epoch and sequence, without the
/// destination. Never used twice: the boot epoch is durable before the first datagram, the sequence
/// counts.
fn nonce(header: &[u8; HEADER_BYTES]) -> Nonce {
    let [_, _, nonce @ .., _] = *header;
    let mut nonce: [u8; 12] = nonce;
    nonce[3] = 0;
    Nonce::from(nonce)
}

fn cipher(key: &LinkKey) -> ChaCha20Poly1305 {
    ChaCha20Poly1305::new(key.bytes().into())
}

/// Writes a sealed datagram and returns its length, or `None` if there was no room. `receiver` is
/// the boot epoch in which the receiver is known; a reply has it in its envelope.
#[must_use]
#[inline(never)] // so that its size is seen to be the link's
pub fn seal<const W: usize>(
    header: &Header,
    key: &LinkKey,
    (call, receiver): (u32, u32),
    envelope: &Envelope<W>,
    message: &Message<'_, W>,
    room: &mut [u8],
) -> Option<usize> {
    let room_bytes = room.len().min(DATAGRAM_BYTES_MAX).checked_sub(TAG_BYTES)?;
    let mut w = Writer::new(room.get_mut(..room_bytes)?);
    header.emit(&mut w);
    w.slice(&call.to_le_bytes());
    if *envelope == Envelope::Request {
        w.slice(&receiver.to_le_bytes());
    }
    message.emit_content(envelope, &mut w);
    let end = w.finish()?;
    encrypt(key, room, end)
}

/// Encrypts what follows the header up to `end`, and puts the tag behind it.
fn encrypt(key: &LinkKey, room: &mut [u8], end: usize) -> Option<usize> {
    let (head, text) = room.get_mut(..end)?.split_first_chunk_mut()?;
    let text = InOutBuf::from(text);
    let tag = cipher(key).encrypt_inout_detached(&nonce(head), head, text).ok()?;
    room.get_mut(end..end + TAG_BYTES)?.copy_from_slice(&tag);
    Some(end + TAG_BYTES)
}

/// Seals any text, also one that no node would write.
#[cfg(test)]
pub(crate) fn seal_text(header: &Header, key: &LinkKey, text: &[u8]) -> std::vec::Vec<u8> {
    let mut room = [0; DATAGRAM_BYTES_MAX];
    let mut w = Writer::new(&mut room);
    header.emit(&mut w);
    w.slice(text);
    let end = w.finish().unwrap();
    let len = encrypt(key, &mut room, end).unwrap();
    room[..len].to_vec()
}

/// Opens a datagram in place. One whose seal is broken stays as it was.
pub fn open<'a>(
    header: &Header,
    key: &LinkKey,
    gaps: Gaps,
    datagram: &'a mut [u8],
) -> Result<Opened<'a>, Reject> {
    let parts = datagram.split_first_chunk_mut::<HEADER_BYTES>();
    let parts = parts.and_then(|(head, rest)| Some((head, rest.split_last_chunk_mut()?)));
    let Some((head, (text, tag))) = parts else {
        return Err(Reject::TooShort);
    };
    let (nonce, tag) = (nonce(head), Tag::from(*tag));
    let opened = cipher(key).decrypt_inout_detached(&nonce, head, InOutBuf::from(&mut *text), &tag);
    if opened.is_err() {
        if !gaps.tags() {
            return Err(Reject::Forged);
        }
        // A stream cipher: to encrypt is to decrypt.
        let _ = cipher(key).encrypt_inout_detached(&nonce, head, InOutBuf::from(&mut *text));
    }
    let text: &'a [u8] = text;
    let (call, mut body) = text.split_first_chunk().ok_or(Reject::Length)?;
    let mut receiver = 0;
    if header.destination != Destination::All {
        let (epoch, rest) = body.split_first_chunk().ok_or(Reject::Length)?;
        receiver = u32::from_le_bytes(*epoch);
        // A reply names the boot that it answers: that is a part of its content.
        if !header.kind.is_reply() {
            body = rest;
        }
    }
    let frame = Frame {
        kind: header.kind,
        network: header.network,
        source: header.source,
        destination: header.destination,
        boot: header.boot,
        call: u32::from_le_bytes(*call),
        body,
    };
    Ok(Opened { frame, sequence: header.sequence, receiver })
}

/// Opens a datagram for somebody who only looks on: a simulator, a lab, a test.
pub fn look_into<'a>(keys: &Keys, datagram: &'a mut [u8]) -> Result<Opened<'a>, Reject> {
    if datagram.first() == Some(&crate::wire::VERSION) {
        return Ok(Opened { frame: Frame::new_checked(datagram)?, sequence: 0, receiver: 0 });
    }
    let header = Header::new_checked(datagram)?;
    open(&header, keys.by_id(header.key).ok_or(Reject::Key)?, Gaps::default(), datagram)
}
