//! The cut tests see what they are for: with the second region switched off, or with the
//! generation ignored, they fail.
//!
//! `cargo test -p bellwether-flash --features sabotage --target-dir target/switched`
#![cfg(feature = "sabotage")]

use bellwether::cells::Sabotage;
use bellwether_flash::cuts::{Depth, Tally, explore};
use bellwether_flash::scenario::{Bench, life};

fn cuts_with(sabotage: Sabotage) -> Tally {
    let mut bench = Bench::<4, 4096>::new(3);
    bench.sabotage = sabotage;
    let tally = explore(&bench, &life(50, 1, 300), Depth::REDUCED, 1);
    println!("{sabotage:?}: {}", tally.line());
    tally
}

#[test]
fn without_sabotage_nothing_is_lost() {
    assert_eq!(cuts_with(Sabotage::default()).violations_total, 0);
}

#[test]
fn without_the_second_region_values_are_lost() {
    let tally = cuts_with(Sabotage { second_region_off: true, ..Sabotage::default() });
    assert!(tally.violations_total > 0);
}

#[test]
fn without_generations_values_are_lost() {
    let tally = cuts_with(Sabotage { ignore_generation: true, ..Sabotage::default() });
    assert!(tally.violations_total > 0);
}
