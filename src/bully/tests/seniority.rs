//! Who gives way to whom: `preempt = false` and hold-off.

use super::*;
use crate::effects::Note;
use crate::node::testing::id;
use crate::time::Duration;
use crate::wire::{Envelope, Reject};

fn asks(group: Option<GroupId>, status: Status) -> Message<'static, 1> {
    Message::AreYouThere { group, status }
}

const WOKEN: Message<'static, 1> = Message::AreYouThere { group: None, status: Status::Down };
const YES: Message<'static, 1> = Message::AytAns { yes: true };
const GIVES_WAY: Message<'static, 1> = Message::AytAns { yes: false };

fn policy(me: u8, preempt: bool, hold_off: Duration) -> (Bench<1>, Acts<1>) {
    let mut config = bully(me);
    config.preempt = preempt;
    config.hold_off = hold_off;
    Bench::booted(config)
}

/// Node `me` without preemption, just awake.
fn polite(me: u8) -> Bench<1> {
    let (bench, acts) = policy(me, false, Duration::ZERO);
    acts.ignore();
    bench
}

/// Node `me` as the Normal coordinator of the lower `others`; nobody else has answered.
fn coordinating(mut bench: Bench<1>, others: &[u8]) -> Bench<1> {
    bench.fire(Timer::Phase).ignore();
    for other in others {
        bench.reply(*other, Message::HaltAck).none();
    }
    bench.fire(Timer::Phase).ignore();
    let mut acts = Acts([].into());
    for other in others {
        acts = bench.reply(*other, Message::NcAck { accepted: true });
    }
    let acts = bench.reorganized(acts.reorganize().0, TASK);
    bench.saved(acts.save()).ignore();
    for other in others {
        bench.reply(*other, Message::ReadyAck { accepted: true }).ignore();
    }
    assert_eq!(bench.status(), Status::Normal);
    bench
}

#[test]
fn a_node_that_wakes_asks_everybody_and_waits_for_a_lower_coordinator() {
    let (mut bench, acts) = policy(5, false, Duration::ZERO);
    assert_eq!(acts.broadcast(), ([1, 2, 3, 4].into(), WOKEN));
    bench.reply(3, YES).none();
    assert_eq!(bench.status(), Status::Down, "it takes no part");
    assert!(bench.due_in(Timer::Quiet) >= Some(bench.timing().t.times(2)));
    assert_eq!(bench.fire(Timer::Quiet).broadcast(), ([1, 2, 3, 4].into(), WOKEN));
    let acts = bench.fire(Timer::Phase);
    assert_eq!(acts.broadcast(), ([1, 2, 3, 4].into(), halt(own_group(5, 1))), "it is gone");
}

#[test]
fn only_a_node_that_keeps_its_role_answers_a_higher_one() {
    let mut idle = polite(3);
    idle.hear(5, &[1, 2, 3, 4], WOKEN).none();
    let mut coordinator = coordinating(polite(3), &[1, 2]);
    let acts = coordinator.hear(5, &[1, 2, 3, 4], WOKEN);
    assert_eq!(acts.sent()[0].message, YES);
    assert_eq!(acts.notes(), [Note::ProvokedBy(id(5))], "and takes it in");
    let (question, own) = (acts.sent()[1], Some(own_group(3, 1)));
    assert_eq!(question.message, asks(own, Status::Normal));
    assert_eq!(question.envelope, Envelope::Broadcast { awaited: set([4, 5]) });
}

#[test]
fn the_lower_coordinator_halts_those_who_give_way_and_nobody_else() {
    let mut bench = coordinating(polite(3), &[1, 2]);
    bench.hear(5, &[1, 2, 3, 4], WOKEN).ignore();
    bench.reply(5, GIVES_WAY).none();
    let acts = bench.fire(Timer::Phase);
    assert_eq!(acts.broadcast(), ([1, 2, 5].into(), halt(own_group(3, 2))));

    let mut bench = coordinating(polite(3), &[1, 2]);
    bench.hear(5, &[1, 2, 3, 4], WOKEN).ignore();
    bench.reply(5, GIVES_WAY).none();
    bench.reply(4, YES).none();
    assert_eq!((bench.status(), bench.due_in(Timer::Phase)), (Status::Normal, None), "B3");
}

#[test]
fn who_gives_way_obeys_that_halt_and_calls_no_election_before() {
    let mut bench = polite(5);
    bench.reply(3, YES).none();
    bench.pass(bench.timing().t).none();
    let acts = bench.hear(3, &[4, 5], asks(Some(group_of(3, 1)), Status::Normal));
    assert_eq!(acts.unicast(), (3, GIVES_WAY));
    assert!(bench.due_in(Timer::Quiet) >= Some(bench.timing().t.times(2)));
    let acts = bench.hear(3, &[1, 2, 5], halt(group_of(3, 2)));
    assert_eq!(acts.unicast(), (3, Message::HaltAck));
    assert_eq!(bench.state().halted_by, Some(group_of(3, 2)));
}

#[test]
fn it_obeys_nobody_else_from_below_and_only_when_it_is_named() {
    let mut bench = polite(5);
    bench.reply(3, YES).none();
    bench.hear(2, &[1, 5], halt(group_of(2, 1))).ignore();
    assert_eq!(bench.rejected(Reject::HaltFromBelow), 1);
    bench.hear(3, &[1, 2], halt(group_of(3, 2))).none();
    assert_eq!(bench.status(), Status::Down);
    assert_eq!(bench.hear(2, &[5], WOKEN).unicast(), (2, YES));
}

#[test]
fn a_senior_that_woke_anew_has_lost_its_role() {
    let mut bench = polite(5);
    bench.reply(3, YES).none();
    assert_eq!(bench.hear(3, &[1, 2, 4, 5], WOKEN).unicast(), (3, YES));
    bench.hear(3, &[1, 2, 5], halt(group_of(3, 2))).ignore();
    assert_eq!(bench.rejected(Reject::HaltFromBelow), 1);
}

#[test]
fn with_preemption_nobody_gives_way() {
    let mut bench = awake(4);
    let acts = bench.hear(3, &[4, 5], asks(Some(group_of(3, 1)), Status::Normal));
    assert_eq!(acts.unicast(), (3, YES));
}

/// Node 5 is there, and asks.
fn woken(bench: &mut Bench<1>) -> Acts<1> {
    bench.request(5, Bench::answer_to_greeting()).none();
    bench.hear(5, &[1, 2, 3, 4], WOKEN)
}

#[test]
fn a_node_that_keeps_rebooting_is_told_to_wait_and_provokes_nothing() {
    let t = bully(3).timing.t;
    let (bench, acts) = policy(3, true, t.times(20));
    acts.ignore();
    let mut bench = coordinating(bench, &[1, 2]);
    woken(&mut bench).none();
    bench.reboot_peer(5);
    woken(&mut bench).none();
    bench.reboot_peer(5);
    let acts = woken(&mut bench);
    assert_eq!((acts.unicast(), acts.notes()), ((5, YES), [].into()));
    assert_eq!(bench.status(), Status::Normal);
    // When it has been up for long enough, silence tells it that it may take over.
    for _ in 0..20 {
        bench.pass(t).ignore();
    }
    assert_eq!(woken(&mut bench).messages(), []);
}
