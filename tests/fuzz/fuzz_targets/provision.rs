//! Any bytes as the record of a board: refused, or read and written again the same.
//!
//! `cargo +nightly fuzz run --fuzz-dir tests/fuzz provision`
#![no_main]

use bellwether::provision::{BYTES_MAX, Provision};

fn written(provision: &Provision<1>) -> Vec<u8> {
    let mut room = [0; BYTES_MAX];
    let len = provision.encode(&mut room).expect("what was read fits");
    room[..len].to_vec()
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(read) = Provision::<1>::decode(data) {
        let once = written(&read);
        // Members may stand in any order; written they are sorted.
        assert_eq!(once.len(), data.len());
        assert_eq!(once[..69], data[..69]);
        let again = Provision::<1>::decode(&once).expect("what was written can be read");
        assert_eq!(written(&again), once);
    }
});
