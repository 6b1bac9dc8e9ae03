//! What a board is told by the host tool: who it is, where it is, and how its flock works.
//!
//! One image serves all nodes; this record, kept as chunk 0 of the configuration cells, makes the
//! difference. It is not behind the `shell` feature, because the host writes what the board reads.
//!
//! ```text
//! format 1, little endian
//!  0    1           2            3   4         6      8              12            60
//!  +----+-----------+------------+---+---------+------+--------------+-------------+----------
//!  | id | algorithm | durability | 0 | network | port | IPv4 address | 12 spans, us|
//!  +----+-----------+------------+---+---------+------+--------------+-------------+----------
//!  60         61                 62        64           68        69
//!  +----------+------------------+---------+------------+---------+--------------------------+
//!  | patience | silent Checks    | tick us | drift ppm  | members | (id, preference) of each |
//!  +----------+------------------+---------+------------+---------+--------------------------+
//!  spans: Tm Tp Ts T check quiet beat stagger repeat accept reorganize answer-spacing
//! ```

use crate::config::{Algorithm, Config, ConfigError, Durability, Timing};
use crate::id::NodeId;
use crate::time::Duration;

/// The format of the record; the version of its cell.
pub const FORMAT: u8 = 1;
/// The most bytes of a record: a flock of 64.
pub const BYTES_MAX: usize = HEAD_BYTES + 2 * 64;
const HEAD_BYTES: usize = 69;
const SPANS: usize = 12;

/// The configuration of a node and its place on the network.
#[derive(Debug, Clone)]
pub struct Provision<const W: usize> {
    pub config: Config<W>,
    /// The node's own IPv4 address.
    pub address: [u8; 4],
    /// The UDP port of the flock.
    pub port: u16,
}

/// Why a record cannot be used. The node stays mute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadProvision {
    /// The record ends early or late.
    Length,
    /// A number that names no algorithm or durability, or a span that does not fit.
    Field,
    /// The configuration makes no sense.
    Config(ConfigError),
}

impl<const W: usize> Provision<W> {
    /// Writes the record; `None` if a span does not fit into 32 bits or `room` is too short.
    #[must_use]
    pub fn encode(&self, preference: impl Fn(NodeId) -> u8, room: &mut [u8]) -> Option<usize> {
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
        put(&[config.id.get(), algorithm, durability, 0])?;
        put(&config.network.to_le_bytes())?;
        put(&self.port.to_le_bytes())?;
        put(&self.address)?;
        for span in spans(&config.timing) {
            put(&u32::try_from(span.0).ok()?.to_le_bytes())?;
        }
        let timing = &config.timing;
        put(&[u8::try_from(timing.patience).ok()?, timing.silent_checks_max])?;
        put(&u16::try_from(timing.tick.0).ok()?.to_le_bytes())?;
        put(&timing.drift_ppm.to_le_bytes())?;
        put(&[u8::try_from(config.members().len()).ok()?])?;
        for id in config.members().iter() {
            put(&[id.get(), preference(id)])?;
        }
        Some(used)
    }

    /// Reads a record. Leaves no byte unread; `Node::new` judges the spans.
    pub fn decode(record: &[u8]) -> Result<Self, BadProvision> {
        let (head, members) =
            record.split_first_chunk::<HEAD_BYTES>().ok_or(BadProvision::Length)?;
        let u16_at = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let u32_at =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let span = |index: usize| Duration(u32_at(12 + 4 * index).into());
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
            silent_checks_max: head[61],
            tick: Duration(u16_at(62).into()),
            drift_ppm: u32_at(64),
        };
        let id = NodeId::new(head[0]).ok_or(BadProvision::Config(ConfigError::IdZero))?;
        let mut config = Config::new(id, algorithm, durability, timing);
        config.network = u16_at(4);
        if members.len() != 2 * usize::from(head[68]) {
            return Err(BadProvision::Length);
        }
        for pair in members.as_chunks::<2>().0 {
            config.add_member(pair[0], pair[1]).map_err(BadProvision::Config)?;
        }
        Ok(Self { config, address: [head[8], head[9], head[10], head[11]], port: u16_at(6) })
    }
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
    use super::*;

    #[test]
    fn a_record_reads_back_and_no_shorter_one_does() {
        let ms = Duration::from_millis;
        let timing = Timing::derive(ms(20), ms(10), ms(5));
        let id = NodeId::new(2).unwrap();
        let mut config = Config::<1>::new(id, Algorithm::Invitation, Durability::Group, timing);
        config.network = 513;
        for id in 1..=3 {
            config.add_member(id, id * 2).unwrap();
        }
        let provision = Provision { config, address: [10, 0, 0, 2], port: 4711 };
        let mut room = [0; BYTES_MAX];
        let len = provision.encode(|id| id.get() * 2, &mut room).unwrap();
        let back = Provision::<1>::decode(&room[..len]).unwrap();
        assert_eq!(back.config.timing, timing);
        assert_eq!((back.config.network, back.port, back.address), (513, 4711, [10, 0, 0, 2]));
        assert_eq!(back.config.members(), provision.config.members());
        assert!(back.config.outranks(NodeId::new(3).unwrap(), id));
        for short in 0..len {
            assert!(Provision::<1>::decode(&room[..short]).is_err(), "cut at {short}");
        }
        for (number, algorithm) in
            [(1, Algorithm::Bully), (2, Algorithm::Invitation), (3, Algorithm::Ring)]
        {
            room[1] = number;
            let back = Provision::<1>::decode(&room[..len]).unwrap();
            assert_eq!(back.config.algorithm, algorithm);
            let mut again = [0; BYTES_MAX];
            assert_eq!(back.encode(|id| id.get() * 2, &mut again), Some(len));
            assert_eq!(again, room);
        }
        for number in [0, 4, 9] {
            room[1] = number;
            assert_eq!(Provision::<1>::decode(&room[..len]).unwrap_err(), BadProvision::Field);
        }
    }
}
