//! Who looks at a run while it lasts: a printer of lines, or the live view.

use bellwether_scenario::{Action, Observation, Status};

use crate::chronicle::Said;
use crate::narrator::{Narrator, Sentence};

/// What somebody at the keyboard wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Wish {
    Act(Action),
    Quit,
}

/// What a display looks at: a flock of emulated boards, or the probes of real ones.
pub trait Scene {
    fn now_us(&self) -> u64;

    fn seen(&self) -> &Observation;

    fn has_power(&self, id: u8) -> bool;

    fn nodes(&self) -> u8 {
        self.seen().nodes.len() as u8
    }

    /// The share of the time in which the lab's clock stood still, where it has one of its own.
    fn held_back(&self) -> Option<f64> {
        None
    }
}

pub trait Display {
    /// A node said something.
    fn said(&mut self, said: &Said);

    /// The lab does something.
    fn acts(&mut self, at_us: u64, action: &Action);

    /// Called many times a second; shows how things are and says what is wished.
    fn look(&mut self, scene: &dyn Scene) -> Vec<Wish>;
}

/// All live nodes are Normal in one group whose coordinator is one of them; that coordinator.
pub fn settled(seen: &Observation) -> Option<u8> {
    let live = || seen.nodes.iter().filter(|view| view.alive);
    let first = live().next()?;
    let one = |view: &bellwether_scenario::NodeView| {
        let same = (view.coordinator, view.group, view.definition);
        view.status == Status::Normal && same == (first.coordinator, first.group, first.definition)
    };
    let coordinator = first.coordinator.filter(|id| live().any(|view| view.id == *id))?;
    (first.group.is_some() && live().all(one)).then_some(coordinator)
}

/// Words of the log that would bury the rest; the trace has what matters of them.
pub fn is_everyday(word: &str) -> bool {
    matches!(word, "send" | "reject" | "door" | "save" | "margin" | "delays" | "flash")
}

/// Shows what happens as lines: in words, or raw as the boards said it.
#[derive(Debug)]
pub struct Printer {
    quiet: bool,
    raw: bool,
    settled: Option<u8>,
    narrator: Narrator,
}

impl Printer {
    pub fn new(quiet: bool) -> Self {
        Self { quiet, raw: false, settled: None, narrator: Narrator::default() }
    }

    /// Prints the lines of the boards instead of words.
    pub fn raw(mut self, raw: bool) -> Self {
        self.raw = raw;
        self
    }

    fn in_words(&self) -> bool {
        !self.quiet && !self.raw
    }

    fn print(&self, at_us: u64, what: &str) {
        if !self.quiet {
            println!("{:>9.3}  {what}", at_us as f64 / 1e6);
        }
    }

    fn tell(&self, sentences: &[Sentence]) {
        sentences.iter().for_each(|(at_us, sentence)| self.print(*at_us, sentence));
    }
}

impl Display for Printer {
    fn said(&mut self, said: &Said) {
        if self.in_words() {
            self.narrator.hear(said);
        } else if !is_everyday(&said.line.word) {
            let (word, text) = (&said.line.word, said.line.text());
            self.print(said.at_us, &format!("node {}  {word} {text}", said.node));
        }
    }

    fn acts(&mut self, at_us: u64, action: &Action) {
        if self.in_words() {
            self.narrator.act(at_us, action);
        } else {
            self.print(at_us, &format!("{action:?}"));
        }
    }

    fn look(&mut self, scene: &dyn Scene) -> Vec<Wish> {
        if self.in_words() {
            let sentences = self.narrator.look(scene.now_us(), scene.seen());
            self.tell(&sentences);
            return Vec::new();
        }
        let now = settled(scene.seen());
        if now != self.settled {
            self.settled = now;
            if let Some(coordinator) = now {
                self.print(scene.now_us(), &format!("settled under node {coordinator}"));
            }
        }
        Vec::new()
    }
}

impl Drop for Printer {
    /// The end of the run is told, too.
    fn drop(&mut self) {
        let rest = self.narrator.rest();
        self.tell(&rest);
    }
}
