//! D1 to D4: nothing leaves before the boot epoch is durable, and no number is used twice.

use super::*;
use crate::effects::{Effect, FailCause, MuteReason, Note, Ticket};
use crate::node::testing::{Act, Acts, BOOT, STORED_EPOCH, group_of, id, own_group};
use crate::state::{StateVector, Status};
use crate::wire::{Destination, Envelope};

#[track_caller]
fn is_mute(acts: &Acts<1>, reason: MuteReason) {
    assert_eq!(acts.0, [Act::Other(Effect::Note(Note::Mute(reason)))]);
}

/// Whatever happens, the node does nothing, for ever.
#[track_caller]
fn stays_mute(bench: &mut Bench<1>) {
    let message = Message::AreYouThere { group: None, status: Status::Down };
    let bytes = bench.datagram(5, Destination::Node(id(3)), 9, Envelope::Request, message);
    for _ in 0..50 {
        assert_eq!(bench.node.next_deadline(), None);
        let group = own_group(3, 1);
        bench.receive(&bytes).none();
        bench.step(Event::Timer).none();
        bench.step(Event::Tick).none();
        bench.step(Event::Saved(Ticket(1))).none();
        bench.step(Event::EpochSaved { read_back: Some(BOOT) }).none();
        bench.step(Event::Reorganized { group, definition: b"" }).none();
        bench.sleep(bench.timing().check);
    }
    assert_eq!(bench.state(), &StateVector::DOWN);
    assert_eq!(bench.node.boot_epoch(), 0);
}

#[test]
fn d1_nothing_is_sent_before_the_epoch_is_durable() {
    for algorithm in ALL {
        let mut bench = Bench::<1>::off(config(3, 5, algorithm));
        let acts = bench.step(Event::Boot { stored_epoch: Some(STORED_EPOCH) });
        assert_eq!(acts.0, [Act::Other(Effect::SaveEpoch(BOOT))]);
        assert_eq!(bench.node.next_deadline(), None);
        let quarter = bench.timing().tp.fraction(1, 4);
        let message = Message::AreYouThere { group: None, status: Status::Down };
        let bytes = bench.datagram(5, Destination::Node(id(3)), 9, Envelope::Request, message);
        for _ in 0..400 {
            bench.sleep(quarter);
            bench.step(Event::Tick).none();
            bench.receive(&bytes).none();
            bench.step(Event::Timer).none();
            bench.step(Event::Saved(Ticket(1))).none();
        }
        assert_eq!(bench.state(), &StateVector::DOWN);
        assert_eq!(bench.hellos, []);
        bench.step(Event::EpochSaved { read_back: Some(BOOT) }).none();
        assert_eq!(bench.hellos.len(), 1, "now it speaks");
        assert_eq!(bench.node.boot_epoch(), BOOT);
    }
}

#[test]
fn d1_an_epoch_that_reads_back_differently_makes_the_node_mute() {
    for read_back in [None, Some(BOOT - 1), Some(BOOT + 1), Some(STORED_EPOCH), Some(0)] {
        for algorithm in ALL {
            let mut bench = Bench::off(config(3, 5, algorithm));
            bench.step(Event::Boot { stored_epoch: Some(STORED_EPOCH) }).ignore();
            let acts = bench.step(Event::EpochSaved { read_back });
            is_mute(&acts, MuteReason::EpochNotDurable);
            stays_mute(&mut bench);
        }
    }
}

#[test]
fn d1_the_epoch_is_saved_once_per_boot() {
    let (mut bench, acts) = Bench::<1>::booted(config(3, 5, Algorithm::Bully));
    acts.ignore();
    bench.step(Event::EpochSaved { read_back: Some(BOOT) }).none();
    assert_eq!(bench.node.boot_epoch(), BOOT);
}

#[test]
fn d2_the_new_epoch_is_two_above_the_stored_one() {
    for stored in [0, 1, 41, u32::MAX - 2] {
        let mut bench = Bench::<1>::off(config(3, 5, Algorithm::Bully));
        let acts = bench.step(Event::Boot { stored_epoch: Some(stored) });
        assert_eq!(acts.0, [Act::Other(Effect::SaveEpoch(stored + 2))]);
    }
}

#[test]
fn d3_without_a_readable_epoch_the_node_stays_mute() {
    for algorithm in ALL {
        let mut bench = Bench::off(config(3, 5, algorithm));
        let acts = bench.step(Event::Boot { stored_epoch: None });
        is_mute(&acts, MuteReason::NoEpoch);
        stays_mute(&mut bench);
    }
}

#[test]
fn d3_an_exhausted_epoch_makes_the_node_mute() {
    for stored in [u32::MAX - 1, u32::MAX] {
        let mut bench = Bench::off(config(3, 5, Algorithm::Invitation));
        let acts = bench.step(Event::Boot { stored_epoch: Some(stored) });
        is_mute(&acts, MuteReason::EpochExhausted);
        stays_mute(&mut bench);
    }
}

#[test]
fn group_numbers_carry_the_epoch() {
    let (bench, acts) = Bench::<1>::booted(config(3, 5, Algorithm::Invitation));
    acts.ignore();
    assert_eq!(bench.state().group, Some(own_group(3, 1)));
    assert_eq!(own_group(3, 1).number >> 32, u64::from(BOOT));
}

#[test]
fn d4_when_group_numbers_end_the_node_fails_and_uses_none_twice() {
    let mut bench = awake(Algorithm::Invitation);
    let leave = bench.state().group.unwrap();
    bench.request(5, invite(group_of(5, 1), leave)).ignore();
    bench.station_mut().use_up_group_numbers();
    let acts = bench.reply(5, Message::AcceptAns { ok: false });
    assert_eq!(acts.failed(), Some(FailCause::NumbersExhausted));
    assert_eq!(acts.messages(), []);
    assert_eq!(bench.node.next_deadline(), None);
    bench.step(Event::Timer).none();
    bench.step(Event::Tick).none();
}

#[test]
fn d4_when_call_numbers_end_the_node_fails_and_uses_none_twice() {
    for algorithm in ALL {
        let mut bench = awake(algorithm);
        bench.station_mut().call.use_up_numbers();
        let acts = match algorithm {
            // The next round, the next Beat, the next hop.
            Algorithm::Bully => {
                bench.reply(4, Message::AytAns { yes: true }).none();
                bench.fire(Timer::Quiet)
            }
            Algorithm::Invitation => bench.fire(Timer::Beat),
            Algorithm::Ring => bench.fire(Timer::Phase),
        };
        assert_eq!(acts.failed(), Some(FailCause::NumbersExhausted));
        assert_eq!(acts.messages(), []);
        assert_eq!(bench.status(), Status::Down);
    }
}

#[test]
fn d4_a_node_that_failed_does_nothing_more_in_the_same_step() {
    let mut bench = awake(Algorithm::Invitation);
    let leave = bench.state().group.unwrap();
    bench.request(5, invite(group_of(5, 1), leave)).ignore();
    bench.station_mut().use_up_group_numbers();
    let acts = bench.reply(5, Message::AcceptAns { ok: false });
    let failed = Act::Other(Effect::FailSelf(FailCause::NumbersExhausted));
    assert_eq!(acts.0.last(), Some(&failed), "{acts:?}");
    assert_eq!(bench.status(), Status::Down);
}
