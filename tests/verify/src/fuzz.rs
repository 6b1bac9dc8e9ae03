//! What reads from outside, under a fuzzer, for a moment.
//!
//! libFuzzer needs neither a nightly compiler nor cargo-fuzz: what makes it see which inputs reach
//! new code are options of the compiler's back end. (Sanitizers would need a nightly one. There is no
//! unsafe code to be watched; panics are what is looked for.)

use std::path::Path;

use crate::checks::{failed, succeeded};
use crate::options::Depth;
use crate::run::{Verdict, root, run, run_in};

/// As cargo-fuzz has them, and what `.cargo/config.toml` says, which these take the place of.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg=fuzzing \
    --cfg=chacha20_backend=\"soft\" --cfg=poly1305_backend=\"soft\"";

/// The targets: the files in `tests/fuzz/fuzz_targets`.
fn targets(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = files.filter_map(|file| Some(file.path().file_stem()?.to_str()?.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Builds all targets and runs each so many times, from the inputs that earlier runs have kept.
pub fn run_all(name: &str, depth: Depth) -> Verdict {
    let folder = root().join("tests/fuzz");
    let targets = targets(&folder.join("fuzz_targets"));
    if targets.is_empty() {
        return failed("there is no fuzz target");
    }
    let version = run(name, "rustc", &["-vV"], &[]);
    let Some(host) = version.output.lines().find_map(|line| line.strip_prefix("host: ")) else {
        return failed("the compiler does not say what it compiles for");
    };
    let place = root().join("target/fuzz");
    let shown = place.display().to_string();
    // For a target that is named the flags are not those of build scripts, which nobody fuzzes.
    let build =
        ["build", "--release", "--quiet", "--bins", "--target", host, "--target-dir", &shown];
    let built = run_in(&folder, name, "cargo", &build, &[("RUSTFLAGS", FLAGS)]);
    if !built.ok {
        return succeeded(&built);
    }
    let runs = format!("-runs={}", depth.pick(0, 20_000, 10_000_000));
    let mut verdict = Verdict::default();
    for target in targets {
        let program = place.join(host).join("release").join(&target).display().to_string();
        let found = place.join("corpus").join(&target);
        if let Err(error) = std::fs::create_dir_all(&found) {
            return failed(&format!("{}: {error}", found.display()));
        }
        let crash = format!("-artifact_prefix={shown}/{target}-");
        let ran = run(name, &program, &[&found.display().to_string(), &runs, &crash], &[]);
        let done = ran.output.lines().find(|line| line.starts_with("Done "));
        if let Some(done) = done {
            println!("     {target}: {done}");
        }
        // Without its last line it did not do what it was asked to.
        verdict.add(&Verdict::of(done.is_some()));
        verdict.add(&succeeded(&ran));
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_targets_are_built() {
        let targets = targets(&root().join("tests/fuzz/fuzz_targets"));
        assert!(targets.contains(&"open".into()), "{targets:?}");
        let manifest = std::fs::read_to_string(root().join("tests/fuzz/Cargo.toml"));
        let manifest = manifest.unwrap_or_default();
        for target in targets {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target}");
        }
    }

    #[test]
    fn nothing_of_the_flags_of_all_builds_is_lost() {
        let config = std::fs::read_to_string(root().join(".cargo/config.toml")).unwrap_or_default();
        let line = config.lines().find(|line| line.starts_with("rustflags")).unwrap_or_default();
        let flags: Vec<&str> = line.split('\'').filter(|part| part.contains('=')).skip(1).collect();
        assert!(line.matches("--cfg").count() == 2, "{line}");
        for flag in flags.iter().filter(|flag| flag.contains("backend")) {
            assert!(FLAGS.contains(&format!("--cfg={flag}")), "{flag}");
        }
    }
}
