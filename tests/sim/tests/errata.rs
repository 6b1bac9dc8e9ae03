//! The checkers can fail: every error of the published algorithms that is put back is seen.
//!
//! Built only with the feature `errata`, into a target folder of its own.
#![cfg(feature = "errata")]
#![allow(clippy::expect_used)] // a test may fail where it stands

use std::path::Path;

use bellwether::config::Algorithm;
use bellwether::errata::{Errata, Erratum};
use bellwether_scenario::Scenario;
use bellwether_sim::explore::Case;
use bellwether_sim::liveness::Cause;
use bellwether_sim::play;
use bellwether_sim::random::{Options, Summary, run_seeds};
use bellwether_sim::settings::Settings;

/// The simulator must report the error, in one of these words.
fn is_seen(erratum: Erratum, algorithm: Algorithm, rules: &[&str]) {
    is_seen_among(None, erratum, algorithm, rules);
}

/// The same in flocks of so many nodes. Runs seeds in blocks until one is reported in these words.
fn is_seen_among(nodes: Option<u8>, erratum: Erratum, algorithm: Algorithm, rules: &[&str]) {
    let options = Options {
        algorithm: Some(algorithm),
        nodes,
        errata: Errata { put_back: Some(erratum) },
        ..Options::default()
    };
    let mut first = None;
    // Most are seen within the first of these.
    let block = 100;
    for seed in (1..100_000).step_by(block) {
        let Summary { failed, .. } = run_seeds(seed, block as u64, &options);
        let mut reports = failed.values().flat_map(|(_, failures)| failures);
        if reports.any(|report| rules.iter().any(|rule| report.contains(rule))) {
            let last = seed + block as u64 - 1;
            println!("{erratum:?}: {} of the seeds {seed} to {last}", failed.len());
            return;
        }
        first = first.or(failed.into_iter().next());
    }
    panic!("{erratum:?}: wanted {rules:?}, the first failure was {first:?}");
}

const TWO: &str = "assertion 1";
const TOO_EARLY: &str = "a coordinator Normal before its members";
const STUCK: &str = "assertions 2 and 4";

#[test]
fn e2_a_dead_non_member_causes_elections_for_ever() {
    is_seen(Erratum::E2, Algorithm::Bully, &[STUCK]);
}

#[test]
fn e3_a_failed_announcement_leaves_a_stuck_coordinator() {
    // Too rare for random runs: three failures in the right order within a few T.
    let file = "failed-announcement-bully.toml";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios").join(file);
    let text = std::fs::read_to_string(path).expect("the scenario is there");
    let scenario = Scenario::parse(file, &text).expect("the scenario is good");
    let failures = |erratum| {
        let errata = Errata { put_back: erratum };
        let settings = Settings { errata, ..play::settings(&scenario).expect("it can be played") };
        play::play_with(&scenario, settings, false).expect("it can be played").failures
    };
    assert_eq!(failures(None), [] as [String; 0]);
    let stuck = failures(Some(Erratum::E3));
    assert!(stuck.iter().any(|failure| failure.contains("expected to be settled")), "{stuck:?}");
}

#[test]
fn e5_acknowledged_although_the_guard_failed() {
    is_seen(Erratum::E5, Algorithm::Bully, &[TOO_EARLY]);
}

#[test]
fn e6_replies_without_boot_and_call() {
    is_seen(Erratum::E6, Algorithm::Bully, &[TWO, STUCK]);
}

#[test]
fn e7_the_halt_round_ends_early() {
    is_seen(Erratum::E7, Algorithm::Bully, &[TWO]);
}

/// One deviation is enough to show these, and among all runs with one there is no passing it by.
#[test]
fn exploring_finds_errors_too() {
    let too_early = "an answer to Ready before its save";
    for (erratum, algorithm, situation, rule) in [
        (Erratum::E5, Algorithm::Bully, Cause::ColdStart, too_early),
        (Erratum::E11, Algorithm::Invitation, Cause::Return, STUCK),
    ] {
        let case = |put_back| Case { algorithm, situation, nodes: 3, errata: Errata { put_back } };
        let failed = case(Some(erratum)).explore(1).failed;
        assert!(failed.iter().any(|(_, what)| what.contains(rule)), "{erratum:?}: {failed:?}");
        assert_eq!(case(None).explore(1).failed, []);
    }
}

#[test]
fn e8_answers_are_counted() {
    is_seen(Erratum::E8, Algorithm::Bully, &[TOO_EARLY]);
}

#[test]
fn e11_anything_from_the_coordinator_counts_as_heard() {
    is_seen(Erratum::E11, Algorithm::Invitation, &[STUCK]);
}

#[test]
fn e13_any_invitation_is_accepted() {
    is_seen(Erratum::E13, Algorithm::Invitation, &[STUCK]);
}

#[test]
fn e14_a_node_accepts_its_own_invitation() {
    is_seen(Erratum::E14, Algorithm::Invitation, &[STUCK]);
}

#[test]
fn e15_a_ready_that_overtakes_is_refused() {
    is_seen(Erratum::E15, Algorithm::Invitation, &[STUCK]);
}

#[test]
fn e19_a_second_definition_for_one_group() {
    is_seen(Erratum::E19, Algorithm::Invitation, &["a group number has two contents"]);
}

#[test]
fn e21_all_wait_equally_long() {
    is_seen(Erratum::E21, Algorithm::Invitation, &[STUCK]);
}

#[test]
fn r5_any_listed_node_closes_the_lap() {
    is_seen(Erratum::R5, Algorithm::Ring, &["assertion 3", "a group number has two contents"]);
}

#[test]
fn r1_a_waking_node_takes_no_note_of_runs() {
    // The fewer nodes there are, the sooner a token comes to one that has just woken. It is rare all the
    // same.
    is_seen_among(Some(4), Erratum::R1, Algorithm::Ring, &[TWO]);
}

#[test]
fn nothing_is_seen_when_nothing_is_put_back() {
    for algorithm in [Algorithm::Bully, Algorithm::Invitation, Algorithm::Ring] {
        let options = Options { algorithm: Some(algorithm), ..Options::default() };
        let summary = run_seeds(1, 500, &options);
        assert!(summary.failed.is_empty(), "{:?}", summary.failed);
    }
}
