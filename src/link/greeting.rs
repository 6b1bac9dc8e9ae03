//! The greeting: the first moments of a node that has just woken, before it takes part in elections.
//!
//! Hello to all; again after half of T to those who have not answered; after T whoever is silent is
//! dead, as in any other round. It ends early when all have answered and nobody is waking too: nodes
//! that wake together begin together, each a whole T after its first Hello.

use crate::id::NodeSet;
use crate::station::{Station, Turn};
use crate::time::Duration;
use crate::timers::Timer;

/// First Hello, second Hello, end.
const STEPS: u8 = 3;

impl<const W: usize> Station<W> {
    /// Whether the greeting is over, and the node takes part.
    pub(crate) fn greeted(&self) -> bool {
        self.link.greeting_steps >= STEPS
    }

    /// Who has not answered the greeting.
    pub(crate) fn strangers(&self) -> NodeSet<W> {
        self.config.others().difference(&self.link.proven)
    }
}

impl<const W: usize> Turn<W> {
    /// The boot epoch is durable. Nodes that wake together do not all speak at once.
    pub(crate) fn begin_greeting(&mut self) {
        self.node.link.woke = self.node.now;
        let rank = self.node.config.members().rank_by_id(self.me()) as u32;
        let wait = self.node.config.timing.answer_spacing.times(rank);
        if wait == Duration::ZERO {
            self.greet();
        } else {
            self.set_timer(Timer::Greeting, wait);
        }
    }

    /// The next step of the greeting is due.
    pub(crate) fn greet(&mut self) {
        let t = self.node.config.timing.t;
        let half = t.fraction(1, 2);
        self.node.link.greeting_steps += 1;
        match self.node.link.greeting_steps {
            1 => self.set_timer(Timer::Greeting, half),
            2 => self.set_timer(Timer::Greeting, t.minus(half)),
            _ => return,
        }
        self.say_hello(self.node.strangers());
    }

    /// Whether the greeting has just ended. Its last Hello proves this node to those who asked.
    pub(crate) fn greeting_ends(&mut self) -> bool {
        let link = &self.node.link;
        let all_awake = self.node.strangers().is_empty() && link.waking.is_empty();
        let begun = link.greeting_steps > 0;
        if !(self.node.greeted() || begun && all_awake) {
            return false;
        }
        self.cancel(Timer::Greeting);
        self.node.link.greeting_steps = STEPS;
        self.say_hello(NodeSet::EMPTY);
        true
    }
}
