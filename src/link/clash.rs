//! Two boards with one id.
//!
//! A node that hears an authentic datagram in its own name that it did not send asks back: Hello to
//! its own id, naming the boot that it heard. A recording of an earlier boot of its own cannot answer,
//! nor can a reflection; only a live twin can name this node's present boot. When the twin is shown,
//! the one that woke later falls silent (within T of each other: the one with the lower instance),
//! and the other tells everybody, loudly. A twin is met while it greets, before it is proven to
//! anybody, so that the flock goes on with the board that it knows.
//!
//! A cloned flash image is the hard case: same boot epoch, same sequence numbers. It is known by the
//! instance in its Hello. What was sent under numbers that both have used is not secret any more and
//! could be forged: the same nonce has sealed two texts. Give the flock a new key then.

use super::{Header, Opened};
use crate::effects::{MuteReason, Note};
use crate::id::{NodeId, NodeSet};
use crate::station::Turn;
use crate::wire::{Destination, Echoes, Envelope, Kind, Message};

impl<const W: usize> Turn<'_, W> {
    /// Whether a datagram in this node's name is more than an echo of what it sent itself.
    pub(super) fn is_strange(&self, header: &Header) -> bool {
        let own = header.boot == self.node.boot && header.sequence <= self.node.link.sequence;
        !own || header.kind == Kind::Hello
    }

    /// An authentic datagram in this node's own name.
    pub(super) fn twin_heard(&mut self, opened: &Opened<'_>) {
        let (me, boot) = (self.me(), self.node.boot);
        let mut twin = None;
        if let Ok((_, Message::Hello { uptime_ms, instance, echoes, .. })) =
            Message::<W>::parse(&opened.frame)
        {
            if instance == self.node.link.instance {
                return;
            }
            if opened.receiver == boot || echoes.contains(me, boot) {
                let known = &mut self.node.link.peers[me];
                if (opened.frame.boot, opened.sequence) <= (known.claimed, known.sequence) {
                    return; // heard before
                }
                (known.claimed, known.sequence) = (opened.frame.boot, opened.sequence);
                twin = Some(instance);
                if self.gives_way(uptime_ms, instance) {
                    // The last word: it shows this node to the other one.
                    self.answer_twin(opened.frame.boot);
                    self.mute(MuteReason::IdClash);
                    return;
                }
            }
        }
        if twin.is_none() && self.is_hushed(me) {
            return;
        }
        self.node.link.hushed.insert(me);
        self.answer_twin(opened.frame.boot);
        if let Some(instance) = twin {
            self.note(Note::IdClash(me));
            let envelope = Envelope::Broadcast { awaited: NodeSet::EMPTY };
            self.emit(Destination::All, 0, envelope, Message::Clash { instance });
        }
    }

    /// The later one falls silent.
    fn gives_way(&self, uptime_ms: u32, instance: u32) -> bool {
        let link = &self.node.link;
        let mine = u64::from(link.uptime_ms(self.now));
        let (theirs, margin) = (u64::from(uptime_ms), self.node.config.timing.t.0 / 1000);
        if mine.abs_diff(theirs) <= margin { link.instance < instance } else { mine < theirs }
    }

    /// Hello to one's own id, in the boot that was heard.
    fn answer_twin(&mut self, epoch: u32) {
        let me = self.me();
        let known = core::mem::replace(&mut self.node.link.peers[me].claimed, epoch);
        let link = &self.node.link;
        let hello = Message::Hello {
            asks: true,
            waking: !self.node.greeted(),
            uptime_ms: link.uptime_ms(self.now),
            instance: link.instance,
            echoes: Echoes::NONE,
        };
        self.emit(Destination::Node(me), 0, Envelope::Request, hello);
        self.node.link.peers[me].claimed = known;
    }

    /// `id` says that a second board with its id has fallen silent: what that one claimed is void.
    pub(crate) fn clash_heard(&mut self, id: NodeId) {
        self.note(Note::IdClash(id));
        let link = &mut self.node.link;
        if link.living.contains(id) {
            link.peers[id].claimed = 0;
            link.living.remove(id);
            link.proven.insert(id);
        }
    }
}
