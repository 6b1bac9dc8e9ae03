//! What the textbooks say of their algorithms, and how these break.

use super::*;

const ALL: [u8; 5] = [2, 3, 5, 8, 16];

fn rules(outcome: &Outcome) -> Vec<&'static str> {
    let mut rules: Vec<_> = outcome.violations.iter().map(|violation| violation.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

const TWO_COORDINATORS: &str = "assertion 1a: one coordinator";
const NOT_SETTLED: &str = "assertions 2 and 4: settled in time";
const WON_TWICE: &str = "more elections were won than begun";

/// Every node, or every node that lives, believes in `winner`.
#[track_caller]
fn agreed(outcome: &Outcome, winner: u8) {
    assert_eq!(rules(outcome), [] as [&str; 0], "{:?}", outcome.violations);
    assert_eq!(outcome.wins, [winner]);
    assert_eq!(outcome.under_way, 0);
    assert!(outcome.elected.iter().flatten().all(|elected| *elected == winner));
}

// --- Chang and Roberts ----------------------------------------------------------------------

fn ring(nodes: u8) -> Plan {
    Plan::new(Reference::ChangRoberts, nodes)
}

/// S4: the anticlockwise neighbour has the highest id. N - 1 messages to reach it, N for its own id,
/// N to announce it. They are sent one after the other, so that the turnaround is as long.
#[test]
fn slides_4_chang_roberts_worst_case_is_3n_minus_1_for_one_initiator() {
    for nodes in ALL {
        let n = u64::from(nodes);
        for delay_us in [(1000, 1000), (1, 20_000)] {
            let outcome = Plan { delay_us, ..ring(nodes) }.noticed_by([1]).run();
            agreed(&outcome, nodes);
            assert_eq!(outcome.messages, 3 * n - 1);
            if delay_us.0 == delay_us.1 {
                assert_eq!(outcome.last_us, (3 * n - 1) * 1000, "turnaround");
            }
        }
    }
}

#[test]
fn slides_4_chang_roberts_best_case_is_2n_when_the_highest_begins() {
    for nodes in ALL {
        let outcome = ring(nodes).noticed_by([nodes]).run();
        agreed(&outcome, nodes);
        assert_eq!(outcome.messages, 2 * u64::from(nodes));
    }
}

/// Each id k travels k hops before it meets a higher participant. (If nothing overtakes on a link; else
/// an announcement may pass a small id, which then finds a node that takes part no longer.)
#[test]
fn protocols_5_chang_roberts_all_begin_on_a_descending_ring_n_n_plus_1_over_2_plus_n() {
    for nodes in ALL {
        let n = u64::from(nodes);
        let equal = Plan { delay_us: (1000, 1000), ..ring(nodes) };
        let mut plan = equal.noticed_by(1..=nodes);
        plan.ring.reverse();
        let outcome = plan.run();
        agreed(&outcome, nodes);
        assert_eq!(outcome.messages, n * (n + 1) / 2 + n);
    }
}

#[test]
fn chang_roberts_all_begin_on_an_ascending_ring_3n_minus_1() {
    for nodes in ALL {
        let outcome = ring(nodes).noticed_by(1..=nodes).run();
        agreed(&outcome, nodes);
        assert_eq!(outcome.messages, 3 * u64::from(nodes) - 1);
    }
}

/// One crash: nobody else stops the id of a dead maximum.
#[test]
fn protocols_3_1_a_chang_roberts_token_is_immortal_after_the_maximum_dies() {
    // 5 begins, its id passes on, and 5 is gone when it comes back.
    let plan = Plan { delay_us: (1000, 1000), ..ring(5) };
    let outcome = plan.noticed_by([5]).with(Happening::Kill { at_us: 2500, node: 5 }).run();
    assert_eq!(outcome.under_way, 1, "the token is still going round");
    assert!(outcome.messages > 10_000, "{}", outcome.messages);
    assert!(outcome.wins.is_empty());
    assert_eq!(rules(&outcome), [NOT_SETTLED]);
}

/// One loss: the nodes that the token had reached discard all smaller ones for ever.
#[test]
fn protocols_3_1_b_chang_roberts_deadlocks_after_a_lost_token() {
    // 3 begins, 4 and 5 put themselves forward, and the id of 5 is lost on its way to 1.
    let plan = Plan { delay_us: (1000, 1000), ..ring(5) };
    let lost = plan.noticed_by([3]).with(Happening::Lose { message: 2 });
    let outcome = lost.clone().run();
    assert_eq!((outcome.messages, outcome.under_way), (3, 0));
    assert_eq!(rules(&outcome), [NOT_SETTLED]);
    // Later attempts of others die at the first participant.
    let again = [1, 2].map(|node| Happening::Notice { at_us: 1_000_000, node });
    let outcome = again.into_iter().fold(lost, Plan::with).run();
    assert_eq!((outcome.wins.len(), outcome.under_way), (0, 0));
    assert_eq!(outcome.elected, [None; 5]);
    assert_eq!(rules(&outcome), [NOT_SETTLED]);
}

/// One duplicate: the maximum sees its id come round twice.
#[test]
fn protocols_3_1_c_chang_roberts_maximum_wins_twice_on_duplication() {
    let plan = Plan { delay_us: (1000, 1000), ..ring(5) };
    // The last hop of the id of 5, from 4 to 5.
    let outcome = plan.noticed_by([5]).with(Happening::Duplicate { message: 4 }).run();
    assert_eq!(outcome.wins, [5, 5]);
    assert_eq!(outcome.messages, 5 + 2 * 5);
    assert_eq!(rules(&outcome), [WON_TWICE]);
}

/// No fault at all: `elected` changes node by node while ELECTED goes round, so that the old coordinator
/// and the new one are believed in at the same time.
#[test]
fn protocols_3_1_d_chang_roberts_nodes_disagree_while_a_live_belief_is_replaced() {
    for nodes in ALL.into_iter().filter(|nodes| *nodes > 2) {
        let belief = Plan { elected: Some(nodes - 1), delay_us: (1000, 1000), ..ring(nodes) };
        for initiator in 1..=nodes {
            let outcome = belief.clone().noticed_by([initiator]).run();
            assert_eq!(outcome.elected, vec![Some(nodes); nodes.into()], "they agree in the end");
            assert!(
                rules(&outcome).contains(&TWO_COORDINATORS),
                "{nodes} nodes, {initiator} begins"
            );
            assert!(!rules(&outcome).contains(&NOT_SETTLED));
            // From the moment when the highest wins until the last of the others hears of it.
            let (first, last) =
                (&outcome.violations[0], &outcome.violations[outcome.violations.len() - 1]);
            assert_eq!(last.at - first.at, (u64::from(nodes) - 2) * 1000);
        }
    }
}

/// One recovery: the announcement of the old winner overtakes the id of the new one.
#[test]
fn chang_roberts_one_recovery_makes_two_coordinators() {
    let plan = Plan { delay_us: (1000, 1000), elected: Some(5), failed: Some(5), ..ring(5) };
    // 4 wins; 5 is back in the middle of the announcement and begins at once.
    let outcome = plan
        .noticed_by([4])
        .with(Happening::Boot { at_us: 3500, node: 5 })
        .with(Happening::Notice { at_us: 3500, node: 5 })
        .run();
    assert!(rules(&outcome).contains(&TWO_COORDINATORS), "{outcome:?}");
}

// --- the bully of the slides ----------------------------------------------------------------

fn bully(nodes: u8) -> Plan {
    Plan::new(Reference::TextbookBully, nodes)
}

/// S4: the second highest notices that the highest has failed, knows that it has the highest id now,
/// and tells the N - 2 others.
#[test]
fn slides_4_textbook_bully_best_case_is_n_minus_2() {
    for nodes in ALL {
        let plan = Plan { failed: Some(nodes), ..bully(nodes) };
        let outcome = plan.noticed_by([nodes - 1]).run();
        agreed(&outcome, nodes - 1);
        assert_eq!(outcome.messages, u64::from(nodes) - 2);
    }
}

/// S2, S4: order N squared. With all N alive and node 1 beginning, node k asks the N - k above it: N (N - 1) / 2
/// ELECTIONs, as many ANSWERs, and N - 1 COORDINATORs, together N^2 - 1.
#[test]
fn slides_2_and_4_textbook_bully_worst_case_is_n_squared_minus_1_when_the_lowest_begins() {
    for nodes in ALL {
        for seed in 1..20 {
            // Two messages in a row take longer than any one, so that nobody hears the result
            // before the question.
            let plan = Plan { seed, delay_us: (11_000, 20_000), ..bully(nodes) };
            let outcome = plan.noticed_by([1]).run();
            agreed(&outcome, nodes);
            let n = u64::from(nodes);
            assert_eq!(outcome.messages, n * (n - 1) + (n - 1));
            assert_eq!(outcome.messages, n * n - 1);
        }
    }
}

/// The same with the highest dead and nobody aware of it: its N - 1 ELECTIONs stay unanswered.
#[test]
fn textbook_bully_with_the_highest_dead_costs_n_minus_1_squared_plus_n_minus_2() {
    for nodes in ALL {
        let n = u64::from(nodes);
        let plan = Plan { elected: Some(nodes), ..bully(nodes) };
        let dead = plan.with(Happening::Kill { at_us: 0, node: nodes });
        let outcome = dead.noticed_by([1]).run();
        agreed(&outcome, nodes - 1);
        let (elections, answers) = (n * (n - 1) / 2, (n - 1) * (n - 2) / 2);
        assert_eq!(outcome.messages, elections + answers + n - 2);
        assert_eq!(outcome.messages, (n - 1) * (n - 1) + n - 2);
    }
}

/// One crash and recovery, nothing lost, every delay within Tm: two coordinators, for ever. The two
/// announcements cross, and node 1 believes the one that it hears last.
#[test]
fn textbook_bully_has_two_coordinators_for_ever_after_one_crash_and_recovery() {
    // 3 is dead, and 2, which does not know, asks it: one ELECTION, then T in vain.
    let plan = Plan { delay_us: (1000, 1000), elected: Some(3), ..bully(3) };
    let t_us = plan.t_us;
    let outcome = plan
        .with(Happening::Kill { at_us: 0, node: 3 })
        .noticed_by([2])
        // 2 tells 1 at T. 3 is back just then, and tells 1 and 2.
        .with(Happening::Boot { at_us: t_us, node: 3 })
        // What 2 says takes a little longer.
        .with(Happening::Delay { message: 3, by_us: 5000 })
        .run();
    assert_eq!(outcome.under_way, 0);
    assert_eq!(outcome.elected, [Some(2), Some(3), Some(3)]);
    assert_eq!(rules(&outcome).first(), Some(&TWO_COORDINATORS));
    assert!(rules(&outcome).contains(&NOT_SETTLED));
}

/// One loss: a node that is in no election never misses the COORDINATOR that it did not hear.
#[test]
fn textbook_bully_believes_in_a_deposed_coordinator_after_one_loss() {
    let plan = Plan { delay_us: (1000, 1000), elected: Some(2), failed: Some(3), ..bully(3) };
    // 3 is back and tells 1 and 2; node 1 does not hear it.
    let back = plan.with(Happening::Boot { at_us: 1000, node: 3 });
    let outcome = back.with(Happening::Lose { message: 0 }).run();
    assert_eq!(outcome.elected, [Some(2), Some(3), Some(3)]);
    assert!(rules(&outcome).contains(&TWO_COORDINATORS));
    assert!(rules(&outcome).contains(&NOT_SETTLED));
}

/// One recovery, everything else perfect: the old coordinator is not stopped before the new one works.
#[test]
fn textbook_bully_has_two_coordinators_for_a_while_after_each_recovery() {
    for seed in 1..20 {
        let plan = Plan { seed, elected: Some(4), failed: Some(5), ..bully(5) };
        let outcome = plan.with(Happening::Boot { at_us: 1000, node: 5 }).run();
        assert_eq!(outcome.elected, [Some(5); 5]);
        assert!(rules(&outcome).contains(&TWO_COORDINATORS));
        assert!(!rules(&outcome).contains(&NOT_SETTLED));
    }
}

/// No fault but that of the old coordinator: the belief in it is replaced node by node.
#[test]
fn textbook_bully_breaks_assertion_1_in_its_best_case() {
    let plan = Plan { failed: Some(5), elected: Some(5), ..bully(5) };
    let outcome = plan.noticed_by([4]).run();
    assert_eq!(outcome.elected, [Some(4), Some(4), Some(4), Some(4), None]);
    assert!(rules(&outcome).contains(&TWO_COORDINATORS));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| Plan { seed, ..bully(9) }.noticed_by([1, 4]).run();
    assert_eq!(run(3).last_us, run(3).last_us);
    assert_ne!(run(3).last_us, run(4).last_us);
}
