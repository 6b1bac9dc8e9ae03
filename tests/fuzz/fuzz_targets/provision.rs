//! Any bytes as the record of a board: refused, or read and written again the same.
//!
//! `cargo verify --only fuzzing`
#![no_main]

use bellwether::provision::{BYTES_MAX, Provision};

fn written(provision: &Provision<1>) -> Option<Vec<u8>> {
    let mut room = [0; BYTES_MAX];
    let len = provision.encode(&mut room)?;
    Some(room[..len].to_vec())
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(read) = Provision::<1>::decode(data) {
        let with_policies = data[3] & 4 != 0;
        let Some(once) = written(&read) else {
            // An older record says nothing of the longest silence. What follows from its other spans
            // may be longer than a record can say.
            assert!(!with_policies, "what was read fits");
            return;
        };
        // Members may stand in any order; written they are sorted. Older formats are shorter.
        if with_policies {
            assert_eq!(once.len(), data.len());
            assert_eq!(once[..87], data[..87]);
        }
        let again = Provision::<1>::decode(&once).expect("what was written can be read");
        assert_eq!(written(&again), Some(once));
    }
});
