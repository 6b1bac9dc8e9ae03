//! The state vector S(i), in the paper's words.
//!
//! ```text
//! record, format 1 (what a Save makes durable):
//!  0        1        2           3            12              21
//!  +--------+--------+-----------+------------+---------------+----------+---------------------+
//!  | format | status | coordin.  | group      | halted by     | up (set) | definition          |
//!  | = 1    |        | (0 none)  | (0,0 none) | (0,0 none)    | len,bytes| u16 len + 1, bytes  |
//!  +--------+--------+-----------+------------+---------------+----------+---------------------+
//!  definition length 0 = no definition, k + 1 = k bytes follow
//! ```

use crate::id::{GroupId, NodeId, NodeSet};
use crate::wire::{DEFINITION_BYTES_MAX, Reject};
use crate::wire::{Reader, Writer};

/// S(i).s: what a node is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    Down = 0,
    Election = 1,
    Reorganization = 2,
    Normal = 3,
}

impl Status {
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Down,
            1 => Self::Election,
            2 => Self::Reorganization,
            3 => Self::Normal,
            _ => return None,
        })
    }

    /// The name in traces and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "Down",
            Self::Election => "Election",
            Self::Reorganization => "Reorganization",
            Self::Normal => "Normal",
        }
    }
}

/// S(i).d: what the application of every member needs to know of the common task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    bytes: heapless::Vec<u8, DEFINITION_BYTES_MAX>,
    digest: u64,
}

/// FNV-1a, 64 bits.
const DIGEST_START: u64 = 0xcbf2_9ce4_8422_2325;
const DIGEST_FACTOR: u64 = 0x0000_0100_0000_01b3;

impl Definition {
    /// The task of a node that is alone: empty, because it needs no agreement with anybody.
    pub const SINGLE: Self = Self { bytes: heapless::Vec::new(), digest: DIGEST_START };

    /// `None` if it is longer than [`DEFINITION_BYTES_MAX`].
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let digest = bytes
            .iter()
            .fold(DIGEST_START, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(DIGEST_FACTOR));
        Some(Self { bytes: heapless::Vec::from_slice(bytes).ok()?, digest })
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A short name for logs and traces. Not a protection against forgery.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }
}

/// S(i).
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(C)] // see `Station`
pub struct StateVector<const W: usize> {
    /// S(i).s
    pub status: Status,
    /// S(i).c
    pub coordinator: Option<NodeId>,
    /// S(i).g; in Bully the coordinator and the number of the election that made it so.
    pub group: Option<GroupId>,
    /// S(i).h (Bully): who halted this node last, and in which election.
    pub halted_by: Option<GroupId>,
    /// S(i).Up: the other members of the group. Never contains the node itself.
    pub up: NodeSet<W>,
    /// S(i).d
    pub definition: Option<Definition>,
}

/// The state vector without the bytes of the definition: what a trace or a log line shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary<const W: usize> {
    pub status: Status,
    pub coordinator: Option<NodeId>,
    pub group: Option<GroupId>,
    pub up: NodeSet<W>,
    pub definition_digest: Option<u64>,
}

impl<const W: usize> Summary<W> {
    /// Of [`StateVector::DOWN`].
    pub const DOWN: Self = Self {
        status: Status::Down,
        coordinator: None,
        group: None,
        up: NodeSet::EMPTY,
        definition_digest: None,
    };
}

impl<const W: usize> StateVector<W> {
    /// What a node knows when it wakes: nothing.
    pub const DOWN: Self = Self {
        status: Status::Down,
        coordinator: None,
        group: None,
        halted_by: None,
        up: NodeSet::EMPTY,
        definition: None,
    };
    /// The longest record.
    pub const RECORD_BYTES_MAX: usize =
        3 + 9 + 9 + 1 + NodeSet::<W>::BYTES_MAX + 2 + DEFINITION_BYTES_MAX;
    const FORMAT: u8 = 1;

    #[must_use]
    #[inline(never)]
    pub fn summary(&self) -> Summary<W> {
        Summary {
            status: self.status,
            coordinator: self.coordinator,
            group: self.group,
            up: self.up,
            definition_digest: self.definition.as_ref().map(Definition::digest),
        }
    }

    /// Writes the record; `None` if `room` is shorter than [`Self::RECORD_BYTES_MAX`] and it does
    /// not fit.
    pub fn encode(&self, room: &mut [u8]) -> Option<usize> {
        let mut w = Writer::new(room);
        w.byte(Self::FORMAT);
        w.byte(self.status as u8);
        w.byte(self.coordinator.map_or(0, NodeId::get));
        w.maybe_group(&self.group);
        w.maybe_group(&self.halted_by);
        w.set(&self.up);
        match &self.definition {
            None => w.slice(&0u16.to_le_bytes()),
            Some(definition) => {
                w.slice(&(definition.as_bytes().len() as u16 + 1).to_le_bytes());
                w.slice(definition.as_bytes());
            }
        }
        w.finish()
    }

    /// Reads a record back: what the node last worked on, with the status Down of a node that has
    /// just woken.
    pub fn decode(record: &[u8]) -> Result<Self, Reject> {
        let mut r = Reader::new(record);
        if r.byte() != Self::FORMAT {
            r.refuse(Reject::Version);
        }
        r.status();
        let coordinator = r.maybe_id::<W>();
        let group = r.maybe_group::<W>();
        let halted_by = r.maybe_group::<W>();
        let up = r.set();
        let definition = match r.u16() {
            0 => None,
            len => {
                let definition = Definition::new(r.slice(len as usize - 1));
                if definition.is_none() {
                    r.refuse(Reject::Field);
                }
                definition
            }
        };
        r.end()?;
        Ok(Self { status: Status::Down, coordinator, group, halted_by, up, definition })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_as_down_with_everything_else_kept() {
        let id = |n| NodeId::new(n).unwrap();
        let group = GroupId { coordinator: id(9), number: 7 << 32 | 3 };
        let state = StateVector::<1> {
            status: Status::Normal,
            coordinator: Some(id(9)),
            group: Some(group),
            halted_by: Some(group),
            up: [1, 9, 64].map(id).into_iter().collect(),
            definition: Definition::new(b"cells 1 to 4"),
        };
        let mut room = [0; StateVector::<1>::RECORD_BYTES_MAX];
        let len = state.encode(&mut room).unwrap();
        let back = StateVector::<1>::decode(&room[..len]).unwrap();
        assert_eq!(back, StateVector { status: Status::Down, ..state });
        for short in 0..len {
            assert!(StateVector::<1>::decode(&room[..short]).is_err(), "cut at {short}");
        }
        room[0] = 2;
        assert_eq!(StateVector::<1>::decode(&room[..len]), Err(Reject::Version));
    }

    #[test]
    fn the_longest_record_fits_its_bound() {
        let state = StateVector::<4> {
            up: (1..=255).filter_map(NodeId::new).collect(),
            definition: Definition::new(&[7; DEFINITION_BYTES_MAX]),
            ..StateVector::DOWN
        };
        let mut room = [0; StateVector::<4>::RECORD_BYTES_MAX];
        assert_eq!(state.encode(&mut room), Some(room.len()));
        assert_eq!(state.encode(&mut [0; 20]), None);
    }
}
