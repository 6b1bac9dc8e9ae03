//! The paper's Timeout, and what counts as a sign of life: B14 to B16.

use super::*;
use crate::effects::Note;
use crate::node::testing::id;

#[test]
fn b14_a_halted_node_that_nobody_takes_over_calls_an_election() {
    let mut bench = halted();
    let acts = bench.fire(Timer::Quiet);
    let question = Message::AreYouThere { group: None, status: Status::Election };
    assert_eq!(acts.broadcast(), ([4, 5].into(), question));
    assert_eq!(acts.notes(), [], "nobody is suspected");
}

#[test]
fn b14_a_node_that_was_answered_and_then_forgotten_calls_an_election() {
    let mut bench = awake(3);
    bench.reply(5, Message::AytAns { yes: true }).none();
    assert_eq!(bench.status(), Status::Down);
    let acts = bench.fire(Timer::Quiet);
    assert_eq!(acts.broadcast().0, [4, 5]);
}

#[test]
fn b15_a_silent_coordinator_is_probed_with_all_higher_nodes() {
    for mut bench in [announced(), member()] {
        let status = bench.status();
        let acts = bench.fire(Timer::Quiet);
        let group = Some(group_of(5, 1));
        let question = Message::AreYouThere { group, status };
        assert_eq!(acts.broadcast(), ([4, 5].into(), question));
        assert_eq!(acts.notes(), [Note::Suspected(id(5))]);
        assert_eq!(bench.due_in(Timer::Phase), Some(bench.timing().t));
        assert_eq!((bench.status(), bench.coordinator()), (status, Some(5)), "only suspected");
        assert_eq!(bench.node.counters().suspicions, 1);
    }
}

#[test]
fn b15_without_an_answer_it_halts() {
    let mut bench = member();
    bench.fire(Timer::Quiet).ignore();
    let acts = bench.fire(Timer::Phase);
    assert_eq!(acts.broadcast(), ([1, 2].into(), halt(own_group(3, 1))));
    assert!(acts.stops());
}

#[test]
fn b15_an_answer_of_the_coordinator_shows_that_the_suspicion_was_wrong() {
    let mut bench = member();
    bench.fire(Timer::Quiet).ignore();
    let acts = bench.reply(5, Message::AytAns { yes: true });
    assert_eq!(acts.notes(), [Note::SuspicionWrong(id(5))]);
    assert_eq!(acts.messages(), []);
    assert_eq!(bench.node.counters().suspicions_wrong, 1);
    assert_eq!((bench.status(), bench.coordinator()), (Status::Normal, Some(5)));
    let timing = bench.timing();
    assert_eq!(bench.due_in(Timer::Phase), None);
    assert_eq!(bench.due_in(Timer::Quiet), Some(timing.quiet + timing.stagger));
}

#[test]
fn b15_an_answer_of_another_higher_node_leaves_it_to_that_node() {
    let mut bench = member();
    bench.fire(Timer::Quiet).ignore();
    bench.reply(4, Message::AytAns { yes: true }).none();
    assert_eq!(bench.due_in(Timer::Phase), None);
    assert!(bench.due_in(Timer::Quiet).is_some());
    assert_eq!(bench.node.counters().suspicions_wrong, 0);
}

/// B13 leaves nobody in this state, so that the test has to make it.
#[test]
fn b16_a_coordinator_stuck_in_reorganization_calls_an_election() {
    let mut bench = halted();
    let state = &mut bench.station_mut().state;
    state.status = Status::Reorganization;
    state.coordinator = Some(id(3));
    let acts = bench.fire(Timer::Quiet);
    assert_eq!(acts.broadcast().0, [4, 5]);
    assert_eq!(acts.notes(), [], "it does not suspect itself");
    let acts = bench.fire(Timer::Phase);
    assert_eq!(acts.broadcast().1, halt(own_group(3, 1)));
}

/// Whether hearing `message` from node 5 puts the suspicion off.
fn puts_off_suspicion(mut bench: Bench<1>, message: Message<'_, 1>) -> bool {
    bench.pass(bench.timing().tm).ignore();
    let before = bench.due_in(Timer::Quiet);
    bench.hear(5, &[1, 2, 4], message).ignore();
    bench.due_in(Timer::Quiet) > before
}

#[test]
fn what_counts_as_heard_from_the_coordinator() {
    let (mine, other) = (group_of(5, 1), group_of(5, 2));
    let beat = |group| Message::Beat { group, normal: true };
    assert!(puts_off_suspicion(member(), beat(mine)));
    assert!(!puts_off_suspicion(member(), beat(other)));
    assert!(puts_off_suspicion(member(), Message::AreYouNormal { group: mine }));
    assert!(!puts_off_suspicion(member(), Message::AreYouNormal { group: other }));
    assert!(puts_off_suspicion(member(), Message::NewCoordinator { group: mine }));
    assert!(!puts_off_suspicion(member(), Message::NewCoordinator { group: other }));
    assert!(puts_off_suspicion(member(), ready(mine, &[1, 2, 3, 4])));
    assert!(!puts_off_suspicion(member(), ready(other, &[1, 2, 3, 4])));
    assert!(puts_off_suspicion(halted(), halt(mine)));
    let early = Message::Beat { group: mine, normal: false };
    assert!(puts_off_suspicion(halted(), early), "the Beat of the halter, before it is Normal");
    assert!(puts_off_suspicion(announced(), early));
}

#[test]
fn a_beat_during_the_probe_answers_it() {
    let mut bench = member();
    bench.fire(Timer::Quiet).ignore();
    let beat = Message::Beat { group: group_of(5, 1), normal: true };
    let acts = bench.hear(5, &[], beat);
    assert_eq!(acts.notes(), [Note::SuspicionWrong(id(5))]);
    assert_eq!(bench.due_in(Timer::Phase), None);
}

#[test]
fn suspicion_is_staggered_by_rank_below_the_coordinator() {
    let bench = member();
    let timing = bench.timing();
    // Node 4 stands between node 3 and its coordinator.
    assert_eq!(bench.due_in(Timer::Quiet), Some(timing.quiet + timing.stagger));
}

#[test]
fn an_overheard_probe_of_a_higher_node_defers_ones_own() {
    let probe = Message::AreYouThere { group: Some(group_of(5, 1)), status: Status::Normal };
    let mut bench = member();
    let timing = bench.timing();
    bench.pass(timing.quiet).ignore();
    bench.hear(4, &[5], probe).none();
    assert_eq!(bench.due_in(Timer::Quiet), Some(timing.t.times(2)));
    bench.fire(Timer::Quiet).ignore();
    assert!(bench.due_in(Timer::Phase).is_some());
    bench.hear(4, &[5], probe).none();
    assert_eq!(bench.due_in(Timer::Phase), None, "its own probe ends too");
    let quiet = timing.quiet + timing.stagger;
    assert!(quiet > timing.t.times(2));
    assert_eq!(bench.due_in(Timer::Quiet), Some(quiet));
    bench.pass(timing.t).ignore();
    bench.hear(2, &[4, 5], probe).none();
    assert_eq!(bench.due_in(Timer::Quiet), Some(quiet.minus(timing.t)), "a lower one does not");
}
