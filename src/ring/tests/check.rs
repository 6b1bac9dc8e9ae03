//! The coordinator's Check and its signs of life: R18.

use super::*;
use crate::effects::Note;
use crate::node::testing::id;

const YES: Message<'static, 1> = Message::AynAns { normal: true };

#[test]
fn r18_every_p_the_members_are_asked() {
    let mut bench = coordinator();
    for _ in 0..3 {
        let acts = bench.fire(Timer::Check);
        let question = Message::AreYouNormal { group: own_group(5, 1) };
        assert_eq!(acts.broadcast(), ([1, 2, 3, 4].into(), question));
        assert_eq!(bench.due_in(Timer::Check), Some(bench.timing().check));
        for member in 1..=4 {
            bench.reply(member, YES).none();
        }
        assert_eq!(bench.due_in(Timer::Phase), None);
    }
}

#[test]
fn r18_a_member_that_is_not_normal_in_this_group_costs_a_run() {
    let mut bench = coordinator();
    bench.fire(Timer::Check).ignore();
    bench.reply(1, YES).none();
    let acts = bench.reply(2, Message::AynAns { normal: false });
    assert_eq!(acts.notes()[0], Note::ProvokedBy(id(2)));
    starts_a_run(&acts, 5, 2, &[]);
}

#[test]
fn r18_a_silent_member_is_asked_again_and_again_and_the_run_spares_it() {
    let mut bench = coordinator();
    bench.fire(Timer::Check).ignore();
    let began = bench.now;
    for member in [1, 2, 4] {
        bench.reply(member, YES).none();
    }
    let acts = bench.fire(Timer::Repeat);
    let question = Message::AreYouNormal { group: own_group(5, 1) };
    assert_eq!(acts.broadcast(), ([3].into(), question));
    assert_eq!(bench.due_in(Timer::Repeat), Some(bench.timing().insistence()));
    let acts = bench.fire(Timer::Phase);
    assert_eq!(bench.now.since(began), bench.timing().roll_call());
    assert_eq!(acts.notes(), [Note::Suspected(id(3))]);
    starts_a_run(&acts, 5, 2, &[3]);
}

#[test]
fn r18_what_a_member_answers() {
    let (mut bench, run) = member();
    let answer = |bench: &mut Bench<1>, group| {
        bench.hear(5, &[3], Message::AreYouNormal { group }).unicast()
    };
    assert_eq!(answer(&mut bench, run), (5, YES));
    let no = (5, Message::AynAns { normal: false });
    assert_eq!(answer(&mut bench, group_of(5, 2)), no);
    let (mut bench, run) = announced();
    assert_eq!(answer(&mut bench, run), no, "not Normal yet");
}

#[test]
fn r18_a_member_answers_however_often_it_is_asked() {
    let (mut bench, group) = member();
    let question = Message::AreYouNormal { group };
    assert_eq!(bench.hear(5, &[3], question).unicast(), (5, YES));
    bench.pass(bench.timing().insistence()).none();
    assert_eq!(bench.hear_again(5, &[3], question).unicast(), (5, YES));
}

#[test]
fn a_normal_coordinator_beats_and_stops_when_it_joins_a_run() {
    let mut bench = coordinator();
    let acts = bench.fire(Timer::Beat);
    let beat = Message::Beat { group: own_group(5, 1), normal: true };
    assert_eq!(acts.broadcast(), ([].into(), beat));
    bench.request(4, elect(group_of(1, 1), 2, &[1, 2, 3, 4])).ignore();
    assert_eq!((bench.due_in(Timer::Beat), bench.due_in(Timer::Check)), (None, None));
}
