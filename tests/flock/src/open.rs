//! Opens the sealed datagrams of a capture, so that other tools can look into them.
//!
//! ```text
//!  sealed    2, rest of the clear header (15 bytes in all) | sealed text | tag (16)
//!  opened 0x82, rest of the clear header                   | text
//! ```
//! This does not use the firmware's own link: it is a second implementation of the format, and
//! whatever boards seal must open here.

use std::collections::BTreeMap;
use std::fmt;

use bellwether::key::Keys;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{ChaCha20Poly1305, KeyInit};
use etherparse::{Ethernet2Header, NetSlice, SlicedPacket, TransportSlice, UdpHeader};

use crate::pcap::Frame;

/// Bytes in the clear before the sealed text.
pub const HEADER_BYTES: usize = 15;
/// Bytes of the tag behind it.
pub const TAG_BYTES: usize = 16;
/// The version of a sealed datagram.
pub const SEALED: u8 = 2;
/// What stands in the place of the version once a datagram is opened.
pub const OPENED: u8 = 0x82;

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    Opened,
    /// Not UDP over IPv4 to the port of the flock.
    NotOurs,
    /// The capture holds only a part of the frame.
    Cut,
    /// Version 1, which is in the clear already.
    Clear,
    /// Another version.
    Version,
    /// Shorter than header and tag.
    TooShort,
    /// Another network.
    Network,
    /// A key that the flock file does not have.
    UnknownKey,
    /// Forged, damaged, or sealed with another key of that number.
    Tag,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Opened => "opened",
            Self::NotOurs => "not of a flock on this port",
            Self::Cut => "not captured whole",
            Self::Clear => "version 1, in the clear",
            Self::Version => "of another version",
            Self::TooShort => "too short",
            Self::Network => "of another network",
            Self::UnknownKey => "sealed with an unknown key",
            Self::Tag => "not authentic",
        })
    }
}

/// What opens the datagrams of a flock.
#[derive(Debug)]
pub struct Opener {
    pub network: u16,
    pub port: u16,
    pub keys: Keys,
}

fn nonce(header: &[u8; HEADER_BYTES]) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..3].copy_from_slice(&header[2..5]);
    nonce[4..].copy_from_slice(&header[6..14]);
    nonce
}

impl Opener {
    /// Opens one datagram.
    pub fn datagram(&self, datagram: &[u8]) -> Result<Vec<u8>, Fate> {
        match datagram.first() {
            Some(&SEALED) => {}
            Some(1) => return Err(Fate::Clear),
            Some(_) => return Err(Fate::Version),
            None => return Err(Fate::TooShort),
        }
        let (header, sealed) =
            datagram.split_first_chunk::<HEADER_BYTES>().ok_or(Fate::TooShort)?;
        if sealed.len() < TAG_BYTES {
            return Err(Fate::TooShort);
        }
        if u16::from_le_bytes([header[2], header[3]]) != self.network {
            return Err(Fate::Network);
        }
        let key = self.keys.by_id(header[14]).ok_or(Fate::UnknownKey)?;
        let cipher = ChaCha20Poly1305::new(&(*key.bytes()).into());
        let payload = Payload { msg: sealed, aad: header };
        let text = cipher.decrypt(&nonce(header).into(), payload).map_err(|_| Fate::Tag)?;
        Ok([&[OPENED], &header[1..], &text].concat())
    }

    /// Opens the datagram in a frame, and gives the frame with lengths and checksums put right.
    pub fn frame(&self, frame: &Frame) -> Result<Frame, Fate> {
        let packet = SlicedPacket::from_ethernet(&frame.bytes).map_err(|_| Fate::NotOurs)?;
        let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Udp(udp)), true) =
            (&packet.net, &packet.transport, packet.link_exts.is_empty())
        else {
            return Err(Fate::NotOurs);
        };
        if udp.destination_port() != self.port && udp.source_port() != self.port {
            return Err(Fate::NotOurs);
        }
        if frame.cut {
            return Err(Fate::Cut);
        }
        let text = self.datagram(udp.payload())?;
        let mut ip_header = ip.header().to_header();
        let udp_bytes = 8 + text.len();
        ip_header.set_payload_len(udp_bytes).map_err(|_| Fate::NotOurs)?;
        ip_header.header_checksum = ip_header.calc_header_checksum();
        let udp_header = UdpHeader::with_ipv4_checksum(
            udp.source_port(),
            udp.destination_port(),
            &ip_header,
            &text,
        )
        .map_err(|_| Fate::NotOurs)?;
        let ethernet = frame.bytes.get(..Ethernet2Header::LEN).unwrap_or_default();
        let mut bytes = ethernet.to_vec();
        bytes.extend_from_slice(&ip_header.to_bytes());
        bytes.extend_from_slice(&udp_header.to_bytes());
        bytes.extend_from_slice(&text);
        Ok(Frame { bytes, ..*frame })
    }

    /// Opens what can be opened; all other frames stay as they are.
    #[must_use]
    pub fn frames(&self, frames: &[Frame]) -> (Vec<Frame>, BTreeMap<Fate, u64>) {
        let mut fates = BTreeMap::new();
        let mut count = |fate| *fates.entry(fate).or_insert(0) += 1;
        let opened = frames
            .iter()
            .map(|frame| match self.frame(frame) {
                Ok(opened) => {
                    count(Fate::Opened);
                    opened
                }
                Err(fate) => {
                    count(fate);
                    frame.clone()
                }
            })
            .collect();
        (opened, fates)
    }
}
