//! What the lab needs of the machine it runs on: a Rust target, QEMU, the image.

use std::path::{Path, PathBuf};
use std::process::Command;

use bellwether_flock::install;

use crate::flash;

pub const QEMU: &str = "qemu-system-arm";
const TARGET: &str = "thumbv7m-none-eabi";

/// The root of the sources, known since the lab was built.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Installs QEMU where it is missing and that is possible.
pub fn ensure_qemu() -> Result<(), String> {
    install::ensure(QEMU)
}

/// Installs the Rust target where it is missing.
fn ensure_target() -> Result<(), String> {
    let Some(installed) = output("rustup", &["target", "list", "--installed"]) else {
        // No rustup: the build says itself whether the target is there.
        return Ok(());
    };
    if installed.lines().any(|line| line.trim() == TARGET) {
        return Ok(());
    }
    eprintln!("installing the Rust target {TARGET} …");
    if install::runs("rustup", &["target", "add", TARGET]) {
        return Ok(());
    }
    Err(format!("the Rust target is missing: run `rustup target add {TARGET}`"))
}

/// Asks the host to prefer the lab and its boards to whatever else runs on it. Where that is not
/// allowed things go on as they are; the lateness of the host is measured either way.
pub fn prefer_lab() {
    let _ = rustix::process::setpriority_process(None, -10);
}

/// Panics name source files by their path. Without the part that differs from machine to machine
/// the image is two kilobytes smaller, and the same everywhere.
fn short_paths() -> String {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let sources = home.unwrap_or_default().join("registry/src");
    let registries = std::fs::read_dir(sources).into_iter().flatten().flatten();
    let mut prefixes: Vec<PathBuf> = registries.map(|entry| entry.path()).collect();
    prefixes.extend(root().canonicalize());
    prefixes.sort();
    let flags: Vec<String> = prefixes
        .iter()
        .map(|prefix| format!("'--remap-path-prefix={}/='", prefix.display()))
        .collect();
    format!("target.{TARGET}.rustflags=[{}]", flags.join(","))
}

/// Builds the firmware of the default board and says where the image is.
pub fn build_firmware() -> Result<PathBuf, String> {
    eprintln!("building the firmware (boards/sf2) …");
    build("target", &[])
}

/// Builds the image that fails when it is asked to, into a folder of its own.
pub fn build_provoked() -> Result<PathBuf, String> {
    build("target/provoke", &["--features", "provoke"])
}

fn build(target: &str, more: &[&str]) -> Result<PathBuf, String> {
    ensure_target()?;
    let board = root().join("boards/sf2");
    let built = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--config", &short_paths()])
        .args(["--target-dir", target])
        .args(more)
        .env("BELLWETHER_NETWORK", flash::NETWORK.to_string())
        .current_dir(&board)
        // What cargo set for the lab itself is not meant for another workspace.
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if !built.success() {
        return Err(
            "the firmware could not be built: `cd boards/sf2 && cargo build --release`".into()
        );
    }
    Ok(board.join(target).join(TARGET).join("release/bellwether-sf2"))
}
