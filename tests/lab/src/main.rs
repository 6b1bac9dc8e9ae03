//! `cargo lab`: the flock on emulated boards. Not part of this version.

use std::process::ExitCode;

/// The input asks for what does not exist; nothing was started.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    eprintln!(
        "the lab of emulated boards is not part of this version; \
         `cargo sim FILE` plays the same scenario files in the simulator"
    );
    ExitCode::from(BAD_INPUT)
}
