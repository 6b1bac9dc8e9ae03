//! The meaning of a datagram: the messages of PROTOCOLS sections 1 to 3, in the paper's words.

use super::bytes::{Reader, Writer};
use super::{Destination, Frame, Kind, Reject};
use crate::id::{GroupId, NodeId, NodeSet};
use crate::state::Status;

/// The content of a datagram. Its variants are numbered as the kinds are, so that nothing has to be
/// looked up to tell the one from the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Message<'a, const W: usize> {
    /// Are you there? Bully: to all higher nodes. Invitation: to the coordinator of `group`.
    AreYouThere {
        group: Option<GroupId>,
        status: Status,
    } = Kind::AreYouThere as u8,
    AytAns {
        yes: bool,
    } = Kind::AytAns as u8,
    /// The Bully coordinator's Check: are you Normal in my `group`?
    AreYouNormal {
        group: GroupId,
    } = Kind::AreYouNormal as u8,
    AynAns {
        normal: bool,
    } = Kind::AynAns as u8,
    /// Stop: an election is under way. A `binding` Halt halts; one that is not only asks the nodes
    /// that this election has halted already to acknowledge it (again).
    Halt {
        group: GroupId,
        binding: bool,
    } = Kind::Halt as u8,
    HaltAck = Kind::HaltAck as u8,
    NewCoordinator {
        group: GroupId,
    } = Kind::NewCoordinator as u8,
    NcAck {
        accepted: bool,
    } = Kind::NcAck as u8,
    /// The task of `group`, whose members apart from the coordinator are `up`.
    Ready {
        group: GroupId,
        up: NodeSet<W>,
        definition: &'a [u8],
    } = Kind::Ready as u8,
    /// The answer to Ready in Bully.
    ReadyAck {
        accepted: bool,
    } = Kind::ReadyAck as u8,
    /// The answer to Ready in Invitation.
    ReadyAns {
        ok: bool,
    } = Kind::ReadyAns as u8,
    /// The Invitation coordinator's Check. Coordinators answer it, and to a `roll_call` the members
    /// of `group`; to the asker the "no" of anybody else would mean as much as silence.
    AreYouCoordinator {
        group: GroupId,
        roll_call: bool,
    } = Kind::AreYouCoordinator as u8,
    /// `up`: the members that would come along.
    AycAns {
        yes: bool,
        group: Option<GroupId>,
        up: NodeSet<W>,
    } = Kind::AycAns as u8,
    /// Join `group`, if you are in one of the groups that the invitees are asked to leave.
    Invitation {
        group: GroupId,
        invitees: Invitees<'a, W>,
    } = Kind::Invitation as u8,
    Accept {
        group: GroupId,
    } = Kind::Accept as u8,
    AcceptAns {
        ok: bool,
    } = Kind::AcceptAns as u8,
    /// A sign of life of the coordinator of `group`, which is Normal or still reorganizes.
    Beat {
        group: GroupId,
        normal: bool,
    } = Kind::Beat as u8,
    /// The link's own: I am in this boot, and know you in that one. A `waking` node takes no part in
    /// elections yet; those whose answer is awaited are asked to say as much (`asks`).
    Hello {
        asks: bool,
        waking: bool,
        uptime_ms: u32,
        instance: u32,
        echoes: Echoes<'a>,
    } = Kind::Hello as u8,
    /// Two boards have the id of the sender; the other one is the `instance` that fell silent. 0: it is
    /// the sender.
    Clash {
        instance: u32,
    } = Kind::Clash as u8,
    /// The token of a ring election; its lap is its kind.
    Token(Token<'a, W>) = Kind::Elect as u8,
    /// The next node has the token.
    HopAck = Kind::HopAck as u8,
    /// Has anybody heard of these nodes? With nobody to ask about: the sender is there. It is a member
    /// of `group` and Normal.
    HaveYouHeard {
        group: GroupId,
        about: NodeSet<W>,
    } = Kind::HaveYouHeard as u8,
    /// The sender, in `group` until now, is not part of the flock any more.
    Leaving {
        group: Option<GroupId>,
    } = Kind::Leaving as u8,
    /// Those of them of whom the sender has heard just now.
    Heard {
        heard: NodeSet<W>,
    } = Kind::Heard as u8,
}

/// What goes round in a ring election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a, const W: usize> {
    pub lap: Lap,
    /// The initiator and its number: the group that this run will make.
    pub run: GroupId,
    /// Of two runs that meet, the one with the larger (round, run) goes on.
    pub round: u32,
    /// The nodes that have joined. Their order is that of the ring, so that a set is enough.
    pub list: NodeSet<W>,
    /// The nodes that did not answer.
    pub suspects: NodeSet<W>,
    /// Without preemption: who keeps the role of the coordinator.
    pub incumbent: Option<Incumbent>,
    /// Told only in the Ready lap.
    pub definition: &'a [u8],
}

/// A coordinator whose group a run has broken up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Incumbent {
    pub id: NodeId,
    /// How large that group was.
    pub members: u8,
}

/// What the token does on its way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lap {
    /// Stop, and join the list.
    Elect,
    /// The highest of the list is the coordinator.
    Coord,
    /// Here is the definition.
    Ready,
}

/// What stands between header and message: whom a broadcast awaits, or whom a reply answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Envelope<const W: usize> {
    /// A request to one node.
    Request,
    /// A broadcast; the nodes in the set are asked to answer.
    Broadcast { awaited: NodeSet<W> },
    /// A reply to the requester's boot epoch.
    Reply { requester_boot: u32 },
}

impl<'a, const W: usize> Message<'a, W> {
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::AreYouThere { .. } => Kind::AreYouThere,
            Self::AytAns { .. } => Kind::AytAns,
            Self::AreYouNormal { .. } => Kind::AreYouNormal,
            Self::AynAns { .. } => Kind::AynAns,
            Self::Halt { .. } => Kind::Halt,
            Self::HaltAck => Kind::HaltAck,
            Self::NewCoordinator { .. } => Kind::NewCoordinator,
            Self::NcAck { .. } => Kind::NcAck,
            Self::Ready { .. } => Kind::Ready,
            Self::ReadyAck { .. } => Kind::ReadyAck,
            Self::ReadyAns { .. } => Kind::ReadyAns,
            Self::AreYouCoordinator { .. } => Kind::AreYouCoordinator,
            Self::AycAns { .. } => Kind::AycAns,
            Self::Invitation { .. } => Kind::Invitation,
            Self::Accept { .. } => Kind::Accept,
            Self::AcceptAns { .. } => Kind::AcceptAns,
            Self::Beat { .. } => Kind::Beat,
            Self::Hello { .. } => Kind::Hello,
            Self::Clash { .. } => Kind::Clash,
            Self::Token(token) => match token.lap {
                Lap::Elect => Kind::Elect,
                Lap::Coord => Kind::Coord,
                Lap::Ready => Kind::RingReady,
            },
            Self::HopAck => Kind::HopAck,
            Self::HaveYouHeard { .. } => Kind::HaveYouHeard,
            Self::Leaving { .. } => Kind::Leaving,
            Self::Heard { .. } => Kind::Heard,
        }
    }

    /// Reads the body of a checked frame. Leaves no byte unread and no field unjudged.
    pub fn parse(frame: &Frame<'a>) -> Result<(Envelope<W>, Self), Reject> {
        let mut r = Reader::new(frame.body);
        let envelope = if frame.kind.is_reply() {
            Envelope::Reply { requester_boot: r.u32() }
        } else if frame.destination == Destination::All {
            Envelope::Broadcast { awaited: r.set() }
        } else {
            Envelope::Request
        };
        let message = Self::content(frame.kind, &mut r);
        r.end()?;
        Ok((envelope, message))
    }

    /// What follows the envelope. (By itself, so that each kind is written where it is to lie.)
    #[inline(never)]
    fn content(kind: Kind, r: &mut Reader<'a>) -> Self {
        // What many kinds have in front is read in one place.
        let group = if kind.has_group() { r.group::<W>() } else { Reader::NO_GROUP };
        let flag = kind.has_flag() && r.flag();
        match kind {
            Kind::AreYouThere => {
                Self::AreYouThere { group: r.maybe_group::<W>(), status: r.status() }
            }
            Kind::AytAns => Self::AytAns { yes: flag },
            Kind::AreYouNormal => Self::AreYouNormal { group },
            Kind::AynAns => Self::AynAns { normal: flag },
            Kind::Halt => Self::Halt { group, binding: flag },
            Kind::HaltAck => Self::HaltAck,
            Kind::NewCoordinator => Self::NewCoordinator { group },
            Kind::NcAck => Self::NcAck { accepted: flag },
            Kind::Ready => Self::Ready { group, up: r.set(), definition: r.definition() },
            Kind::ReadyAck => Self::ReadyAck { accepted: flag },
            Kind::ReadyAns => Self::ReadyAns { ok: flag },
            Kind::AreYouCoordinator => Self::AreYouCoordinator { group, roll_call: flag },
            Kind::AycAns => Self::AycAns { yes: flag, group: r.maybe_group::<W>(), up: r.set() },
            Kind::Invitation => Self::Invitation { group, invitees: Invitees::parse(r) },
            Kind::Accept => Self::Accept { group },
            Kind::AcceptAns => Self::AcceptAns { ok: flag },
            Kind::Beat => Self::Beat { group, normal: flag },
            Kind::Hello => {
                let flags = r.byte();
                if flags & !(HELLO_ASKS | HELLO_WAKING) != 0 {
                    r.refuse(Reject::Field);
                }
                Self::Hello {
                    asks: flags & HELLO_ASKS != 0,
                    waking: flags & HELLO_WAKING != 0,
                    uptime_ms: r.u32(),
                    instance: r.u32(),
                    echoes: Echoes::parse(r),
                }
            }
            Kind::Clash => Self::Clash { instance: r.u32() },
            Kind::Elect => Self::Token(Token::parse(group, Lap::Elect, r)),
            Kind::Coord => Self::Token(Token::parse(group, Lap::Coord, r)),
            Kind::RingReady => Self::Token(Token::parse(group, Lap::Ready, r)),
            Kind::HopAck => Self::HopAck,
            Kind::HaveYouHeard => Self::HaveYouHeard { group, about: r.set() },
            Kind::Leaving => Self::Leaving { group: r.maybe_group::<W>() },
            Kind::Heard => Self::Heard { heard: r.set() },
        }
    }

    /// Writes a whole datagram of version 1 and returns its length, or `None` if there was no room.
    pub fn emit(&self, head: &Frame<'_>, envelope: &Envelope<W>, room: &mut [u8]) -> Option<usize> {
        let mut w = Writer::new(room);
        head.emit_header(&mut w);
        self.emit_content(envelope, &mut w);
        w.finish()
    }

    /// Writes what both versions have in common: all that follows the call number.
    pub(crate) fn emit_content(&self, envelope: &Envelope<W>, w: &mut Writer<'_>) {
        match envelope {
            Envelope::Request => {}
            Envelope::Broadcast { awaited } => w.set(awaited),
            Envelope::Reply { requester_boot } => w.slice(&requester_boot.to_le_bytes()),
        }
        match self {
            Self::AreYouThere { group, status } => {
                w.maybe_group(group);
                w.byte(*status as u8);
            }
            Self::Halt { group, binding: flag }
            | Self::Beat { group, normal: flag }
            | Self::AreYouCoordinator { group, roll_call: flag } => {
                w.group(group);
                w.byte((*flag).into());
            }
            Self::AreYouNormal { group }
            | Self::NewCoordinator { group }
            | Self::Accept { group } => w.group(group),
            Self::Ready { group, up, definition } => {
                w.group(group);
                w.set(up);
                w.definition(definition);
            }
            Self::AycAns { yes, group, up } => {
                w.byte((*yes).into());
                w.maybe_group(group);
                w.set(up);
            }
            Self::Invitation { group, invitees } => {
                w.group(group);
                w.byte(invitees.count);
                w.slice(invitees.bytes);
            }
            Self::Token(token) => {
                w.group(&token.run);
                w.slice(&token.round.to_le_bytes());
                w.set(&token.list);
                w.set(&token.suspects);
                let incumbent = token.incumbent.map_or([0; 2], |one| [one.id.get(), one.members]);
                w.slice(&incumbent);
                if token.lap == Lap::Ready {
                    w.definition(token.definition);
                }
            }
            Self::HaveYouHeard { group, about } => {
                w.group(group);
                w.set(about);
            }
            Self::Leaving { group } => w.maybe_group(group),
            Self::Heard { heard } => w.set(heard),
            Self::HaltAck | Self::HopAck => {}
            Self::AytAns { yes: flag }
            | Self::AynAns { normal: flag }
            | Self::NcAck { accepted: flag }
            | Self::ReadyAck { accepted: flag }
            | Self::ReadyAns { ok: flag }
            | Self::AcceptAns { ok: flag } => w.byte((*flag).into()),
            Self::Hello { asks, waking, uptime_ms, instance, echoes } => {
                let asks = if *asks { HELLO_ASKS } else { 0 };
                w.byte(asks | if *waking { HELLO_WAKING } else { 0 });
                w.slice(&uptime_ms.to_le_bytes());
                w.slice(&instance.to_le_bytes());
                w.byte((echoes.0.len() / ECHO_BYTES) as u8);
                w.slice(echoes.0);
            }
            Self::Clash { instance } => w.slice(&instance.to_le_bytes()),
        }
    }
}

const HELLO_ASKS: u8 = 1;
const HELLO_WAKING: u8 = 2;

/// An id and a boot epoch.
const ECHO_BYTES: usize = 5;
/// The most echoes: all but the sender.
const ECHOES_MAX: usize = 254;

// The longest Hello: header, call, awaited set, flags, uptime, instance, count, echoes, tag.
const _: () = assert!(15 + 4 + 33 + 10 + ECHOES_MAX * ECHO_BYTES + 16 <= super::DATAGRAM_BYTES_MAX);

/// The boots in which the sender of a Hello knows others: pairs of an id and a boot epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echoes<'a>(&'a [u8]);

impl<'a> Echoes<'a> {
    pub const NONE: Self = Self(&[]);

    fn parse(r: &mut Reader<'a>) -> Self {
        let count = usize::from(r.byte());
        Self(r.slice(count * ECHO_BYTES))
    }

    /// Whether node `id` is known in the boot `epoch`.
    #[must_use]
    pub fn contains(&self, id: NodeId, epoch: u32) -> bool {
        let [e0, e1, e2, e3] = epoch.to_le_bytes();
        self.0.as_chunks::<ECHO_BYTES>().0.contains(&[id.get(), e0, e1, e2, e3])
    }
}

/// Room in which echoes are written.
#[derive(Debug, Default)]
pub(crate) struct EchoList(heapless::Vec<u8, { ECHOES_MAX * ECHO_BYTES }>);

impl EchoList {
    /// One too many is left out: there are no more than 254 others.
    pub fn push(&mut self, id: NodeId, epoch: u32) {
        let [e0, e1, e2, e3] = epoch.to_le_bytes();
        let _ = self.0.extend_from_slice(&[id.get(), e0, e1, e2, e3]);
    }

    pub fn entries(&self) -> Echoes<'_> {
        Echoes(&self.0)
    }
}

impl<'a, const W: usize> Token<'a, W> {
    fn parse(run: GroupId, lap: Lap, r: &mut Reader<'a>) -> Self {
        Self {
            lap,
            run,
            round: r.u32(),
            list: r.set(),
            suspects: r.set(),
            incumbent: Incumbent::parse::<W>(r),
            definition: if lap == Lap::Ready { r.definition() } else { &[] },
        }
    }
}

impl Incumbent {
    /// Nobody is written as two zeros.
    fn parse<const W: usize>(r: &mut Reader<'_>) -> Option<Self> {
        let (id, members) = (NodeId::new(r.byte()), r.byte());
        match id {
            Some(id) if !NodeSet::<W>::fits(id) => r.refuse(Reject::Capacity),
            None if members != 0 => r.refuse(Reject::Field),
            _ => {}
        }
        id.map(|id| Self { id, members })
    }
}

/// Who is invited: pairs of a group to leave and those of its members that are asked to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invitees<'a, const W: usize> {
    count: u8,
    bytes: &'a [u8],
}

impl<'a, const W: usize> Invitees<'a, W> {
    fn parse(r: &mut Reader<'a>) -> Self {
        let count = r.byte();
        let before = r.rest();
        for _ in 0..count {
            Self::entry(r);
        }
        let used = before.len() - r.rest().len();
        Self { count, bytes: before.get(..used).unwrap_or(&[]) }
    }

    fn entry(r: &mut Reader<'a>) -> (GroupId, NodeSet<W>) {
        let leave = r.group::<W>();
        // The coordinator alone is the usual entry (every node of a cold start): no set needed.
        let invited = r.set::<W>();
        let invited = if invited.is_empty() { NodeSet::only(leave.coordinator) } else { invited };
        (leave, invited)
    }

    /// (group to leave, who of it is invited)
    pub fn iter(&self) -> impl Iterator<Item = (GroupId, NodeSet<W>)> + use<'a, W> {
        let mut r = Reader::new(self.bytes);
        (0..self.count).map(move |_| Self::entry(&mut r))
    }
}

/// Room in which the entries of an Invitation are written.
#[derive(Debug)]
pub(crate) struct InviteeList<const ROOM: usize> {
    room: [u8; ROOM],
    used: usize,
    count: u8,
}

impl<const ROOM: usize> Default for InviteeList<ROOM> {
    fn default() -> Self {
        Self { room: [0; ROOM], used: 0, count: 0 }
    }
}

impl<const ROOM: usize> InviteeList<ROOM> {
    /// `false` if there is no room for another entry.
    pub fn push<const W: usize>(&mut self, leave: GroupId, invited: &NodeSet<W>) -> bool {
        let Some(room) = self.room.get_mut(self.used..) else { return false };
        let mut w = Writer::new(room);
        w.group(&leave);
        let alone = *invited == NodeSet::only(leave.coordinator);
        w.set(if alone { &NodeSet::EMPTY } else { invited });
        match (w.finish(), self.count.checked_add(1)) {
            (Some(len), Some(count)) => {
                self.used += len;
                self.count = count;
                true
            }
            _ => false,
        }
    }

    pub fn entries<const W: usize>(&self) -> Invitees<'_, W> {
        Invitees { count: self.count, bytes: self.room.get(..self.used).unwrap_or(&[]) }
    }
}
