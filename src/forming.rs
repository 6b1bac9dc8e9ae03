//! How a group forms, where that is the same in several algorithms: a node leaves its old group, takes
//! the definition of the new one, makes it durable, and is Normal.

use crate::answers::Request;
use crate::effects::{Effect, FailCause, Ticket};
use crate::id::{GroupId, NodeId, NodeSet};
use crate::phase::Phase;
use crate::state::{Definition, Status};
use crate::station::{Saving, Turn};
use crate::timers::Timer;
use crate::wire::{Destination, Envelope, Message};

/// A state vector that is being made durable, with the definition of the group that forms.
#[derive(Debug, Clone, Copy)]
pub struct Save {
    pub ticket: Ticket,
    /// The Ready that is accepted then; of the coordinator itself there is none.
    pub ready: Option<Request>,
}

impl<const W: usize> Turn<W> {
    /// The paper's STOP, for an election: the node is in no group any more.
    pub fn halt(&mut self, by: Option<GroupId>) {
        self.stop_application();
        self.node.saving = None;
        let state = &mut self.node.state;
        state.status = Status::Election;
        state.coordinator = None;
        state.group = None;
        state.halted_by = by;
        state.up = NodeSet::EMPTY;
    }

    /// Asks the application for the definition of `group`, which this node coordinates.
    pub fn reorganize(&mut self, group: GroupId) {
        self.close_round();
        self.node.phase = Phase::Reorg;
        self.set_timer(Timer::Phase, self.node.config.timing.reorganize);
        let members = self.node.state.up.with(self.me());
        self.ask(Effect::Reorganize { group, members });
    }

    /// Takes a definition into the state vector; `false` if it is too long.
    pub fn define(&mut self, definition: &[u8]) -> bool {
        let definition = Definition::new(definition);
        let fits = definition.is_some();
        if fits {
            self.node.state.definition = definition;
        }
        fits
    }

    /// A copy of the definition: its bytes must not be borrowed from the node that sends them.
    #[inline(never)]
    pub fn definition(&self) -> Definition {
        self.node.state.definition.clone().unwrap_or(Definition::SINGLE)
    }

    /// Sends a Ready with the definition of the state vector: to the open round, or to one node.
    pub fn send_ready(&mut self, group: GroupId, to: Option<NodeId>) {
        let definition = self.definition();
        let up = self.node.state.up;
        let message = Message::Ready { group, up, definition: definition.as_bytes() };
        match to {
            None => self.broadcast_round(message),
            Some(to) => {
                let Some(call) = self.node.call.take_number() else {
                    self.fail(FailCause::NumbersExhausted);
                    return;
                };
                self.emit(Destination::Node(to), call, Envelope::Request, message);
            }
        }
    }

    /// Saves the state vector, with the definition; `true` if there is nothing to wait for. `ready`: the
    /// request that is answered then.
    pub fn save_group(&mut self, ready: Option<Request>) -> bool {
        let saving = match self.save() {
            Saving::Later(ticket) => Some(Save { ticket, ready }),
            Saving::BeforeAllElse => None,
        };
        self.node.saving = saving;
        saving.is_none()
    }

    /// The state vector with the definition is durable: the member is Normal and says so. `false` if it
    /// is too late for that.
    pub fn accept_ready(&mut self, request: &Request, answer: Message<'static, W>) -> bool {
        let accepts = self.status() == Status::Reorganization
            && self.in_time(request, self.node.config.timing.ts);
        if accepts {
            self.node.state.status = Status::Normal;
            self.start_application();
            self.answer_after_save(request, answer);
        }
        accepts
    }

    /// Where the definition is told by a round: whether all members have accepted it and the state vector
    /// of this coordinator is durable, so that it is Normal now.
    pub fn finished(&mut self) -> bool {
        let complete = self.node.call.is_complete(self.node.config.errata);
        if self.node.phase != Phase::Distribute || self.node.saving.is_some() || !complete {
            return false;
        }
        self.close_round();
        self.cancel(Timer::Quiet);
        self.group_formed();
        true
    }

    /// All members have accepted, and the state vector of this coordinator is durable.
    pub fn group_formed(&mut self) {
        let node = &mut self.node;
        node.state.status = Status::Normal;
        self.start_application();
        self.arm_check();
    }
}
