//! What happened when, on one clock.
//!
//! Every boot of a node has a clock of its own. Each line of its log says between which two moments
//! of the lab's clock it was written; the offset of the two clocks lies in the intersection of what
//! all lines say, and half of its width is the uncertainty of every time of that boot. To that comes what the
//! clock itself leaves open ([`Clock::blur`]).
//!
//! A line that comes through another program says only that it was not written later than it came. Of all
//! lines of a boot the one that came soonest counts, and that one was on its way for [`ON_THE_WAY`] at most.

use std::collections::VecDeque;
use std::time::Duration;

use bellwether_scenario::{NodeEvent, ResetCause, What};

use crate::clock::{Clock, Moment};
use crate::line::Line;
use crate::probe::Heard;

/// probe-rs looks for lines ten times a second; the rest is for the host.
const ON_THE_WAY: Duration = Duration::from_millis(120);

/// More lines than the log of a board holds.
const RECENT_MAX: usize = 4096;

/// One boot of one node.
#[derive(Debug, Clone, Copy)]
struct Life {
    power: u32,
    next_sequence: u32,
    last_us: u64,
    /// The lab's clock minus the node's, at least and at most, in microseconds.
    least: i64,
    most: i64,
    announced: bool,
}

impl Life {
    /// A time of the node's clock on that of the lab, and its uncertainty.
    fn lab_us(&self, us: u64) -> (i64, u64) {
        let least = match self.least {
            i64::MIN => self.most - ON_THE_WAY.as_micros() as i64,
            least => least,
        };
        (us as i64 + (least + self.most) / 2, (self.most - least).unsigned_abs().div_ceil(2))
    }
}

#[derive(Debug, Clone)]
enum When {
    Lab(u64),
    Node { life: usize, us: u64 },
}

#[derive(Debug)]
struct Entry {
    when: When,
    node: u8,
    what: What,
}

/// A line and what it means.
#[derive(Debug, Clone)]
pub struct Said {
    pub node: u8,
    pub at_us: u64,
    pub line: Line,
    pub events: Vec<NodeEvent>,
}

#[derive(Debug)]
pub struct Chronicle {
    clock: Clock,
    zero: Moment,
    lives: Vec<Life>,
    /// The latest life of each node.
    current: Vec<Option<usize>>,
    entries: Vec<Entry>,
    /// The latest lines of each node: power, number, and when, by the node's clock.
    recent: Vec<VecDeque<(u32, u32, u64)>>,
    /// Lines that were never read, by their sequence numbers.
    pub lines_lost: u64,
}

impl Chronicle {
    pub fn new(nodes: u8, clock: Clock, zero: Moment) -> Self {
        Self {
            clock,
            zero,
            lives: Vec::new(),
            current: vec![None; nodes.into()],
            entries: Vec::new(),
            recent: vec![VecDeque::new(); nodes.into()],
            lines_lost: 0,
        }
    }

    fn lab_us(&self, at: Moment) -> i64 {
        at.since(self.zero).as_micros() as i64
    }

    /// Something that the lab itself did.
    pub fn did(&mut self, node: u8, what: What) -> NodeEvent {
        let at_us = self.lab_us(self.clock.now()) as u64;
        self.entries.push(Entry { when: When::Lab(at_us), node, what: what.clone() });
        NodeEvent { at_us, node, uncertainty_us: None, what }
    }

    /// A line of a node. `None` if it is not one of the vocabulary.
    pub fn hear(&mut self, heard: &Heard) -> Option<Said> {
        let line = Line::parse(&heard.text)?;
        let index = usize::from(heard.node).checked_sub(1)?;
        let us = heard.node_us as i64;
        let least = heard.after.map_or(i64::MIN, |after| self.lab_us(after) - us);
        let most = self.lab_us(heard.before) - us;
        let known = *self.current.get(index)?;
        // A new boot counts its lines from 0, even if its first line was lost with the reset.
        let same = known.filter(|life| {
            let life = &self.lives[*life];
            life.power == heard.power
                && line.sequence >= life.next_sequence
                && heard.node_us >= life.last_us
                && line.word != "start"
        });
        // A board that resets itself while its log is read may show old lines once more.
        let this = (heard.power, line.sequence, heard.node_us);
        let recent = self.recent.get_mut(index)?;
        if same.is_none() && line.word != "start" && recent.contains(&this) {
            return None;
        }
        if recent.len() == RECENT_MAX {
            recent.pop_front();
        }
        recent.push_back(this);
        let life = same.unwrap_or_else(|| {
            let power = heard.power;
            let new = Life { power, next_sequence: 0, last_us: 0, least, most, announced: false };
            self.lives.push(new);
            self.lives.len() - 1
        });
        self.current[index] = Some(life);
        let entry = &mut self.lives[life];
        self.lines_lost += u64::from(line.sequence - entry.next_sequence);
        entry.next_sequence = line.sequence.saturating_add(1);
        entry.last_us = heard.node_us;
        let (low, high) = (entry.least.max(least), entry.most.min(most));
        // Nothing fits all lines when a clock drifts: then what is known is less exact.
        (entry.least, entry.most) = if low <= high { (low, high) } else { (high, low) };
        let mut whats = Vec::new();
        if let Some(cause) = line.cause().filter(|_| !entry.announced && line.word != "reset") {
            entry.announced = true;
            if cause != ResetCause::Power {
                whats.push(What::Reset { cause });
            }
            whats.push(What::Boot);
        }
        whats.extend(line.event());
        let when = When::Node { life, us: heard.node_us };
        let mut events = Vec::new();
        for what in whats {
            let event = self.dated(&when, heard.node, what.clone());
            events.push(event);
            self.entries.push(Entry { when: when.clone(), node: heard.node, what });
        }
        let (at_us, _) = self.date(&when);
        Some(Said { node: heard.node, at_us, line, events })
    }

    fn date(&self, when: &When) -> (u64, Option<u64>) {
        match when {
            When::Lab(us) => (*us, None),
            When::Node { life, us } => {
                let (at, about) = self.lives[*life].lab_us(*us);
                (at.max(0) as u64, Some(about + self.clock.blur().as_micros() as u64))
            }
        }
    }

    fn dated(&self, when: &When, node: u8, what: What) -> NodeEvent {
        let (at_us, uncertainty_us) = self.date(when);
        NodeEvent { at_us, node, uncertainty_us, what }
    }

    /// As [`Chronicle::events`], of boards that may have run long before anybody looked: times count from
    /// the first event where that lies before the start.
    pub fn events_from_the_first(&self) -> Vec<NodeEvent> {
        let at = |entry: &Entry| match &entry.when {
            When::Lab(us) => (*us as i64, None),
            When::Node { life, us } => {
                let (at, about) = self.lives[*life].lab_us(*us);
                (at, Some(about))
            }
        };
        let first = self.entries.iter().map(|entry| at(entry).0).min().unwrap_or(0).min(0);
        let event = |entry: &Entry| {
            let (at, uncertainty_us) = at(entry);
            let (at_us, what) = ((at - first) as u64, entry.what.clone());
            NodeEvent { at_us, node: entry.node, uncertainty_us, what }
        };
        let mut events: Vec<NodeEvent> = self.entries.iter().map(event).collect();
        events.sort_by_key(|event| event.at_us);
        events
    }

    /// All events in order of time, each dated by all that is known at the end.
    pub fn events(&self) -> Vec<NodeEvent> {
        let dated = |entry: &Entry| self.dated(&entry.when, entry.node, entry.what.clone());
        let mut events: Vec<NodeEvent> = self.entries.iter().map(dated).collect();
        events.sort_by_key(|event| event.at_us);
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of a board by these lines: their times by its clock, and their texts.
    fn told(lines: &[(u64, &str)]) -> (Vec<What>, u64) {
        let clock = Clock::host();
        let zero = clock.now();
        let mut chronicle = Chronicle::new(1, clock.clone(), zero);
        for (node_us, text) in lines {
            let (before, text) = (clock.now(), (*text).to_owned());
            let heard = Heard { node: 1, power: 1, node_us: *node_us, after: None, before, text };
            chronicle.hear(&heard);
        }
        let whats = chronicle.entries.into_iter().map(|entry| entry.what).collect();
        (whats, chronicle.lines_lost)
    }

    #[test]
    fn old_lines_that_are_shown_again_by_a_reset_are_not_taken_for_new_ones() {
        let send = "2 send to=0 message=Beat bytes=40";
        let life = [(5, "0 start cause=power"), (900, "1 save ticket=1 us=3"), (950, send)];
        let (once, _) = told(&life);
        let reset = (4, "0 start cause=deadline");
        let after = [life[0], life[1], life[2], life[1], life[2], reset];
        let (again, lost) = told(&after);
        assert_eq!(again.len(), once.len() + 2, "a reset and a boot: {again:?}");
        assert_eq!(lost, 0);
        // The same board says the same at other times.
        let (new, _) = told(&[life[0], life[1], life[2], reset, (901, life[1].1), (951, send)]);
        assert_eq!(new.len(), again.len() + 1);
    }
}
