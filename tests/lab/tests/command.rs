//! The command line of the lab, as far as it goes without QEMU.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const THREE: &str = "name = \"x\"\nalgorithm = \"bully\"\nnodes = 3\nduration_ms = 1000\ntm_ms = 20\n\
                     tp_ms = 10\n";

/// Exit code, and both outputs together.
fn lab(arguments: &[&str], path: Option<&Path>) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellwether-lab"));
    if let Some(first) = path {
        let rest = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{rest}", first.display()));
    }
    let output = command.args(arguments).output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code().unwrap(), text)
}

fn refuses(arguments: &[&str], why: &str) {
    let (code, said) = lab(arguments, None);
    assert!(code == 2 && said.contains(why), "exit code {code}: {said}");
}

#[test]
fn a_bad_scenario_is_named_with_its_line_and_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.toml");
    let shown = path.to_str().unwrap();
    let bad = [
        ("algorithm = \"paxos\"", "algorithm = \"bully\"", 2, "\"bully\""),
        ("nodes = 0", "nodes = 3", 3, "allowed: a whole number from 1 to"),
        ("nodse = 3", "nodes = 3", 3, "nodes"),
    ];
    for (wrong, right, line, allowed) in bad {
        fs::write(&path, THREE.replace(right, wrong)).unwrap();
        refuses(&[shown], &format!("{shown}:{line}: "));
        refuses(&[shown], allowed);
    }
    let paused = "[[at]]\nms = 1\ndo = \"pause\"\nnodes = [2]\n[[at]]\nms = 2\ndo = \"unplug\"\nnodes = [2]\n";
    fs::write(&path, format!("{THREE}{paused}")).unwrap();
    refuses(&[shown], &format!("{shown}:14: `unplug` names node 2, which is paused"));
    refuses(&["no-such-file.toml"], "no-such-file.toml: ");
}

#[test]
fn a_bad_option_is_named_with_what_is_allowed() {
    refuses(&["--boards", "sf3"], "no emulated board \"sf3\"; allowed: sf2, mps2-an385");
    refuses(&["--nodes", "65"], "1..=64");
    refuses(&["--factor", "0"], "allowed: 0.01 to 1000");
    refuses(&["--algorithm", "paxos"], "bully, invitation, ring");
    refuses(&["build", "sf3"], "sf3");
    refuses(&["--no-such-option"], "--no-such-option");
}

#[test]
fn a_tp_below_what_the_board_keeps_is_refused_before_anything_starts() {
    refuses(&["--tp-ms", "7"], "Tp would be 7 ms; allowed: at least 18 ms");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("short.toml");
    fs::write(&path, THREE).unwrap();
    refuses(&[path.to_str().unwrap(), "--factor", "0.5"], "Tp would be 5 ms");
}

/// A QEMU that says who it is, and otherwise fails: what it says is shown.
#[test]
fn the_words_of_a_qemu_that_ends_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let qemu = folder.path().join("qemu-system-arm");
    fs::write(
        &qemu,
        "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho no such luck >&2\nexit 9\n",
    )
    .unwrap();
    fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).unwrap();
    let arguments = ["--headless", "--nodes", "2", "--duration-ms", "5000"];
    let (code, said) = lab(&arguments, Some(folder.path()));
    assert!(code == 1 && said.contains("ended by itself"), "exit code {code}: {said}");
    assert!(said.contains("no such luck"), "{said}");
}
