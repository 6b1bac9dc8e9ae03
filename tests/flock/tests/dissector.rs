//! The dissector shows what the core wrote: every kind of message, in the clear, sealed and opened.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use bellwether::id::{NodeId, NodeSet};
use bellwether::key::{Keys, LinkKey};
use bellwether::link::Header;
use bellwether::link::seal::seal;
use bellwether::state::Status;
use bellwether::wire::{
    DATAGRAM_BYTES_MAX, Destination, Envelope, Frame as Head, Kind, Message, VERSION,
};
use bellwether_flock::install;
use bellwether_flock::open::{Fate, Opener};
use bellwether_flock::pcap::{self, Frame};

const PORT: u16 = 4711;
const NETWORK: u16 = 0x1234;
const FIELDS: [&str; 42] = [
    "version",
    "kind",
    "network",
    "source",
    "destination",
    "boot",
    "call",
    "sequence",
    "key_id",
    "sealed_bytes",
    "tag",
    "requester_boot",
    "receiver_boot",
    "awaited",
    "group",
    "status",
    "up",
    "definition",
    "definition_bytes",
    "yes",
    "normal",
    "binding",
    "accepted",
    "ok",
    "roll_call",
    "invitations",
    "leave",
    "invited",
    "hello_flags",
    "uptime_ms",
    "instance",
    "silent",
    "echoes",
    "echo",
    "run",
    "round",
    "list",
    "suspects",
    "incumbent",
    "members",
    "about",
    "heard",
];

fn id(n: u8) -> NodeId {
    NodeId::new(n).unwrap()
}

fn set(ids: &[u8]) -> NodeSet<1> {
    ids.iter().map(|n| id(*n)).collect()
}

fn keys() -> Keys {
    Keys::one(7, LinkKey::new([0x42; 32]))
}

fn opener() -> Opener {
    Opener { network: NETWORK, port: PORT, keys: keys() }
}

/// A message with everything around it.
struct Letter {
    kind: Kind,
    destination: Destination,
    /// What follows call number and envelope.
    body: Vec<u8>,
    /// What the dissector shall show of the body.
    shown: Vec<(&'static str, String)>,
}

/// Every kind once, with the bytes of its body written by hand from the layouts in `wire`.
fn letters() -> Vec<Letter> {
    let group = [&[9][..], &(4_u64 << 32 | 3).to_le_bytes()].concat();
    let shown_group = ("group", "9.4.3".to_owned());
    let to_two = Destination::Node(id(2));
    let letter = |kind, destination, parts: &[&[u8]], shown: &[(&'static str, &str)]| Letter {
        kind,
        destination,
        body: parts.concat(),
        shown: shown.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
    };
    let with_group = |kind, destination, rest: &[&[u8]], shown: &[(&'static str, &str)]| {
        let parts = [&[group.as_slice()], rest].concat();
        let mut letter = letter(kind, destination, &parts, shown);
        letter.shown.push(shown_group.clone());
        letter
    };
    let run = |kind, rest: &[u8], shown: &[(&'static str, &str)]| {
        let token =
            [(5_u32).to_le_bytes().as_slice(), &[2, 0b11, 0x80], &[1, 4], &[16, 3], rest].concat();
        let all =
            [&[("run", "9.4.3"), ("round", "5"), ("list", "1 2 16"), ("suspects", "3")], shown]
                .concat();
        let all = [&all[..], &[("incumbent", "16"), ("members", "3")]].concat();
        letter(kind, to_two, &[&group, &token], &all)
    };
    let ok = |kind, name| letter(kind, to_two, &[&[1]], &[(name, "1")]);
    let definition = [4, 0, b'c', b'e', b'l', b'l'];
    let shown_definition = [("definition", "63656c6c"), ("definition_bytes", "4")];
    let up = [2, 0b101, 1];
    vec![
        letter(
            Kind::AreYouThere,
            Destination::All,
            &[&[0; 9], &[Status::Election as u8]],
            &[("group", "none"), ("status", "1")],
        ),
        with_group(Kind::AreYouNormal, Destination::All, &[], &[]),
        with_group(Kind::Halt, Destination::All, &[&[1]], &[("binding", "1")]),
        with_group(Kind::NewCoordinator, to_two, &[], &[]),
        with_group(
            Kind::Ready,
            Destination::All,
            &[&up, &definition],
            &[&[("up", "1 3 9")], &shown_definition[..]].concat(),
        ),
        with_group(Kind::AreYouCoordinator, Destination::All, &[&[0]], &[("roll_call", "0")]),
        with_group(
            Kind::Invitation,
            Destination::All,
            &[&[2], &[5], &(6_u64 << 32 | 7).to_le_bytes(), &[1, 0b11], &group, &[0]],
            &[("invitations", "2"), ("leave", "5.6.7,9.4.3"), ("invited", "1 2,")],
        ),
        with_group(Kind::Accept, to_two, &[], &[]),
        with_group(Kind::Beat, Destination::All, &[&[1]], &[("normal", "1")]),
        letter(
            Kind::Hello,
            Destination::All,
            &[
                &[3],
                &99_u32.to_le_bytes(),
                &[0xEF, 0xBE, 0xAD, 0xDE],
                &[2],
                &[1, 6, 0, 0, 0],
                &[4, 8, 0, 0, 0],
            ],
            &[
                ("hello_flags", "0x03"),
                ("uptime_ms", "99"),
                ("instance", "0xdeadbeef"),
                ("echoes", "2"),
                ("echo", "1.6,4.8"),
            ],
        ),
        letter(
            Kind::Clash,
            Destination::All,
            &[&[1, 0, 0, 0]],
            &[("instance", "0x00000001"), ("silent", "another board with its id")],
        ),
        letter(
            Kind::Clash,
            Destination::All,
            &[&[0; 4]],
            &[("instance", "0x00000000"), ("silent", "the sender")],
        ),
        run(Kind::Elect, &[], &[]),
        run(Kind::Coord, &[], &[]),
        run(Kind::RingReady, &definition, &shown_definition),
        with_group(Kind::HaveYouHeard, Destination::All, &[&up], &[("about", "1 3 9")]),
        with_group(Kind::Leaving, Destination::All, &[], &[]),
        ok(Kind::AytAns, "yes"),
        ok(Kind::AynAns, "normal"),
        letter(Kind::HaltAck, to_two, &[], &[]),
        ok(Kind::NcAck, "accepted"),
        ok(Kind::ReadyAck, "accepted"),
        with_group(Kind::AycAns, to_two, &[], &[]).reordered(&up),
        ok(Kind::AcceptAns, "ok"),
        ok(Kind::ReadyAns, "ok"),
        letter(Kind::HopAck, to_two, &[], &[]),
        letter(Kind::Heard, to_two, &[&up], &[("heard", "1 3 9")]),
    ]
}

impl Letter {
    /// AycAns has its flag before the group.
    fn reordered(mut self, up: &[u8]) -> Self {
        self.body = [&[1], self.body.as_slice(), up].concat();
        self.shown.extend([("yes", "1".into()), ("up", "1 3 9".into())]);
        self
    }

    fn envelope(&self) -> Envelope<1> {
        match self.destination {
            _ if self.kind.is_reply() => Envelope::Reply { requester_boot: 12 },
            Destination::All => Envelope::Broadcast { awaited: set(&[2, 64]) },
            Destination::Node(_) => Envelope::Request,
        }
    }

    /// The datagram of version 1 that the core writes. Its body is parsed first, so that what the
    /// dissector is tried with is a message of the core.
    fn clear(&self, call: u32) -> Vec<u8> {
        let before: &[u8] = match self.envelope() {
            Envelope::Reply { .. } => &[12, 0, 0, 0],
            Envelope::Broadcast { .. } => &[8, 2, 0, 0, 0, 0, 0, 0, 0x80],
            Envelope::Request => &[],
        };
        let body = [before, &self.body].concat();
        let head = self.head(call, &body);
        let (envelope, message) = Message::<1>::parse(&head).unwrap();
        assert_eq!((envelope, message.kind()), (self.envelope(), self.kind));
        let mut room = [0; DATAGRAM_BYTES_MAX];
        let len = message.emit(&head, &envelope, &mut room).unwrap();
        room[..len].to_vec()
    }

    fn head<'b>(&self, call: u32, body: &'b [u8]) -> Head<'b> {
        let (kind, destination) = (self.kind, self.destination);
        Head { kind, network: NETWORK, source: id(9), destination, boot: 1000, call, body }
    }

    /// The datagram that the core's link seals.
    fn sealed(&self, call: u32) -> Vec<u8> {
        let clear = self.clear(call);
        let head = self.head(call, &clear[14..]);
        let (envelope, message) = Message::<1>::parse(&head).unwrap();
        let header = Header {
            kind: self.kind,
            network: NETWORK,
            source: id(9),
            destination: self.destination,
            boot: 1000,
            sequence: call + 100,
            key: 7,
        };
        let key = keys().send.key;
        let mut room = [0; DATAGRAM_BYTES_MAX];
        let len = seal(&header, &key, (call, 77), &envelope, &message, &mut room).unwrap();
        room[..len].to_vec()
    }

    /// What the dissector shall show of all but the body.
    fn around(&self, version: u8, call: u32) -> BTreeMap<&'static str, String> {
        let mut shown = BTreeMap::from([
            ("version", format!("0x{version:02x}")),
            ("kind", (self.kind as u8).to_string()),
            ("network", NETWORK.to_string()),
            ("source", "9".into()),
            ("boot", "1000".into()),
        ]);
        let to = match self.destination {
            Destination::Node(id) => id.get(),
            Destination::All => 0,
        };
        shown.insert("destination", to.to_string());
        if version != VERSION {
            shown.insert("sequence", (call + 100).to_string());
            shown.insert("key_id", "7".into());
        }
        if version != 2 {
            shown.insert("call", call.to_string());
            shown.extend(self.shown.iter().cloned());
            match self.envelope() {
                Envelope::Reply { .. } => drop(shown.insert("requester_boot", "12".into())),
                Envelope::Broadcast { .. } => drop(shown.insert("awaited", "2 64".into())),
                Envelope::Request if version != VERSION => {
                    shown.insert("receiver_boot", "77".into());
                }
                Envelope::Request => {}
            }
        }
        shown
    }
}

/// A frame from node 9 with this UDP payload.
fn frame(payload: &[u8], port: u16) -> Frame {
    let packet = etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 9], [1, 0, 94, 66, 0, 0])
        .ipv4([10, 66, 1, 9], [239, 66, 0, 1], 1)
        .udp(port, port);
    let mut bytes = Vec::new();
    packet.write(&mut bytes, payload).unwrap();
    Frame { seconds: 1, microseconds: 2, bytes, cut: false }
}

fn tshark(frames: &[Frame], arguments: &[&str]) -> String {
    install::find("tshark").unwrap_or_else(|what| panic!("{what}"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("frames.pcap");
    std::fs::write(&file, pcap::write(frames)).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dissector/bellwether.lua");
    let output = Command::new("tshark")
        .args(["-X", &format!("lua_script:{}", script.display()), "-n", "-r"])
        .arg(&file)
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{errors}");
    assert!(!errors.to_lowercase().contains("lua"), "{errors}");
    assert!(!text.contains("Lua Error"), "{text}");
    text
}

/// The fields of every frame that have a value, and what is said against it.
fn dissected(frames: &[Frame], more: &[&str]) -> Vec<BTreeMap<&'static str, String>> {
    let fields: Vec<String> = FIELDS.iter().map(|name| format!("bellwether.{name}")).collect();
    let mut arguments = vec!["-T", "fields", "-E", "separator=|", "-E", "occurrence=a"];
    for name in &fields {
        arguments.extend(["-e", name]);
    }
    arguments.extend(["-e", "_ws.expert.message", "-e", "udp.checksum.status"]);
    arguments.extend(["-o", "udp.check_checksum:TRUE"]);
    arguments.extend(more);
    let text = tshark(frames, &arguments);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), frames.len(), "{text}");
    let names = FIELDS.iter().copied().chain(["expert", "checksum"]);
    let values = |line: &str| {
        let values = line.split('|').map(str::to_owned);
        names.clone().zip(values).filter(|(_, value)| !value.is_empty()).collect()
    };
    lines.into_iter().map(values).collect()
}

fn compare(letters: &[Letter], frames: &[Frame], version: u8) {
    for ((call, letter), mut found) in (0..).zip(letters).zip(dissected(frames, &[])) {
        assert_eq!(found.remove("expert"), None, "{:?}", letter.kind);
        assert_eq!(found.remove("checksum").as_deref(), Some("1"), "{:?}", letter.kind);
        let mut expected = letter.around(version, call);
        if version == 2 {
            let tag: String = found.remove("tag").unwrap();
            let datagram = letter.sealed(call);
            let hex = datagram[datagram.len() - 16..].iter();
            assert_eq!(tag, hex.map(|byte| format!("{byte:02x}")).collect::<String>());
            expected.insert("sealed_bytes", (datagram.len() - 31).to_string());
        }
        // An empty set is shown as an empty text, which is no value here.
        expected.retain(|_, value| !value.is_empty());
        assert_eq!(found, expected, "{:?}", letter.kind);
    }
}

#[test]
fn every_kind_is_shown_in_the_clear_sealed_and_opened() {
    let letters = letters();
    let mut kinds: Vec<Kind> = letters.iter().map(|letter| letter.kind).collect();
    kinds.dedup();
    assert_eq!(kinds, Kind::ALL, "every kind has its letter");
    let frames = |datagram: &dyn Fn(&Letter, u32) -> Vec<u8>| -> Vec<Frame> {
        (0..).zip(&letters).map(|(call, letter)| frame(&datagram(letter, call), PORT)).collect()
    };
    compare(&letters, &frames(&|letter, call| letter.clear(call)), VERSION);
    let sealed = frames(&|letter, call| letter.sealed(call));
    compare(&letters, &sealed, 2);
    let (opened, fates) = opener().frames(&sealed);
    assert_eq!(fates, BTreeMap::from([(Fate::Opened, letters.len() as u64)]));
    compare(&letters, &opened, 0x82);
}

#[test]
fn the_names_of_kinds_are_those_of_the_core() {
    let letters = letters();
    let frames: Vec<Frame> = letters.iter().map(|letter| frame(&letter.clear(1), PORT)).collect();
    let text = tshark(&frames, &["-T", "fields", "-e", "_ws.col.Info"]);
    for (line, letter) in text.lines().zip(&letters) {
        assert!(line.starts_with(&format!("{} 9 to ", letter.kind.name())), "{line}");
    }
}

#[test]
fn the_port_is_a_preference() {
    let frames = [frame(&letters()[0].clear(1), 5000)];
    assert_eq!(dissected(&frames, &[])[0].get("kind"), None);
    let found = dissected(&frames, &["-o", "bellwether.port:5000"]);
    assert_eq!(found[0].get("kind").map(String::as_str), Some("1"));
}

#[test]
fn malformed_datagrams_are_marked_and_never_an_error_of_the_script() {
    let mut frames = Vec::new();
    let letters = letters();
    // Cut everywhere: no datagram is whole before its end.
    for letter in &letters {
        let clear = letter.clear(1);
        frames.extend((1..clear.len()).map(|short| frame(&clear[..short], PORT)));
        let opened = opener().datagram(&letter.sealed(1)).unwrap();
        frames.extend((1..opened.len()).map(|short| frame(&opened[..short], PORT)));
        let sealed = letter.sealed(1);
        frames.extend((1..31).map(|short| frame(&sealed[..short], PORT)));
        // One byte too many. Hello and Clash may grow.
        if !matches!(letter.kind, Kind::Hello | Kind::Clash) {
            frames.push(frame(&[&clear[..], &[0]].concat(), PORT));
        }
    }
    for (number, found) in dissected(&frames, &[]).iter().enumerate() {
        assert!(found.contains_key("expert"), "{:02x?}", frames[number].bytes.get(42..));
    }
    // Bytes at random, behind a good header or none.
    let mut state = 1_u32;
    let mut random = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let mut noise = Vec::new();
    for round in 0..2_000 {
        let mut datagram = letters[round % letters.len()].clear(1);
        if round % 3 == 0 {
            datagram = opener().datagram(&letters[round % letters.len()].sealed(1)).unwrap();
        }
        for _ in 0..=round % 4 {
            let at = usize::from(random()) % datagram.len();
            datagram[at] = random();
        }
        noise.push(frame(&datagram, PORT));
    }
    assert_eq!(dissected(&noise, &[]).len(), noise.len());
}
