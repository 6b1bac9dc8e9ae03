//! Flock files, and what is made from them: flash images with link keys, and clear captures.
//!
//! | command | what it does |
//! |---|---|
//! | `cargo flock new FLOCK.toml --nodes 5` | a commented flock file with a fresh root key |
//! | `cargo flock make FLOCK.toml --out DIR` | one flash image per member, in a new incarnation |
//! | `cargo flock show IMAGE` | what an image holds; never the bytes of a key |
//! | `cargo flock rotate FLOCK.toml` | the steps from one key to the next |
//! | `cargo flock open CAPTURE --flock FLOCK.toml --out CLEAR` | opens the datagrams of a capture |
//!
//! Root keys never leave the flock file; boards get link keys ([`keys`]). The images are written
//! through the same cells that boards read, in one place ([`image`]) for real boards and the lab.

#![forbid(unsafe_code)]

pub mod board;
pub mod edit;
pub mod example;
pub mod file;
pub mod image;
pub mod install;
pub mod keys;
pub mod open;
pub mod pcap;
pub mod save;
pub mod show;
