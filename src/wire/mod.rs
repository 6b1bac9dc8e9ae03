//! What datagrams say: first a checked view, then a meaning.
//!
//! On the wire a datagram is sealed ([`crate::link`]); opened, it is a [`Frame`], and
//! [`Message::parse`] judges its content. Every rejection has a reason, and the node counts them.
//!
//! Version 1 of the protocol was in the clear: the same content behind another header, which
//! [`Frame::new_checked`] reads. Only a flock that is being moved to the sealed version takes it.
//!
//! ```text
//! version 1
//!  0        1        2                 4        5        6                  10                14
//!  +--------+--------+-----------------+--------+--------+------------------+------------------+----
//!  | version| kind   | network (LE)    | source | dest.  | boot epoch (LE)  | call number (LE) | body
//!  +--------+--------+-----------------+--------+--------+------------------+------------------+----
//!  destination 0 = all: the body starts with the set of nodes that are awaited (length, bytes)
//!  a reply:             the body starts with the boot epoch of the requester that it answers
//! ```
//! All integers are little-endian. A set is a length byte and that many bytes, lowest ids first,
//! the last one not zero. A group is the coordinator's id and a 64-bit number.

mod bytes;
mod message;
#[cfg(test)]
mod tests;

pub(crate) use bytes::{Reader, Writer};
pub(crate) use message::{EchoList, InviteeList};
pub use message::{Echoes, Envelope, Incumbent, Invitees, Lap, Message, Token};

use crate::id::NodeId;

/// The version of this protocol that was in the clear.
pub const VERSION: u8 = 1;
/// No datagram is longer, so that IP never fragments one.
pub const DATAGRAM_BYTES_MAX: usize = 1472;
/// The longest definition of a task that fits into a `Ready`.
pub const DEFINITION_BYTES_MAX: usize = 512;

pub(crate) const HEADER_BYTES: usize = 14;

// The longest Ready: header, awaited set, group, members, length, definition.
const _: () = assert!(HEADER_BYTES + 33 + 9 + 33 + 2 + DEFINITION_BYTES_MAX <= DATAGRAM_BYTES_MAX);

// The longest token of the ring: header, run, round, list, suspects, length, definition; and 32 bytes
// are left for a seal.
const _: () =
    assert!(HEADER_BYTES + 9 + 4 + 33 + 33 + 2 + DEFINITION_BYTES_MAX + 32 <= DATAGRAM_BYTES_MAX);

/// What a datagram is: the paper's message names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    AreYouThere = 1,
    AreYouNormal = 2,
    Halt = 3,
    NewCoordinator = 4,
    Ready = 5,
    AreYouCoordinator = 6,
    Invitation = 7,
    Accept = 8,
    Beat = 9,
    Hello = 10,
    Clash = 11,
    Elect = 12,
    Coord = 13,
    RingReady = 14,
    HaveYouHeard = 20,
    Leaving = 21,
    AytAns = 65,
    AynAns = 66,
    HaltAck = 67,
    NcAck = 68,
    ReadyAck = 69,
    AycAns = 70,
    AcceptAns = 71,
    ReadyAns = 72,
    HopAck = 73,
    Heard = 80,
}

impl Kind {
    pub const ALL: [Self; 26] = [
        Self::AreYouThere,
        Self::AreYouNormal,
        Self::Halt,
        Self::NewCoordinator,
        Self::Ready,
        Self::AreYouCoordinator,
        Self::Invitation,
        Self::Accept,
        Self::Beat,
        Self::Hello,
        Self::Clash,
        Self::Elect,
        Self::Coord,
        Self::RingReady,
        Self::HaveYouHeard,
        Self::Leaving,
        Self::AytAns,
        Self::AynAns,
        Self::HaltAck,
        Self::NcAck,
        Self::ReadyAck,
        Self::AycAns,
        Self::AcceptAns,
        Self::ReadyAns,
        Self::HopAck,
        Self::Heard,
    ];

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// A reply answers a numbered call and is void without it.
    #[must_use]
    pub const fn is_reply(self) -> bool {
        self as u8 >= Self::AytAns as u8
    }

    /// Whether its content begins with a group.
    const fn has_group(self) -> bool {
        matches!(self as u8, 2..=9 | 12..=14 | 20)
    }

    /// Whether a yes or no comes first, or behind the group.
    const fn has_flag(self) -> bool {
        matches!(self as u8, 3 | 6 | 9 | 65 | 66 | 68..=72)
    }

    /// Whether the version in the clear had it already.
    pub(crate) const fn is_of_version_1(self) -> bool {
        matches!(self as u8, 1..=9 | 65..=72)
    }

    /// The name in traces and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AreYouThere => "AreYouThere",
            Self::AreYouNormal => "AreYouNormal",
            Self::Halt => "Halt",
            Self::NewCoordinator => "NewCoordinator",
            Self::Ready => "Ready",
            Self::AreYouCoordinator => "AreYouCoordinator",
            Self::Invitation => "Invitation",
            Self::Accept => "Accept",
            Self::Beat => "Beat",
            Self::Hello => "Hello",
            Self::Clash => "Clash",
            Self::Elect => "Elect",
            Self::Coord => "Coord",
            Self::RingReady => "RingReady",
            Self::HaveYouHeard => "HaveYouHeard",
            Self::Leaving => "Leaving",
            Self::AytAns => "AytAns",
            Self::AynAns => "AynAns",
            Self::HaltAck => "HaltAck",
            Self::NcAck => "NcAck",
            Self::ReadyAck => "ReadyAck",
            Self::AycAns => "AycAns",
            Self::AcceptAns => "AcceptAns",
            Self::ReadyAns => "ReadyAns",
            Self::HopAck => "HopAck",
            Self::Heard => "Heard",
        }
    }
}

/// Where a datagram goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Destination {
    Node(NodeId),
    All,
}

/// Why a datagram was dropped. None of these changes the state of the node, but for `HaltFromBelow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reject {
    /// Shorter than a header.
    TooShort,
    /// Longer than any datagram of ours.
    TooLong,
    /// Another version of the protocol.
    Version,
    /// Another network on the same wire.
    Network,
    /// A kind that does not exist.
    Kind,
    /// The source is not in the member table.
    UnknownSender,
    /// The source is this node itself: a reflection, or a second board with this id.
    OwnId,
    /// Addressed to another node.
    NotForMe,
    /// The body ends early or late.
    Length,
    /// A field has a value that it cannot have.
    Field,
    /// A set or id beyond this build's capacity.
    Capacity,
    /// From an earlier boot of its sender.
    OldBoot,
    /// Sealed with a key that this node does not have.
    Key,
    /// Its number is used up: heard before, or overtaken by 64 later ones, or by the proof of its boot.
    Replayed,
    /// The seal is broken: not from a holder of the key, or not as it was sent.
    Forged,
    /// Authentic, but its sender has not shown yet that it speaks to this boot of the node.
    Unproven,
    /// One request more than any node in its right mind sends.
    Budget,
    /// A message of another election algorithm.
    WrongAlgorithm,
    /// A reply to no outstanding call, or from a node that is no longer awaited.
    NotAwaited,
    /// The node is down (its boot epoch is not durable yet) or mute.
    Down,
    /// A Halt from a node of lower priority: an alarm, because it believes that this node is dead. A
    /// coordinator that is Normal answers it with an election.
    HaltFromBelow,
    /// Its sender reboots too often to be let in.
    HeldOff,
}

impl Reject {
    pub const COUNT: usize = 22;
}

/// The first ten bytes of a datagram, which all versions share: version, kind, network, source,
/// destination, boot epoch.
pub(crate) const HEAD_BYTES: usize = 10;

/// What they say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub kind: Kind,
    pub network: u16,
    pub source: NodeId,
    pub destination: Destination,
    pub boot: u32,
}

impl Head {
    /// Judges kind and ids; the version is the caller's to judge.
    pub fn parse(bytes: [u8; HEAD_BYTES]) -> Result<Self, Reject> {
        let [_, kind, n0, n1, source, destination, b0, b1, b2, b3] = bytes;
        let kind = Kind::from_byte(kind).ok_or(Reject::Kind)?;
        let destination = NodeId::new(destination).map_or(Destination::All, Destination::Node);
        if kind.is_reply() && destination == Destination::All {
            return Err(Reject::Field);
        }
        Ok(Self {
            kind,
            network: u16::from_le_bytes([n0, n1]),
            source: NodeId::new(source).ok_or(Reject::UnknownSender)?,
            destination,
            boot: u32::from_le_bytes([b0, b1, b2, b3]),
        })
    }

    pub fn emit(&self, version: u8, out: &mut Writer<'_>) {
        out.byte(version);
        out.byte(self.kind as u8);
        out.slice(&self.network.to_le_bytes());
        out.byte(self.source.get());
        out.byte(match self.destination {
            Destination::Node(id) => id.get(),
            Destination::All => 0,
        });
        out.slice(&self.boot.to_le_bytes());
    }
}

/// A datagram whose header has been checked: reading it cannot fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    pub kind: Kind,
    pub network: u16,
    pub source: NodeId,
    pub destination: Destination,
    /// The boot epoch of the source.
    pub boot: u32,
    /// A request: the number of its call. A reply: the number that it answers.
    pub call: u32,
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    pub fn new_checked(datagram: &'a [u8]) -> Result<Self, Reject> {
        if datagram.len() > DATAGRAM_BYTES_MAX {
            return Err(Reject::TooLong);
        }
        let Some((header, body)) = datagram.split_first_chunk::<HEADER_BYTES>() else {
            return Err(Reject::TooShort);
        };
        let [head @ .., c0, c1, c2, c3] = *header;
        if head[0] != VERSION {
            return Err(Reject::Version);
        }
        let Head { kind, network, source, destination, boot } = Head::parse(head)?;
        let call = u32::from_le_bytes([c0, c1, c2, c3]);
        Ok(Self { kind, network, source, destination, boot, call, body })
    }

    /// Writes the header; the body follows through [`Message::emit`].
    fn emit_header(&self, out: &mut bytes::Writer<'_>) {
        let Self { kind, network, source, destination, boot, .. } = *self;
        Head { kind, network, source, destination, boot }.emit(VERSION, out);
        out.slice(&self.call.to_le_bytes());
    }
}
