//! Which coordinator is invited without preemption, and hold-off.

use super::*;
use crate::wire::Reject;

/// Node 3 without preemption, in its first Check; what it does when these have answered it.
fn checked(answers: &[(u8, u32, &[u8])]) -> (Bench<1>, Acts<1>) {
    let mut config = invitation(3);
    config.preempt = false;
    let (mut bench, acts) = Bench::booted(config);
    acts.ignore();
    bench.fire(Timer::Check).ignore();
    for (from, seq, up) in answers {
        bench.reply(*from, yes(group_of(*from, *seq), up)).none();
    }
    let acts = bench.fire(Timer::Phase);
    (bench, acts)
}

#[track_caller]
fn invites(acts: &Acts<1>, wanted: bool) {
    let invites = acts.messages().iter().any(|m| matches!(m, Message::Invitation { .. }));
    assert_eq!(invites, wanted, "{acts:?}");
}

#[test]
fn the_larger_group_keeps_its_coordinator() {
    invites(&checked(&[(2, 2, &[1])]).1, false);
    invites(&checked(&[(2, 1, &[])]).1, true);
    invites(&checked(&[(5, 1, &[])]).1, false);
}

#[test]
fn of_two_alone_the_one_that_has_not_just_woken_keeps_the_role() {
    invites(&checked(&[(2, 2, &[])]).1, false);
}

#[test]
fn a_coordinator_with_members_asks_a_higher_one_instead_of_waiting_for_it() {
    let mut bench = coordinator(&[1, 2]);
    let beat = Message::Beat { group: group_of(4, 1), normal: true };
    bench.station_mut().config.preempt = false;
    bench.pass(bench.timing().beat).ignore();
    let acts = bench.hear(4, &[], beat);
    assert!(matches!(acts.broadcast().1, Message::AreYouCoordinator { .. }));
}

#[test]
fn a_node_that_keeps_rebooting_is_not_heard_until_it_has_stayed_up() {
    let mut config = invitation(3);
    config.hold_off = config.timing.t.times(20);
    let hold_off = config.hold_off;
    let (mut bench, acts) = Bench::booted(config);
    acts.ignore();
    let beat = Message::Beat { group: group_of(5, 1), normal: true };
    for boot in 0..3 {
        if boot > 0 {
            bench.reboot_peer(5);
        }
        bench.request(5, Bench::answer_to_greeting()).ignore();
        bench.hear(5, &[], beat).ignore();
        assert_eq!(bench.rejected(Reject::HeldOff), u32::from(boot == 2));
    }
    bench.pass(hold_off).ignore();
    bench.hear(5, &[], beat).ignore();
    assert_eq!(bench.rejected(Reject::HeldOff), 1, "it has stayed up");
}
