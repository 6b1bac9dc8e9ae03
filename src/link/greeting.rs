//! The greeting: the first moments of a node that has just woken, before it takes part in elections.
//!
//! Hello to all; again after half of T to those who have not answered; after T whoever is silent is
//! dead, as in any other round. It ends early when all have answered and nobody is waking too: nodes
//! that wake together begin together, each a whole T after its first Hello.
//!
//! The last Hello proves the node to those who asked it. What arrives before its proof is refused, and
//! a network may overtake. In Bully that would elect two: a Halt that overtakes the Hello halts nobody. So
//! there the node is still for Tm after that Hello, and only then takes part. A ring waits longer by
//! itself (R1); in Invitation nobody counts on the first datagrams of a node.

use crate::config::Algorithm;
use crate::id::NodeSet;
use crate::station::{Station, Turn};
use crate::time::Duration;
use crate::timers::Timer;

/// The steps: first Hello, second Hello, last Hello, end.
const LAST_HELLO: u8 = 3;
const OVER: u8 = 4;

impl<const W: usize> Station<W> {
    /// Whether the last Hello of the greeting has been said.
    pub(crate) fn greeted(&self) -> bool {
        self.link.greeting_steps >= LAST_HELLO
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
            LAST_HELLO => return self.say_last_hello(),
            _ => return,
        }
        self.say_hello(self.node.strangers());
    }

    fn say_last_hello(&mut self) {
        self.node.link.greeting_steps = LAST_HELLO;
        self.say_hello(NodeSet::EMPTY);
        // Where nobody is there, nobody can be told anything too soon.
        let waits = self.node.config.algorithm == Algorithm::Bully;
        if waits && !self.node.link.proven.is_empty() {
            self.set_timer(Timer::Greeting, self.node.config.timing.arrived());
        } else {
            self.cancel(Timer::Greeting);
            self.node.link.greeting_steps = OVER;
        }
    }

    /// Whether the greeting has just ended, and the node takes part.
    pub(crate) fn greeting_ends(&mut self) -> bool {
        let link = &self.node.link;
        let all_awake = self.node.strangers().is_empty() && link.waking.is_empty();
        if (1..LAST_HELLO).contains(&link.greeting_steps) && all_awake {
            self.say_last_hello();
        }
        self.node.link.greeting_steps >= OVER
    }
}
