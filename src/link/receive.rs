//! The way of a datagram from the bytes to a frame that is authentic, in order and of now.

use super::seal::{self, Header, Opened};
use super::{Link, Peer};
use crate::effects::Note;
use crate::id::NodeId;
use crate::station::Turn;
use crate::wire::{Destination, Reject};

impl<const W: usize> Turn<'_, W> {
    /// Opens a datagram and notes its boot and number, and whether it proves its sender.
    pub(crate) fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Result<Opened<'a>, Reject> {
        let header = Header::new_checked(datagram)?;
        let config = &self.node.config;
        if header.network != config.network {
            return Err(Reject::Network);
        }
        if header.source == config.id {
            return Err(Reject::OwnId);
        }
        if !config.members().contains(header.source) {
            return Err(Reject::UnknownSender);
        }
        let me = Destination::Node(config.id);
        if header.destination != Destination::All && header.destination != me {
            return Err(Reject::NotForMe);
        }
        let link = &self.node.link;
        let opened = match link.keys.by_id(header.key) {
            None => Err(Reject::Key),
            Some(key) => {
                link.peers[header.source].admit(&header)?;
                seal::open(&header, key, datagram)
            }
        };
        match opened {
            Ok(opened) => {
                self.node.link.advance(&header, opened.receiver == self.node.boot);
                Ok(opened)
            }
            Err(reason) => {
                if matches!(reason, Reject::Key | Reject::Forged) {
                    self.count_failure(header.source);
                }
                Err(reason)
            }
        }
    }

    /// Loud, because a wrong key makes islands; not so loud that a forger fills the log.
    fn count_failure(&mut self, source: NodeId) {
        let failures = &mut self.node.link.peers[source].failures;
        *failures = failures.saturating_add(1);
        if failures.is_power_of_two() {
            self.note(Note::NotAuthentic(source));
        }
    }
}

impl Peer {
    /// What can be said before any cryptography.
    fn admit(&self, header: &Header) -> Result<(), Reject> {
        if header.boot < self.epoch.max(1) {
            return Err(Reject::OldBoot);
        }
        if header.boot == self.epoch && header.sequence <= self.sequence {
            return Err(Reject::Replayed);
        }
        Ok(())
    }
}

impl<const W: usize> Link<W> {
    /// An authentic datagram: its boot is the latest, and its number is used up.
    fn advance(&mut self, header: &Header, names_this_boot: bool) {
        let source = header.source;
        let peer = &mut self.peers[source];
        if header.boot != peer.epoch {
            self.proven.remove(source);
            self.hushed.remove(source);
        }
        peer.epoch = header.boot;
        peer.sequence = header.sequence;
        if names_this_boot {
            self.proven.insert(source);
        }
    }
}
