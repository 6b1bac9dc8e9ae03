//! Datagrams of version 1, as they were written before there were seals: taken where the
//! configuration says so, refused everywhere else.

use super::*;
use crate::effects::Note;
use crate::node::testing::{Sent, group_of};
use crate::wire::{Frame, Kind, Reject};

/// One of each kind, from node 5 in boot 7 to node 3 in boot 42, or to all.
const RECORDED: [(Kind, &str); 17] = [
    (Kind::AreYouThere, "0101010005000700000009000000010f05020000000700000003"),
    (Kind::AreYouNormal, "0102010005000700000009000000010f050200000007000000"),
    (Kind::Halt, "0103010005000700000009000000010f05020000000700000001"),
    (Kind::NewCoordinator, "0104010005000700000009000000010f050200000007000000"),
    (
        Kind::Ready,
        "0105010005000700000009000000010f050200000007000000010f0c0063656c6c73203120746f2034",
    ),
    (Kind::AreYouCoordinator, "0106010005000700000009000000010f05020000000700000001"),
    (
        Kind::Invitation,
        "0107010005000700000009000000010f0502000000070000000203010000002a0000000004010000002a0000000109",
    ),
    (Kind::Accept, "0108010005030700000009000000050200000007000000"),
    (Kind::Beat, "0109010005000700000009000000010f05020000000700000001"),
    (Kind::AytAns, "01410100050307000000090000002a00000001"),
    (Kind::AynAns, "01420100050307000000090000002a00000001"),
    (Kind::HaltAck, "01430100050307000000090000002a000000"),
    (Kind::NcAck, "01440100050307000000090000002a00000001"),
    (Kind::ReadyAck, "01450100050307000000090000002a00000001"),
    (Kind::AycAns, "01460100050307000000090000002a00000001050200000007000000010f"),
    (Kind::AcceptAns, "01470100050307000000090000002a00000001"),
    (Kind::ReadyAns, "01480100050307000000090000002a00000001"),
];

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Node 3 in the time of the move; it is awake, and has heard nobody.
fn moving(algorithm: Algorithm) -> Bench<1> {
    let mut config = config(3, 5, algorithm);
    config.accept_version_1 = true;
    let (mut bench, acts) = Bench::waking(config);
    acts.ignore();
    bench.fire(crate::timers::Timer::Greeting).ignore();
    bench.fire(crate::timers::Timer::Greeting).ignore();
    bench.hellos.clear();
    bench
}

#[test]
fn what_was_recorded_is_refused_outside_the_window() {
    for (kind, hex) in RECORDED {
        let mut bench = awake();
        bench.receive(&bytes(hex)).none();
        assert_eq!(bench.rejected(Reject::Version), 1, "{kind:?}");
    }
}

#[test]
fn what_was_recorded_is_understood_inside_the_window() {
    for (kind, hex) in RECORDED {
        let recorded = bytes(hex);
        let frame = Frame::new_checked(&recorded).unwrap();
        assert_eq!(frame.kind, kind);
        let (envelope, message) = Message::<1>::parse(&frame).unwrap();
        let mut room = [0; 200];
        let len = message.emit(&frame, &envelope, &mut room).unwrap();
        assert_eq!(&room[..len], recorded, "{kind:?} is still written as it was");
        for algorithm in [Algorithm::Bully, Algorithm::Invitation] {
            let mut bench = moving(algorithm);
            let notes = bench.receive(&recorded).notes();
            assert!(notes.contains(&Note::InTheClear(id(5))), "{kind:?}");
            assert_eq!(bench.rejected(Reject::Version), 0, "{kind:?}");
        }
    }
}

#[test]
fn an_old_member_is_answered_in_the_clear() {
    let mut bench = moving(Algorithm::Bully);
    let acts = bench.receive(&bytes(RECORDED[0].1));
    assert_eq!(acts.unicast(), (5, Message::AytAns { yes: true }));
    assert_eq!(clear_and_sealed(&mut bench), (1, 0));
}

/// How many datagrams of the last step were in the clear, and how many sealed.
fn clear_and_sealed(bench: &mut Bench<1>) -> (usize, usize) {
    let versions: Vec<u8> = bench.versions.clone();
    let count = |version| versions.iter().filter(|known| **known == version).count();
    (count(crate::wire::VERSION), count(seal::VERSION))
}

#[test]
fn what_goes_to_all_goes_both_ways_while_somebody_is_old() {
    let mut bench = moving(Algorithm::Bully);
    bench.receive(&bytes(RECORDED[0].1)).ignore();
    let acts = bench.fire(crate::timers::Timer::Quiet);
    let sent: Vec<Sent<1>> = acts.sent();
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert_eq!(sent[0].message, sent[1].message);
    assert_eq!(clear_and_sealed(&mut bench), (1, 1));
}

#[test]
fn a_member_that_was_heard_sealed_is_never_again_taken_in_the_clear() {
    let mut bench = moving(Algorithm::Bully);
    let halt = &bytes(RECORDED[2].1);
    bench.receive(halt).ignore();
    assert_eq!(bench.status(), Status::Election);
    bench.request(5, Bench::answer_to_greeting()).ignore();
    bench.receive(halt).none();
    assert_eq!(bench.rejected(Reject::Version), 1);
    let halt = Message::Halt { group: group_of(5, 9), binding: true };
    assert_eq!(bench.hear(5, &[3], halt).unicast(), (5, Message::HaltAck));
    assert_eq!(clear_and_sealed(&mut bench), (0, 1));
}

#[test]
fn an_earlier_boot_is_refused_as_before() {
    let mut bench = moving(Algorithm::Bully);
    let mut question = bytes(RECORDED[0].1);
    bench.receive(&question).ignore();
    question[6] = 6;
    bench.receive(&question).none();
    assert_eq!(bench.rejected(Reject::OldBoot), 1);
}

/// What anybody could write while the window is open must not outlive the first seal.
#[test]
fn a_forged_boot_in_the_clear_does_not_shut_a_sealed_member_out() {
    let mut bench = moving(Algorithm::Bully);
    let mut beat = bytes(RECORDED[8].1);
    beat[6..10].fill(0xff);
    assert!(bench.receive(&beat).notes().contains(&Note::InTheClear(id(5))));
    bench.request(5, Bench::answer_to_greeting()).ignore();
    let halt = Message::Halt { group: group_of(5, 9), binding: true };
    assert_eq!(bench.hear(5, &[3], halt).unicast(), (5, Message::HaltAck));
    assert_eq!(bench.rejected(Reject::OldBoot), 0);
}

#[test]
fn what_cannot_be_read_or_never_was_of_version_1_moves_nothing() {
    for kind in Kind::ALL {
        let known = RECORDED.iter().any(|(known, _)| *known == kind);
        assert_eq!(kind.is_of_version_1(), known, "{kind:?}");
    }
    let mut bench = moving(Algorithm::Bully);
    let mut halt = bytes(RECORDED[2].1);
    halt[6..10].fill(0xff);
    for (len, kind, reason) in [(20, 3, Reject::Length), (halt.len(), 21, Reject::Kind)] {
        let mut bad = halt[..len].to_vec();
        bad[1] = kind;
        bench.receive(&bad).none();
        assert_eq!(bench.rejected(reason), 1);
    }
    bench.receive(&bytes(RECORDED[2].1)).ignore();
    assert_eq!(bench.status(), Status::Election, "the true one is taken");
}
