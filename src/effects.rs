//! What a step asks the shell to do, in order.
//!
//! A step returns the [`Effects`] of its node, which its caller must carry out from first to last before
//! the next step. Datagrams are encoded as they are asked for, into one buffer, so that an effect is
//! small.

use crate::id::{GroupId, NodeId, NodeSet};
use crate::time::Instant;
use crate::wire::{Destination, Kind};

/// Ticket of a save: the shell hands it back when the record is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(pub u32);

/// Why a node resets itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailCause {
    /// It ran later than Tp: by Assumption 9 it has failed (trace cause `deadline`).
    Deadline,
    /// A call or group number would wrap (trace cause `request`): a new boot has new numbers.
    NumbersExhausted,
    /// It has followed the one of two boards with this id that fell silent (trace cause `request`): to a
    /// new boot the other one can prove itself.
    FollowedTwin(NodeId),
}

/// Why a node stays Down and mute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MuteReason {
    /// No boot epoch could be read: starting over at 0 would use numbers twice.
    NoEpoch,
    /// The boot epoch has reached its end.
    EpochExhausted,
    /// The new epoch could not be made durable, or did not read back.
    EpochNotDurable,
    /// The state vector could not be made durable.
    StateNotDurable,
    /// Another board with this id was there before.
    IdClash,
}

/// Something worth a log line that is no change of the state vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// The coordinator has been silent for too long; a probe follows.
    Suspected(NodeId),
    /// The probe was answered: the suspicion was wrong.
    SuspicionWrong(NodeId),
    /// Another coordinator was heard; this one asks who else there is.
    Foreign(NodeId),
    /// Another node's message made this coordinator call an election.
    ProvokedBy(NodeId),
    /// A node of lower priority tried to halt this one.
    HaltFromBelow(NodeId),
    /// A datagram in the name of this node was not authentic; told for the 1st, 2nd, 4th, 8th...
    NotAuthentic(NodeId),
    /// Two boards have this id.
    IdClash(NodeId),
    /// This node is heard in the clear: what it says can be forged.
    InTheClear(NodeId),
    /// No node is there that could coordinate this observer.
    OnlyObservers,
    /// A node says that it leaves, or this one does.
    Leaving(NodeId),
    /// The node stays Down and mute.
    Mute(MuteReason),
}

/// One thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect<'a, const W: usize> {
    /// Hand a datagram to the network.
    Send { to: Destination, kind: Kind, datagram: &'a [u8] },
    /// Make the boot epoch durable, read it back, and say so with `Event::EpochSaved`.
    SaveEpoch(u32),
    /// Make the state vector durable as it is after this step. With `wait`: do nothing that follows
    /// and handle no event until it is. Without: go on, and answer with `Event::Saved`.
    SaveState { ticket: Ticket, wait: bool },
    /// `Application::stop`.
    StopApplication,
    /// `Application::reorganize`, then `Event::Reorganized`.
    Reorganize { group: GroupId, members: NodeSet<W> },
    /// `Application::start` with the definition of the state vector.
    StartApplication,
    /// Drop all queued datagrams in both directions and reset.
    FailSelf(FailCause),
    /// A line for the log.
    Note(Note),
    /// One more: an election (Bully), a merge (Invitation) or a run (Ring) begins under this number.
    Election(GroupId),
}

#[derive(Debug, Clone, Copy)]
enum Slot<const W: usize> {
    Send { to: Destination, kind: Kind, start: u16, end: u16 },
    Other(Effect<'static, W>),
}

/// The most effects of one step; the largest step seen is counted by the tests.
const EFFECTS_MAX: usize = 16;
/// Room for the datagrams of one step: two full ones and small answers.
const DATAGRAM_ROOM: usize = 4096;

/// The effects of one step.
#[derive(Debug)]
#[must_use = "effects must be carried out, in order"]
#[repr(C)] // see `Station`
pub struct Effects<const W: usize> {
    used: usize,
    overflowed: u32,
    leaves_by: Option<Instant>,
    slots: heapless::Vec<Slot<W>, EFFECTS_MAX>,
    room: [u8; DATAGRAM_ROOM],
}

impl<const W: usize> Default for Effects<W> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<const W: usize> Clone for Effects<W> {
    fn clone(&self) -> Self {
        let mut copy = Self::NONE;
        copy.clone_from(self);
        copy
    }

    /// Copies no more than there is.
    fn clone_from(&mut self, from: &Self) {
        self.used = from.used;
        self.overflowed = from.overflowed;
        self.leaves_by = from.leaves_by;
        self.slots.clone_from(&from.slots);
        let bytes = self.room.iter_mut().zip(&from.room).take(from.used);
        bytes.for_each(|(to, from)| *to = *from);
    }
}

impl<const W: usize> Effects<W> {
    /// All zero, so that a board can have it without a copy in its image or on its stack.
    pub const NONE: Self = Self {
        used: 0,
        overflowed: 0,
        leaves_by: None,
        slots: heapless::Vec::new(),
        room: [0; DATAGRAM_ROOM],
    };

    /// How many effects ever found no room. Anything but 0 is a defect of this crate.
    #[must_use]
    pub fn overflowed(&self) -> u32 {
        self.overflowed
    }

    /// The last moment at which the datagrams of this step may leave, if an answer is among them: later
    /// the node has failed, whatever kept it (Assumption 9).
    #[must_use]
    pub fn leaves_by(&self) -> Option<Instant> {
        self.leaves_by
    }

    pub fn iter(&self) -> impl Iterator<Item = Effect<'_, W>> {
        self.slots.iter().map(|slot| match *slot {
            Slot::Send { to, kind, start, end } => Effect::Send {
                to,
                kind,
                datagram: self.room.get(start as usize..end as usize).unwrap_or(&[]),
            },
            Slot::Other(effect) => effect,
        })
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.used = 0;
        self.leaves_by = None;
    }

    pub(crate) fn must_leave_by(&mut self, last: Instant) {
        self.leaves_by = Some(self.leaves_by.map_or(last, |other| other.min(last)));
    }

    pub(crate) fn push(&mut self, effect: Effect<'static, W>) {
        self.push_slot(Slot::Other(effect));
    }

    /// Puts an effect before all others of the step.
    pub(crate) fn push_first(&mut self, effect: Effect<'static, W>) {
        if self.slots.insert(0, Slot::Other(effect)).is_err() {
            self.overflowed += 1;
        }
    }

    /// Where the next datagram is written.
    #[inline(never)]
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.room.get_mut(self.used..).unwrap_or_default()
    }

    /// A datagram of this length has been written; `None`: there was no room.
    pub(crate) fn push_datagram(&mut self, to: Destination, kind: Kind, len: Option<usize>) {
        let start = self.used;
        let Some(len) = len else {
            self.overflowed += 1;
            return;
        };
        self.used = start + len;
        self.push_slot(Slot::Send { to, kind, start: start as u16, end: self.used as u16 });
    }

    fn push_slot(&mut self, slot: Slot<W>) {
        if self.slots.push(slot).is_err() {
            self.overflowed += 1;
        }
    }
}
