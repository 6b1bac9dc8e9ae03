//! One test or more for each row of the transition table R1 to R27.
//!
//! The node on the bench is one of the nodes 1 to 5; its peers are datagrams written by hand.

extern crate std;

mod assertions;
mod check;
mod hops;
mod laps;
mod policies;
mod timeout;

use crate::config::{Algorithm, Config};
use crate::effects::Effect;
use crate::id::{GroupId, NodeSet};
use crate::node::testing::{Act, Acts, Bench, config, group_of, own_group, set};
use crate::state::Status;
use crate::timers::Timer;
use crate::wire::{Lap, Message, Token};
use std::vec::Vec;

const TASK: &[u8] = b"task";

fn ring(me: u8) -> Config<1> {
    config(me, 5, Algorithm::Ring)
}

/// A token of a peer.
fn token(lap: Lap, run: GroupId, round: u32, list: &[u8]) -> Message<'static, 1> {
    Message::Token(Token {
        lap,
        run,
        round,
        list: set(list.iter().copied()),
        suspects: NodeSet::EMPTY,
        incumbent: None,
        definition: if lap == Lap::Ready { TASK } else { b"" },
    })
}

fn elect(run: GroupId, round: u32, list: &[u8]) -> Message<'static, 1> {
    token(Lap::Elect, run, round, list)
}

/// The one token that was passed on: to whom, its lap, its list and its suspects.
#[track_caller]
fn hop(acts: &Acts<1>) -> (u8, Lap, Vec<u8>, Vec<u8>) {
    let tokens: Vec<_> = (acts.sent().into_iter())
        .filter_map(|sent| match (sent.to, sent.message) {
            (crate::wire::Destination::Node(to), Message::Token(token)) => Some((to, token)),
            _ => None,
        })
        .collect();
    let [(to, token)] = tokens[..] else { panic!("one token, not {acts:?}") };
    let ids = |set: NodeSet<1>| set.iter().map(crate::id::NodeId::get).collect();
    (to.get(), token.lap, ids(token.list), ids(token.suspects))
}

/// The nodes to which a HopAck went.
fn acks(acts: &Acts<1>) -> Vec<u8> {
    (acts.sent().into_iter())
        .filter(|sent| sent.message == Message::HopAck)
        .map(|sent| match sent.to {
            crate::wire::Destination::Node(to) => to.get(),
            crate::wire::Destination::All => 0,
        })
        .collect()
}

/// A node that has just started its first run.
fn started(me: u8) -> (Bench<1>, Acts<1>) {
    let (mut bench, acts) = Bench::booted(ring(me));
    acts.none();
    let acts = bench.fire(Timer::Phase);
    (bench, acts)
}

/// Node 3 in the run of node 5, whose second hop led to node 2.
fn joined() -> (Bench<1>, GroupId) {
    let (mut bench, acts) = started(3);
    acts.ignore();
    let run = group_of(5, 1);
    let acts = bench.request(2, elect(run, 1, &[5, 1, 2]));
    assert_eq!((acks(&acts), hop(&acts).0), ([2].into(), 4));
    bench.reply(4, Message::HopAck).none();
    (bench, run)
}

/// Node 3, which follows node 5 in its run.
fn announced() -> (Bench<1>, GroupId) {
    let (mut bench, run) = joined();
    let acts = bench.request(2, token(Lap::Coord, run, 1, &[1, 2, 3, 4, 5]));
    assert_eq!((acks(&acts), hop(&acts).0), ([2].into(), 4));
    bench.reply(4, Message::HopAck).none();
    (bench, run)
}

/// Node 3, Normal in the group of all five under node 5.
fn member() -> (Bench<1>, GroupId) {
    let (mut bench, run) = announced();
    let acts = bench.request(2, token(Lap::Ready, run, 1, &[1, 2, 3, 4, 5]));
    let acts = bench.saved(acts.save());
    assert_eq!((acks(&acts), hop(&acts).0), ([2].into(), 4));
    bench.reply(4, Message::HopAck).none();
    assert_eq!(bench.status(), Status::Normal);
    (bench, run)
}

/// Node 5, whose own first run has come back with everybody.
fn elected() -> (Bench<1>, Acts<1>) {
    let (mut bench, acts) = started(5);
    assert_eq!(hop(&acts).0, 1);
    bench.reply(1, Message::HopAck).none();
    let acts = bench.request(4, elect(own_group(5, 1), 1, &[1, 2, 3, 4, 5]));
    (bench, acts)
}

/// Node 5, whose Coord lap has come back: the application is asked.
fn reorganizing() -> (Bench<1>, Acts<1>) {
    let (mut bench, acts) = elected();
    assert_eq!(hop(&acts).0, 1);
    bench.reply(1, Message::HopAck).none();
    let acts = bench.request(4, token(Lap::Coord, own_group(5, 1), 1, &[1, 2, 3, 4, 5]));
    (bench, acts)
}

/// Node 5 as the Normal coordinator of all others.
fn coordinator() -> Bench<1> {
    let (mut bench, acts) = reorganizing();
    let (run, _) = acts.reorganize();
    let acts = bench.reorganized(run, TASK);
    bench.saved(acts.save()).none();
    bench.reply(1, Message::HopAck).none();
    let acts = bench.request(4, token(Lap::Ready, run, 1, &[1, 2, 3, 4, 5]));
    assert_eq!(acks(&acts), [4]);
    assert_eq!(bench.status(), Status::Normal);
    bench
}

/// Whether a run of the node's own began, and with which suspects.
#[track_caller]
fn starts_a_run(acts: &Acts<1>, me: u8, seq: u32, suspects: &[u8]) {
    let (_, lap, list, found) = hop(acts);
    assert_eq!((lap, list), (Lap::Elect, [me].into()));
    assert_eq!(found, suspects);
    assert!(acts.has(Effect::Election(own_group(me, seq))), "{acts:?}");
}
