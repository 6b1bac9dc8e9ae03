//! The door: what of a flood is not even worth a place in the queue.
//!
//! A driver asks as early as it can, in its interrupt. Only the clear part is looked at, so what
//! passes may still be forged; the link finds that out. But noise costs a few instructions here, and
//! a queue full of noise would have no room for the flock.

use super::WORDS;
use crate::id::{NodeId, NodeSet};
use crate::wire::Kind;

/// What a frame is to this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guest {
    /// A datagram that may be a question, or an announcement, of a member.
    Request,
    /// One that may be a member's answer to this node.
    Answer,
    /// Something else that the IP stack may want: few of these at a time.
    Stranger,
    /// To another address.
    Passing,
    /// A datagram to the flock's port that no member of it can have sent.
    Noise,
}

/// How many were turned away, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnedAway {
    pub noise: u32,
    /// For want of room.
    pub crowded: u32,
}

#[derive(Debug, Clone)]
pub struct Door {
    pub address: [u8; 6],
    /// The multicast addresses of this node and of all.
    pub groups: [[u8; 6]; 2],
    pub port: u16,
    pub network: u16,
    pub me: NodeId,
    pub members: NodeSet<WORDS>,
}

impl Door {
    /// Looks at an Ethernet frame.
    #[must_use]
    pub fn look(&self, frame: &[u8]) -> Guest {
        match frame.first_chunk::<6>() {
            Some([0x01, 0x00, 0x5e, 0, 0, _] | [0xff, ..]) => {}
            Some(to) if *to == self.address || self.groups.contains(to) => {}
            _ => return Guest::Passing,
        }
        match payload(frame) {
            Some((port, payload)) if port == self.port => self.look_at_datagram(payload),
            _ => Guest::Stranger,
        }
    }

    fn look_at_datagram(&self, payload: &[u8]) -> Guest {
        let known = |id: u8| NodeId::new(id).is_some_and(|id| self.members.contains(id));
        match *payload {
            // Version 1 and 2 begin alike: version, kind, network, sender, addressee.
            [1 | 2, kind, n0, n1, from, to, _, _, _, _, _, _, _, _, ..]
                if [n0, n1] == self.network.to_le_bytes()
                    && known(from)
                    && (to == 0 || to == self.me.get()) =>
            {
                if kind < Kind::AytAns as u8 {
                    Guest::Request
                } else {
                    Guest::Answer
                }
            }
            _ => Guest::Noise,
        }
    }
}

/// The destination port and the payload of a UDP datagram in an Ethernet frame.
#[must_use]
pub fn payload(frame: &[u8]) -> Option<(u16, &[u8])> {
    let [0x08, 0x00] = frame.get(12..14)? else { return None };
    let packet = frame.get(14..)?;
    let header = usize::from(packet.first()? & 0x0f) * 4;
    if *packet.get(9)? != 17 {
        return None;
    }
    let [_, _, p0, p1, l0, l1, ..] = *packet.get(header..)? else { return None };
    let len = usize::from(u16::from_be_bytes([l0, l1]));
    Some((u16::from_be_bytes([p0, p1]), packet.get(header + 8..header + len)?))
}
