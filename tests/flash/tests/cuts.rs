//! Power cuts, reduced; `cargo run --release -p bellwether-flash -- cuts --deep` tries them all.

use bellwether_flash::cuts::{Depth, Tally, explore};
use bellwether_flash::nor::Tear;
use bellwether_flash::scenario::{Bench, life};
use bellwether_flash::torn::tear_erases;
use bellwether_flash::wear::wear;
use bellwether_flash::{Ecc, Nor, WordRule};

fn nothing_is_lost(name: &str, tally: &Tally) {
    println!("{name}: {}", tally.line());
    assert!(tally.violations.is_empty(), "{:#?}", tally.violations);
    assert!(tally.cuts > 0);
}

/// Fewer cuts than the reduced run, for the other geometries.
const SPARSE: Depth = Depth {
    program_stride: 5,
    erase_stride: 301,
    second_every: 7,
    decay_every: 3,
    tears: &[Tear::Clean, Tear::Byte, Tear::Bits],
};

#[test]
fn a_cut_at_any_byte_leaves_the_old_value_or_the_new_one() {
    let tally = explore(&Bench::<4, 4096>::new(3), &life(50, 1, 300), Depth::REDUCED, 1);
    nothing_is_lost("4-byte words", &tally);
    assert!(tally.cuts > 30_000);
}

#[test]
fn stable_bits_and_no_word_programmed_twice() {
    let mut bench = Bench::<4, 4096>::new(3);
    bench.flicker = false;
    nothing_is_lost("stable bits", &explore(&bench, &life(30, 2, 200), SPARSE, 2));
}

#[test]
fn one_byte_words_are_widened() {
    let mut bench = Bench::<1, 4096>::new(4);
    bench.rule = WordRule::ClearBits;
    nothing_is_lost("1-byte words", &explore(&bench, &life(30, 3, 200), SPARSE, 3));
}

#[test]
fn wide_words() {
    let tally = explore(&Bench::<16, 8192>::new(3), &life(20, 4, 200), SPARSE, 4);
    nothing_is_lost("16-byte words", &tally);
    let tally = explore(&Bench::<32, 4096>::new(5), &life(20, 5, 640), SPARSE, 5);
    nothing_is_lost("32-byte words", &tally);
}

/// A word that a cut has torn raises a fault on parts with check bits, and the adapters of the boards make
/// one byte all over of it (boards/stm32/src/flash.rs). That copy is bad; the other one counts.
#[test]
fn torn_words_that_read_as_damaged_make_a_bad_copy() {
    let adapter = include_str!("../../../boards/stm32/src/flash.rs");
    assert!(adapter.contains("const DAMAGED: u8 = 0x55;"));
    let mut bench = Bench::<16, 8192>::new(3);
    bench.ecc = Ecc::Fill(0x55);
    let tally = explore(&bench, &life(20, 6, 200), SPARSE, 6);
    nothing_is_lost("16-byte words with check bits", &tally);
    assert!(tally.verdicts.iter().all(|row| row[1] > 0), "no copy was bad: {:?}", tally.verdicts);
    let mut bench = Bench::<32, 4096>::new(5);
    bench.ecc = Ecc::Fill(0x55);
    let tally = explore(&bench, &life(20, 7, 640), SPARSE, 7);
    nothing_is_lost("32-byte words with check bits", &tally);
    nothing_is_lost("torn erases", &tear_erases(&bench, 500, 2));
}

/// The same with an adapter that hands the fault on as an error of the read. No board of ours does so.
#[test]
fn torn_words_that_cannot_be_read_make_a_bad_copy() {
    let mut bench = Bench::<16, 8192>::new(3);
    bench.ecc = Ecc::Error;
    nothing_is_lost("16-byte words", &explore(&bench, &life(12, 8, 200), SPARSE, 8));
}

#[test]
fn torn_erases_lose_nothing() {
    let tally = tear_erases(&Bench::<4, 4096>::new(3), 3_000, 1);
    nothing_is_lost("torn erases", &tally);
    assert!(tally.erases_torn >= 3_000);
}

#[test]
fn sectors_wear_evenly_and_no_save_erases() {
    let worn = wear(&Bench::<4, 4096>::new(4), 40_000, 100, 256).unwrap();
    println!("{worn:?}");
    for (least, most) in worn.erases {
        assert!(least > 100 && most - least <= 1);
    }
    assert!(worn.programs_max <= 4);
    let worn = wear(&Bench::<1, 65_536>::new(3), 3_000, 640, 256).unwrap();
    println!("{worn:?}");
    assert!(worn.programs_max <= 7);
}

#[test]
fn the_flash_is_deterministic() {
    let run = || {
        let bench = Bench::<4, 4096>::new(3);
        let mut flash: Nor<4, 4096> = bench.flash(9);
        for step in life(20, 9, 200) {
            flash.tear = Tear::Bits;
            let (mut store, _) = bench.open(&mut flash).unwrap();
            store.flash_mut().cut_after(300);
            let _ = bench.run(&mut store, &step);
            flash.power_up();
        }
        flash
    };
    let (one, two) = (run(), run());
    assert_eq!(one.bytes(), two.bytes());
    assert_eq!(one.elapsed_ns, two.elapsed_ns);
}

#[test]
fn random_operations_and_cuts_agree_with_a_plain_map() {
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..2_000 {
        let data: Vec<u8> = (0..random.usize(10..400)).map(|_| random.u8(..)).collect();
        if let Err(what) = bellwether_flash::fuzz::drive(&data) {
            panic!("round {round}: {what}");
        }
    }
}
