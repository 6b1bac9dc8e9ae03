//! `cargo lab build` where something is missing: one clear line.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Exit code, and both outputs together, with only these programs in reach.
fn build(programs: &Path, board: &str) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_bellwether-lab"))
        .args(["build", board])
        .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code().unwrap(), text)
}

/// A stand-in for a program.
fn script(folder: &Path, name: &str, lines: &str) {
    let file = folder.join(name);
    fs::write(&file, format!("#!/bin/sh\n{lines}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_board_that_is_not_there_is_named_with_those_that_are() {
    let empty = tempfile::tempdir().unwrap();
    let (code, said) = build(empty.path(), "nope");
    assert_eq!(code, 2, "{said}");
    assert_eq!(
        said.trim(),
        "there is no board \"nope\" to buy; allowed: nucleo-h563zi, w5500-evb-pico2, nucleo-f429zi"
    );
}

#[test]
fn a_target_that_cannot_be_installed_is_named_with_the_command() {
    let folder = tempfile::tempdir().unwrap();
    // A rustup that knows no target and cannot get one.
    script(folder.path(), "rustup", "case \"$2\" in list) exit 0 ;; *) exit 1 ;; esac");
    script(folder.path(), "cargo", "echo it must not come to this");
    let (code, said) = build(folder.path(), "nucleo-f429zi");
    assert_eq!(code, 1, "{said}");
    assert_eq!(
        said.trim(),
        "the Rust target is missing: run `rustup target add thumbv7em-none-eabihf`"
    );
}

#[test]
fn a_target_that_is_missing_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let added = folder.path().join("added");
    let add = format!("[ \"$2\" = list ] || echo \"$3\" > {}", added.display());
    script(folder.path(), "rustup", &add);
    script(folder.path(), "cargo", "exit 1");
    let (code, said) = build(folder.path(), "nucleo-h563zi");
    assert_eq!(code, 1, "{said}");
    assert_eq!(fs::read_to_string(added).unwrap().trim(), "thumbv8m.main-none-eabihf");
    assert!(said.contains("installed the Rust target thumbv8m.main-none-eabihf"), "{said}");
}
