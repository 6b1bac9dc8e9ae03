//! What a board is told by the host tool: who it is, where it is, and how its flock works.
//!
//! One image serves all nodes; this record, kept as chunk 0 of the configuration cells, makes the
//! difference. It is not behind the `shell` feature, because the host writes what the board reads.
//! It holds no secret, so that tools can show it: the keys have a cell of their own
//! ([`Store::keys`](crate::cells::Store::keys)).
//!
//! ```text
//! format 3, little endian
//!  0    1           2            3       4         6      8              12            60
//!  +----+-----------+------------+-------+---------+------+--------------+-------------+----------
//!  | id | algorithm | durability | flags | network | port | IPv4 address | 12 spans, us|
//!  +----+-----------+------------+-------+---------+------+--------------+-------------+----------
//!  60         61                 62        64           68        69
//!  +----------+------------------+---------+------------+---------+
//!  | patience | 3                | tick us | drift ppm  | members |
//!  +----------+------------------+---------+------------+---------+
//!  69         70        71                    75            79          87
//!  +----------+---------+---------------------+-------------+-----------+--------------------------+
//!  | detector | preempt | longest silence, us | hold-off us | observers | (id, preference) of each |
//!  +----------+---------+---------------------+-------------+-----------+--------------------------+
//!  spans: Tm Tp Ts T check quiet beat stagger repeat accept reorganize answer-spacing
//!  flags: 1 the board has keys, 2 datagrams of version 1 are accepted beside sealed ones,
//!         4 the bytes 69 to 86 are there
//!  detector: 1 reliable, 2 heartbeat, 3 adaptive, 4 indirect
//!  byte 61: once the number of silent Checks after which a member was gone, which was always 3
//! ```
//! Format 2 is the same without detector, policies (bytes 69 to 86) and their flag: all of them are
//! what they are by default. Format 1 is format 2 with all flags 0: a board without keys.

use crate::config::{Algorithm, Config, ConfigError, Detector, Durability, Timing};
use crate::id::{NodeId, NodeSet};
use crate::time::Duration;

/// The format of the record; the version of its cell.
pub const FORMAT: u8 = 3;
/// The most bytes of a record: a flock of 64.
pub const BYTES_MAX: usize = HEAD_BYTES + POLICY_BYTES + 2 * 64;
const HEAD_BYTES: usize = 69;
const POLICY_BYTES: usize = 10 + OBSERVER_BYTES;
const OBSERVER_BYTES: usize = 8;
const SPANS: usize = 12;
const KEYED: u8 = 1;
const ACCEPT_VERSION_1: u8 = 2;
const WITH_POLICIES: u8 = 4;
/// For firmware that still goes by it.
const SILENT_CHECKS: u8 = 3;

/// The configuration of a node and its place on the network.
#[derive(Debug, Clone)]
pub struct Provision<const W: usize> {
    pub config: Config<W>,
    /// The node's own IPv4 address.
    pub address: [u8; 4],
    /// The UDP port of the flock.
    pub port: u16,
    /// Keys were provisioned: the node is mute without them, and never falls back to clear
    /// datagrams.
    pub keyed: bool,
}

/// Why a record cannot be used. The node stays mute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadProvision {
    /// The record ends early or late.
    Length,
    /// A number that names no algorithm, durability, detector or flag, or is not the only one allowed.
    Field,
    /// The configuration makes no sense.
    Config(ConfigError),
}

impl<const W: usize> Provision<W> {
    /// Writes the record; `None` if a span does not fit into 32 bits or `room` is too short.
    #[must_use]
    pub fn encode(&self, room: &mut [u8]) -> Option<usize> {
        let config = &self.config;
        let mut used = 0;
        let mut put = |bytes: &[u8]| -> Option<()> {
            room.get_mut(used..used + bytes.len())?.copy_from_slice(bytes);
            used += bytes.len();
            Some(())
        };
        let algorithm = match config.algorithm {
            Algorithm::Bully => 1,
            Algorithm::Invitation => 2,
            Algorithm::Ring => 3,
        };
        let durability = match config.durability {
            Durability::Group => 1,
            Durability::Strict => 2,
        };
        let keyed = if self.keyed { KEYED } else { 0 };
        let accept = if config.accept_version_1 { ACCEPT_VERSION_1 } else { 0 };
        put(&[config.id.get(), algorithm, durability, keyed | accept | WITH_POLICIES])?;
        put(&config.network.to_le_bytes())?;
        put(&self.port.to_le_bytes())?;
        put(&self.address)?;
        for span in spans(&config.timing) {
            put(&span.0.to_le_bytes())?;
        }
        let timing = &config.timing;
        put(&[u8::try_from(timing.patience).ok()?, SILENT_CHECKS])?;
        put(&u16::try_from(timing.tick.0).ok()?.to_le_bytes())?;
        put(&timing.drift_ppm.to_le_bytes())?;
        put(&[u8::try_from(config.members().len()).ok()?])?;
        let detector = match config.detector {
            Detector::Reliable => 1,
            Detector::Heartbeat => 2,
            Detector::Adaptive => 3,
            Detector::Indirect => 4,
        };
        put(&[detector, config.preempt.into()])?;
        for span in [config.quiet_max, config.hold_off] {
            put(&span.0.to_le_bytes())?;
        }
        if config.observers.byte_len() > OBSERVER_BYTES {
            return None;
        }
        for index in 0..OBSERVER_BYTES {
            put(&[config.observers.byte(index)])?;
        }
        for id in config.members().iter() {
            put(&[id.get(), config.preference(id)])?;
        }
        Some(used)
    }

    /// Reads a record of this format or of an earlier one. Leaves no byte unread; `Node::new` judges the spans.
    pub fn decode(record: &[u8]) -> Result<Self, BadProvision> {
        let (head, rest) = record.split_first_chunk::<HEAD_BYTES>().ok_or(BadProvision::Length)?;
        let u16_at = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let u32_at =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let span = |index: usize| Duration(u32_at(12 + 4 * index));
        let algorithm = match head[1] {
            1 => Algorithm::Bully,
            2 => Algorithm::Invitation,
            3 => Algorithm::Ring,
            _ => return Err(BadProvision::Field),
        };
        let durability = match head[2] {
            1 => Durability::Group,
            2 => Durability::Strict,
            _ => return Err(BadProvision::Field),
        };
        let flags = head[3];
        if flags & !(KEYED | ACCEPT_VERSION_1 | WITH_POLICIES) != 0 {
            return Err(BadProvision::Field);
        }
        if head[61] != SILENT_CHECKS {
            return Err(BadProvision::Field);
        }
        let timing = Timing {
            tm: span(0),
            tp: span(1),
            ts: span(2),
            t: span(3),
            check: span(4),
            quiet: span(5),
            beat: span(6),
            stagger: span(7),
            repeat: span(8),
            accept: span(9),
            reorganize: span(10),
            answer_spacing: span(11),
            patience: head[60].into(),
            tick: Duration(u16_at(62).into()),
            drift_ppm: u32_at(64),
        };
        let id = NodeId::new(head[0]).ok_or(BadProvision::Config(ConfigError::IdZero))?;
        let mut config = Config::new(id, algorithm, durability, timing);
        config.network = u16_at(4);
        config.accept_version_1 = flags & ACCEPT_VERSION_1 != 0;
        let mut members = rest;
        if flags & WITH_POLICIES != 0 {
            let (policies, rest) =
                rest.split_first_chunk::<POLICY_BYTES>().ok_or(BadProvision::Length)?;
            read_policies(&mut config, policies).ok_or(BadProvision::Field)?;
            members = rest;
        }
        if members.len() != 2 * usize::from(head[68]) {
            return Err(BadProvision::Length);
        }
        for pair in members.as_chunks::<2>().0 {
            config.add_member(pair[0], pair[1]).map_err(BadProvision::Config)?;
        }
        Ok(Self {
            config,
            address: [head[8], head[9], head[10], head[11]],
            port: u16_at(6),
            keyed: flags & KEYED != 0,
        })
    }
}

/// `None`: a number that means nothing.
fn read_policies<const W: usize>(config: &mut Config<W>, bytes: &[u8; POLICY_BYTES]) -> Option<()> {
    let [detector, preempt, q0, q1, q2, q3, h0, h1, h2, h3, observers @ ..] = *bytes;
    config.detector = match detector {
        1 => Detector::Reliable,
        2 => Detector::Heartbeat,
        3 => Detector::Adaptive,
        4 => Detector::Indirect,
        _ => return None,
    };
    config.preempt = match preempt {
        0 => false,
        1 => true,
        _ => return None,
    };
    config.quiet_max = Duration(u32::from_le_bytes([q0, q1, q2, q3]));
    config.hold_off = Duration(u32::from_le_bytes([h0, h1, h2, h3]));
    config.observers = NodeSet::EMPTY;
    for (index, byte) in observers.iter().enumerate() {
        if !config.observers.set_byte(index, *byte) {
            return None;
        }
    }
    Some(())
}

fn spans(timing: &Timing) -> [Duration; SPANS] {
    [
        timing.tm,
        timing.tp,
        timing.ts,
        timing.t,
        timing.check,
        timing.quiet,
        timing.beat,
        timing.stagger,
        timing.repeat,
        timing.accept,
        timing.reorganize,
        timing.answer_spacing,
    ]
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::collection::btree_map;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn provision() -> Provision<1> {
        let ms = Duration::from_millis;
        let timing = Timing::derive(ms(20), ms(10), ms(5));
        let id = NodeId::new(2).unwrap();
        let mut config = Config::<1>::new(id, Algorithm::Invitation, Durability::Group, timing);
        config.network = 513;
        for id in 1..=3 {
            config.add_member(id, id * 2).unwrap();
        }
        let address = [10, 0, 0, 2];
        Provision { config, address, port: 4711, keyed: true }
    }

    fn bytes(provision: &Provision<1>) -> Vec<u8> {
        let mut room = [0; BYTES_MAX];
        let len = provision.encode(&mut room).unwrap();
        room[..len].to_vec()
    }

    #[test]
    fn a_record_reads_back_and_no_shorter_one_does() {
        let provision = provision();
        let mut record = bytes(&provision);
        let back = Provision::<1>::decode(&record).unwrap();
        assert_eq!(back.config.timing, provision.config.timing);
        assert_eq!((back.config.network, back.port, back.address), (513, 4711, [10, 0, 0, 2]));
        assert_eq!((back.keyed, back.config.accept_version_1), (true, false));
        assert_eq!(back.config.members(), provision.config.members());
        let id = |n| NodeId::new(n).unwrap();
        assert!(back.config.outranks(id(3), id(2)));
        for short in 0..record.len() {
            assert!(Provision::<1>::decode(&record[..short]).is_err(), "cut at {short}");
        }
        for (at, nonsense) in [(1, 9), (2, 3), (61, 4), (69, 0), (69, 5), (70, 2)] {
            let good = core::mem::replace(&mut record[at], nonsense);
            let refused = Provision::<1>::decode(&record).unwrap_err();
            assert_eq!(refused, BadProvision::Field, "byte {at}");
            record[at] = good;
        }
    }

    #[test]
    fn detector_and_policies_read_back() {
        let mut provision = provision();
        let config = &mut provision.config;
        config.detector = Detector::Adaptive;
        config.preempt = false;
        config.quiet_max = Duration::from_millis(400);
        config.hold_off = Duration::from_millis(9_000);
        config.observers = [1, 3].into_iter().filter_map(NodeId::new).collect();
        let back = Provision::<1>::decode(&bytes(&provision)).unwrap().config;
        assert_eq!((back.detector, back.preempt), (Detector::Adaptive, false));
        let config = &provision.config;
        assert_eq!((back.quiet_max, back.hold_off), (config.quiet_max, config.hold_off));
        assert_eq!(back.observers, config.observers);
    }

    /// What a board in the field has: `provision()` as format 2 wrote it.
    #[rustfmt::skip]
    const FORMAT_2: [u8; 75] = [
        2, 2, 1, 1, 1, 2, 103, 18, 10, 0, 0, 2, 32, 78, 0, 0, 16, 39, 0, 0, 136, 19, 0, 0, 141, 195,
        0, 0, 130, 163, 7, 0, 200, 56, 1, 0, 84, 117, 0, 0, 64, 156, 0, 0, 198, 97, 0, 0, 195, 56, 1,
        0, 141, 195, 0, 0, 0, 0, 0, 0, 3, 3, 50, 0, 100, 0, 0, 0, 3, 1, 2, 2, 4, 3, 6,
    ];

    #[test]
    fn a_record_of_format_2_has_the_defaults_and_is_written_in_format_3() {
        let old = Provision::<1>::decode(&FORMAT_2).unwrap();
        let config = &old.config;
        assert_eq!((config.detector, config.preempt), (Detector::Heartbeat, true));
        assert_eq!(config.quiet_max, config.timing.quiet.times(4));
        assert_eq!((config.hold_off, config.observers), (Duration::ZERO, NodeSet::EMPTY));
        assert_eq!(bytes(&old), bytes(&provision()));
    }

    #[test]
    fn a_record_of_format_1_is_a_board_without_keys_and_an_unknown_flag_is_refused() {
        let mut record = FORMAT_2;
        record[3] = 0;
        let old = Provision::<1>::decode(&record).unwrap();
        assert_eq!((old.keyed, old.config.accept_version_1), (false, false));
        for flag in 3..8 {
            record[3] = 1 << flag;
            assert_eq!(Provision::<1>::decode(&record).unwrap_err(), BadProvision::Field);
        }
    }

    prop_compose! {
        fn any_record()(
            own in any::<prop::sample::Index>(),
            kinds in (1u8..4, 1u8..3, 4u8..8),
            middle in any::<[u8; 32]>(),
            last in any::<[u8; 32]>(),
            policies in (1u8..5, 0u8..2, any::<[u8; 16]>()),
            members in btree_map(1u8..=64, any::<u8>(), 1..65),
        ) -> Vec<u8> {
            let ids: Vec<u8> = members.keys().copied().collect();
            let mut record = std::vec![*own.get(&ids), kinds.0, kinds.1, kinds.2];
            record.extend(middle);
            record.extend(last);
            record[61] = SILENT_CHECKS;
            record.push(members.len() as u8);
            record.extend([policies.0, policies.1]);
            record.extend(policies.2);
            record.extend(members.iter().flat_map(|(id, preference)| [*id, *preference]));
            record
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_again_byte_by_byte(record in any_record()) {
            let read = Provision::<1>::decode(&record).unwrap();
            prop_assert_eq!(bytes(&read), record);
        }

        #[test]
        fn no_bytes_make_the_reader_fail(record in prop::collection::vec(any::<u8>(), 0..210)) {
            if let Ok(read) = Provision::<1>::decode(&record) {
                // Members may stand in any order; once written they are sorted.
                let written = bytes(&read);
                let again = Provision::<1>::decode(&written).unwrap();
                prop_assert_eq!(bytes(&again), written);
            }
        }
    }
}
