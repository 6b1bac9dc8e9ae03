//! Whatever happens, in whatever order: what must hold after every step of a node.
//!
//! Peers say anything that a correct or confused peer could say, in any state. They only keep to
//! one content per group number, which is what a correct coordinator promises.

use super::*;
use crate::config::{Detector, Durability};
use crate::effects::{Effect, Ticket};
use crate::id::NodeSet;
use crate::node::testing::{Act, Acts, Sent, group_of, id, set};
use crate::state::{StateVector, Status};
use crate::time::Duration;
use crate::wire::{Incumbent, Lap, Token};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

#[derive(Debug, Clone)]
enum Stimulus {
    NextTimer,
    Pass { ms: u64 },
    Request { from: u8, kind: u8, group: u8, flag: bool, nodes: u8, named: bool },
    Reply { from: u8, kind: u8, flag: bool, nodes: u8 },
    SaveDone,
    ReorganizationDone,
}

fn stimulus() -> impl Strategy<Value = Stimulus> {
    let request = (1u8..6, 0u8..15, 0u8..5, any::<bool>(), any::<u8>(), any::<bool>()).prop_map(
        |(from, kind, group, flag, nodes, named)| Stimulus::Request {
            from,
            kind,
            group,
            flag,
            nodes,
            named,
        },
    );
    let reply = (1u8..6, 0u8..10, prop::bool::weighted(0.8), any::<u8>())
        .prop_map(|(from, kind, flag, nodes)| Stimulus::Reply { from, kind, flag, nodes });
    prop_oneof![
        4 => Just(Stimulus::NextTimer),
        1 => (0u64..60).prop_map(|ms| Stimulus::Pass { ms }),
        6 => request,
        8 => reply,
        2 => Just(Stimulus::SaveDone),
        2 => Just(Stimulus::ReorganizationDone),
    ]
}

/// Some of the nodes 1 to 5.
fn some(nodes: u8) -> NodeSet<1> {
    set((1..=5).filter(|node| nodes & (1 << node) != 0))
}

/// Peers have one definition and one set of members per group, as correct coordinators do.
fn definition_of(group: GroupId) -> [u8; 2] {
    [group.coordinator.get(), group.number as u8]
}

struct Trial {
    bench: Bench<1>,
    strict: bool,
    before: StateVector<1>,
    task_runs: bool,
    saves: Vec<(Ticket, Option<GroupId>)>,
    durable: BTreeSet<GroupId>,
    reorganizations: Vec<GroupId>,
    asked: BTreeSet<GroupId>,
    readies: BTreeMap<GroupId, Message<'static, 1>>,
    calls: BTreeMap<u32, (&'static str, Option<GroupId>)>,
}

impl Trial {
    fn new(me: u8, algorithm: Algorithm, strict: bool) -> Self {
        let mut config = config(me, 5, algorithm);
        if me == 2 {
            config.observers = set([2, 4]);
        }
        // Every node has its own, so that all are tried.
        config.detector = match me {
            1 | 2 => Detector::Indirect,
            3 => Detector::Adaptive,
            4 if algorithm == Algorithm::Bully => Detector::Reliable,
            _ => Detector::Heartbeat,
        };
        if strict {
            config.durability = Durability::Strict;
            config.timing = config.timing.strict(5);
        }
        let (bench, acts) = Bench::booted(config);
        let mut trial = Self {
            bench,
            strict,
            before: StateVector::DOWN,
            task_runs: false,
            saves: Vec::new(),
            durable: BTreeSet::new(),
            reorganizations: Vec::new(),
            asked: BTreeSet::new(),
            readies: BTreeMap::new(),
            calls: BTreeMap::new(),
        };
        trial.hold(acts);
        trial
    }

    fn step(&mut self, stimulus: &Stimulus) {
        if matches!(stimulus, Stimulus::NextTimer | Stimulus::Pass { .. }) {
            // Safe storage is done within Ts; without, the node would be late and fail.
            while let Some(save) = self.saves.pop() {
                self.save_done(save);
            }
        }
        let acts = match *stimulus {
            Stimulus::NextTimer => self.bench.next(),
            Stimulus::Pass { ms } => {
                let end = self.bench.now + Duration::from_millis(ms);
                while self.bench.node.next_deadline().is_some_and(|at| at <= end) {
                    let acts = self.bench.next();
                    self.hold(acts);
                }
                self.bench.pass(end.since(self.bench.now))
            }
            Stimulus::Request { from, kind, group, flag, nodes, named } => {
                let message = self.request(from, kind, group, flag, nodes);
                let awaited = if named { [1, 2, 3, 4, 5].as_slice() } else { &[] };
                self.bench.hear(from, awaited, message)
            }
            Stimulus::Reply { from, kind, flag, nodes } => {
                self.bench.reply(from, reply(from, kind, flag, nodes))
            }
            Stimulus::SaveDone => {
                let Some(save) = self.saves.pop() else { return };
                return self.save_done(save);
            }
            Stimulus::ReorganizationDone => {
                let Some(group) = self.reorganizations.pop() else { return };
                self.bench.reorganized(group, &definition_of(group))
            }
        };
        self.hold(acts);
    }

    fn save_done(&mut self, (ticket, group): (Ticket, Option<GroupId>)) {
        self.durable.extend(group);
        let acts = self.bench.saved(ticket);
        self.hold(acts);
    }

    fn request(&self, from: u8, kind: u8, pick: u8, flag: bool, nodes: u8) -> Message<'static, 1> {
        let state = self.bench.state();
        let fallback = group_of(from, 1);
        let group = match pick {
            0 => state.group.unwrap_or(fallback),
            1 => state.halted_by.unwrap_or(fallback),
            seq => group_of(from, seq.into()),
        };
        let definition: &'static [u8] = Box::leak(definition_of(group).into());
        match kind {
            0 => Message::AreYouThere { group: Some(group), status: Status::Normal },
            1 => Message::AreYouThere { group: None, status: Status::Reorganization },
            2 => Message::AreYouNormal { group },
            3 => Message::Halt { group, binding: flag },
            4 => Message::NewCoordinator { group },
            5 => Message::Ready { group, up: set(1..=5), definition },
            6 => Message::AreYouCoordinator { group, roll_call: flag },
            7 => {
                let leave = if flag { state.group.unwrap_or(fallback) } else { fallback };
                let list = Box::leak(Box::new(InviteeList::<64>::default()));
                assert!(list.push(leave, &some(nodes)));
                let invitees = list.entries();
                Message::Invitation { group: group_of(from, pick.into()), invitees }
            }
            8 => Message::Accept { group },
            9..12 => {
                let lap = [Lap::Elect, Lap::Coord, Lap::Ready][usize::from(kind) - 9];
                let list = if flag { set(1..=5) } else { some(nodes) };
                let definition = if lap == Lap::Ready { definition } else { &[] };
                let (round, suspects) = (pick.into(), some(nodes >> 5));
                let incumbent = flag.then(|| Incumbent { id: id(from), members: nodes });
                let run = group;
                Message::Token(Token { lap, run, round, list, suspects, incumbent, definition })
            }
            12 => Message::Leaving { group: Some(group) },
            13 => Message::HaveYouHeard { group, about: some(nodes) },
            _ => Message::Beat { group, normal: flag },
        }
    }

    /// What must hold after a step.
    fn hold(&mut self, acts: Acts<1>) {
        if acts.failed().is_some() {
            panic!("a node that runs on time does not fail: {acts:?}");
        }
        let state = self.bench.state().clone();
        let me = self.bench.node.config().id;
        assert!(!state.up.contains(me), "Up never contains the node itself");
        assert!(self.bench.node.next_deadline().is_some(), "nobody waits for ever");
        let takes_part = matches!(state.status, Status::Reorganization | Status::Normal);
        if takes_part {
            let named = state.group.map(|group| group.coordinator);
            // The number of a ring's group is that of the run, and names its initiator.
            let right = self.bench.node.config().algorithm == Algorithm::Ring
                && state.coordinator.is_some()
                || state.coordinator == named;
            assert!(named.is_some() && right, "assertion 3a: {state:?}");
        }
        if state.status == Status::Normal {
            assert!(state.definition.is_some());
        }
        if self.strict && state != self.before {
            let save =
                matches!(acts.0.first(), Some(Act::Other(Effect::SaveState { wait: true, .. })));
            assert!(save, "saved before all else: {acts:?}");
            self.durable.extend(state.group);
        }
        self.before = state.clone();
        for act in acts.0 {
            match act {
                Act::Sent(sent) => self.hold_sent(sent, &state),
                Act::Other(effect) => self.hold_effect(effect, &state),
            }
        }
        assert_eq!(self.task_runs, state.status == Status::Normal, "the task runs when Normal");
    }

    fn hold_effect(&mut self, effect: Effect<'static, 1>, state: &StateVector<1>) {
        match effect {
            Effect::StartApplication => {
                assert!(!self.task_runs, "started twice");
                self.task_runs = true;
            }
            Effect::StopApplication => {
                assert!(self.task_runs, "stopped twice");
                self.task_runs = false;
            }
            Effect::Reorganize { group, members } => {
                assert!(self.asked.insert(group), "assertion 3b: asked once for {group:?}");
                assert_eq!(members, state.up.with(self.bench.node.config().id));
                self.reorganizations.push(group);
            }
            Effect::SaveState { ticket, wait: false } => self.saves.push((ticket, state.group)),
            _ => {}
        }
    }

    fn hold_sent(&mut self, sent: Sent<1>, state: &StateVector<1>) {
        let group = match sent.message {
            Message::ReadyAck { accepted: true } | Message::ReadyAns { ok: true } => {
                assert_eq!(state.status, Status::Normal);
                let durable = state.group.is_some_and(|group| self.durable.contains(&group));
                assert!(durable, "answered before it was durable");
                return;
            }
            Message::Ready { group, .. } => {
                let first = *self.readies.entry(group).or_insert(sent.message);
                assert_eq!(first, sent.message, "assertion 3b: one Ready per group");
                Some(group)
            }
            Message::Halt { group, .. }
            | Message::NewCoordinator { group }
            | Message::AreYouNormal { group }
            | Message::AreYouCoordinator { group, .. }
            | Message::Invitation { group, .. }
            | Message::Accept { group }
            | Message::HaveYouHeard { group, .. }
            | Message::Beat { group, .. } => Some(group),
            Message::AreYouThere { group, .. } => group,
            Message::Token(token) => {
                let coordinates = state.coordinator == Some(self.bench.node.config().id);
                if token.lap == Lap::Ready && !coordinates {
                    assert!(self.durable.contains(&token.run), "passed on before it was durable");
                }
                Some(token.run)
            }
            _ => return,
        };
        let content = (sent.message.kind().name(), group);
        let first = *self.calls.entry(sent.call).or_insert(content);
        assert_eq!(first, content, "one content per call number");
    }
}

fn reply(from: u8, kind: u8, flag: bool, nodes: u8) -> Message<'static, 1> {
    let group = Some(group_of(from, 1));
    match kind {
        0 => Message::AytAns { yes: flag },
        1 => Message::AynAns { normal: flag },
        2 => Message::HaltAck,
        3 => Message::NcAck { accepted: flag },
        4 => Message::ReadyAck { accepted: flag },
        5 => Message::ReadyAns { ok: flag },
        6 => Message::AycAns { yes: flag, group, up: some(nodes) },
        7 => Message::AcceptAns { ok: flag },
        8 => Message::Heard { heard: some(nodes) },
        _ => Message::HopAck,
    }
}

fn try_all(me: u8, stimuli: &[Stimulus], algorithm: Algorithm, strict: bool) {
    let mut trial = Trial::new(me, algorithm, strict);
    for stimulus in stimuli {
        trial.step(stimulus);
    }
}

proptest! {
    #[test]
    fn what_must_always_hold_in_bully(me in 1u8..6, stimuli in vec(stimulus(), 1..120)) {
        try_all(me, &stimuli, Algorithm::Bully, false);
    }

    #[test]
    fn what_must_always_hold_in_invitation(me in 1u8..6, stimuli in vec(stimulus(), 1..120)) {
        try_all(me, &stimuli, Algorithm::Invitation, false);
    }

    #[test]
    fn what_must_always_hold_in_ring(me in 1u8..6, stimuli in vec(stimulus(), 1..120)) {
        try_all(me, &stimuli, Algorithm::Ring, false);
    }

    #[test]
    fn what_must_always_hold_in_strict_ring(me in 1u8..6, stimuli in vec(stimulus(), 1..120)) {
        try_all(me, &stimuli, Algorithm::Ring, true);
    }

    #[test]
    fn what_must_always_hold_in_strict_bully(me in 1u8..6, stimuli in vec(stimulus(), 1..120)) {
        try_all(me, &stimuli, Algorithm::Bully, true);
    }

    #[test]
    fn what_must_always_hold_in_strict_invitation(
        me in 1u8..6,
        stimuli in vec(stimulus(), 1..120),
    ) {
        try_all(me, &stimuli, Algorithm::Invitation, true);
    }
}
