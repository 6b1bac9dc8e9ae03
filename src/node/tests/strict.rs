//! Durability: what is saved before what.

use super::*;
use crate::config::Durability;
use crate::effects::Effect;
use crate::node::testing::{Act, Acts, group_of, own_group, set};
use crate::state::{StateVector, Status};

/// A bench under strict durability that holds every step to the rule.
struct Strict {
    bench: Bench<1>,
    before: StateVector<1>,
    changes: usize,
}

impl Strict {
    fn booted(me: u8, algorithm: Algorithm) -> Self {
        let mut config = config(me, 5, algorithm);
        config.durability = Durability::Strict;
        let (bench, acts) = Bench::booted(config);
        let mut strict = Self { bench, before: StateVector::DOWN, changes: 0 };
        strict.hold(acts).ignore();
        strict
    }

    #[track_caller]
    fn hold(&mut self, acts: Acts<1>) -> Acts<1> {
        let changed = *self.bench.state() != self.before;
        let is_save = |act: &Act<1>| matches!(act, Act::Other(Effect::SaveState { .. }));
        let waits = |act: &Act<1>| matches!(act, Act::Other(Effect::SaveState { wait: true, .. }));
        assert_eq!(acts.0.first().is_some_and(waits), changed, "{acts:?}");
        assert_eq!(acts.0.iter().filter(|act| is_save(act)).count(), usize::from(changed));
        self.changes += usize::from(changed);
        self.before = self.bench.state().clone();
        acts
    }

    #[track_caller]
    fn step(&mut self, step: impl FnOnce(&mut Bench<1>) -> Acts<1>) -> Acts<1> {
        let acts = step(&mut self.bench);
        self.hold(acts)
    }

    #[track_caller]
    fn fire(&mut self, timer: Timer) -> Acts<1> {
        while self.bench.due_in(timer).is_some() {
            let deadline = self.bench.node.next_deadline().unwrap();
            let due = self.bench.station_mut().timers.clone().take_due(deadline);
            let acts = self.step(Bench::next);
            if due == Some(timer) {
                return acts;
            }
        }
        panic!("{timer:?} is not set")
    }
}

#[test]
fn strict_a_bully_coordinator_saves_every_change_first() {
    let mut node = Strict::booted(5, Algorithm::Bully);
    let group = own_group(5, 1);
    node.step(|bench| bench.reply(1, Message::HaltAck)).ignore();
    node.step(|bench| bench.reply(2, Message::HaltAck)).ignore();
    node.fire(Timer::Phase).ignore();
    node.step(|bench| bench.reply(1, Message::NcAck { accepted: true })).ignore();
    node.step(|bench| bench.reply(2, Message::NcAck { accepted: true })).ignore();
    node.step(|bench| bench.reorganized(group, b"d")).ignore();
    node.step(|bench| bench.reply(1, Message::ReadyAck { accepted: true })).ignore();
    let acts = node.step(|bench| bench.reply(2, Message::ReadyAck { accepted: true }));
    assert!(acts.starts());
    assert_eq!(node.bench.status(), Status::Normal);
    assert_eq!(node.changes, 6, "Halt, two acknowledgements, the point, d, Normal");
}

#[test]
fn strict_a_bully_member_saves_every_change_first() {
    let mut node = Strict::booted(3, Algorithm::Bully);
    let group = group_of(5, 1);
    let up = set([3]);
    node.step(|bench| bench.hear(5, &[3], Message::Halt { group, binding: true })).ignore();
    node.step(|bench| bench.hear(5, &[3], Message::NewCoordinator { group })).ignore();
    let ready = Message::Ready { group, up, definition: b"d" };
    let acts = node.step(|bench| bench.hear(5, &[3], ready));
    assert_eq!(acts.unicast(), (5, Message::ReadyAck { accepted: true }));
    assert_eq!((node.bench.status(), node.changes), (Status::Normal, 3));
    node.step(|bench| bench.hear(5, &[3], ready)).ignore();
    assert_eq!(node.changes, 3);
    // Another halter: nothing changes but h.
    let group = group_of(5, 2);
    node.step(|bench| bench.hear(5, &[3], Message::Halt { group, binding: true })).ignore();
    let group = group_of(5, 3);
    node.step(|bench| bench.hear(5, &[3], Message::Halt { group, binding: true })).ignore();
    assert_eq!(node.changes, 5);
}

#[test]
fn strict_an_invitation_coordinator_saves_every_change_first() {
    let mut node = Strict::booted(5, Algorithm::Invitation);
    assert_eq!(node.changes, 1);
    node.fire(Timer::Check).ignore();
    let group = Some(group_of(1, 1));
    let yes = Message::AycAns { yes: true, group, up: set([2]) };
    node.step(|bench| bench.reply(1, yes)).ignore();
    node.fire(Timer::Phase).ignore();
    let group = own_group(5, 2);
    node.step(|bench| bench.request(1, Message::Accept { group })).ignore();
    node.step(|bench| bench.request(2, Message::Accept { group })).ignore();
    node.step(|bench| bench.reorganized(group, b"d")).ignore();
    node.step(|bench| bench.reply(1, Message::ReadyAns { ok: true })).ignore();
    let acts = node.step(|bench| bench.reply(2, Message::ReadyAns { ok: true }));
    assert!(acts.starts());
    assert_eq!((node.bench.status(), node.changes), (Status::Normal, 6));
}

#[test]
fn strict_an_invitation_member_saves_every_change_first() {
    let mut node = Strict::booted(3, Algorithm::Invitation);
    let group = group_of(5, 2);
    let leave = own_group(3, 1);
    let acts = node.step(|bench| bench.hear(5, &[3], invite(group, leave)));
    assert_eq!(acts.unicast(), (5, Message::Accept { group }));
    node.step(|bench| bench.reply(5, Message::AcceptAns { ok: true })).ignore();
    let ready = Message::Ready { group, up: set([3]), definition: b"d" };
    let acts = node.step(|bench| bench.hear(5, &[3], ready));
    assert_eq!(acts.unicast(), (5, Message::ReadyAns { ok: true }));
    assert_eq!((node.bench.status(), node.changes), (Status::Normal, 4));
}

#[test]
fn a_step_that_changes_nothing_saves_nothing() {
    for algorithm in ALL {
        let mut node = Strict::booted(3, algorithm);
        let changes = node.changes;
        node.step(|bench| bench.step(Event::Tick)).none();
        let question = Message::AreYouThere { group: None, status: Status::Down };
        node.step(|bench| bench.hear(1, &[3], question)).ignore();
        assert_eq!(node.changes, changes);
    }
}
