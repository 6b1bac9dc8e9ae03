//! What makes a coordinator call an election although its own members are well.

use super::*;
use crate::effects::Note;
use crate::node::testing::id;
use crate::phase::Phase;
use crate::wire::Reject;

#[track_caller]
fn provoked_by(acts: &Acts<1>, node: u8) {
    assert!(acts.notes().contains(&Note::ProvokedBy(id(node))), "{acts:?}");
    assert!(acts.messages().iter().any(|message| matches!(message, Message::Halt { .. })));
    assert!(acts.stops());
}

/// Takes an election of node 5, from its Halt round on, to its end with `others`.
fn finish(bench: &mut Bench<1>, others: &[u8]) {
    for other in others {
        bench.reply(*other, Message::HaltAck).none();
    }
    let mut acts = bench.fire(Timer::Phase);
    for other in others {
        acts = bench.reply(*other, Message::NcAck { accepted: true });
    }
    let (group, _) = acts.reorganize();
    let acts = bench.reorganized(group, TASK);
    bench.saved(acts.save()).ignore();
    for other in others {
        bench.reply(*other, Message::ReadyAck { accepted: true }).ignore();
    }
    assert_eq!(bench.status(), Status::Normal);
}

const AWAKE: Message<'static, 1> = Message::AreYouThere { group: None, status: Status::Down };

#[test]
fn a_lower_node_that_is_no_member_is_answered_and_taken_in() {
    let mut bench = coordinator(&[2, 4]);
    let acts = bench.hear(3, &[4, 5], AWAKE);
    assert_eq!(acts.messages()[0], Message::AytAns { yes: true });
    provoked_by(&acts, 3);
}

#[test]
fn a_member_that_only_missed_its_coordinator_is_answered() {
    let mut bench = coordinator(&[2, 4]);
    let group = Some(own_group(5, 1));
    let acts = bench.hear(4, &[5], Message::AreYouThere { group, status: Status::Normal });
    assert_eq!(acts.unicast(), (4, Message::AytAns { yes: true }));
    assert_eq!(bench.status(), Status::Normal);
}

#[test]
fn a_member_that_fell_out_of_the_group_is_taken_in_again() {
    for (group, status) in [
        (None, Status::Down),
        (None, Status::Election),
        (Some(own_group(5, 1)), Status::Reorganization),
        (Some(group_of(4, 1)), Status::Normal),
    ] {
        let mut bench = coordinator(&[2, 4]);
        let acts = bench.hear(4, &[5], Message::AreYouThere { group, status });
        provoked_by(&acts, 4);
    }
}

#[test]
fn a_lower_node_that_claims_to_coordinate_provokes_an_election() {
    let group = group_of(3, 1);
    for claim in [Message::Beat { group, normal: true }, Message::AreYouNormal { group }] {
        let mut bench = coordinator(&[2, 4]);
        let acts = bench.hear(3, &[], claim);
        provoked_by(&acts, 3);
    }
}

#[test]
fn a_halt_from_below_provokes_an_election() {
    let mut bench = coordinator(&[2, 4]);
    let acts = bench.hear(3, &[1, 2], halt(group_of(3, 1)));
    assert_eq!(acts.notes()[0], Note::HaltFromBelow(id(3)));
    provoked_by(&acts, 3);
    assert_eq!(bench.rejected(Reject::HaltFromBelow), 1);
}

#[test]
fn a_member_leaves_provocations_to_its_coordinator() {
    let mut bench = member();
    bench.hear(2, &[], Message::Beat { group: group_of(2, 1), normal: true }).none();
    let acts = bench.hear(2, &[3, 4, 5], AWAKE);
    assert_eq!(acts.unicast(), (2, Message::AytAns { yes: true }));
    assert_eq!(bench.status(), Status::Normal);
}

#[test]
fn elections_that_others_provoke_are_budgeted() {
    let mut bench = coordinator(&[2, 4]);
    for _ in 0..3 {
        let acts = bench.hear(3, &[5], AWAKE);
        provoked_by(&acts, 3);
        finish(&mut bench, &[2, 4]);
    }
    let acts = bench.hear(3, &[5], AWAKE);
    assert_eq!(acts.unicast(), (3, Message::AytAns { yes: true }), "answered, but no more");
    assert_eq!(bench.status(), Status::Normal);
    // Its next Check is a period after the latest election: by then there is one more to spend.
    let acts = bench.fire(Timer::Check);
    provoked_by(&acts, 3);
}

#[test]
fn a_stranger_seen_during_an_election_is_taken_in_right_after_it() {
    let (mut bench, acts) = announcing(5, &[2]);
    acts.ignore();
    let acts = bench.hear(3, &[5], AWAKE);
    assert_eq!(acts.unicast(), (3, Message::AytAns { yes: true }));
    let acts = bench.reply(2, Message::NcAck { accepted: true });
    let (group, _) = acts.reorganize();
    let acts = bench.reorganized(group, TASK);
    bench.saved(acts.save()).none();
    let acts = bench.reply(2, Message::ReadyAck { accepted: true });
    assert!(acts.starts() && !acts.stops(), "the task starts before it is stopped again");
    assert_eq!(bench.due_in(Timer::Check), Some(crate::time::Duration::ZERO));
    let acts = bench.fire(Timer::Check);
    provoked_by(&acts, 3);
}

/// Whatever its status: who was not halted is no part of the election.
#[test]
fn who_asks_while_the_coordinator_announces_itself_and_was_not_halted_is_a_stranger() {
    let others = [
        (None, Status::Election),
        (Some(group_of(1, 1)), Status::Reorganization),
        (Some(group_of(1, 1)), Status::Normal),
    ];
    for (group, status) in others {
        let (mut bench, acts) = announcing(5, &[2, 4]);
        acts.ignore();
        bench.hear(3, &[5], Message::AreYouThere { group, status }).ignore();
        // One that was halted may well ask, too.
        let halted = Message::AreYouThere { group: None, status: Status::Election };
        bench.hear(4, &[5], halted).ignore();
        assert_eq!(bench.station_mut().bully.strangers, set([3]), "{status:?}");
    }
}

/// A coordinator of 2 and 4 that has seen node 3, and may call no election because of it.
fn with_a_stranger_in_vain() -> Bench<1> {
    let mut bench = coordinator(&[2, 4]);
    let period = bench.timing().check;
    let at = bench.now + period;
    let station = bench.station_mut();
    station.bully.strangers = set([3]);
    while station.bully.provocations.take(at, period) {}
    bench
}

#[test]
fn a_stranger_that_may_not_provoke_an_election_does_not_keep_check_from_asking_members() {
    let mut bench = with_a_stranger_in_vain();
    let acts = bench.fire(Timer::Check);
    let question = Message::AreYouNormal { group: own_group(5, 1) };
    assert_eq!(acts.broadcast(), ([1, 2, 3, 4].into(), question));
    bench.reply(2, Message::AynAns { normal: true }).none();
    let acts = bench.fire(Timer::Phase);
    assert_eq!(acts.notes(), [Note::Suspected(id(4))], "and who does not answer is gone");
}

/// The election that a stranger provokes is not swept aside by the Check that found it.
#[test]
fn an_election_that_a_stranger_provokes_goes_before_check() {
    let (mut bench, acts) = distributing(3, &[1]);
    bench.saved(acts.save()).ignore();
    bench.reply(1, Message::ReadyAck { accepted: true }).ignore();
    bench.station_mut().bully.strangers = set([2]);
    let acts = bench.fire(Timer::Check);
    assert_eq!(acts.notes(), [Note::ProvokedBy(id(2))]);
    let (asked, message) = acts.broadcast();
    assert_eq!(asked, [4, 5], "the higher ones are asked first");
    assert!(matches!(message, Message::AreYouThere { .. }));
    assert_eq!((bench.station_mut().phase, bench.status()), (Phase::Ask, Status::Normal));
}

#[test]
fn a_stranger_that_joins_after_all_is_none() {
    let (mut bench, acts) = halting(5);
    acts.ignore();
    bench.hear(3, &[4, 5], AWAKE).ignore();
    finish(&mut bench, &[2, 3]);
    assert_eq!(bench.due_in(Timer::Check), Some(bench.timing().check));
}

#[test]
fn a_node_that_reboots_after_it_was_halted_is_a_stranger() {
    let (mut bench, acts) = announcing(5, &[2, 3]);
    acts.ignore();
    bench.hear(3, &[4, 5], AWAKE).ignore();
    bench.reply(2, Message::NcAck { accepted: true }).none();
    let acts = bench.reply(3, Message::NcAck { accepted: false });
    assert_eq!(acts.broadcast().1, halt(own_group(5, 2)), "its refusal fails the attempt");
}
