//! The paper's assertions, as far as one node can show them.

use super::*;

/// (3a) Nodes in the same group have the same coordinator: the number of a group names it.
#[test]
fn assertion_3a_the_group_number_names_the_coordinator() {
    let benches = [
        awake(3),
        merging(&[1]).0,
        distributing(&[1]).0,
        coordinator(&[1]),
        accepting().0,
        confirmed(),
        member(),
    ];
    for bench in benches {
        let state = bench.state();
        assert_eq!(state.coordinator, state.group.map(|group| group.coordinator));
    }
}

/// (3b) Nodes that are Normal in the same group have the same definition: the first one stays.
#[test]
fn assertion_3b_a_second_definition_of_the_same_group_is_not_taken() {
    let (group, up) = (group_of(5, 2), set([1, 2, 3, 4]));
    let other = Message::Ready { group, up, definition: b"other" };
    let mut bench = member();
    bench.hear(5, &[3], other).ignore();
    assert_eq!(bench.definition(), Some(TASK));
    let mut bench = confirmed();
    let acts = bench.hear(5, &[3], ready(group, &[1, 2, 3, 4]));
    bench.hear(5, &[3], other).none();
    bench.saved(acts.save()).ignore();
    assert_eq!((bench.status(), bench.definition()), (Status::Normal, Some(TASK)));
}

/// (3b) What fails is done again under a new number, with a definition of its own.
#[test]
fn assertion_3b_a_failed_distribution_never_computes_a_second_definition() {
    let (mut bench, acts) = distributing(&[1, 4]);
    acts.ignore();
    bench.reply(1, Message::ReadyAns { ok: true }).none();
    bench.fire(Timer::Phase).ignore();
    let acts = accept(&mut bench, 1, 3);
    assert_eq!(acts.reorganize(), (own_group(5, 3), [1, 5].into()));
    bench.reorganized(own_group(5, 2), b"late").none();
}

/// (3b) The members that a definition was computed for are those that it is sent to, every time.
#[test]
fn assertion_3b_every_ready_of_a_group_is_the_same() {
    let (mut bench, acts) = distributing(&[1, 4]);
    let first = acts.broadcast().1;
    assert_eq!(accept(&mut bench, 2, 2).unicast().1, Message::AcceptAns { ok: false });
    assert_eq!(bench.fire(Timer::Repeat).broadcast().1, first);
    bench.saved(acts.save()).ignore();
    for member in [1, 4] {
        bench.reply(member, Message::ReadyAns { ok: true }).ignore();
    }
    let question =
        Message::AreYouThere { group: Some(own_group(5, 2)), status: Status::Reorganization };
    assert_eq!(bench.hear(4, &[5], question).unicast(), (4, first));
}

/// (3) Numbers are never used twice, whatever a node goes through.
#[test]
fn assertion_3_every_group_has_a_number_of_its_own() {
    let mut bench = awake(3);
    for seq in 1..5 {
        assert_eq!(bench.state().group, Some(own_group(3, seq)));
        let message = invite(group_of(5, seq), &[(own_group(3, seq), &[3])]);
        bench.hear(5, &[3], message).ignore();
        let acts = bench.reply(5, Message::AcceptAns { ok: false });
        alone(&bench, &acts, seq + 1);
    }
}

/// (4) With no failures everybody ends up in one group: whoever follows a coordinator that says
/// nothing goes on without it.
#[test]
fn assertion_4_nobody_waits_for_ever() {
    for mut bench in [accepting().0, confirmed(), member()] {
        bench.pass(bench.timing().limit()).ignore();
        assert_eq!((bench.status(), bench.coordinator()), (Status::Normal, Some(3)));
    }
}
