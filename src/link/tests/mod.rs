//! The link, held to what its text says.

extern crate std;

mod clash;
mod greeting;
mod nonces;
mod seals;
mod version_1;
mod window;

use crate::config::Algorithm;
use crate::node::testing::{Bench, config, id, keys};
use crate::state::Status;
use crate::wire::{Destination, Envelope, Message};
use std::vec::Vec;

use super::seal::{self, Header};

/// Node 3 of the nodes 1 to 5, awake, all others proven.
fn awake() -> Bench<1> {
    let (mut bench, acts) = Bench::booted(config(3, 5, Algorithm::Bully));
    acts.ignore();
    bench.hellos.clear();
    bench
}

/// Node 3, whose greeting has just begun.
fn waking() -> Bench<1> {
    let (bench, acts) = Bench::waking(config(3, 5, Algorithm::Bully));
    acts.none();
    bench
}

const QUESTION: Message<'static, 1> = Message::AreYouThere { group: None, status: Status::Down };

/// A question of node 2 to node 3 under a header that `change` may spoil before it is sealed.
fn question(bench: &Bench<1>, receiver: u32, change: impl Fn(&mut Header)) -> Vec<u8> {
    bench.peer_sequence.set(bench.peer_sequence.get() + 1);
    let mut header = bench.header(2, Destination::Node(id(3)), QUESTION.kind());
    change(&mut header);
    let mut room = [0; 200];
    let envelope = Envelope::Request;
    let key = &keys().send.key;
    let len = seal::seal(&header, key, (9, receiver), &envelope, &QUESTION, &mut room).unwrap();
    room[..len].to_vec()
}
