//! What a node is in the middle of. One thing at a time, whatever the algorithm.

/// Bully (B), Invitation (I) and Ring (R) know some of these each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Idle,
    /// R: just booted; what was sent to the node's earlier life may still arrive.
    Waking,
    /// B, Election: is a higher node there?
    Ask,
    /// B, Election: halt all lower nodes.
    Halting,
    /// B, Election: I am the coordinator.
    Announce,
    /// I: a higher coordinator should invite first.
    Defer,
    /// I, Merge: invitations are out.
    Merge,
    /// I: an invitation is accepted; the inviter has not confirmed it.
    Accepting,
    /// R: the token is on its way to the next node.
    Hop,
    /// The application shares out the work.
    Reorg,
    /// B, I: here is the definition.
    Distribute,
    /// Check. B, R: are all of you Normal? I: who else is a coordinator?
    Check,
    /// Timeout: is the coordinator there (or, B, any higher node)?
    Probe,
    /// Has anybody heard of the nodes that this one misses?
    Inquire,
}
