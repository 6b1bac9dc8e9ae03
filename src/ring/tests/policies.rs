//! Observers, no preemption, hold-off, leaving (R23 to R26), and others who vouch for a coordinator.

use super::*;
use crate::effects::Note;
use crate::node::testing::id;
use crate::time::Duration;
use crate::wire::{Incumbent, Reject};

const ALL: [u8; 5] = [1, 2, 3, 4, 5];

fn with_incumbent(message: Message<'static, 1>, one: u8, members: u8) -> Message<'static, 1> {
    let Message::Token(token) = message else { panic!("{message:?}") };
    let incumbent = Some(Incumbent { id: id(one), members });
    Message::Token(Token { incumbent, ..token })
}

/// The incumbent of the token that was passed on.
fn incumbent(acts: &Acts<1>) -> Option<(u8, u8)> {
    let found = acts.messages().into_iter().find_map(|message| match message {
        Message::Token(token) => Some(token.incumbent),
        _ => None,
    });
    found.expect("a token").map(|one| (one.id.get(), one.members))
}

// --- observers --------------------------------------------------------------------------------

#[test]
fn r23_a_list_of_observers_has_no_coordinator() {
    let (mut bench, acts) = started(3);
    acts.ignore();
    bench.station_mut().config.observers = set([1, 2, 3]);
    bench.reply(4, Message::HopAck).none();
    let acts = bench.request(2, elect(own_group(3, 1), 1, &[1, 2, 3]));
    assert_eq!((acks(&acts), acts.messages().len()), ([2].into(), 1), "no Coord lap");
    assert_eq!(acts.notes(), [Note::OnlyObservers]);
    assert_eq!((bench.status(), bench.coordinator()), (Status::Election, None));
    let mut again = bench.fire(Timer::Limit);
    starts_a_run(&again, 3, 2, &[]);
    bench.reply(4, Message::HopAck).none();
    // A candidate wakes, whose first run is below those that came to nothing.
    again = bench.request(2, elect(group_of(2, 1), 1, &[2]));
    assert_eq!(again.messages(), [Message::HopAck], "the run of this node may still come back");
    bench.pass(bench.timing().lap(5) + Duration(1)).none();
    starts_a_run(&bench.request(2, elect(group_of(2, 2), 2, &[2])), 3, 3, &[]);
}

/// Node 3, an observer, in a run of the observers 1 and 2 that has given up the candidates 4 and 5.
fn in_vain() -> Bench<1> {
    let (mut bench, acts) = started(3);
    acts.ignore();
    bench.station_mut().config.observers = set([1, 2, 3]);
    bench.reply(4, Message::HopAck).none();
    let Message::Token(token) = elect(group_of(2, 9), 9, &[2]) else { panic!("no token") };
    let suspects = set([4, 5]);
    let acts = bench.request(2, Message::Token(Token { suspects, ..token }));
    assert_eq!(hop(&acts), (1, Lap::Elect, [2, 3].into(), [4, 5].into()));
    bench.reply(1, Message::HopAck).none();
    bench
}

#[test]
fn r27_a_coordinator_that_the_run_has_given_up_is_heard() {
    let beat = Message::Beat { group: group_of(5, 1), normal: true };
    let mut bench = in_vain();
    let acts = bench.hear(5, &[], beat);
    assert_eq!(acts.notes(), [Note::ProvokedBy(id(5))]);
    starts_a_run(&acts, 3, 2, &[]);
    // That run may well come to something.
    bench.reply(4, Message::HopAck).none();
    bench.hear(5, &[], beat).none();
    // A coordinator that cannot be reached does not cause a run with every Beat.
    let mut bench = in_vain();
    let period = bench.timing().check;
    let station = bench.station_mut();
    while station.ring.provocations.take(station.now, period) {}
    bench.hear(5, &[], beat).none();
}

#[test]
fn r6_a_smaller_run_shows_one_in_vain_that_there_are_candidates() {
    let mut bench = in_vain();
    let acts = bench.request(5, elect(group_of(5, 2), 2, &[4, 5]));
    assert_eq!((acks(&acts), acts.notes()[0]), ([5].into(), Note::ProvokedBy(id(5))));
    starts_a_run(&acts, 3, 2, &[]);
}

#[test]
fn r23_an_observer_passes_tokens_on_and_is_not_chosen() {
    let (mut bench, run) = joined();
    bench.station_mut().config.observers = set([4, 5]);
    let acts = bench.request(2, token(Lap::Coord, run, 1, &ALL));
    assert_eq!(acts.reorganize().1, ALL, "the highest that is no observer");
    let (mut bench, run) = joined();
    bench.station_mut().config.observers = set([3]);
    let acts = bench.request(2, token(Lap::Coord, run, 1, &[1, 2, 3]));
    assert_eq!((hop(&acts).0, bench.coordinator()), (1, Some(2)));
}

#[test]
fn r23_no_later_lap_of_observers_alone_is_believed() {
    let (mut bench, run) = joined();
    bench.station_mut().config.observers = set([3, 4]);
    for lap in [Lap::Coord, Lap::Ready] {
        let refused = bench.rejected(Reject::Field);
        bench.request(2, token(lap, run, 1, &[3, 4])).none();
        assert_eq!(bench.rejected(Reject::Field), refused + 1, "{lap:?}");
    }
    assert_eq!((bench.status(), bench.coordinator()), (Status::Election, None));
}

// --- no preemption ----------------------------------------------------------------------------

#[test]
fn r24_a_coordinator_keeps_its_role() {
    let mut bench = coordinator();
    bench.station_mut().config.preempt = false;
    let acts = bench.request(4, elect(group_of(4, 1), 2, &[4]));
    assert_eq!(incumbent(&acts), Some((5, 5)));
    let mut bench = coordinator();
    let acts = bench.request(4, elect(group_of(4, 1), 2, &[4]));
    assert_eq!(incumbent(&acts), None, "with preemption there is no such thing");
    let (mut bench, _) = member();
    bench.station_mut().config.preempt = false;
    let acts = bench.request(2, elect(group_of(2, 1), 2, &[1, 2]));
    assert_eq!(incumbent(&acts), None, "a member has no role to keep");
}

#[test]
fn r24_of_two_coordinators_the_one_of_the_larger_group_stays() {
    for (other, members, stays) in [(4, 6, (4, 6)), (4, 4, (5, 5)), (4, 5, (5, 5))] {
        let mut bench = coordinator();
        bench.station_mut().config.preempt = false;
        let run = with_incumbent(elect(group_of(4, 1), 2, &[4]), other, members);
        assert_eq!(incumbent(&bench.request(4, run)), Some(stays));
    }
}

#[test]
fn r24_the_incumbent_goes_before_the_highest() {
    let (mut bench, run) = joined();
    let coord = with_incumbent(token(Lap::Coord, run, 1, &ALL), 2, 4);
    let acts = bench.request(2, coord);
    assert_eq!((incumbent(&acts), bench.coordinator()), (Some((2, 4)), Some(2)));
    let (mut bench, run) = joined();
    let coord = with_incumbent(token(Lap::Coord, run, 1, &[1, 3, 4, 5]), 2, 4);
    bench.request(1, coord).ignore();
    assert_eq!(bench.coordinator(), Some(5), "unless it has died");
}

#[test]
fn r24_a_role_survives_a_run_that_came_to_nothing_and_no_other_coordinator() {
    let mut bench = coordinator();
    bench.station_mut().config.preempt = false;
    bench.request(4, elect(group_of(4, 1), 2, &[4])).ignore();
    let acts = bench.request(4, elect(group_of(4, 2), 3, &[4]));
    assert_eq!(incumbent(&acts), Some((5, 5)));
    let run = group_of(4, 2);
    let list = [4, 5];
    bench.reply(1, Message::HopAck).none();
    bench.request(4, token(Lap::Coord, run, 3, &list)).ignore();
    assert_eq!(bench.coordinator(), Some(5), "the token that came back says nothing else");
}

// --- hold-off ---------------------------------------------------------------------------------

/// Node 5 has rebooted too often for this node.
fn restless(bench: &mut Bench<1>) {
    bench.station_mut().config.hold_off = Duration::from_millis(1_000_000);
    for _ in 0..2 {
        bench.reboot_peer(5);
        bench.request(5, Bench::answer_to_greeting()).ignore();
    }
}

#[test]
fn r25_a_run_of_a_node_that_is_held_off_ends_here() {
    let (mut bench, _) = member();
    let acts = bench.request(2, elect(group_of(5, 7), 9, &[5, 1, 2]));
    assert_eq!(hop(&acts).0, 4, "its first reboots count for nothing");
    let (mut bench, _) = member();
    restless(&mut bench);
    let acts = bench.request(2, elect(group_of(5, 7), 9, &[5, 1, 2]));
    assert_eq!(acts.messages(), [Message::HopAck], "it must not believe to be alone");
    assert_eq!((bench.status(), bench.rejected(Reject::HeldOff)), (Status::Normal, 1));
}

#[test]
fn r25_a_node_that_is_held_off_joins_a_run_and_is_left_out_of_the_group() {
    let (mut bench, acts) = started(3);
    acts.ignore();
    restless(&mut bench);
    bench.reply(4, Message::HopAck).none();
    let acts = bench.request(2, elect(own_group(3, 1), 1, &ALL));
    let (to, lap, list, _) = hop(&acts);
    assert_eq!((to, lap, list), (1, Lap::Coord, [1, 2, 3, 4].into()));
}

// --- leaving ----------------------------------------------------------------------------------

fn leaving(run: GroupId) -> Message<'static, 1> {
    Message::Leaving { group: Some(run) }
}

#[test]
fn r26_the_hop_to_a_node_that_leaves_has_failed_at_once() {
    let (mut bench, acts) = started(3);
    assert_eq!(hop(&acts).0, 4);
    let acts = bench.hear(4, &[], leaving(group_of(4, 1)));
    let (to, _, _, suspects) = hop(&acts);
    assert_eq!((to, suspects), (5, [4].into()));
    bench.reply(5, Message::HopAck).none();
    let acts = bench.fire(Timer::Limit);
    starts_a_run(&acts, 3, 2, &[4]);
}

#[test]
fn r26_whoever_knows_spares_the_run_a_node_that_has_left() {
    let (mut bench, acts) = started(3);
    acts.ignore();
    bench.reply(4, Message::HopAck).none();
    bench.hear(4, &[], leaving(group_of(4, 1))).ignore();
    let acts = bench.request(2, elect(group_of(5, 1), 1, &[5, 1, 2]));
    let (to, _, _, suspects) = hop(&acts);
    assert_eq!((to, suspects), (5, [4].into()));
}

#[test]
fn r26_a_departure_counts_until_the_next_group() {
    let (mut bench, run) = joined();
    bench.hear(4, &[], leaving(group_of(4, 1))).ignore();
    let without_it = [1, 2, 3, 5];
    bench.request(2, token(Lap::Coord, run, 1, &without_it)).ignore();
    bench.reply(5, Message::HopAck).none();
    let acts = bench.request(2, token(Lap::Ready, run, 1, &without_it));
    bench.saved(acts.save()).ignore();
    bench.reply(5, Message::HopAck).none();
    assert_eq!(bench.status(), Status::Normal);
    // Node 4 may be back by now; its greeting was lost on the way to this node.
    let (to, _, _, suspects) = hop(&bench.request(2, elect(group_of(5, 2), 2, &[5, 1, 2])));
    assert_eq!((to, suspects), (4, [].into()));
}

#[test]
fn r26_a_coordinator_goes_on_without_the_member_that_leaves() {
    let mut bench = coordinator();
    let acts = bench.hear(2, &[], leaving(own_group(5, 1)));
    starts_a_run(&acts, 5, 2, &[2]);
    bench.hear(2, &[], leaving(own_group(5, 1))).ignore();
    assert_eq!(bench.node.counters().elections, 2, "once");
}

// --- others vouch -----------------------------------------------------------------------------

/// Node 3, Normal under node 5 in a run that node 2 began: the group is not named after node 5.
fn member_of_another_run() -> (Bench<1>, GroupId) {
    let mut config = ring(3);
    config.detector = crate::config::Detector::Indirect;
    let (mut bench, acts) = Bench::booted(config);
    acts.none();
    bench.fire(Timer::Phase).ignore();
    let run = group_of(2, 1);
    bench.request(2, elect(run, 2, &[2])).ignore();
    bench.reply(4, Message::HopAck).none();
    bench.request(2, token(Lap::Coord, run, 2, &ALL)).ignore();
    bench.reply(4, Message::HopAck).none();
    let acts = bench.request(2, token(Lap::Ready, run, 2, &ALL));
    bench.saved(acts.save()).ignore();
    bench.reply(4, Message::HopAck).none();
    assert_eq!((bench.status(), bench.coordinator()), (Status::Normal, Some(5)));
    (bench, run)
}

#[test]
fn indirect_others_vouch_for_a_silent_coordinator() {
    let (mut bench, group) = member_of_another_run();
    let acts = bench.fire(Timer::Quiet);
    let question = Message::HaveYouHeard { group, about: set([5]) };
    assert_eq!(acts.broadcast(), ([1, 2, 4].into(), question));
    bench.reply(2, Message::Heard { heard: set([5]) }).none();
    assert_eq!((bench.due_in(Timer::Phase), bench.status()), (None, Status::Normal));
    bench.fire(Timer::Quiet).ignore();
    let acts = bench.fire(Timer::Phase);
    assert_eq!(acts.notes(), [Note::Suspected(id(5))], "nobody answered: a probe follows");
    starts_a_run(&bench.fire(Timer::Phase), 3, 2, &[5]);
}

#[test]
fn indirect_a_member_vouches_for_the_coordinator_and_not_for_the_initiator() {
    let (mut bench, group) = member_of_another_run();
    bench.hear(5, &[], Message::Beat { group, normal: true }).none();
    let about = |nodes: &[u8]| Message::HaveYouHeard { group, about: set(nodes.iter().copied()) };
    let acts = bench.hear(1, &[3, 4], about(&[5]));
    assert_eq!(acts.unicast(), (1, Message::Heard { heard: set([5]) }));
    assert_eq!(bench.hear(1, &[3, 4], about(&[2])).messages(), [], "nothing is known of it");
}

#[test]
fn indirect_a_coordinator_asks_before_a_member_is_gone() {
    let mut bench = coordinator();
    bench.station_mut().watch = crate::detector::Watch::new(crate::config::Detector::Indirect);
    bench.fire(Timer::Check).ignore();
    for member in [1, 3, 4] {
        bench.reply(member, Message::AynAns { normal: true }).none();
    }
    let acts = bench.fire(Timer::Phase);
    let question = Message::HaveYouHeard { group: own_group(5, 1), about: set([2]) };
    assert_eq!(acts.broadcast(), ([1, 3, 4].into(), question));
    let acts = bench.fire(Timer::Phase);
    assert_eq!(acts.notes(), [Note::Suspected(id(2))]);
    starts_a_run(&acts, 5, 2, &[2]);
}
