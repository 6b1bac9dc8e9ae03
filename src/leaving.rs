//! Leaving on purpose: a failure that announces itself.
//!
//! A node that is told to step down says so a few times and is silent from then on, until its next
//! boot. To the others that is a crash that needs no detection: whoever would have found it out acts
//! at once. To the algorithms it is nothing new.

use crate::effects::Note;
use crate::id::{NodeId, NodeSet};
use crate::node::Life;
use crate::state::Status;
use crate::station::Turn;
use crate::timers::{Timer, TimerTable};
use crate::wire::Message;

/// How often a node says that it leaves: one datagram may be lost.
const FAREWELLS: u8 = 3;

impl<const W: usize> Turn<W> {
    /// A node has said that it leaves.
    pub fn departed(&mut self, id: NodeId) {
        self.node.departed.insert(id);
        self.note(Note::Leaving(id));
    }

    /// Those who would coordinate before this node now that its coordinator is gone.
    pub fn heirs_above(&self) -> NodeSet<W> {
        let config = &self.node.config;
        let above = self.node.state.up.intersection(config.higher());
        above.difference(&config.observers).difference(&self.node.departed)
    }
}

/// The node stops whatever it does, and says that it leaves.
pub fn leave<const W: usize>(turn: &mut Turn<W>) {
    let me = turn.me();
    turn.stop_application();
    turn.close_round();
    turn.node.timers = TimerTable::default();
    turn.note(Note::Leaving(me));
    turn.node.life = Life::Leaving(FAREWELLS);
    say_so(turn);
}

/// Says so once more.
pub fn say_so<const W: usize>(turn: &mut Turn<W>) {
    let Life::Leaving(times) = &mut turn.node.life else { return };
    let Some(left) = times.checked_sub(1) else { return };
    *times = left;
    let group = turn.node.state.group;
    turn.announce(Message::Leaving { group });
    if left > 0 {
        turn.set_timer(Timer::Repeat, turn.node.config.timing.repeat.fraction(1, 2));
    } else {
        // Kept until the last farewell, which names the group.
        turn.node.state.group = None;
    }
    turn.node.state.status = Status::Down;
    turn.node.state.coordinator = None;
}
