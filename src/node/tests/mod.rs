//! What a node does whatever its algorithm: bad input, waking, running late, safe storage.

extern crate std;

mod bad_input;
mod boot;
mod late;
mod leaving;
mod observers;
mod random;
mod strict;

use super::Event;
use super::testing::{Bench, config};
use crate::config::Algorithm;
use crate::id::GroupId;
use crate::id::NodeSet;
use crate::timers::Timer;
use crate::wire::{InviteeList, Message};
use std::boxed::Box;

const ALL: [Algorithm; 3] = [Algorithm::Bully, Algorithm::Invitation, Algorithm::Ring];

/// Node 3 of the nodes 1 to 5, just awake.
fn awake(algorithm: Algorithm) -> Bench<1> {
    let (mut bench, acts) = Bench::booted(config(3, 5, algorithm));
    acts.ignore();
    if algorithm == Algorithm::Ring {
        // It stays deaf for a while.
        bench.fire(Timer::Phase).ignore();
        bench.step(Event::Tick).none();
    }
    bench
}

/// An Invitation to `group` for node 3 alone, which is in the group `leave`.
fn invite(group: GroupId, leave: GroupId) -> Message<'static, 1> {
    invite_one(3, group, leave)
}

fn invite_one(node: u8, group: GroupId, leave: GroupId) -> Message<'static, 1> {
    let list = Box::leak(Box::new(InviteeList::<64>::default()));
    let invited: NodeSet<1> = super::testing::set([node]);
    assert!(list.push(leave, &invited), "it fits");
    Message::Invitation { group, invitees: list.entries() }
}
