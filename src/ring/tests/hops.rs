//! Hops that are not acknowledged, runs that come to nothing: R13 to R16.

use super::*;

#[test]
fn a_hop_is_repeated_every_quarter_of_t() {
    let (mut bench, acts) = started(3);
    let first = acts.messages();
    let quarter = bench.timing().t.fraction(1, 4);
    for _ in 0..2 {
        assert_eq!(bench.due_in(Timer::Repeat), Some(quarter));
        let acts = bench.fire(Timer::Repeat);
        assert_eq!(acts.messages(), first);
    }
    // An answer to another one could not come in time.
    assert_eq!(bench.due_in(Timer::Repeat), None);
}

#[test]
fn an_acknowledged_hop_is_not_repeated() {
    let (mut bench, _) = joined();
    assert_eq!((bench.due_in(Timer::Repeat), bench.due_in(Timer::Phase)), (None, None));
    bench.pass(bench.timing().t.times(3)).none();
}

#[test]
fn r13_a_silent_node_is_skipped_and_remembered() {
    let (mut bench, acts) = started(3);
    acts.ignore();
    assert_eq!(bench.due_in(Timer::Phase), Some(bench.timing().t));
    let acts = bench.fire(Timer::Phase);
    assert_eq!(hop(&acts), (5, Lap::Elect, [3].into(), [4].into()));
    let acts = bench.fire(Timer::Phase);
    assert_eq!(hop(&acts), (1, Lap::Elect, [3].into(), [4, 5].into()));
}

#[test]
fn r13_suspects_are_not_asked_again() {
    let (mut bench, acts) = started(3);
    acts.ignore();
    let message = Message::Token(Token {
        lap: Lap::Elect,
        run: group_of(1, 1),
        round: 2,
        list: set([1, 2]),
        suspects: set([4]),
        incumbent: None,
        definition: b"",
    });
    let acts = bench.request(2, message);
    assert_eq!(hop(&acts), (5, Lap::Elect, [1, 2, 3].into(), [4].into()));
}

#[test]
fn r13_whoever_finds_the_initiator_dead_starts_a_run() {
    let (mut bench, acts) = started(4);
    acts.ignore();
    bench.request(3, elect(group_of(5, 1), 1, &[5, 1, 2, 3])).ignore();
    let acts = bench.fire(Timer::Phase);
    // It may be waking, so that it is asked again.
    starts_a_run(&acts, 4, 2, &[]);
    assert_eq!(hop(&acts).0, 5);
}

#[test]
fn r13_a_node_that_hears_nobody_ends_up_alone() {
    let (mut bench, acts) = started(3);
    acts.ignore();
    for _ in 0..3 {
        bench.fire(Timer::Phase).ignore();
    }
    let acts = bench.fire(Timer::Phase);
    assert_eq!(acts.reorganize(), (own_group(3, 1), [3].into()));
    let acts = bench.reorganized(own_group(3, 1), TASK);
    bench.saved(acts.save()).ignore();
    assert_eq!((bench.status(), bench.coordinator()), (Status::Normal, Some(3)));
}

#[test]
fn r14_the_coord_lap_goes_on_without_a_member_that_died() {
    let (mut bench, run) = joined();
    bench.request(2, token(Lap::Coord, run, 1, &[1, 2, 3, 4, 5])).ignore();
    let acts = bench.fire(Timer::Phase);
    assert_eq!(hop(&acts), (5, Lap::Coord, [1, 2, 3, 5].into(), [4].into()));
    assert_eq!((bench.status(), bench.coordinator()), (Status::Reorganization, Some(5)));
}

#[test]
fn r14_a_dead_maximum_costs_a_run() {
    let (mut bench, run) = joined();
    bench.request(2, token(Lap::Coord, run, 1, &[1, 2, 3, 5])).ignore();
    let acts = bench.fire(Timer::Phase);
    // It may be awake again, and only without memory of the run: it is asked.
    starts_a_run(&acts, 3, 2, &[]);
}

#[test]
fn r15_a_member_that_does_not_take_ready_costs_a_run() {
    let (mut bench, run) = announced();
    let acts = bench.request(2, token(Lap::Ready, run, 1, &[1, 2, 3, 4, 5]));
    bench.saved(acts.save()).ignore();
    assert_eq!(bench.due_in(Timer::Phase), Some(bench.timing().distribute()));
    let acts = bench.fire(Timer::Phase);
    assert!(acts.stops());
    starts_a_run(&acts, 3, 2, &[]);
}

#[test]
fn r16_a_run_that_does_not_end_is_followed_by_another() {
    for (mut bench, _) in [joined(), announced()] {
        let acts = bench.fire(Timer::Limit);
        starts_a_run(&acts, 3, 2, &[]);
        assert_eq!(bench.due_in(Timer::Limit), Some(bench.timing().run_limit(5)));
    }
}

#[test]
fn r16_a_larger_run_has_a_limit_of_its_own() {
    let (mut bench, _) = joined();
    bench.pass(bench.timing().run_limit(5).fraction(1, 2)).none();
    bench.request(2, elect(group_of(1, 1), 2, &[1, 2])).ignore();
    assert_eq!(bench.due_in(Timer::Limit), Some(bench.timing().run_limit(5)));
}

#[test]
fn r16_who_fails_again_and_again_disturbs_the_others_less() {
    let (mut bench, acts) = started(3);
    acts.ignore();
    let limit = bench.timing().run_limit(5);
    for factor in [1, 2, 4, 4] {
        bench.reply(4, Message::HopAck).none();
        assert_eq!(bench.due_in(Timer::Limit), Some(limit.times(factor)));
        bench.fire(Timer::Limit).ignore();
    }
}

#[test]
fn rounds_end_in_a_reset_not_in_a_wrap() {
    let (mut bench, _) = joined();
    bench.request(2, elect(group_of(5, 2), u32::MAX, &[5, 1, 2])).ignore();
    bench.reply(4, Message::HopAck).none();
    let acts = bench.fire(Timer::Limit);
    assert_eq!(acts.failed(), Some(crate::effects::FailCause::NumbersExhausted));
}
