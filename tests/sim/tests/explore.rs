//! All runs of a small flock: none is left out, and all hold.
#![allow(clippy::unwrap_used)] // a test may fail where it stands

use bellwether::errata::Errata;
use bellwether_sim::choices::Script;
use bellwether_sim::explore::{Case, SITUATIONS};
use bellwether_sim::random::ALGORITHMS;

fn cases() -> impl Iterator<Item = Case> {
    let errata = Errata::default();
    ALGORITHMS.into_iter().flat_map(move |algorithm| {
        SITUATIONS.map(|situation| Case { algorithm, situation, nodes: 3, errata })
    })
}

#[test]
fn one_deviation_anywhere_breaks_nothing() {
    for case in cases() {
        let explored = case.explore(1);
        assert_eq!(explored.failed, [], "{case:?}");
        assert!(explored.points > 20, "{case:?}: {explored:?}");
        // At every point there are two.
        assert_eq!(explored.runs, 1 + 2 * explored.points as u64, "{case:?}");
    }
}

/// Otherwise it would be another run that a failure names.
#[test]
fn a_script_is_the_same_run_up_to_its_point() {
    for case in cases() {
        let (usual, _) = case.run(Script::default());
        for deviation in usual[7].deviations() {
            let script = Script::default().and(7, deviation);
            let (met, _) = case.run(script.clone());
            assert_eq!(met[..8], usual[..8], "{case:?}");
            assert_eq!(case.run(script).0, met, "{case:?}");
        }
    }
}
