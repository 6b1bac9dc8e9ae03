//! Version 1, in the clear: only while a flock is moved to the sealed version, board by board.
//!
//! Where the configuration says so, a member that was never heard sealed in this boot is taken as it
//! was before there were seals, and is spoken to so; what goes to all goes out both ways while there
//! is such a member. **While that lasts anybody on the wire can speak for a member that is silent or
//! old**, and shut out what an old one really says, by claiming a later boot in its name. Once a member
//! has been heard sealed, nothing in the clear is taken in its name any more; and nothing that was said
//! in the clear before, by whomever, weighs against what it says sealed.

use super::Opened;
use crate::effects::Note;
use crate::id::NodeSet;
use crate::station::Turn;
use crate::wire::{Destination, Envelope, Frame, Kind, Message, Reject};

impl<const W: usize> Turn<W> {
    pub(super) fn open_clear<'a>(&mut self, datagram: &'a [u8]) -> Result<Opened<'a>, Reject> {
        let frame = Frame::new_checked(datagram)?;
        if !frame.kind.is_of_version_1() {
            return Err(Reject::Kind);
        }
        self.node.check_parties(frame.network, frame.source, frame.destination)?;
        if frame.source == self.me() {
            return Err(Reject::OwnId);
        }
        Message::<W>::parse(&frame)?;
        let link = &mut self.node.link;
        let peer = &mut link.peers[frame.source];
        if peer.latest_epoch() != 0 && !link.clear.contains(frame.source) {
            return Err(Reject::Version);
        }
        if frame.boot < peer.epoch {
            return Err(Reject::OldBoot);
        }
        let rebooted = peer.epoch != 0 && frame.boot > peer.epoch;
        peer.epoch = frame.boot;
        link.proven.insert(frame.source);
        let news = !link.clear.contains(frame.source);
        link.clear.insert(frame.source);
        if rebooted {
            self.rebooted(frame.source);
        }
        if news {
            self.note(Note::InTheClear(frame.source));
        }
        Ok(Opened { frame, sequence: 0, receiver: 0 })
    }

    /// Sends a datagram of version 1 if somebody needs it; `true` if nobody needs a sealed one.
    pub(crate) fn emit_clear(
        &mut self,
        to: Destination,
        call: u32,
        envelope: &Envelope<W>,
        message: &Message<'_, W>,
        kind: Kind,
    ) -> bool {
        let clear = self.node.link.clear;
        let (some, all) = match to {
            Destination::Node(id) => (clear.contains(id), clear.contains(id)),
            Destination::All => (!clear.is_empty(), self.node.config.others().is_subset(&clear)),
        };
        if !some || !kind.is_of_version_1() {
            return false;
        }
        let head = Frame {
            kind,
            network: self.node.config.network,
            source: self.node.config.id,
            destination: to,
            boot: self.node.boot,
            call,
            body: &[],
        };
        let len = message.emit(&head, envelope, self.out.room());
        self.out.push_datagram(to, kind, len);
        all
    }
}

impl<const W: usize> super::Link<W> {
    /// All of these are spoken to in the clear from the start.
    pub(crate) fn speak_in_the_clear(&mut self, to: NodeSet<W>) {
        self.clear = to;
        self.proven = to;
    }
}
