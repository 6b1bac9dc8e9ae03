//! Hello: what nodes that do not know each other's boots say to each other.
//!
//! A Hello is owed to whoever is not proven or asks for a proof. What is owed is collected for a
//! moment and sent at once: to one node alone, or to all with a list. To each node at most one is
//! sent in a quarter of T.

use super::{Link, Opened};
use crate::id::{NodeId, NodeSet};
use crate::station::Turn;
use crate::timers::Timer;
use crate::wire::{Destination, EchoList, Envelope, Frame, Message, Reject};

/// How many requests of one member are handled in T. The most that one has reason to send, Beats and
/// all repeats of an election that fails again and again, is about twelve.
pub(super) const REQUESTS_PER_T_MAX: u8 = 32;

impl<const W: usize> Turn<W> {
    /// A Hello, of which `named` says whether its questions concern this node.
    #[inline(never)] // so that its size is seen to be the link's
    pub(crate) fn hello(
        &mut self,
        opened: &Opened<'_>,
        named: bool,
        message: &Message<'_, W>,
    ) -> Result<(), Reject> {
        let Message::Hello { asks, waking, echoes, .. } = message else { return Ok(()) };
        let (me, boot, from) = (self.me(), self.node.boot, opened.frame.source);
        if echoes.contains(me, boot) {
            self.prove(opened);
        }
        let link = &mut self.node.link;
        let followed = link.is_followed(from, opened.frame.boot);
        if followed && *waking {
            link.waking.insert(from);
        } else if followed {
            link.waking.remove(from);
        }
        if *asks && named || !followed {
            self.owe_hello(from, *waking);
        }
        if followed { Ok(()) } else { Err(Reject::Unproven) }
    }

    /// A datagram that is no Hello: whether it may change anything.
    #[inline(never)]
    pub(crate) fn admit(&mut self, frame: &Frame<'_>) -> Result<(), Reject> {
        let from = frame.source;
        if !self.node.link.is_followed(from, frame.boot) {
            self.owe_hello(from, false);
            return Err(Reject::Unproven);
        }
        self.node.link.waking.remove(from);
        if frame.kind.is_reply() {
            return Ok(());
        }
        let t = self.node.config.timing.t;
        let link = &mut self.node.link;
        if self.node.now >= link.spent_until {
            link.spent_until = self.node.now + t;
            for member in self.node.config.members().iter() {
                link.peers[member].spent = 0;
            }
        }
        let spent = &mut link.peers[from].spent;
        if *spent >= REQUESTS_PER_T_MAX {
            return Err(Reject::Budget);
        }
        *spent += 1;
        Ok(())
    }

    /// The members of one's own group are alive: who is not proven is asked to be.
    pub(crate) fn greet_group(&mut self) {
        let strangers = self.node.state.up.difference(&self.node.link.proven);
        for member in strangers.iter() {
            self.owe_hello(member, false);
        }
    }

    fn owe_hello(&mut self, to: NodeId, waking: bool) {
        if self.is_hushed(to) {
            return;
        }
        let link = &mut self.node.link;
        link.owed.insert(to);
        // A node that is awake can wait for the Hello that ends the greeting.
        let soon = waking || self.node.greeted();
        if soon && self.node.timers.deadline(Timer::Hello).is_none() {
            let timing = &self.node.config.timing;
            let rank = self.node.config.members().rank_by_id(self.me()) as u32;
            let moment = timing.tp.fraction(1, 4) + timing.answer_spacing.times(rank);
            self.set_timer(Timer::Hello, moment);
        }
    }

    /// Says Hello to all to whom it is owed, and asks those of `asked` and of them who are not proven.
    pub(crate) fn say_hello(&mut self, asked: NodeSet<W>) {
        self.cancel(Timer::Hello);
        let waking = !self.node.greeted();
        let link = &mut self.node.link;
        let owed = core::mem::take(&mut link.owed);
        link.hushed = link.hushed.union(&owed);
        let awaited = owed.union(&asked).difference(&link.proven);
        let concerned = owed.union(&awaited);
        let mut list = EchoList::default();
        let mut only = concerned.iter();
        let (to, envelope) = match (only.next(), only.next()) {
            (None, _) => return,
            (Some(id), None) => (Destination::Node(id), Envelope::Request),
            _ => {
                link.list_boots(&owed, &mut list);
                (Destination::All, Envelope::Broadcast { awaited })
            }
        };
        let hello = Message::Hello {
            asks: !awaited.is_empty(),
            waking,
            uptime_ms: link.uptime_ms(self.node.now),
            instance: link.instance,
            echoes: list.entries(),
        };
        self.emit(to, 0, envelope, hello);
    }

    /// Not twice within a quarter of T to the same node.
    pub(super) fn is_hushed(&mut self, to: NodeId) -> bool {
        let hush = self.node.config.timing.t.fraction(1, 4);
        let link = &mut self.node.link;
        if self.node.now >= link.hushed_until {
            link.hushed = NodeSet::EMPTY;
            link.hushed_until = self.node.now + hush;
        }
        link.hushed.contains(to)
    }
}

impl<const W: usize> Link<W> {
    fn list_boots(&self, of: &NodeSet<W>, list: &mut EchoList) {
        for id in of.iter() {
            let epoch = self.peers[id].latest_epoch();
            if epoch != 0 {
                list.push(id, epoch);
            }
        }
    }
}
