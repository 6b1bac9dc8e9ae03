//! Any text as a flock file: refused with a line of it, or read, changed and read again.
//!
//! `cargo verify --only fuzzing`
#![no_main]

use bellwether_flock::edit::{Edit, Rotation};
use bellwether_flock::file::Flock;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match Flock::parse("f", text) {
        Err(bad) => {
            let lines = 1 + text.matches('\n').count();
            assert!((1..=lines).contains(&bad.line) && !bad.allowed.is_empty(), "{bad}");
        }
        Ok(flock) => {
            let mut edit = Edit::parse("f", text).expect("what can be read can be changed");
            let first = flock.members[0].clone();
            if let Ok(next) = edit.count_incarnation(first.id) {
                let again = Flock::parse("f", &edit.text()).expect("it is still a flock file");
                assert_eq!(again.members[0].incarnation, next);
            }
            if edit.rotate(Rotation::Add).is_ok() {
                let again = Flock::parse("f", &edit.text()).expect("it is still a flock file");
                assert_eq!((again.keys.len(), again.send), (2, flock.send));
            }
            flock.link_keys().expect("keys can be derived");
        }
    }
});
