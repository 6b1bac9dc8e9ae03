//! Two boards with one id.
//!
//! A node that hears an authentic datagram in its own name that it did not send asks back: Hello to
//! its own id, naming the boot that it heard. A recording of an earlier boot of its own cannot answer,
//! nor can a reflection; only a live twin can name this node's present boot. When the twin is shown,
//! the one that woke later falls silent (within T of each other: the one with the lower instance),
//! and the other tells everybody, loudly. Where they woke about T apart each can take itself for the
//! one that stays, because a Hello is older when it is heard than when it was said; then the one that
//! stayed for its instance falls silent when it hears the other say that it stays. The addresses of the
//! two say nothing: both boards were provisioned with the same one.
//!
//! As a rule a twin is met while it greets, before it is proven to anybody, and the flock goes on with the
//! board that it knows. It is not so where the two wake in parts of a network that cannot hear each other,
//! or where all that they say to each other is lost: others then follow the twin, perhaps in a later boot
//! than that of the board that will stay, and what that one says is old to them. So a board that falls
//! silent says that, too (a Clash with the instance 0), in the boot that they follow. Whoever follows it
//! **resets itself**. Nothing less is safe: to follow an earlier boot again, a node would have to take a
//! proof that names its own present boot, and the recordings of that earlier boot are full of them. Its
//! next boot is named in no recording. Who does not follow that boot takes no notice.
//!
//! Both say it three times, a tick apart: one datagram may be lost.
//!
//! A cloned flash image is the hard case: same boot epoch, same sequence numbers. It is known by the
//! instance in its Hello. What was sent under numbers that both have used is not secret any more and
//! could be forged: the same nonce has sealed two texts. Give the flock a new key then.

use super::{Header, Opened};
use crate::effects::{FailCause, MuteReason, Note};
use crate::id::{NodeId, NodeSet};
use crate::station::Turn;
use crate::wire::{Destination, Echoes, Envelope, Kind, Message};

/// How often a clash is told.
const CLASHES: u8 = 3;
/// The instance of the sender itself; no board has it.
const FALLEN_SILENT: u32 = 0;

impl<const W: usize> Turn<W> {
    /// Whether a datagram in this node's name is more than an echo of what it sent itself.
    pub(super) fn is_strange(&self, header: &Header) -> bool {
        let own = header.boot == self.node.boot && header.sequence <= self.node.link.sequence;
        !own || matches!(header.kind, Kind::Hello | Kind::Clash)
    }

    /// An authentic datagram in this node's own name.
    pub(super) fn twin_heard(&mut self, opened: &Opened<'_>) {
        let (me, boot) = (self.me(), self.node.boot);
        let mut twin = None;
        let message = Message::<W>::parse(&opened.frame);
        if let Ok((_, Message::Clash { instance })) = message {
            let link = &self.node.link;
            if instance == link.instance && link.stays_for_instance {
                self.fall_silent();
            }
            return;
        }
        if let Ok((_, Message::Hello { uptime_ms, instance, echoes, .. })) = message {
            if instance == self.node.link.instance {
                return;
            }
            if opened.receiver == boot || echoes.contains(me, boot) {
                let known = &mut self.node.link.peers[me];
                if (opened.frame.boot, opened.sequence) <= (known.claimed, known.claimed_sequence) {
                    return; // heard before
                }
                (known.claimed, known.claimed_sequence) = (opened.frame.boot, opened.sequence);
                twin = Some(instance);
                let together = self.woke_together(uptime_ms);
                let link = &mut self.node.link;
                link.stays_for_instance = together && link.instance > instance;
                if !link.stays_for_instance
                    && (together || link.uptime_ms(self.node.now) < uptime_ms)
                {
                    // The last word: it shows this node to the other one.
                    self.answer_twin(opened.frame.boot);
                    self.fall_silent();
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
            self.node.link.clash = (instance, CLASHES);
            self.say_clash();
        }
    }

    fn fall_silent(&mut self) {
        self.mute(MuteReason::IdClash);
        self.node.link.clash = (FALLEN_SILENT, CLASHES);
    }

    /// Once more, if it has not been said often enough. The only thing that a mute node still says.
    pub(crate) fn say_clash(&mut self) {
        let (instance, left) = &mut self.node.link.clash;
        if let Some(less) = left.checked_sub(1) {
            *left = less;
            let message = Message::Clash { instance: *instance };
            let envelope = Envelope::Broadcast { awaited: NodeSet::EMPTY };
            self.emit(Destination::All, 0, envelope, message);
        }
    }

    /// Within T of each other, as far as can be told.
    fn woke_together(&self, uptime_ms: u32) -> bool {
        let mine = self.node.link.uptime_ms(self.node.now);
        mine.abs_diff(uptime_ms) <= self.node.config.timing.t.0 / 1000
    }

    /// Hello to one's own id, in the boot that was heard.
    fn answer_twin(&mut self, epoch: u32) {
        let me = self.me();
        let known = core::mem::replace(&mut self.node.link.peers[me].claimed, epoch);
        let link = &self.node.link;
        let hello = Message::Hello {
            asks: true,
            waking: !self.node.greeted(),
            uptime_ms: link.uptime_ms(self.node.now),
            instance: link.instance,
            echoes: Echoes::NONE,
        };
        self.emit(Destination::Node(me), 0, Envelope::Request, hello);
        self.node.link.peers[me].claimed = known;
    }

    /// `id` says that a second board with its id has fallen silent: what that one claimed is void. Or
    /// it says that it is the one, and this node has followed it.
    #[inline(never)] // so that its size is seen to be the link's
    pub(crate) fn clash_heard(&mut self, id: NodeId, instance: u32) {
        if instance == FALLEN_SILENT {
            self.fail(FailCause::FollowedTwin(id));
            return;
        }
        self.note(Note::IdClash(id));
        let link = &mut self.node.link;
        if link.living.contains(id) {
            link.peers[id].claimed = 0;
            link.living.remove(id);
            link.proven.insert(id);
        }
    }
}
