//! The bully of the slides: ELECTION, ANSWER, COORDINATOR, and the waits T and T'.
//!
//! "Unless it has started one already" is read as: unless its own wait of T is not over yet.

use bellwether::state::Status;

use super::{Acts, Message, Textbook, To};
use crate::clock::Time;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    No,
    /// T, for an ANSWER. The election may be over before, but no other is begun until then.
    ForAnswer {
        answered: bool,
        over: bool,
    },
    /// T', for a COORDINATOR.
    ForCoordinator,
}

#[derive(Debug)]
pub(super) struct TextbookBully {
    id: u8,
    nodes: u8,
    t_us: Time,
    /// The coordinator whose failure this node has noticed: it is not asked.
    failed: Option<u8>,
    waiting: Waiting,
    elected: Option<u8>,
}

impl TextbookBully {
    pub(super) fn new(
        id: u8,
        nodes: u8,
        t_us: Time,
        elected: Option<u8>,
        failed: Option<u8>,
    ) -> Self {
        Self { id, nodes, t_us, failed, waiting: Waiting::No, elected }
    }

    fn announce(&mut self, acts: &mut Acts) {
        self.elected = Some(self.id);
        acts.won = true;
        for lower in 1..self.id {
            acts.send(To::Node(lower), Message::Coordinator);
        }
    }
}

impl Textbook for TextbookBully {
    fn begin(&mut self, acts: &mut Acts) {
        let higher: Vec<u8> =
            (self.id + 1..=self.nodes).filter(|id| self.failed != Some(*id)).collect();
        let over = higher.is_empty();
        self.elected = None;
        self.waiting = Waiting::ForAnswer { answered: false, over };
        acts.wait_us = Some(self.t_us);
        if over {
            // It knows that it has the highest id.
            self.announce(acts);
        }
        for id in higher {
            acts.send(To::Node(id), Message::Election { id: self.id });
        }
    }

    fn receive(&mut self, from: u8, message: Message, acts: &mut Acts) {
        match message {
            Message::Election { .. } => {
                acts.send(To::Node(from), Message::Answer);
                if !matches!(self.waiting, Waiting::ForAnswer { .. }) {
                    self.begin(acts);
                }
            }
            Message::Answer => {
                if let Waiting::ForAnswer { answered, .. } = &mut self.waiting {
                    *answered = true;
                }
            }
            Message::Coordinator => {
                self.elected = Some(from);
                match &mut self.waiting {
                    Waiting::ForAnswer { over, .. } => *over = true,
                    waiting => *waiting = Waiting::No,
                }
            }
            Message::Elected { .. } => {}
        }
    }

    fn waited(&mut self, acts: &mut Acts) {
        match self.waiting {
            Waiting::ForAnswer { over: true, .. } => self.waiting = Waiting::No,
            Waiting::ForAnswer { answered: true, .. } => {
                self.waiting = Waiting::ForCoordinator;
                acts.wait_us = Some(self.t_us);
            }
            Waiting::ForAnswer { .. } => {
                self.waiting = Waiting::No;
                self.announce(acts);
            }
            Waiting::ForCoordinator => self.begin(acts),
            Waiting::No => {}
        }
    }

    fn booted(&mut self, acts: &mut Acts) {
        self.begin(acts);
    }

    fn view(&self) -> (Status, Option<u8>) {
        match self.elected {
            Some(elected) => (Status::Normal, Some(elected)),
            None => (Status::Election, None),
        }
    }
}
