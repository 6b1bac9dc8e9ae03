//! A reader and a writer that cannot run over their slice.

use super::{DEFINITION_BYTES_MAX, Reject};
use crate::id::{GroupId, NodeId, NodeSet};
use crate::state::Status;

#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn slice(&mut self, len: usize) -> Result<&'a [u8], Reject> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(Reject::Length)?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Reject> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Reject::Length)?;
        self.rest = rest;
        Ok(*head)
    }

    pub fn byte(&mut self) -> Result<u8, Reject> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Result<u16, Reject> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Reject> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn flag(&mut self) -> Result<bool, Reject> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Reject::Field),
        }
    }

    pub fn status(&mut self) -> Result<Status, Reject> {
        Status::from_byte(self.byte()?).ok_or(Reject::Field)
    }

    /// `None` is written as coordinator 0 and number 0.
    pub fn maybe_group<const W: usize>(&mut self) -> Result<Option<GroupId>, Reject> {
        let coordinator = self.byte()?;
        let number = self.array().map(u64::from_le_bytes)?;
        match NodeId::new(coordinator) {
            Some(id) if !NodeSet::<W>::fits(id) => Err(Reject::Capacity),
            Some(coordinator) => Ok(Some(GroupId { coordinator, number })),
            None if number == 0 => Ok(None),
            None => Err(Reject::Field),
        }
    }

    pub fn group<const W: usize>(&mut self) -> Result<GroupId, Reject> {
        self.maybe_group::<W>()?.ok_or(Reject::Field)
    }

    pub fn set<const W: usize>(&mut self) -> Result<NodeSet<W>, Reject> {
        let len = self.byte()? as usize;
        if len > 32 {
            return Err(Reject::Field);
        }
        let mut set = NodeSet::EMPTY;
        let bytes = self.slice(len)?;
        if bytes.last() == Some(&0) {
            return Err(Reject::Field);
        }
        for (index, byte) in bytes.iter().enumerate() {
            if !set.set_byte(index, *byte) {
                return Err(Reject::Capacity);
            }
        }
        Ok(set)
    }

    pub fn definition(&mut self) -> Result<&'a [u8], Reject> {
        let len = self.u16()? as usize;
        if len > DEFINITION_BYTES_MAX {
            return Err(Reject::Field);
        }
        self.slice(len)
    }

    pub fn end(&self) -> Result<(), Reject> {
        if self.rest.is_empty() { Ok(()) } else { Err(Reject::Length) }
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

    pub fn maybe_group(&mut self, group: Option<GroupId>) {
        self.byte(group.map_or(0, |group| group.coordinator.get()));
        self.slice(&group.map_or(0, |group| group.number).to_le_bytes());
    }

    pub fn group(&mut self, group: GroupId) {
        self.maybe_group(Some(group));
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
