//! The link: who a datagram is from, and whether it is of now. Between the bytes and the calls.
//!
//! Every datagram is sealed with ChaCha20-Poly1305 under a key that the flock shares. Nobody
//! without the key can change a node's state: not by forging, not by replaying (also across reboots
//! of either side), not by reflecting. A holder of the key can say anything in its own name and in
//! that of others; a shared key cannot stop an insider.
//!
//! ```text
//! version 2
//!  0        1       2              4       5       6                10              14      15
//!  +--------+-------+--------------+-------+-------+----------------+---------------+-------+---- - -
//!  |version | kind  | network (LE) |source | dest. | boot epoch (LE)| sequence (LE) |key id | sealed
//!  +--------+-------+--------------+-------+-------+----------------+---------------+-------+---- - -
//!  |<------------------- in the clear, authenticated ------------------------------------->|
//!  sealed: call number (4), to one node: the receiver's boot epoch as the sender knows it (4, 0 =
//!          unknown), content (see `wire`); then the tag (16)
//!  nonce:  network (2), source (1), 0 (1), boot epoch (4), sequence (4)
//!  Hello:  flags (1: asks, 2: waking), uptime ms (4), instance (4), count (1), (id, boot epoch) ...
//!  Clash:  instance of the board that fell silent (4; 0: the sender itself)
//! ```
//!
//! # Order of the checks
//!
//! Cheap before expensive: length, version, kind, network, sender, addressee, key, boot, sequence;
//! then the tag; then freshness; then the content. Each has its reason (`wire::Reject`). What fails before
//! the tag is known to be good moves nothing but a counter.
//!
//! # Floods
//!
//! What is not authentic costs one look at the header, or one check of a tag. What is authentic is
//! limited per member: a node handles so many requests of one member in T, more than any node in its
//! right mind sends, and refuses the rest.
//!
//! # Freshness
//!
//! The sequence number counts all datagrams of a boot. Of each peer the link keeps the boot epoch that
//! it follows and a window of the last 64 numbers heard in it (`window.rs`): each number counts once, in
//! whatever order they come. The network may overtake within Tm; the algorithms bear that, and say how.
//! What 64 later datagrams of its sender have overtaken is dropped. That alone would not tell a recording
//! from the present after a reboot of this node. So a peer is *proven* first: it must name this node's
//! present boot epoch, as anything that it sends to this node alone does once it knows it, or a
//! Hello to all that lists it. An unproven peer changes no state; it is answered with a Hello. A peer
//! that was proven and claims a later boot is followed in the boot before until the later one is
//! proven: a second board with its id must not take its place by a claim (`clash.rs`). Nor does a claim
//! shut anybody out: of all boots after the one that is followed the first that is proven counts.
//! With the proof everything up to the highest number heard of that boot is used up, whether it was heard
//! or not: what was refused before the proof cannot be played again after it. A proof that was itself
//! overtaken proves as much; otherwise a node that wakes could miss the answer of a live one, and take
//! that for dead.
//!
//! A node that wakes greets before it takes part in elections (`greeting.rs`): Hello to all, and T
//! for the answers, as in any round. After that everybody alive is proven to it, and its next Hello
//! proves it to everybody, so that to the algorithms it is as if it had been without power until
//! then. (In Bully it waits Tm for that Hello to arrive, because whatever overtook it would be refused.)
//! It costs n + 1 datagrams for one node, and 2 n or a few more when all wake at once.

mod clash;
mod clear;
mod gaps;
mod greeting;
mod hello;
mod receive;
pub mod seal;
#[cfg(test)]
mod tests;
mod window;

pub use gaps::Gaps;
pub use seal::{Header, Opened, look_into};

use crate::id::{NodeId, NodeSet, PerNode};
use crate::key::Keys;
use crate::time::Instant;
use crate::wire::Destination;
use window::Window;

/// What is known of another node.
#[derive(Debug, Clone, Copy)]
struct Peer {
    /// The boot epoch whose datagrams are followed: proven once. 0: none.
    epoch: u32,
    /// The sequence numbers of that boot that are used up.
    window: Window,
    /// The later boot epoch that was heard last and is not proven; 0: none. The boot before is
    /// followed until then.
    claimed: u32,
    /// The highest sequence number heard of that later boot.
    claimed_sequence: u32,
    /// Datagrams in its name that were not authentic.
    failures: u16,
    /// Requests of it that were handled in the present period.
    spent: u8,
}

impl Peer {
    const STRANGER: Self = Self {
        epoch: 0,
        window: Window::UNUSED,
        claimed: 0,
        claimed_sequence: 0,
        failures: 0,
        spent: 0,
    };

    fn latest_epoch(&self) -> u32 {
        self.epoch.max(self.claimed)
    }
}

/// The state of a node's link.
#[derive(Debug)]
pub struct Link<const W: usize> {
    keys: Keys,
    /// Tells this board, in this boot, from another with the same id.
    instance: u32,
    /// A twin was heard that woke within T of this node, and has the lower instance.
    stays_for_instance: bool,
    /// The sequence number of the last datagram sent.
    sequence: u32,
    /// Of a clash that is being told: the instance that fell silent, and how often it is told yet.
    clash: (u32, u8),
    woke: Instant,
    /// How many steps of the greeting are done.
    greeting_steps: u8,
    peers: PerNode<Peer, W>,
    /// Whose latest boot is proven to this one.
    proven: NodeSet<W>,
    /// Who was proven, and claims a later boot since.
    living: NodeSet<W>,
    /// Who was only heard in the clear, by version 1 of the protocol.
    clear: NodeSet<W>,
    /// Who said that it is only just waking.
    waking: NodeSet<W>,
    /// To whom a Hello is owed.
    owed: NodeSet<W>,
    /// To whom none is sent until `hushed_until`, because one has just been sent.
    hushed: NodeSet<W>,
    hushed_until: Instant,
    /// When everybody may spend anew.
    spent_until: Instant,
}

impl<const W: usize> Link<W> {
    /// Everybody is unknown. `instance`: a random number of this boot of this board, not 0.
    pub fn new(keys: Keys, instance: u32) -> Self {
        Self {
            keys,
            instance: instance.max(1),
            stays_for_instance: false,
            sequence: 0,
            clash: (0, 0),
            woke: Instant(0),
            greeting_steps: 0,
            peers: const { PerNode::all(Peer::STRANGER) },
            proven: NodeSet::EMPTY,
            living: NodeSet::EMPTY,
            clear: NodeSet::EMPTY,
            waking: NodeSet::EMPTY,
            owed: NodeSet::EMPTY,
            hushed: NodeSet::EMPTY,
            hushed_until: Instant(0),
            spent_until: Instant(0),
        }
    }

    /// The nodes whose present boot is proven to this one.
    #[must_use]
    pub fn proven(&self) -> &NodeSet<W> {
        &self.proven
    }

    /// How many datagrams in the name of `id` were not authentic.
    #[must_use]
    pub fn failures(&self, id: NodeId) -> u16 {
        self.peers[id].failures
    }

    pub(crate) fn set_keys(&mut self, keys: Keys) {
        self.keys = keys;
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The number of the next datagram; `None` when all are used up.
    pub(crate) fn next_sequence(&mut self) -> Option<u32> {
        self.sequence = self.sequence.checked_add(1)?;
        Some(self.sequence)
    }

    /// As after 2^32 datagrams.
    #[cfg(test)]
    pub(crate) fn use_up_sequence(&mut self) {
        self.sequence = u32::MAX;
    }

    /// The boot of this node whose datagrams are followed.
    pub(crate) fn followed_epoch(&self, id: NodeId) -> u32 {
        self.peers[id].epoch
    }

    /// The boot epoch in which a receiver is known.
    pub(crate) fn epoch_of(&self, to: Destination) -> u32 {
        match to {
            Destination::Node(id) => self.peers[id].latest_epoch(),
            Destination::All => 0,
        }
    }

    fn uptime_ms(&self, now: Instant) -> u32 {
        u32::try_from(now.0.saturating_sub(self.woke.0) / 1000).unwrap_or(u32::MAX)
    }
}
