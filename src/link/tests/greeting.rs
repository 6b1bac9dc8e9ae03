//! Hello: who says it to whom, and when a node takes part.

use super::*;
use crate::node::testing::{Act, BOOT, PEER_BOOT, Sent, group_of, own_group, set};
use crate::timers::Timer;
use crate::wire::{EchoList, Echoes, Reject};
use std::boxed::Box;

fn hello(asks: bool, waking: bool, echoes: &[(u8, u32)]) -> Message<'static, 1> {
    let list = Box::leak(Box::new(EchoList::default()));
    echoes.iter().for_each(|(node, epoch)| list.push(id(*node), *epoch));
    Message::Hello { asks, waking, uptime_ms: 5, instance: 0, echoes: list.entries() }
}

/// The one Hello of late: to whom, whom it asks, in which boots it knows others.
#[track_caller]
fn said(bench: &mut Bench<1>) -> (Destination, bool, bool, Vec<u8>, Echoes<'static>, u32) {
    let hellos = core::mem::take(&mut bench.hellos);
    let [Sent { to, envelope, message, receiver, .. }] = hellos[..] else { panic!("{hellos:?}") };
    let Message::Hello { asks, waking, echoes, .. } = message else { panic!("{message:?}") };
    let awaited = match envelope {
        Envelope::Broadcast { awaited } => awaited.iter().map(crate::id::NodeId::get).collect(),
        _ => Vec::new(),
    };
    (to, asks, waking, awaited, echoes, receiver)
}

#[test]
fn a_node_greets_all_and_again_those_who_were_silent() {
    let mut bench = waking();
    let (to, asks, waking, awaited, echoes, _) = said(&mut bench);
    assert_eq!((to, asks, waking, echoes), (Destination::All, true, true, Echoes::NONE));
    assert_eq!(awaited, [1, 2, 4, 5]);
    let t = bench.timing().t;
    assert_eq!(bench.due_in(Timer::Greeting), Some(t.fraction(1, 2)));
    bench.request(4, Bench::answer_to_greeting()).none();
    bench.fire(Timer::Greeting).none();
    let (_, _, waking, awaited, echoes, _) = said(&mut bench);
    assert_eq!((awaited, waking), ([1, 2, 5].into(), true));
    assert!(echoes.contains(id(4), PEER_BOOT), "it asked, too");
    assert_eq!(bench.due_in(Timer::Greeting), Some(t.minus(t.fraction(1, 2))));
}

#[test]
fn after_t_whoever_is_silent_is_dead() {
    let mut bench = waking();
    bench.fire(Timer::Greeting).none();
    let acts = bench.fire(Timer::Greeting);
    // Nobody above has answered: that is what Ask would have found out.
    let halt = Message::Halt { group: own_group(3, 1), binding: true };
    assert_eq!(acts.broadcast(), ([1, 2].into(), halt));
    let mut bench = waking();
    bench.request(4, Bench::answer_to_greeting()).none();
    bench.fire(Timer::Greeting).none();
    bench.fire(Timer::Greeting).none();
    let acts = bench.fire(Timer::Greeting);
    assert_eq!(acts.broadcast(), ([4, 5].into(), QUESTION), "node 4 is there: it is asked");
}

#[test]
fn the_greeting_ends_when_all_have_answered_and_proves_the_node_to_all() {
    let mut bench = waking();
    bench.hellos.clear();
    for other in [1, 2, 4] {
        bench.request(other, Bench::answer_to_greeting()).none();
    }
    bench.request(5, Bench::answer_to_greeting()).none();
    let (to, asks, waking, _, echoes, _) = said(&mut bench);
    assert_eq!((to, asks, waking), (Destination::All, false, false));
    for other in [1, 2, 4, 5] {
        assert!(echoes.contains(id(other), PEER_BOOT));
    }
    bench.fire(Timer::Greeting).ignore();
    assert_eq!((bench.due_in(Timer::Greeting), bench.hellos.len()), (None, 0));
}

/// The first Halt or question of a node may be faster than its last Hello, and would be refused.
#[test]
fn a_node_takes_part_only_when_its_last_hello_has_certainly_arrived() {
    let mut bench = waking();
    for other in [1, 2, 4, 5] {
        bench.request(other, Bench::answer_to_greeting()).none();
    }
    bench.hellos.clear();
    assert!(bench.due_in(Timer::Greeting) >= Some(bench.timing().tm), "a clock may be fast");
    bench.pass(bench.timing().tm).none();
    let halt = Message::Halt { group: group_of(5, 1), binding: true };
    bench.hear(5, &[3], halt).none();
    assert_eq!(bench.rejected(Reject::Down), 1, "as if without power");
    let acts = bench.fire(Timer::Greeting);
    assert_eq!(acts.broadcast(), ([4, 5].into(), QUESTION));
}

#[test]
fn nodes_that_wake_together_wait_out_their_t() {
    let mut bench = waking();
    bench.hellos.clear();
    for other in [1, 2, 4] {
        bench.request(other, Bench::answer_to_greeting()).none();
    }
    bench.hear(5, &[3], hello(true, true, &[(3, BOOT)])).none();
    assert!(bench.station_mut().link.proven().contains(id(5)));
    assert!(
        bench.due_in(Timer::Hello).is_some(),
        "node 5 cannot wait for the end of this greeting"
    );
    bench.fire(Timer::Hello).none();
    let (_, _, waking, _, echoes, _) = said(&mut bench);
    assert!(waking && echoes.contains(id(5), PEER_BOOT));
    bench.hear(5, &[], hello(false, false, &[])).none();
    let acts = bench.fire(Timer::Greeting);
    assert_eq!(acts.broadcast(), ([4, 5].into(), QUESTION), "the other one is awake first");
}

#[test]
fn a_waking_node_takes_no_part() {
    let mut bench = waking();
    bench.request(5, Bench::answer_to_greeting()).none();
    let halt = Message::Halt { group: group_of(5, 1), binding: true };
    bench.hear(5, &[3], halt).none();
    assert_eq!((bench.rejected(Reject::Down), bench.status()), (1, Status::Down));
}

#[test]
fn who_asks_is_answered_alone_and_soon() {
    let mut bench = awake();
    let new = PEER_BOOT + 2;
    let envelope = Envelope::Broadcast { awaited: set([1, 3]) };
    bench.peer_sequence.set(1);
    let mut header = bench.header(2, Destination::All, crate::wire::Kind::Hello);
    header.boot = new;
    let mut room = [0; 200];
    let key = &keys().send.key;
    let hello = hello(true, true, &[]);
    let len = seal::seal(&header, key, (0, 0), &envelope, &hello, &mut room).unwrap();
    bench.receive(&room[..len]).none();
    assert_eq!(bench.rejected(Reject::Unproven), 1);
    assert!(bench.due_in(Timer::Hello) <= Some(bench.timing().tp));
    bench.fire(Timer::Hello).none();
    let (to, asks, waking, _, _, receiver) = said(&mut bench);
    assert_eq!((to, asks, waking, receiver), (Destination::Node(id(2)), true, false, new));
}

#[test]
fn several_are_answered_at_once() {
    let mut bench = awake();
    bench.pass(bench.timing().t.fraction(1, 4)).ignore();
    bench.hear(1, &[3], hello(true, false, &[])).none();
    bench.hear(2, &[3, 4], hello(true, false, &[])).none();
    bench.hear(4, &[2], hello(true, false, &[])).none();
    bench.fire(Timer::Hello).none();
    let (to, asks, _, _, echoes, _) = said(&mut bench);
    assert_eq!((to, asks), (Destination::All, false), "all are proven");
    let known = |node| echoes.contains(id(node), PEER_BOOT);
    assert!(known(1) && known(2) && !known(4), "node 4 did not ask this one");
}

#[test]
fn nobody_is_answered_twice_within_a_quarter_of_t() {
    let mut bench = awake();
    let mut answers = 0;
    for _ in 0..100 {
        bench.hear(2, &[3], hello(true, false, &[])).none();
        bench.pass(bench.timing().tp.fraction(1, 2)).ignore();
        answers += bench.hellos.len();
        bench.hellos.clear();
    }
    // 100 times Tp/2 are ten T.
    assert!((10..=40).contains(&answers), "{answers}");
}

#[test]
fn a_member_of_ones_group_that_is_not_proven_is_asked() {
    let mut bench = waking();
    for other in [1, 2, 5] {
        bench.request(other, Bench::answer_to_greeting()).none();
    }
    (0..3).for_each(|_| bench.fire(Timer::Greeting).ignore());
    bench.hellos.clear();
    let group = group_of(5, 1);
    bench.hear(5, &[3], Message::Halt { group, binding: true }).ignore();
    bench.hear(5, &[3], Message::NewCoordinator { group }).ignore();
    let ready = Message::Ready { group, up: set([1, 2, 3, 4]), definition: b"d" };
    let acts = bench.hear(5, &[3], ready);
    assert!(acts.0.iter().any(|act| matches!(act, Act::Other(_))));
    bench.fire(Timer::Hello).ignore();
    let (to, asks, _, _, _, receiver) = said(&mut bench);
    assert_eq!((to, asks, receiver), (Destination::Node(id(4)), true, 0));
}

#[test]
fn a_flock_of_one_has_nobody_to_greet() {
    let (bench, acts) = Bench::<1>::waking(config(1, 1, Algorithm::Bully));
    assert_eq!(acts.reorganize().1, [1]);
    assert_eq!(bench.hellos, []);
}
