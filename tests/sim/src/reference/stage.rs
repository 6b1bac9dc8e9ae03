//! Where the textbook algorithms play: the simulator's network and checker, and a queue of events.

use super::chang_roberts::ChangRoberts;
use super::textbook_bully::TextbookBully;
use super::{Acts, Happening, Message, Outcome, Plan, Reference, Textbook, To};
use crate::agenda::Agenda;
use crate::checker::{Checker, View};
use crate::clock::Time;
use crate::network::{Fate, Network};

/// More messages than any election needs: whoever sends as many does so for ever.
const MESSAGES_MAX: u64 = 20_000;

enum Event {
    Planned(Happening),
    Arrive { from: u8, to: u8, message: Message },
    Waited { node: u8, wait: u64 },
}

struct Stage<'p> {
    plan: &'p Plan,
    now: Time,
    agenda: Agenda<Event>,
    network: Network,
    rng: fastrand::Rng,
    checker: Checker,
    /// `None`: without power.
    nodes: Vec<Option<Box<dyn Textbook>>>,
    /// The number of each node's latest wait; earlier ones are void.
    waits: Vec<u64>,
    outcome: Outcome,
}

pub(super) fn play(plan: &Plan) -> Outcome {
    let mut stage = Stage::new(plan);
    for happening in &plan.happenings {
        let at = match happening {
            Happening::Notice { at_us, .. }
            | Happening::Kill { at_us, .. }
            | Happening::Boot { at_us, .. } => *at_us,
            Happening::Lose { .. } | Happening::Duplicate { .. } | Happening::Delay { .. } => {
                continue;
            }
        };
        stage.schedule(at, Event::Planned(*happening));
    }
    for node in 1..=stage.nodes.len() as u8 {
        stage.observe(node);
    }
    stage.run();
    stage.judge()
}

impl<'p> Stage<'p> {
    fn new(plan: &'p Plan) -> Self {
        let count = plan.ring.len();
        let (low, high) = plan.delay_us;
        let mut stage = Self {
            plan,
            now: 0,
            agenda: Agenda::new(),
            network: Network::new(count, low..=high, true),
            rng: fastrand::Rng::with_seed(plan.seed),
            // Nothing is excused: these algorithms have no other promise than Assertion 1.
            checker: Checker::new(count, true, 0),
            nodes: Vec::new(),
            waits: vec![0; count],
            outcome: Outcome {
                messages: 0,
                last_us: 0,
                under_way: 0,
                settled: false,
                wins: Vec::new(),
                elected: Vec::new(),
                violations: Vec::new(),
            },
        };
        let failed = |id: u8| plan.failed == Some(id);
        stage.nodes = (1..=count as u8)
            .map(|id| (!failed(id)).then(|| stage.node(id, plan.elected)))
            .collect();
        stage
    }

    fn node(&self, id: u8, elected: Option<u8>) -> Box<dyn Textbook> {
        let count = self.plan.ring.len() as u8;
        match self.plan.reference {
            Reference::ChangRoberts => Box::new(ChangRoberts::new(id, elected)),
            Reference::TextbookBully => {
                let failed = self.plan.failed;
                Box::new(TextbookBully::new(id, count, self.plan.t_us, elected, failed))
            }
        }
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.agenda.add(at, event);
    }

    fn run(&mut self) {
        while self.outcome.messages < MESSAGES_MAX
            && let Some((at, event)) = self.agenda.take(self.plan.duration_us)
        {
            self.now = at;
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Planned(Happening::Notice { node, .. }) => {
                self.act(node, |one, acts| one.begin(acts))
            }
            Event::Planned(Happening::Kill { node, .. }) => {
                self.nodes[index(node)] = None;
                self.observe(node);
            }
            Event::Planned(Happening::Boot { node, .. }) => {
                self.nodes[index(node)] = Some(self.node(node, None));
                self.act(node, |one, acts| one.booted(acts));
            }
            Event::Planned(_) => {}
            Event::Arrive { from, to, message } => {
                self.outcome.last_us = self.now;
                self.act(to, |one, acts| one.receive(from, message, acts));
            }
            Event::Waited { node, wait } => {
                if self.waits[index(node)] == wait {
                    self.act(node, |one, acts| one.waited(acts));
                }
            }
        }
    }

    fn act(&mut self, node: u8, what: impl FnOnce(&mut dyn Textbook, &mut Acts)) {
        let Some(one) = &mut self.nodes[index(node)] else { return };
        let mut acts = Acts::default();
        what(one.as_mut(), &mut acts);
        if acts.won {
            self.outcome.wins.push(node);
        }
        if let Some(wait_us) = acts.wait_us {
            self.waits[index(node)] += 1;
            let wait = self.waits[index(node)];
            self.schedule(self.now + wait_us, Event::Waited { node, wait });
        }
        self.observe(node);
        for (to, message) in acts.sends {
            let to = match to {
                To::Node(to) => to,
                To::Next => self.next_live(node),
            };
            self.send(node, to, message);
        }
    }

    fn send(&mut self, from: u8, to: u8, message: Message) {
        let number = self.outcome.messages;
        self.outcome.messages += 1;
        let faults = self.plan.happenings.iter();
        let lost = faults.clone().any(|fault| *fault == Happening::Lose { message: number });
        let twice = faults.clone().any(|fault| *fault == Happening::Duplicate { message: number });
        let late: Time = faults
            .map(|fault| match fault {
                Happening::Delay { message, by_us } if *message == number => *by_us,
                _ => 0,
            })
            .sum();
        for _ in 0..if lost { 0 } else { 1 + u8::from(twice) } {
            match self.network.carry(index(from), index(to), self.now, &mut self.rng) {
                Fate::Arrives { first, .. } => {
                    self.schedule(first + late, Event::Arrive { from, to, message });
                }
                Fate::Lost => {}
            }
        }
    }

    fn next_live(&self, node: u8) -> u8 {
        let ring = self.plan.ring.iter();
        let behind = ring.cycle().skip_while(|id| **id != node).skip(1).take(self.nodes.len());
        let mut live = behind.filter(|id| self.nodes[index(**id)].is_some());
        live.next().copied().unwrap_or(node)
    }

    /// Tells the checker what the node is now.
    fn observe(&mut self, node: u8) {
        let view = match &self.nodes[index(node)] {
            Some(one) => {
                let (status, coordinator) = one.view();
                View { live: true, status, coordinator, ..View::DOWN }
            }
            None => View::DOWN,
        };
        self.checker.update(self.now, index(node), view);
    }

    fn judge(mut self) -> Outcome {
        let count = self.nodes.len();
        self.outcome.settled = self.checker.is_settled(0..count);
        if !self.outcome.settled {
            let views: Vec<_> = (0..count).map(|node| *self.checker.view(node)).collect();
            let what = format!("{views:?}");
            self.checker.violation(self.now, "assertions 2 and 4: settled in time", what);
        }
        let notices = self.plan.happenings.iter().filter(|happening| {
            matches!(happening, Happening::Notice { .. } | Happening::Boot { .. })
        });
        if self.outcome.wins.len() > notices.count() {
            let what = format!("won by {:?}", self.outcome.wins);
            self.checker.violation(self.now, "more elections were won than begun", what);
        }
        let arrives = |event: &&Event| matches!(event, Event::Arrive { .. });
        self.outcome.under_way = self.agenda.iter().filter(arrives).count();
        self.outcome.elected = (0..count)
            .map(|node| {
                let view = self.checker.view(node);
                view.coordinator.filter(|_| view.live)
            })
            .collect();
        self.outcome.violations = self.checker.violations;
        self.outcome
    }
}

fn index(node: u8) -> usize {
    usize::from(node) - 1
}
