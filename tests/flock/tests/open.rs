//! What boards seal opens here, and what does not open stays as it is and is counted.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::process::Command;

use bellwether::id::NodeId;
use bellwether::key::Keys;
use bellwether::link::seal::seal;
use bellwether::link::{Header, look_into};
use bellwether::wire::{Destination, Envelope, Kind, Message};
use bellwether_flock::file::Flock;
use bellwether_flock::open::{Fate, Opener};
use bellwether_flock::pcap::{self, Frame};

fn sealed(keys: &Keys, network: u16, sequence: u32) -> Vec<u8> {
    let id = |n| NodeId::new(n).unwrap();
    let header = Header {
        kind: Kind::AytAns,
        network,
        source: id(3),
        destination: Destination::Node(id(1)),
        boot: 4_194_306,
        sequence,
        key: keys.send.id,
    };
    let envelope = Envelope::<1>::Reply { requester_boot: 8 };
    let message = Message::AytAns { yes: true };
    let mut room = [0; 200];
    let len = seal(&header, &keys.send.key, (5, 0), &envelope, &message, &mut room).unwrap();
    room[..len].to_vec()
}

fn frame(payload: &[u8], port: u16) -> Frame {
    let packet = etherparse::PacketBuilder::ethernet2([2; 6], [3; 6])
        .ipv4([10, 66, 1, 3], [10, 66, 1, 1], 64)
        .udp(port, port);
    let mut bytes = Vec::new();
    packet.write(&mut bytes, payload).unwrap();
    // As a switch delivers it: short frames are filled up.
    bytes.resize(bytes.len().max(60), 0);
    Frame { seconds: 9, microseconds: 8, bytes, cut: false }
}

#[test]
fn frames_are_opened_or_counted_by_reason() {
    let text = include_str!("../../lab/flock.toml");
    let flock = Flock::parse("flock.toml", text).unwrap();
    let keys = flock.link_keys().unwrap();
    let opener = Opener { network: flock.network, port: flock.port, keys: keys.clone() };
    let good = sealed(&keys, 1, 1);
    let mut forged = good.clone();
    forged[8] ^= 1;
    let mut unknown = good.clone();
    unknown[14] = 2;
    let cut = Frame { cut: true, ..frame(&good, 4711) };
    let not_ip = Frame { bytes: vec![0; 60], ..cut.clone() };
    let clear = [1; 30];
    let frames = [
        frame(&good, 4711),
        frame(&forged, 4711),
        frame(&unknown, 4711),
        frame(&sealed(&keys, 2, 1), 4711),
        frame(&good[..30], 4711),
        frame(&clear, 4711),
        frame(&[3; 40], 4711),
        frame(&good, 4712),
        cut,
        not_ip,
    ];
    let (opened, fates) = opener.frames(&frames);
    let expected = [
        (Fate::Opened, 1),
        (Fate::NotOurs, 2),
        (Fate::Cut, 1),
        (Fate::Clear, 1),
        (Fate::Version, 1),
        (Fate::TooShort, 1),
        (Fate::Network, 1),
        (Fate::UnknownKey, 1),
        (Fate::Tag, 1),
    ];
    assert_eq!(fates, BTreeMap::from(expected));
    assert_eq!(opened[1..], frames[1..]);
    // The second implementation agrees with the core's.
    let mut datagram = good.clone();
    let seen = look_into(&keys, &mut datagram).unwrap();
    let clear = opener.datagram(&good).unwrap();
    assert_eq!(clear[0], 0x82);
    assert_eq!(clear[1..15], good[1..15]);
    assert_eq!(clear[15..19], seen.frame.call.to_le_bytes());
    assert_eq!(&clear[19..], seen.frame.body);
    // Nothing is left of the padding, and the length is right.
    assert_eq!(opened[0].bytes.len(), 14 + 20 + 8 + clear.len());
    assert_eq!(opened[0].bytes[42..], clear);

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("run.pcap"), pcap::write(&frames)).unwrap();
    std::fs::write(path("flock.toml"), text).unwrap();
    let run = |capture: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bellwether-flock"));
        let (flock, out) = (path("flock.toml"), path("clear.pcap"));
        command.args(["open", &path(capture), "--flock", &flock, "--out", &out]).output().unwrap()
    };
    let output = run("run.pcap");
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("10 frames") && said.contains("1 opened"), "{said}");
    assert!(said.contains("1 not authentic") && said.contains("1 of another network"), "{said}");
    let written = pcap::read(&std::fs::read(path("clear.pcap")).unwrap()).unwrap();
    assert_eq!(written[0], opened[0]);
    assert_eq!(run("flock.toml").status.code(), Some(2));
}
