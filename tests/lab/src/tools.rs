//! What the lab needs of the machine it runs on: a Rust target, QEMU, the image.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;

use bellwether_flock::install;

use crate::boards::Board;
use crate::flash;
use crate::probe::Image;

pub const QEMU: &str = "qemu-system-arm";

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

/// Installs a Rust target where it is missing.
pub fn ensure_target(target: &str) -> Result<(), String> {
    let Some(installed) = output("rustup", &["target", "list", "--installed"]) else {
        // No rustup: the build says itself whether the target is there.
        return Ok(());
    };
    if installed.lines().any(|line| line.trim() == target) {
        return Ok(());
    }
    if install::runs("rustup", &["target", "add", target]) {
        eprintln!("installed the Rust target {target}");
        return Ok(());
    }
    Err(format!("the Rust target is missing: run `rustup target add {target}`"))
}

/// Asks the host to prefer the lab and its boards to whatever else runs on it. Where that is not
/// allowed things go on as they are; the lateness of the host is measured either way.
pub fn prefer_lab() {
    let _ = rustix::process::setpriority_process(None, -10);
}

/// Panics name source files by their path. Without the part that differs from machine to machine
/// the image is two kilobytes smaller, and the same everywhere.
pub fn short_paths(target: &str) -> String {
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
    format!("target.{target}.rustflags=[{}]", flags.join(","))
}

/// Builds the library that puts the lab's clock under QEMU, beside the firmware.
pub fn clock_shim() -> Result<PathBuf, String> {
    let target = root().join("boards/target");
    let built = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--package", "bellwether-clock-shim"])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(root())
        .env_remove("CARGO_TARGET_DIR")
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    let shim = target.join("release/libbellwether_clock_shim.so");
    if built.success() && shim.is_file() {
        return shim.canonicalize().map_err(|error| format!("{}: {error}", shim.display()));
    }
    Err("tests/clock/shim could not be built".into())
}

/// Builds the firmware of a board.
pub fn firmware(board: &'static Board) -> Result<Image, String> {
    Image::read(&firmware_file(board)?, board)
}

/// The same, as a file.
pub fn firmware_file(board: &Board) -> Result<PathBuf, String> {
    build(board, None)
}

/// Builds the image that fails when it is asked to.
pub fn provoked(board: &'static Board) -> Result<Image, String> {
    Image::read(&build(board, Some("provoke"))?, board)
}

/// Builds the test of the board's drivers.
pub fn driver_suite(board: &'static Board) -> Result<Image, String> {
    Image::read(&build(board, Some("suite"))?, board)
}

/// All boards and features are built in one folder, so that what they share is built once. There the
/// image of one feature takes the place of another's: a copy is kept.
fn build(board: &Board, feature: Option<&str>) -> Result<PathBuf, String> {
    ensure_target(board.target)?;
    let name = board.name;
    let more = feature.map_or(String::new(), |feature| format!(", {feature}"));
    eprintln!("building the firmware (boards/{name}{more}) …");
    // An emulated board serves the network of the lab; others serve the one that their flash names.
    let network = board.machine.map(|_| ("BELLWETHER_NETWORK", flash::NETWORK.to_string()));
    let boards = root().join("boards");
    let target = boards.join("target");
    // Who waits at a terminal sees how far cargo has come.
    let quiet = if std::io::stderr().is_terminal() { &[][..] } else { &["--quiet"] };
    let features = feature.map(|feature| ["--features", feature]);
    let built = Command::new("cargo")
        .args(["build", "--release", "--config", &short_paths(board.target)])
        .args(quiet)
        .arg("--target-dir")
        .arg(&target)
        .args(features.iter().flatten())
        .envs(network)
        .current_dir(boards.join(name))
        // What cargo set for the lab itself is not meant for another workspace.
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if !built.success() {
        let more = feature.map_or(String::new(), |feature| format!(" --features {feature}"));
        return Err(format!(
            "the firmware could not be built: `cd boards/{name} && cargo build --release{more}`"
        ));
    }
    let built = target.join(board.target).join("release").join(format!("bellwether-{name}"));
    let images = target.join("images");
    let image = images.join(feature.map_or(name.into(), |feature| format!("{name}-{feature}")));
    // Renamed into place: another lab may be starting boards with it.
    let new = images.join(format!(".{name}-{}", std::process::id()));
    std::fs::create_dir_all(&images)
        .and_then(|()| std::fs::copy(&built, &new))
        .and_then(|_| std::fs::rename(&new, &image))
        .map_err(|error| format!("{}: {error}", image.display()))?;
    Ok(image)
}
