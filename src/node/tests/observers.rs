//! Nodes that never coordinate.

use super::*;
use crate::config::ConfigError;
use crate::effects::{Effect, Note};
use crate::node::Node;
use crate::node::testing::{group_of, keys, own_group, set};
use crate::state::Status;

/// Node `me` of five, of which these are observers.
fn awake(me: u8, algorithm: Algorithm, observers: &[u8]) -> Bench<1> {
    let mut config = config(me, 5, algorithm);
    config.observers = set(observers.iter().copied());
    let (bench, acts) = Bench::booted(config);
    acts.ignore();
    bench
}

#[test]
fn a_flock_of_observers_is_refused() {
    let mut all = config::<1>(3, 5, Algorithm::Bully);
    all.observers = set(1..=5);
    assert_eq!(Node::new(all, keys(), 0).unwrap_err(), ConfigError::OnlyObservers);
}

#[test]
fn observers_rank_below_everybody() {
    let bench = awake(1, Algorithm::Bully, &[4, 5]);
    assert_eq!(*bench.node.config().higher(), set([2, 3]));
    let bench = awake(4, Algorithm::Bully, &[4, 5]);
    assert_eq!(*bench.node.config().higher(), set([1, 2, 3, 5]));
}

#[test]
fn in_bully_an_observer_asks_and_never_halts() {
    let mut bench = awake(4, Algorithm::Bully, &[4, 5]);
    let acts = bench.fire(Timer::Phase);
    assert_eq!(acts.messages(), [], "nobody is halted");
    assert!(acts.has(Effect::Note(Note::OnlyObservers)), "it says so");
    assert_eq!((bench.status(), bench.coordinator()), (Status::Election, None));
    let acts = bench.fire(Timer::Quiet);
    assert_eq!(acts.broadcast().0, [1, 2, 3], "observers are not asked");
    let acts = bench.fire(Timer::Phase);
    assert_eq!(acts.notes(), [], "once");
}

#[test]
fn in_invitation_an_observer_is_alone_until_it_is_invited() {
    let mut bench = awake(4, Algorithm::Invitation, &[4]);
    assert_eq!((bench.status(), bench.coordinator()), (Status::Election, None));
    let group = own_group(4, 1);
    let acts = bench.fire(Timer::Beat);
    assert_eq!(acts.messages(), [Message::Beat { group, normal: false }], "to be found");
    let question = Message::AreYouCoordinator { group: group_of(3, 1), roll_call: false };
    let acts = bench.hear(3, &[4], question);
    let yes = Message::AycAns { yes: true, group: Some(group), up: set([]) };
    assert_eq!(acts.unicast(), (3, yes));
    let acts = bench.hear(3, &[4], invite_one(4, group_of(3, 2), group));
    assert_eq!(acts.unicast(), (3, Message::Accept { group: group_of(3, 2) }));
    assert_eq!(bench.coordinator(), Some(3));
}

#[test]
fn in_invitation_an_observer_does_not_inherit_a_group() {
    let mut bench = awake(4, Algorithm::Invitation, &[4]);
    let group = group_of(3, 2);
    bench.hear(3, &[4], invite_one(4, group, own_group(4, 1))).ignore();
    let ready = Message::Ready { group, up: set([1, 4]), definition: b"task" };
    let acts = bench.hear(3, &[1, 4], ready);
    bench.saved(acts.save()).ignore();
    assert_eq!(bench.status(), Status::Normal);
    bench.fire(Timer::Quiet).ignore();
    let acts = bench.fire(Timer::Phase);
    assert!(acts.stops() && acts.has(Effect::Note(Note::OnlyObservers)));
    assert_eq!((bench.status(), bench.coordinator()), (Status::Election, None));
}
