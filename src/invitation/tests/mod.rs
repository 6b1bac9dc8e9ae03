//! One test or more for each row of the transition table I1 to I21, and for what goes beyond it.
//!
//! The node on the bench is one of the nodes 1 to 5; its peers are datagrams written by hand.

extern crate std;

mod accepting;
mod assertions;
mod check;
mod distribute;
mod merge;
mod refinements;
mod room;
mod seniority;
mod timeout;

use crate::config::{Algorithm, Config};
use crate::id::NodeSet;
use crate::id::{GroupId, NodeId};
use crate::node::testing::{Acts, Bench, config, group_of, own_group, set};
use crate::state::Status;
use crate::timers::Timer;
use crate::wire::{InviteeList, Message};
use std::boxed::Box;
use std::vec::Vec;

const TASK: &[u8] = b"task";

fn invitation(me: u8) -> Config<1> {
    config(me, 5, Algorithm::Invitation)
}

/// A node that has just woken: Normal and alone in the first group of its own.
fn awake(me: u8) -> Bench<1> {
    let (bench, acts) = Bench::booted(invitation(me));
    acts.ignore();
    bench
}

/// An Invitation to `group` with entries of a group to leave and those who are invited.
fn invite(group: GroupId, entries: &[(GroupId, &[u8])]) -> Message<'static, 1> {
    let list = Box::leak(Box::new(InviteeList::<256>::default()));
    for (leave, invited) in entries {
        let invited: NodeSet<1> = set(invited.iter().copied());
        assert!(list.push(*leave, &invited), "it fits");
    }
    Message::Invitation { group, invitees: list.entries() }
}

/// The group and the entries of an Invitation.
#[track_caller]
fn invited(message: &Message<'_, 1>) -> (GroupId, Vec<(GroupId, Vec<u8>)>) {
    let Message::Invitation { group, invitees } = message else {
        panic!("an Invitation, not {message:?}")
    };
    let ids = |(leave, members): (GroupId, crate::id::NodeSet<1>)| {
        (leave, members.iter().map(NodeId::get).collect())
    };
    (*group, invitees.iter().map(ids).collect())
}

fn yes(group: GroupId, up: &[u8]) -> Message<'static, 1> {
    Message::AycAns { yes: true, group: Some(group), up: set(up.iter().copied()) }
}

fn ready(group: GroupId, up: &[u8]) -> Message<'static, 1> {
    Message::Ready { group, up: set(up.iter().copied()), definition: TASK }
}

/// The node is alone again, in its `seq`th group, and said what it had to.
#[track_caller]
fn alone(bench: &Bench<1>, acts: &Acts<1>, seq: u32) {
    let me = bench.node.config().id.get();
    let group = own_group(me, seq);
    assert_eq!((bench.status(), bench.coordinator()), (Status::Normal, Some(me)));
    assert_eq!(bench.state().group, Some(group));
    assert_eq!((bench.up(), bench.definition()), ([].into(), Some(&[][..])));
    acts.save();
    assert!(acts.starts());
    assert_eq!(acts.broadcast(), ([].into(), Message::Beat { group, normal: true }));
    assert_eq!(bench.due_in(Timer::Phase), None);
    assert_eq!(bench.due_in(Timer::Limit), None);
    assert_eq!(bench.due_in(Timer::Quiet), None);
}

/// Node `me` in its first Check.
fn checking(me: u8) -> (Bench<1>, Acts<1>) {
    let mut bench = awake(me);
    let acts = bench.fire(Timer::Check);
    (bench, acts)
}

/// Node 5 that has found the lone coordinators `others` and invites them to its second group.
fn merging(others: &[u8]) -> (Bench<1>, Acts<1>) {
    let (mut bench, _) = checking(5);
    let mut acts = Acts([].into());
    for other in others {
        acts = bench.reply(*other, yes(group_of(*other, 1), &[]));
    }
    if others.len() < 4 {
        acts = bench.fire(Timer::Phase);
    }
    (bench, acts)
}

fn accept(bench: &mut Bench<1>, from: u8, seq: u32) -> Acts<1> {
    let group = own_group(bench.node.config().id.get(), seq);
    bench.request(from, Message::Accept { group })
}

/// Node 5 that distributes the definition of its second group to `others`.
fn distributing(others: &[u8]) -> (Bench<1>, Acts<1>) {
    let (mut bench, mut acts) = merging(others);
    for other in others {
        acts = accept(&mut bench, *other, 2);
    }
    let (group, _) = acts.reorganize();
    let acts = bench.reorganized(group, TASK);
    (bench, acts)
}

/// Node 5 as the Normal coordinator of its second group with `others`.
fn coordinator(others: &[u8]) -> Bench<1> {
    let (mut bench, acts) = distributing(others);
    bench.saved(acts.save()).ignore();
    for other in others {
        bench.reply(*other, Message::ReadyAns { ok: true }).ignore();
    }
    assert_eq!((bench.status(), bench.up()), (Status::Normal, others.into()));
    bench
}

/// Node 3 that has accepted the invitation of node 5.
fn accepting() -> (Bench<1>, Acts<1>) {
    let mut bench = awake(3);
    let message = invite(group_of(5, 2), &[(own_group(3, 1), &[3]), (group_of(4, 1), &[4])]);
    let acts = bench.hear(5, &[3, 4], message);
    (bench, acts)
}

/// Node 3 that knows that node 5 counts on it.
fn confirmed() -> Bench<1> {
    let (mut bench, acts) = accepting();
    acts.ignore();
    bench.reply(5, Message::AcceptAns { ok: true }).none();
    assert_eq!(bench.status(), Status::Reorganization);
    bench
}

/// Node 3, Normal in the group of all five under node 5.
fn member() -> Bench<1> {
    let mut bench = confirmed();
    let acts = bench.hear(5, &[1, 2, 3, 4], ready(group_of(5, 2), &[1, 2, 3, 4]));
    bench.saved(acts.save()).ignore();
    assert_eq!((bench.status(), bench.up()), (Status::Normal, [1, 2, 4, 5].into()));
    bench
}
