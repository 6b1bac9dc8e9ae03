//! The way of a datagram from the bytes to a frame that is authentic, of now and taken once.

use super::seal::{self, Header, Opened};
use super::window::Window;
use super::{Link, Peer};
use crate::effects::Note;
use crate::id::NodeId;
use crate::station::{Station, Turn};
use crate::wire::{self, Destination, Reject};

impl<const W: usize> Turn<W> {
    /// Opens a datagram and notes its boot and number, and whether it proves its sender.
    #[inline(never)] // so that its size is seen to be the link's
    pub(crate) fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Result<Opened<'a>, Reject> {
        let config = &self.node.config;
        if config.accept_version_1 && datagram.first() == Some(&wire::VERSION) {
            return self.open_clear(datagram);
        }
        let header = Header::new_checked(datagram)?;
        let (me, source) = (config.id, header.source);
        self.node.check_parties(header.network, source, header.destination)?;
        if source == me && !self.is_strange(&header) {
            return Err(Reject::OwnId);
        }
        let (link, gaps) = (&self.node.link, self.node.config.gaps);
        let opened = match link.keys.by_id(header.key) {
            None => Err(Reject::Key),
            Some(key) => {
                if source != me && !gaps.freshness() {
                    // What was said in the clear, by whomever, is nothing to measure a seal by.
                    let clear = link.clear.contains(source);
                    let peer = if clear { &Peer::STRANGER } else { &link.peers[source] };
                    peer.admit(&header)?;
                }
                seal::open(&header, key, gaps, datagram)
            }
        };
        match opened {
            Ok(opened) if source == me => {
                self.twin_heard(&opened);
                Err(Reject::OwnId)
            }
            Ok(opened) => {
                let proves = opened.receiver == self.node.boot || gaps.freshness();
                self.node.link.advance(&opened);
                if proves {
                    self.prove(&opened);
                }
                Ok(opened)
            }
            Err(reason) => {
                if matches!(reason, Reject::Key | Reject::Forged) {
                    self.count_failure(source);
                }
                Err(reason)
            }
        }
    }

    /// This datagram proves the boot that it is of, and maybe that its sender has rebooted.
    pub(super) fn prove(&mut self, opened: &Opened<'_>) {
        let source = opened.frame.source;
        let link = &mut self.node.link;
        let lived = link.living.contains(source);
        link.prove(opened);
        if lived && !link.living.contains(source) {
            self.rebooted(source);
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
        let followed = if header.boot == self.epoch { self.window } else { Window::UNUSED };
        if followed.is_used(header.sequence) {
            return Err(Reject::Replayed);
        }
        Ok(())
    }
}

impl<const W: usize> Link<W> {
    /// An authentic datagram: its number is used up. Of a boot that is not followed that says no more
    /// than that the boot exists, or existed: only a proof has it followed.
    fn advance(&mut self, opened: &Opened<'_>) {
        let source = opened.frame.source;
        let peer = &mut self.peers[source];
        if self.clear.contains(source) {
            let failures = peer.failures;
            *peer = Peer { failures, ..Peer::STRANGER };
            self.clear.remove(source);
            self.proven.remove(source);
        }
        let boot = opened.frame.boot;
        if boot == peer.epoch {
            peer.window.use_up(opened.sequence);
            return;
        }
        if boot > peer.latest_epoch() {
            self.hushed.remove(source);
        }
        if boot != peer.claimed {
            (peer.claimed, peer.claimed_sequence) = (boot, 0);
        }
        peer.claimed_sequence = peer.claimed_sequence.max(opened.sequence);
        if self.proven.contains(source) {
            self.proven.remove(source);
            self.living.insert(source);
        }
    }

    /// This datagram proves the boot that it is of. Any boot after the one that is followed can be
    /// proven, also if a later one was claimed meanwhile: the claim may be a recording of a board that
    /// is gone.
    fn prove(&mut self, opened: &Opened<'_>) {
        let source = opened.frame.source;
        let peer = &mut self.peers[source];
        if opened.frame.boot == peer.claimed {
            // Whatever was refused before cannot come back.
            peer.window = Window::closed_up_to(peer.claimed_sequence);
            peer.epoch = core::mem::take(&mut peer.claimed);
            self.proven.insert(source);
            self.living.remove(source);
        }
    }

    /// Whether a datagram of this boot may change anything.
    pub(super) fn is_followed(&self, source: NodeId, boot: u32) -> bool {
        let known = self.proven.contains(source) || self.living.contains(source);
        known && boot == self.peers[source].epoch
    }
}
