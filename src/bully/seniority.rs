//! Who gives way to whom, where priority alone does not decide: `preempt = false` and hold-off.
//!
//! In both cases a node that wakes asks everybody, not only the higher nodes. A lower node answers it
//! only if it keeps its role: it coordinates, or is about to, and either nobody preempts anybody or
//! the asker is held off. The asker then has a senior, waits, and asks again. It stays Down: it takes
//! no part in anything that Assertion 1 speaks of.
//!
//! Without preemption a coordinator takes it in by an election that it wins itself. It asks all
//! higher nodes, as ever; those who give way to it say so (`AytAns` with a no), and only these does it
//! halt beside the lower ones. Who gives way stays so for two T from its answer, longer than it takes
//! until that Halt has arrived, and calls no election of its own meanwhile. So of two nodes that could
//! both pass an election point one has always been halted by the other, as in the paper. Nodes give way
//! - to their senior, unless it has rebooted,
//! - to the coordinator of their group, who may be lower,
//! - to any coordinator that is Normal, if they do not coordinate themselves.

use super::Bully;
use crate::id::{GroupId, NodeId, NodeSet};
use crate::phase::Phase;
use crate::state::Status;
use crate::station::Turn;

impl<const W: usize> Bully<W> {
    /// Whom an election asks first.
    pub(super) fn asked(turn: &Turn<W>, phase: Phase) -> NodeSet<W> {
        let config = &turn.node.config;
        let enters = phase == Phase::Ask && Self::enters(turn);
        let rivals = if enters { config.others() } else { *config.higher() };
        let mut asked = rivals.difference(&config.observers);
        if let (Phase::Probe, Some(coordinator)) = (phase, turn.node.state.coordinator) {
            asked.insert(coordinator);
        }
        asked.difference(&turn.node.departed)
    }

    /// Whether this node asks lower nodes too before it takes over.
    pub(super) fn enters(turn: &Turn<W>) -> bool {
        let config = &turn.node.config;
        let outside = turn.status() == Status::Down || turn.node.bully.senior.is_some();
        config.asks_when_it_wakes() && outside && !config.is_observer()
    }

    fn runs_an_election(turn: &Turn<W>) -> bool {
        matches!(
            turn.node.phase,
            Phase::Halting | Phase::Announce | Phase::Reorg | Phase::Distribute
        )
    }

    /// Whether a higher node that asks has to wait for this one.
    pub(super) fn keeps_its_role(turn: &Turn<W>, asker: NodeId) -> bool {
        let stays = !turn.node.config.preempt || turn.held_off(asker);
        let probes = turn.node.is_coordinator() && turn.node.state.up.contains(asker);
        stays && (turn.node.is_coordinator() || Self::runs_an_election(turn)) || probes
    }

    /// Whether this node lets a lower one coordinate it; if so, for two T at least.
    pub(super) fn gives_way(
        turn: &mut Turn<W>,
        asker: NodeId,
        group: Option<GroupId>,
        status: Status,
    ) -> bool {
        let config = &turn.node.config;
        if !config.asks_when_it_wakes()
            || Self::runs_an_election(turn)
            || turn.node.is_coordinator()
        {
            return false;
        }
        let state = &turn.node.state;
        let normal = !config.preempt && status == Status::Normal;
        let coordinates = normal && group.is_some_and(|group| group.coordinator == asker);
        let mine = state.coordinator == Some(asker) && state.group == group;
        let gives_way = coordinates || mine || turn.node.bully.senior == Some(asker);
        if gives_way && status != Status::Down {
            turn.node.bully.senior = Some(asker);
            Self::defer(turn);
            return true;
        }
        // A senior that woke anew has lost its role.
        turn.node.bully.senior.take_if(|senior| *senior == asker);
        false
    }

    /// The higher nodes that this one takes into its group. Who is held off stays outside, and who may
    /// preempt will do so when that is over.
    pub(super) fn admitted_juniors(turn: &Turn<W>) -> NodeSet<W> {
        if turn.node.config.preempt {
            return NodeSet::EMPTY;
        }
        turn.without_held_off(turn.node.bully.juniors)
    }

    /// Whether a Halt of this lower node is to be obeyed.
    pub(super) fn follows(turn: &Turn<W>, lower: NodeId) -> bool {
        turn.node.bully.senior == Some(lower) || turn.node.state.coordinator == Some(lower)
    }
}
