//! What each detector promises, on a bench: the node is one of the nodes 1 to 5 under node 5.

extern crate std;

use super::*;
use crate::config::{Algorithm, ConfigError};
use crate::id::NodeSet;
use crate::node::Node;
use crate::node::testing::{Bench, config, group_of, id, keys, own_group, set};
use crate::state::Status;
use crate::timers::Timer;
use crate::wire::Message;
use std::vec::Vec;

const GROUP_SEQ: u32 = 1;

fn configured(me: u8, detector: Detector) -> Config<1> {
    let mut config = config(me, 5, Algorithm::Bully);
    config.detector = detector;
    config
}

/// Node 3, Normal in the group of all five under node 5.
fn member(detector: Detector) -> Bench<1> {
    let (mut bench, acts) = Bench::booted(configured(3, detector));
    acts.ignore();
    let group = group_of(5, GROUP_SEQ);
    let all = [1, 2, 3, 4];
    bench.hear(5, &all, Message::Halt { group, binding: true }).ignore();
    bench.hear(5, &all, Message::NewCoordinator { group }).ignore();
    let ready = Message::Ready { group, up: set(all), definition: b"task" };
    let acts = bench.hear(5, &all, ready);
    bench.saved(acts.save()).ignore();
    assert_eq!(bench.status(), Status::Normal);
    bench
}

/// Node 5 as the Normal coordinator of all others.
fn coordinator(detector: Detector) -> Bench<1> {
    let (mut bench, acts) = Bench::booted(configured(5, detector));
    acts.ignore();
    for member in 1..=4 {
        bench.reply(member, Message::HaltAck).none();
    }
    bench.fire(Timer::Phase).ignore();
    for member in 1..=3 {
        bench.reply(member, Message::NcAck { accepted: true }).none();
    }
    let (group, _) = bench.reply(4, Message::NcAck { accepted: true }).reorganize();
    let acts = bench.reorganized(group, b"task");
    bench.saved(acts.save()).ignore();
    for member in 1..=4 {
        bench.reply(member, Message::ReadyAck { accepted: true }).ignore();
    }
    assert_eq!(bench.status(), Status::Normal);
    bench
}

fn beat(bench: &mut Bench<1>) {
    bench.hear(5, &[], Message::Beat { group: group_of(5, GROUP_SEQ), normal: true }).none();
}

fn question(about: &[u8]) -> Message<'static, 1> {
    Message::HaveYouHeard { group: group_of(5, GROUP_SEQ), about: set(about.iter().copied()) }
}

fn heard(nodes: &[u8]) -> Message<'static, 1> {
    Message::Heard { heard: set(nodes.iter().copied()) }
}

// --- reliable ---------------------------------------------------------------------------------

#[test]
fn reliable_calls_and_an_answer_is_no_news() {
    let mut bench = member(Detector::Reliable);
    let acts = bench.fire(Timer::Quiet);
    assert!(matches!(acts.broadcast().1, Message::AreYouThere { .. }));
    assert_eq!(acts.notes(), [], "a call is no suspicion");
    assert_eq!(bench.reply(5, Message::AytAns { yes: true }).notes(), []);
    let counters = *bench.node.counters();
    assert_eq!((counters.suspicions, counters.suspicions_wrong), (0, 0));
    assert!(bench.due_in(Timer::Quiet).is_some());
}

#[test]
fn reliable_suspects_after_t_and_acts() {
    let mut bench = member(Detector::Reliable);
    bench.fire(Timer::Quiet).ignore();
    let acts = bench.fire(Timer::Phase);
    assert_eq!(acts.notes()[0], Note::Suspected(id(5)));
    assert!(matches!(acts.broadcast().1, Message::Halt { .. }));
}

#[test]
fn reliable_coordinators_send_no_beats() {
    let mut bench = coordinator(Detector::Reliable);
    let acts = bench.pass(bench.timing().beat.times(5));
    assert_eq!(acts.messages(), []);
    let mut bench = coordinator(Detector::Heartbeat);
    let acts = bench.pass(bench.timing().beat.times(5));
    assert!(acts.messages().iter().all(|message| matches!(message, Message::Beat { .. })));
    assert!(acts.messages().len() >= 4);
}

#[test]
fn a_node_that_was_taken_for_dead_and_is_heard_in_the_same_boot_was_suspected_wrongly() {
    for detector in [Detector::Reliable, Detector::Heartbeat] {
        let mut bench = member(detector);
        bench.fire(Timer::Quiet).ignore();
        bench.fire(Timer::Phase).ignore();
        assert_eq!(bench.node.counters().suspicions_wrong, 0);
        let acts = bench.hear(5, &[], Message::Beat { group: group_of(5, 9), normal: true });
        assert_eq!(acts.notes(), [Note::SuspicionWrong(id(5))]);
        bench.hear(5, &[], Message::Beat { group: group_of(5, 9), normal: true }).ignore();
        assert_eq!(bench.node.counters().suspicions_wrong, 1, "once");
    }
}

#[test]
fn reliable_is_for_bully_alone() {
    let mut invitation = config::<1>(3, 5, Algorithm::Invitation);
    invitation.detector = Detector::Reliable;
    let refused = Node::new(invitation, keys(), 0).unwrap_err();
    assert_eq!(refused, ConfigError::ReliableNeedsBully);
}

// --- adaptive ---------------------------------------------------------------------------------

/// The patience of a detector that has heard Beats this many milliseconds apart.
fn after(gaps: &[u64]) -> Duration {
    let config = configured(3, Detector::Adaptive);
    let mut adaptive = Adaptive::default();
    let mut now = Instant(0);
    adaptive.heard(now, (id(5), group_of(5, 1)), &config);
    for gap in gaps {
        now = now + Duration::from_millis(*gap);
        adaptive.heard(now, (id(5), group_of(5, 1)), &config);
    }
    adaptive.patience(&config)
}

#[test]
fn adaptive_starts_with_the_least_silence_and_keeps_it_on_a_good_network() {
    let timing = configured(3, Detector::Adaptive).timing;
    let least = timing.beat + timing.tm.times(2);
    assert_eq!(after(&[]), least);
    assert_eq!(after(&[30; 100]), least);
}

#[test]
fn adaptive_learns_within_a_few_beats_and_forgets_slowly() {
    let least = after(&[]);
    let late: Vec<u64> = (0..20).map(|beat| if beat % 2 == 0 { 90 } else { 30 }).collect();
    let learned = after(&late);
    assert!(learned > Duration::from_millis(140), "{learned}");
    assert!(after(&late[..6]) > Duration::from_millis(110), "{}", after(&late[..6]));
    let calm = [late.clone(), [30; 20].to_vec()].concat();
    assert!(after(&calm) > least && after(&calm) < learned);
    let calmer = [late, [30; 300].to_vec()].concat();
    assert_eq!(after(&calmer), least);
}

/// A Check that is repeated every few milliseconds must not make a node that knows a bad network nervous.
#[test]
fn adaptive_learns_nothing_from_questions_between_two_beats() {
    let late: Vec<u64> = (0..20).map(|beat| if beat % 2 == 0 { 90 } else { 30 }).collect();
    let asked = [late.clone(), [6; 100].to_vec()].concat();
    assert_eq!(after(&asked), after(&late));
}

#[test]
fn adaptive_never_bears_more_than_is_configured() {
    let most = configured(3, Detector::Adaptive).quiet_max;
    let wild: Vec<u64> = (0..50).map(|beat| if beat % 2 == 0 { 5000 } else { 30 }).collect();
    assert_eq!(after(&wild), most);
}

#[test]
fn adaptive_does_not_measure_from_one_group_to_the_next() {
    let config = configured(3, Detector::Adaptive);
    let mut adaptive = Adaptive::default();
    let before = adaptive.patience(&config);
    for seq in 1..20 {
        let now = Instant(u64::from(seq) * 1_000_000);
        adaptive.heard(now, (id(5), group_of(5, seq)), &config);
    }
    assert_eq!(adaptive.patience(&config), before);
}

#[test]
fn adaptive_needs_room_for_the_least_silence() {
    let mut config = configured(3, Detector::Adaptive);
    config.quiet_max = config.timing.beat + config.timing.tm;
    let refused = Node::new(config, keys(), 0).unwrap_err();
    assert!(matches!(refused, ConfigError::QuietMaxTooShort { .. }));
}

#[test]
fn adaptive_sets_the_quiet_timer() {
    let mut bench = member(Detector::Adaptive);
    let stagger = bench.timing().stagger;
    beat(&mut bench);
    let least = bench.due_in(Timer::Quiet);
    let timing = bench.timing();
    assert_eq!(least, Some(timing.beat + timing.tm.times(2) + stagger));
    for _ in 0..8 {
        bench.pass(timing.quiet).ignore();
        beat(&mut bench);
    }
    assert!(bench.due_in(Timer::Quiet) > least);
}

// --- indirect ---------------------------------------------------------------------------------

#[test]
fn indirect_asks_others_before_it_suspects() {
    let mut bench = member(Detector::Indirect);
    let acts = bench.fire(Timer::Quiet);
    assert_eq!(acts.broadcast(), ([1, 2, 4].into(), question(&[5])));
    assert_eq!(acts.notes(), []);
    assert_eq!(bench.reply(2, heard(&[5])).0, []);
    assert_eq!(bench.due_in(Timer::Phase), None, "content");
    assert!(bench.due_in(Timer::Quiet).is_some(), "for a while");
    assert_eq!(bench.node.counters().suspicions, 0);
}

#[test]
fn indirect_suspects_when_all_say_no_or_nobody_answers() {
    let mut bench = member(Detector::Indirect);
    bench.fire(Timer::Quiet).ignore();
    bench.reply(1, heard(&[])).none();
    bench.reply(2, heard(&[])).none();
    let acts = bench.reply(4, heard(&[]));
    assert_eq!(acts.notes(), [Note::Suspected(id(5))]);
    assert!(matches!(acts.broadcast().1, Message::AreYouThere { .. }));

    let mut bench = member(Detector::Indirect);
    bench.fire(Timer::Quiet).ignore();
    let acts = bench.fire(Timer::Phase);
    assert_eq!(acts.notes(), [Note::Suspected(id(5))]);
    let acts = bench.fire(Timer::Phase);
    assert!(matches!(acts.broadcast().1, Message::Halt { .. }));
}

#[test]
fn indirect_members_say_whether_they_have_just_heard_the_coordinator() {
    let mut bench = member(Detector::Indirect);
    beat(&mut bench);
    assert_eq!(bench.hear(2, &[1, 3, 4], question(&[5])).unicast(), (2, heard(&[5])));
    assert_eq!(bench.hear(2, &[1, 4], question(&[5])).0, [], "somebody else is asked");
    bench.pass(bench.timing().beat + bench.timing().tm + Duration(1)).none();
    assert_eq!(bench.hear(2, &[1, 3, 4], question(&[5])).unicast(), (2, heard(&[])));
    let other = Message::HaveYouHeard { group: group_of(5, 8), about: set([5]) };
    assert_eq!(bench.hear(2, &[1, 3, 4], other).0, [], "of another group it knows nothing");
}

#[test]
fn indirect_members_vouch_for_whom_they_heard_asking() {
    let mut bench = member(Detector::Indirect);
    beat(&mut bench);
    let passed_on = bench.hear(5, &[1, 3, 4], question(&[2])).unicast();
    assert_eq!(passed_on, (2, question(&[2])), "nothing known: it is asked itself");
    assert_eq!(bench.hear(5, &[1, 4], question(&[2])).0, [], "others are to do that");
    assert_eq!(bench.hear(4, &[1, 3], question(&[2])).0, [], "for the coordinator alone");
    bench.hear(2, &[1, 4], question(&[5])).none();
    assert_eq!(bench.hear(5, &[1, 3, 4], question(&[2])).unicast(), (5, heard(&[2])));
    let long = Indirect::<1>::memory(bench.node.config()).times(2) + Duration(1);
    while bench.now < Instant(1_000_000) + long.times(3) {
        bench.pass(bench.timing().beat).ignore();
        beat(&mut bench);
    }
    let passed_on = bench.hear(5, &[1, 3, 4], question(&[2])).unicast();
    assert_eq!(passed_on, (2, question(&[2])), "long ago");
}

#[test]
fn indirect_a_member_that_is_missed_tells_everybody() {
    let mut bench = member(Detector::Indirect);
    let acts = bench.hear(5, &[1, 2, 4], question(&[3]));
    assert_eq!(acts.messages(), [heard(&[3]), question(&[])]);
    let acts = bench.request(2, question(&[3]));
    assert_eq!(acts.messages(), [heard(&[3]), question(&[])], "whoever passes that on");
}

#[test]
fn indirect_a_missed_member_that_speaks_up_meanwhile_is_not_gone() {
    let (mut bench, acts) = two_is_silent(Detector::Indirect);
    acts.ignore();
    let group = own_group(5, 1);
    bench.hear(2, &[], Message::HaveYouHeard { group, about: NodeSet::EMPTY }).none();
    bench.fire(Timer::Phase).none();
    assert_eq!(bench.status(), Status::Normal);
}

/// A Check that these members answer; what the coordinator does at its end.
fn check(bench: &mut Bench<1>, answering: &[u8]) -> crate::node::testing::Acts<1> {
    bench.fire(Timer::Check).ignore();
    for member in answering {
        bench.reply(*member, Message::AynAns { normal: true }).none();
    }
    bench.fire(Timer::Repeat).ignore();
    bench.fire(Timer::Phase)
}

/// The coordinator after a Check that node 2 did not answer; what it did at the end.
fn two_is_silent(detector: Detector) -> (Bench<1>, crate::node::testing::Acts<1>) {
    let mut bench = coordinator(detector);
    let acts = check(&mut bench, &[1, 3, 4]);
    (bench, acts)
}

#[test]
fn indirect_coordinators_ask_others_before_a_member_is_gone() {
    let (_, acts) = two_is_silent(Detector::Heartbeat);
    assert!(matches!(acts.broadcast().1, Message::Halt { .. }));

    let group = own_group(5, 1);
    let about = Message::HaveYouHeard { group, about: set([2]) };
    let (mut bench, acts) = two_is_silent(Detector::Indirect);
    assert_eq!(acts.broadcast(), ([1, 3, 4].into(), about));
    assert_eq!(bench.reply(4, heard(&[2])).0, []);
    assert_eq!((bench.status(), bench.due_in(Timer::Phase)), (Status::Normal, None));

    let (mut bench, _) = two_is_silent(Detector::Indirect);
    let acts = bench.fire(Timer::Phase);
    assert_eq!(acts.notes(), [Note::Suspected(id(2))]);
    assert!(matches!(acts.broadcast().1, Message::Halt { .. }), "nobody has heard of it");
}

#[test]
fn indirect_coordinators_leave_it_at_two_questions_and_ask_others_instead() {
    let mut bench = coordinator(Detector::Indirect);
    bench.fire(Timer::Check).ignore();
    let began = bench.now;
    bench.fire(Timer::Repeat).ignore();
    assert_eq!(bench.due_in(Timer::Repeat), None);
    bench.fire(Timer::Phase).ignore();
    assert_eq!(bench.now.since(began), bench.timing().t);
    assert_eq!(bench.due_in(Timer::Phase), Some(bench.timing().t.times(2)));
}

/// Others vouch for node 2 at every Check. That must not hide that node 3 is dead.
#[test]
fn indirect_coordinators_ask_about_each_silent_member_in_its_turn() {
    let mut bench = coordinator(Detector::Indirect);
    for about in [2, 3, 2, 3] {
        let acts = check(&mut bench, &[1, 4]);
        let question = Message::HaveYouHeard { group: own_group(5, 1), about: set([about]) };
        assert_eq!(acts.broadcast().1, question);
        bench.reply(4, heard(&[about])).none();
    }
}

#[test]
fn indirect_a_question_of_a_member_is_a_sign_of_life() {
    let mut bench = coordinator(Detector::Indirect);
    let group = own_group(5, 1);
    for _ in 0..6 {
        bench.hear(2, &[1, 3, 4], Message::HaveYouHeard { group, about: NodeSet::EMPTY }).ignore();
        assert_eq!(check(&mut bench, &[1, 3, 4]).0, []);
    }
    assert_eq!(bench.status(), Status::Normal);
}
