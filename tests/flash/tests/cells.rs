//! The cell store on a strict flash.

use bellwether_flash::cuts::{Depth, explore};
use bellwether_flash::scenario::{Bench, life};

#[test]
fn a_cut_at_any_byte_leaves_the_old_value_or_the_new_one() {
    let tally = explore(
        &Bench::<4, 4096>::new(4),
        &life(50, 1, 300),
        Depth::REDUCED,
        1,
    );
    println!("{}", tally.line());
    assert!(tally.violations.is_empty(), "{:#?}", tally.violations);
}
