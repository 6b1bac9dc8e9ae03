//! The textbook algorithms, as lectures and slides give them: not firmware, but a yardstick.
//!
//! Chang and Roberts' ring and the bully of ELECTION, ANSWER and COORDINATOR are small state machines
//! here. They run on the simulator's network and are judged by the same checker as the real ones,
//! which shows two things: what an election costs where nothing fails, and that the checker sees
//! what goes wrong where something does. Neither has group numbers, so that all nodes count as
//! one group for ever; Assertion 3 then says the same as Assertion 1.
//!
//! A [`Plan`] says who notices what and which faults there are; [`Plan::run`] gives an [`Outcome`].

mod chang_roberts;
mod stage;
#[cfg(test)]
mod tests;
mod textbook_bully;

use bellwether::state::Status;

use crate::checker::Violation;
use crate::clock::Time;

/// Which textbook algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference {
    /// Chang and Roberts' ring election (S4).
    ChangRoberts,
    /// The bully of ELECTION, ANSWER (also called OK) and COORDINATOR, with its waits T and T'
    /// (S2, S4, LN).
    TextbookBully,
}

/// Something that happens to the nodes or to their messages, which are numbered from 0 in the order
/// in which they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// A node notices that the coordinator has failed, and begins an election.
    Notice {
        at_us: Time,
        node: u8,
    },
    Kill {
        at_us: Time,
        node: u8,
    },
    /// A killed node runs again, knowing nothing. The bully then begins an election.
    Boot {
        at_us: Time,
        node: u8,
    },
    Lose {
        message: u64,
    },
    Duplicate {
        message: u64,
    },
    /// This message takes longer by so much.
    Delay {
        message: u64,
        by_us: Time,
    },
}

/// A run of a textbook algorithm.
#[derive(Debug, Clone)]
pub struct Plan {
    pub reference: Reference,
    /// The ids 1 to N in the order of the ring; the bully does not care.
    pub ring: Vec<u8>,
    /// Who everybody believes in at the start.
    pub elected: Option<u8>,
    /// Whose failure those who notice it know of, so that they do not ask it.
    pub failed: Option<u8>,
    pub happenings: Vec<Happening>,
    /// The delay of a message is drawn from this range.
    pub delay_us: (Time, Time),
    /// T: how long the bully waits for answers. T' is as long again.
    pub t_us: Time,
    pub duration_us: Time,
    pub seed: u64,
}

impl Plan {
    /// N nodes on an ascending ring, nobody elected, nothing happening yet.
    pub fn new(reference: Reference, nodes: u8) -> Self {
        Self {
            reference,
            ring: (1..=nodes).collect(),
            elected: None,
            failed: None,
            happenings: Vec::new(),
            delay_us: (1_000, 10_000),
            t_us: 50_000,
            duration_us: 60_000_000,
            seed: 1,
        }
    }

    /// These nodes notice at time 0.
    #[must_use]
    pub fn noticed_by(mut self, nodes: impl IntoIterator<Item = u8>) -> Self {
        let notices = nodes.into_iter().map(|node| Happening::Notice { at_us: 0, node });
        self.happenings.extend(notices);
        self
    }

    #[must_use]
    pub fn with(mut self, happening: Happening) -> Self {
        self.happenings.push(happening);
        self
    }

    /// Plays the plan to its end.
    pub fn run(&self) -> Outcome {
        stage::play(self)
    }
}

/// What came of a plan.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// How many messages were sent.
    pub messages: u64,
    /// When the last message arrived.
    pub last_us: Time,
    /// Messages still under way at the end: a token that never dies.
    pub under_way: usize,
    /// Whether all live nodes agree at the end.
    pub settled: bool,
    /// Who was elected, how often.
    pub wins: Vec<u8>,
    /// Whom each node believes in, node 1 first; nobody while it is in an election or down.
    pub elected: Vec<Option<u8>>,
    pub violations: Vec<Violation>,
}

/// The words of the slides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Message {
    Election { id: u8 },
    Elected { id: u8 },
    Answer,
    Coordinator,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    Node(u8),
    /// The next live node of the ring: the slides guarantee that messages get round.
    Next,
}

/// What a node does.
#[derive(Debug, Default)]
struct Acts {
    sends: Vec<(To, Message)>,
    /// Wait for so long; the wait before is off.
    wait_us: Option<Time>,
    won: bool,
}

impl Acts {
    fn send(&mut self, to: To, message: Message) {
        self.sends.push((to, message));
    }
}

/// A node of a textbook algorithm.
trait Textbook {
    fn begin(&mut self, acts: &mut Acts);
    fn receive(&mut self, from: u8, message: Message, acts: &mut Acts);
    fn waited(&mut self, acts: &mut Acts);
    fn booted(&mut self, acts: &mut Acts);
    /// Status and coordinator, as the checker wants them.
    fn view(&self) -> (Status, Option<u8>);
}
