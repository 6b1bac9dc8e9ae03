//! Random operations and power cuts on the cell store, against a plain map.
//!
//! `cargo verify --only fuzzing`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(what) = bellwether_flash::fuzz::drive(data) {
        panic!("{what}");
    }
});
