//! One test or more for each row of the transition table B1 to B17, and for what goes beyond it.
//!
//! The node on the bench is one of the nodes 1 to 5; its peers are datagrams written by hand.

extern crate std;

mod assertions;
mod check;
mod election;
mod monitor;
mod provoked;
mod refinements;
mod seniority;
mod timeout;

use crate::config::{Algorithm, Config};
use crate::id::GroupId;
use crate::node::testing::{Acts, Bench, config, group_of, own_group, set};
use crate::state::Status;
use crate::timers::Timer;
use crate::wire::Message;

const TASK: &[u8] = b"task";

fn bully(me: u8) -> Config<1> {
    config(me, 5, Algorithm::Bully)
}

/// A node that has just woken.
fn awake(me: u8) -> Bench<1> {
    let (bench, acts) = Bench::booted(bully(me));
    acts.ignore();
    bench
}

fn halt(group: GroupId) -> Message<'static, 1> {
    Message::Halt { group, binding: true }
}

/// Node 3, halted by node 5 in its first election.
fn halted() -> Bench<1> {
    let mut bench = awake(3);
    let acts = bench.hear(5, &[1, 2, 3, 4], halt(group_of(5, 1)));
    assert_eq!(acts.unicast(), (5, Message::HaltAck));
    bench
}

/// Node 3, which has accepted node 5 as its coordinator.
fn announced() -> Bench<1> {
    let mut bench = halted();
    let message = Message::NewCoordinator { group: group_of(5, 1) };
    let acts = bench.hear(5, &[1, 2, 3, 4], message);
    assert_eq!(acts.unicast(), (5, Message::NcAck { accepted: true }));
    bench
}

fn ready(group: GroupId, up: &[u8]) -> Message<'static, 1> {
    Message::Ready { group, up: set(up.iter().copied()), definition: TASK }
}

/// Node 3, Normal in the group of all five under node 5.
fn member() -> Bench<1> {
    let mut bench = announced();
    let acts = bench.hear(5, &[1, 2, 3, 4], ready(group_of(5, 1), &[1, 2, 3, 4]));
    let acts = bench.saved(acts.save());
    assert_eq!(acts.unicast(), (5, Message::ReadyAck { accepted: true }));
    assert_eq!(bench.status(), Status::Normal);
    bench
}

/// Node `me` in its Halt round: nobody above it has answered.
fn halting(me: u8) -> (Bench<1>, Acts<1>) {
    let (mut bench, mut acts) = Bench::booted(bully(me));
    if me < 5 {
        acts = bench.fire(Timer::Phase);
    }
    (bench, acts)
}

/// Node `me` after its election point; `others` have acknowledged its Halt.
fn announcing(me: u8, others: &[u8]) -> (Bench<1>, Acts<1>) {
    let (mut bench, acts) = halting(me);
    acts.ignore();
    for other in others {
        bench.reply(*other, Message::HaltAck).none();
    }
    let acts = bench.fire(Timer::Phase);
    (bench, acts)
}

/// Node `me` that has asked its application for a definition.
fn reorganizing(me: u8, others: &[u8]) -> (Bench<1>, Acts<1>) {
    let (mut bench, mut acts) = announcing(me, others);
    for other in others {
        acts = bench.reply(*other, Message::NcAck { accepted: true });
    }
    (bench, acts)
}

/// Node `me` whose Ready is under way.
fn distributing(me: u8, others: &[u8]) -> (Bench<1>, Acts<1>) {
    let (mut bench, acts) = reorganizing(me, others);
    let (group, _) = acts.reorganize();
    let acts = bench.reorganized(group, TASK);
    (bench, acts)
}

/// Node 5 as the Normal coordinator of `others`.
fn coordinator(others: &[u8]) -> Bench<1> {
    let (mut bench, acts) = distributing(5, others);
    bench.saved(acts.save()).ignore();
    for other in others {
        bench.reply(*other, Message::ReadyAck { accepted: true }).ignore();
    }
    assert_eq!(bench.status(), Status::Normal);
    assert_eq!(bench.state().group, Some(own_group(5, 1)));
    bench
}
