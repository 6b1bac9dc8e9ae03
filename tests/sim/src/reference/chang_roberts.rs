//! Chang and Roberts' ring election, exactly as on the slides.

use bellwether::state::Status;

use super::{Acts, Message, Textbook, To};

#[derive(Debug)]
pub(super) struct ChangRoberts {
    id: u8,
    participant: bool,
    elected: Option<u8>,
}

impl ChangRoberts {
    pub(super) fn new(id: u8, elected: Option<u8>) -> Self {
        Self { id, participant: false, elected }
    }
}

impl Textbook for ChangRoberts {
    fn begin(&mut self, acts: &mut Acts) {
        self.participant = true;
        acts.send(To::Next, Message::Election { id: self.id });
    }

    fn receive(&mut self, _from: u8, message: Message, acts: &mut Acts) {
        match message {
            Message::Election { id } if id > self.id => {
                self.participant = true;
                acts.send(To::Next, message);
            }
            Message::Election { id } if id < self.id => {
                if !self.participant {
                    self.begin(acts);
                }
            }
            // Its own id has come round.
            Message::Election { id } => {
                self.participant = false;
                self.elected = Some(id);
                acts.won = true;
                acts.send(To::Next, Message::Elected { id });
            }
            Message::Elected { id } => {
                self.participant = false;
                self.elected = Some(id);
                if id != self.id {
                    acts.send(To::Next, message);
                }
            }
            Message::Answer | Message::Coordinator => {}
        }
    }

    fn waited(&mut self, _acts: &mut Acts) {}

    fn booted(&mut self, _acts: &mut Acts) {}

    fn view(&self) -> (Status, Option<u8>) {
        // The slides have no word for a node that works on while it takes part: it goes by `elected`.
        match (self.elected, self.participant) {
            (Some(elected), _) => (Status::Normal, Some(elected)),
            (None, true) => (Status::Election, None),
            (None, false) => (Status::Down, None),
        }
    }
}
