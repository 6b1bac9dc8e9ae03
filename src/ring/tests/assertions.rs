//! What one node contributes to the paper's assertions.

use super::*;

/// (3a) Only the initiator that lives on closes its Elect lap, and once: one run, one maximum.
#[test]
fn assertion_3a_the_elect_lap_is_closed_once() {
    let (mut bench, acts) = elected();
    assert_eq!(hop(&acts), (1, Lap::Coord, [1, 2, 3, 4, 5].into(), [].into()));
    bench.reply(1, Message::HopAck).none();
    // A second copy of the token, which saw fewer nodes.
    let again = bench.request(3, elect(own_group(5, 1), 1, &[5, 1, 3]));
    assert_eq!((again.0.len(), acks(&again)), (1, [3].into()));
}

/// (3a) The initiator's next life does not know what its first one has done with the run, and puts
/// one of its own in its place.
#[test]
fn assertion_3a_a_rebooted_initiator_does_not_close_its_old_lap() {
    let (mut bench, acts) = started(3);
    acts.ignore();
    // Node 3 of an earlier boot began this.
    let earlier = GroupId { number: own_group(3, 1).number - (2 << 32), ..own_group(3, 1) };
    let acts = bench.request(2, elect(earlier, 5, &[3, 4, 5, 1, 2]));
    assert_eq!(acks(&acts), [2]);
    starts_a_run(&acts, 3, 2, &[]);
    let larger = |message: &Message<'_, 1>| matches!(message, Message::Token(t) if t.round == 6);
    assert!(acts.messages().iter().any(larger), "{acts:?}");
    // A second copy of the old one.
    let again = bench.request(1, elect(earlier, 5, &[3, 4, 5, 1]));
    assert_eq!((again.0.len(), acks(&again)), (1, [1].into()));
}

/// (3b) A definition is accepted once per run, and a second one changes nothing.
#[test]
fn assertion_3b_one_definition_per_run() {
    let (mut bench, run) = member();
    let other = Message::Token(Token {
        lap: Lap::Ready,
        run,
        round: 1,
        list: set(1..=5),
        suspects: NodeSet::EMPTY,
        incumbent: None,
        definition: b"other",
    });
    let acts = bench.request(2, other);
    assert_eq!((acts.0.len(), acks(&acts)), (1, [2].into()));
    assert_eq!(bench.definition(), Some(TASK));
}

/// (1) A node never goes back to a run that is smaller than one that it has joined.
#[test]
fn assertion_1_the_place_of_a_node_never_goes_back() {
    let (mut bench, run) = joined();
    bench.request(2, elect(group_of(1, 1), 2, &[1, 2])).ignore();
    bench.reply(4, Message::HopAck).none();
    let acts = bench.request(2, elect(run, 1, &[5, 1, 2]));
    assert_eq!(acts.messages(), [Message::HopAck]);
    bench.request(2, token(Lap::Coord, run, 1, &[1, 2, 3, 4, 5])).none();
    assert_eq!(bench.state().halted_by, Some(group_of(1, 1)));
    // Nor when the larger one has come to nothing: the node's own next run is larger still.
    let acts = bench.fire(Timer::Limit);
    let rounds: Vec<_> = (acts.messages().into_iter())
        .filter_map(|message| match message {
            Message::Token(token) => Some(token.round),
            _ => None,
        })
        .collect();
    assert_eq!(rounds, [3]);
}

/// (2) Whoever is not Normal, or follows somebody, has a deadline of its own that leads to a run.
#[test]
fn assertion_2_nobody_waits_for_ever() {
    for (mut bench, _) in [joined(), announced(), member()] {
        let acts = bench.pass(bench.timing().run_limit(5));
        assert!(acts.has(Effect::Election(own_group(3, 2))), "{acts:?}");
    }
}
