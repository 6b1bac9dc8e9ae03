//! Programs that come with the system: found, or installed where that is possible.

use std::process::{Command, Stdio};

/// Whether a command ends well; what it prints is of no interest.
#[must_use]
pub fn runs(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Whether a program is there; the message says what to run where it is not.
pub fn find(program: &str) -> Result<(), String> {
    if runs(program, &["--version"]) {
        return Ok(());
    }
    Err(format!("{program} is missing: run `sudo apt-get install {program}`"))
}

/// Installs a program, whose package has the same name, where it is missing and that is possible.
pub fn ensure(program: &str) -> Result<(), String> {
    let Err(by_hand) = find(program) else {
        return Ok(());
    };
    let id = Command::new("id").arg("-u").output();
    let is_root = id.is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    let sudo = !is_root && runs("sudo", &["-n", "true"]);
    if !(is_root || sudo) || !runs("apt-get", &["--version"]) {
        return Err(by_hand);
    }
    eprintln!("installing {program} …");
    let apt = |arguments: &[&str]| {
        let (first, rest): (&str, &[&str]) =
            if sudo { ("sudo", &["-n", "apt-get"]) } else { ("apt-get", &[]) };
        Command::new(first)
            .args(rest)
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let install = ["install", "-y", "--no-install-recommends", program];
    if apt(&install) || (apt(&["update"]) && apt(&install)) {
        return find(program);
    }
    Err(by_hand)
}
