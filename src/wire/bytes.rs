//! A reader and a writer that cannot run over their slice.

use super::{DEFINITION_BYTES_MAX, Reject};
use crate::id::{GroupId, NodeId, NodeSet};
use crate::state::Status;

/// Reads on after an error, as if only zeros followed, and remembers the first one: what was read is
/// worth nothing before [`Reader::end`] has said so.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
    error: Option<Reject>,
}

impl<'a> Reader<'a> {
    /// What stands for a group where none was read.
    pub const NO_GROUP: GroupId = GroupId { coordinator: NodeId::FIRST, number: 0 };

    pub fn new(rest: &'a [u8]) -> Self {
        Self { rest, error: None }
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// What was read makes no sense, and what follows would not either.
    #[inline(never)] // asked for in many places
    pub fn refuse(&mut self, reason: Reject) {
        self.error.get_or_insert(reason);
        self.rest = &[];
    }

    #[inline(never)]
    pub fn slice(&mut self, len: usize) -> &'a [u8] {
        let Some((head, rest)) = self.rest.split_at_checked(len) else {
            self.refuse(Reject::Length);
            return &[];
        };
        self.rest = rest;
        head
    }

    /// A number of up to four bytes.
    #[inline(never)]
    fn number(&mut self, bytes: usize) -> u32 {
        self.slice(bytes).iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
    }

    pub fn byte(&mut self) -> u8 {
        self.number(1) as u8
    }

    pub fn u16(&mut self) -> u16 {
        self.number(2) as u16
    }

    #[inline(never)]
    pub fn u32(&mut self) -> u32 {
        self.number(4)
    }

    pub fn flag(&mut self) -> bool {
        let byte = self.byte();
        if byte > 1 {
            self.refuse(Reject::Field);
        }
        byte == 1
    }

    pub fn status(&mut self) -> Status {
        Status::from_byte(self.byte()).unwrap_or_else(|| {
            self.refuse(Reject::Field);
            Status::Down
        })
    }

    /// `None` is written as 0.
    pub fn maybe_id<const W: usize>(&mut self) -> Option<NodeId> {
        let id = NodeId::new(self.byte());
        if id.is_some_and(|id| !NodeSet::<W>::fits(id)) {
            self.refuse(Reject::Capacity);
        }
        id
    }

    /// `None` is written as coordinator 0 and number 0.
    pub fn maybe_group<const W: usize>(&mut self) -> Option<GroupId> {
        let coordinator = NodeId::new(self.byte());
        let number = u64::from(self.u32()) | u64::from(self.u32()) << 32;
        match coordinator {
            Some(id) if !NodeSet::<W>::fits(id) => self.refuse(Reject::Capacity),
            None if number != 0 => self.refuse(Reject::Field),
            _ => {}
        }
        coordinator.map(|coordinator| GroupId { coordinator, number })
    }

    #[inline(never)]
    pub fn group<const W: usize>(&mut self) -> GroupId {
        self.maybe_group::<W>().unwrap_or_else(|| {
            self.refuse(Reject::Field);
            Self::NO_GROUP
        })
    }

    #[inline(never)]
    pub fn set<const W: usize>(&mut self) -> NodeSet<W> {
        let mut set = NodeSet::EMPTY;
        let len = self.byte() as usize;
        if len > 32 {
            self.refuse(Reject::Field);
            return set;
        }
        let bytes = self.slice(len);
        if bytes.last() == Some(&0) {
            self.refuse(Reject::Field);
        }
        for (index, byte) in bytes.iter().enumerate() {
            if !set.set_byte(index, *byte) {
                self.refuse(Reject::Capacity);
            }
        }
        set
    }

    pub fn definition(&mut self) -> &'a [u8] {
        let len = self.u16() as usize;
        if len > DEFINITION_BYTES_MAX {
            self.refuse(Reject::Field);
        }
        self.slice(len)
    }

    /// Whether all that was read made sense, and nothing is left to read; else the first error.
    pub fn end(mut self) -> Result<(), Reject> {
        if !self.rest.is_empty() {
            self.refuse(Reject::Length);
        }
        self.error.map_or(Ok(()), Err)
    }
}

/// Writes as long as there is room and remembers whether there was.
#[derive(Debug)]
pub struct Writer<'a> {
    room: &'a mut [u8],
    used: usize,
    overrun: bool,
}

impl<'a> Writer<'a> {
    pub fn new(room: &'a mut [u8]) -> Self {
        Self { room, used: 0, overrun: false }
    }

    #[inline(never)] // asked for in many places
    pub fn slice(&mut self, bytes: &[u8]) {
        match self.room.get_mut(self.used..self.used + bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.used += bytes.len();
            }
            None => self.overrun = true,
        }
    }

    pub fn byte(&mut self, byte: u8) {
        self.slice(&[byte]);
    }

    pub fn maybe_group(&mut self, group: &Option<GroupId>) {
        match group {
            Some(group) => self.group(group),
            None => self.slice(&[0; 9]),
        }
    }

    #[inline(never)]
    pub fn group(&mut self, group: &GroupId) {
        self.byte(group.coordinator.get());
        self.slice(&group.number.to_le_bytes());
    }

    pub fn set<const W: usize>(&mut self, set: &NodeSet<W>) {
        let len = set.byte_len();
        self.byte(len as u8);
        for index in 0..len {
            self.byte(set.byte(index));
        }
    }

    pub fn definition(&mut self, definition: &[u8]) {
        self.slice(&(definition.len() as u16).to_le_bytes());
        self.slice(definition);
    }

    /// How many bytes were written, or `None` if they did not fit.
    pub fn finish(self) -> Option<usize> {
        (!self.overrun).then_some(self.used)
    }
}
