//! The way of a datagram from the bytes to a frame that is authentic, in order and of now.

use super::seal::{self, Header, Opened};
use super::{Link, Peer};
use crate::effects::Note;
use crate::id::NodeId;
use crate::station::{Station, Turn};
use crate::wire::{self, Destination, Reject};

impl<const W: usize> Turn<'_, W> {
    /// Opens a datagram and notes its boot and number, and whether it proves its sender.
    pub(crate) fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Result<Opened<'a>, Reject> {
        let config = &self.node.config;
        if config.accept_version_1 && datagram.first() == Some(&wire::VERSION) {
            return self.open_clear(datagram);
        }
        let header = Header::new_checked(datagram)?;
        self.node.check_parties(header.network, header.source, header.destination)?;
        let (link, gaps) = (&self.node.link, config.gaps);
        let opened = match link.keys.by_id(header.key) {
            None => Err(Reject::Key),
            Some(key) => {
                if !gaps.freshness() {
                    link.peers[header.source].admit(&header)?;
                }
                seal::open(&header, key, gaps, datagram)
            }
        };
        match opened {
            Ok(opened) => {
                let proves = opened.receiver == self.node.boot || gaps.freshness();
                self.node.link.advance(&header, proves);
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

impl<const W: usize> Station<W> {
    /// Whether a datagram is from a member of this flock and for this node.
    pub(super) fn check_parties(
        &self,
        network: u16,
        source: NodeId,
        destination: Destination,
    ) -> Result<(), Reject> {
        let config = &self.config;
        if network != config.network {
            return Err(Reject::Network);
        }
        if source == config.id {
            return Err(Reject::OwnId);
        }
        if !config.members().contains(source) {
            return Err(Reject::UnknownSender);
        }
        if destination != Destination::All && destination != Destination::Node(config.id) {
            return Err(Reject::NotForMe);
        }
        Ok(())
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
    fn advance(&mut self, header: &Header, proves: bool) {
        let source = header.source;
        let peer = &mut self.peers[source];
        if header.boot != peer.epoch || self.clear.contains(source) {
            self.clear.remove(source);
            self.proven.remove(source);
            self.hushed.remove(source);
        }
        peer.epoch = header.boot;
        peer.sequence = header.sequence;
        if proves {
            self.proven.insert(source);
        }
    }
}
