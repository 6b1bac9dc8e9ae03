//! The textbook algorithms beside the others: what they promise where nothing fails, and what becomes of
//! it after a single fault.
//!
//! Every message takes the mean of the usual delays, so that one run tells all, and the counts are those
//! of the lectures. Their violations are what the table is there to show: they fail nobody's run.

use serde::{Deserialize, Serialize};

use super::plan::{Ground, NODES};
use super::row::{rounded, time_text};
use crate::clock::Time;
use crate::reference::{Happening, Outcome, Plan, Reference};

/// What happens to a flock that runs a textbook algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lesson {
    /// The worst of all nodes begins, and nothing fails.
    OneInitiator,
    /// All nodes begin at the same moment, and nothing fails.
    AllBegin,
    /// The ring: the maximum dies while its id goes round. The bully: the coordinator has died.
    OneCrash,
    /// The ring: the token. The bully: a COORDINATOR.
    OneLoss,
    /// The highest node comes back; in the ring, while the next one is announced.
    OneRecovery,
}

pub const LESSONS: [Lesson; 5] = [
    Lesson::OneInitiator,
    Lesson::AllBegin,
    Lesson::OneCrash,
    Lesson::OneLoss,
    Lesson::OneRecovery,
];

impl Lesson {
    const fn name(self) -> &'static str {
        match self {
            Self::OneInitiator => "one initiator",
            Self::AllBegin => "all begin",
            Self::OneCrash => "one crash",
            Self::OneLoss => "one loss",
            Self::OneRecovery => "one recovery",
        }
    }
}

const fn name(reference: Reference) -> &'static str {
    match reference {
        Reference::ChangRoberts => "chang-roberts",
        Reference::TextbookBully => "textbook bully",
    }
}

/// One run. Its time is in T; `None`: some of its nodes never agree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextbookRow {
    pub situation: String,
    pub algorithm: String,
    pub nodes: u8,
    pub messages: u64,
    /// Whether messages were still under way when the run was given up.
    pub endless: bool,
    pub time_t: Option<f64>,
    pub violations: u64,
}

impl TextbookRow {
    pub const HEAD: [&'static str; 6] =
        ["situation", "algorithm", "nodes", "messages", "time", "violations"];

    pub fn cells(&self) -> Vec<String> {
        vec![
            self.situation.clone(),
            self.algorithm.clone(),
            self.nodes.to_string(),
            if self.endless { "without end".into() } else { self.messages.to_string() },
            time_text(self.time_t),
            self.violations.to_string(),
        ]
    }
}

/// All rows for flocks of up to so many nodes.
pub fn rows(ground: &Ground, nodes_max: u8) -> Vec<TextbookRow> {
    let mut rows = Vec::new();
    for lesson in LESSONS {
        for reference in [Reference::ChangRoberts, Reference::TextbookBully] {
            for nodes in NODES.into_iter().filter(|nodes| *nodes <= nodes_max) {
                rows.push(row(ground, lesson, reference, nodes));
            }
        }
    }
    rows
}

fn row(ground: &Ground, lesson: Lesson, reference: Reference, nodes: u8) -> TextbookRow {
    let Outcome { messages, last_us, under_way, settled, violations, .. } =
        plan(ground, lesson, reference, nodes).run();
    TextbookRow {
        situation: lesson.name().into(),
        algorithm: name(reference).into(),
        nodes,
        messages,
        endless: under_way > 0,
        time_t: settled.then(|| rounded(last_us as f64 / ground.timing.t.us() as f64)),
        violations: violations.len() as u64,
    }
}

fn plan(ground: &Ground, lesson: Lesson, reference: Reference, n: u8) -> Plan {
    let delay: Time = (ground.timing.tm.us() / 20 + ground.timing.tm.us() / 2) / 2;
    let plan =
        Plan { delay_us: (delay, delay), t_us: ground.timing.t.us(), ..Plan::new(reference, n) };
    // Whom everybody believes in, and who is without power.
    let after = |elected, failed| Plan { elected, failed, ..plan.clone() };
    match (lesson, reference) {
        (Lesson::OneInitiator, _) => plan.noticed_by([1]),
        (Lesson::AllBegin, _) => plan.noticed_by(1..=n),
        (Lesson::OneCrash, Reference::ChangRoberts) => {
            plan.noticed_by([n]).with(Happening::Kill { at_us: delay * 3 / 2, node: n })
        }
        (Lesson::OneCrash, Reference::TextbookBully) => {
            after(Some(n), None).with(Happening::Kill { at_us: 0, node: n }).noticed_by([n - 1])
        }
        (Lesson::OneLoss, Reference::ChangRoberts) => {
            plan.noticed_by([n - 2]).with(Happening::Lose { message: 2 })
        }
        (Lesson::OneLoss, Reference::TextbookBully) => after(Some(n - 1), Some(n))
            .with(Happening::Boot { at_us: 0, node: n })
            .with(Happening::Lose { message: 0 }),
        (Lesson::OneRecovery, Reference::ChangRoberts) => {
            // A moment before the id of n - 1 has come round.
            let at_us = Time::from(n - 1) * delay - delay / 2;
            after(Some(n), Some(n))
                .noticed_by([n - 1])
                .with(Happening::Boot { at_us, node: n })
                .with(Happening::Notice { at_us, node: n })
        }
        (Lesson::OneRecovery, Reference::TextbookBully) => {
            after(Some(n - 1), Some(n)).with(Happening::Boot { at_us: 0, node: n })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lesson: Lesson, reference: Reference, nodes: u8) -> TextbookRow {
        row(&Ground::usual(), lesson, reference, nodes)
    }

    #[test]
    fn slides_4_counts_where_nothing_fails() {
        for nodes in NODES {
            let n = u64::from(nodes);
            for lesson in [Lesson::OneInitiator, Lesson::AllBegin] {
                let ring = of(lesson, Reference::ChangRoberts, nodes);
                assert_eq!((ring.messages, ring.violations), (3 * n - 1, 0), "{ring:?}");
                assert!(ring.time_t.is_some() && !ring.endless);
            }
            let bully = of(Lesson::OneInitiator, Reference::TextbookBully, nodes);
            assert_eq!((bully.messages, bully.violations), (n * n - 1, 0), "{bully:?}");
        }
    }

    #[test]
    fn a_single_fault_breaks_each_of_them_in_every_flock() {
        for nodes in NODES {
            for reference in [Reference::ChangRoberts, Reference::TextbookBully] {
                for lesson in [Lesson::OneCrash, Lesson::OneLoss, Lesson::OneRecovery] {
                    let row = of(lesson, reference, nodes);
                    assert!(row.violations > 0, "{row:?}");
                    let immortal =
                        (lesson, reference) == (Lesson::OneCrash, Reference::ChangRoberts);
                    assert_eq!(row.endless, immortal, "{row:?}");
                    let never = immortal || lesson == Lesson::OneLoss;
                    assert_eq!(row.time_t.is_none(), never, "{row:?}");
                }
            }
        }
    }
}
