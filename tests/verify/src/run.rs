//! Running a command and judging what it did.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How many lines of a failed step are shown.
const LINES_SHOWN: usize = 60;
/// How many of them are told again at the end.
const LINES_TOLD: usize = 8;

/// What came out of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verdict {
    pub passed: u64,
    pub failed: u64,
}

impl Verdict {
    pub fn of(held: bool) -> Self {
        Self { passed: held.into(), failed: (!held).into() }
    }

    pub fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    pub fn describe(&self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed)
    }

    /// From what `describe` made.
    pub fn read(line: &str) -> Option<Self> {
        let (passed, failed) = line.strip_suffix(" failed")?.split_once(" passed, ")?;
        Some(Self { passed: passed.parse().ok()?, failed: failed.parse().ok()? })
    }
}

/// The root of the project: where this program was built from.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// A program of the project: it lies beside this one.
pub fn program(name: &str) -> PathBuf {
    let usual = || root().join("target/release/bellwether-verify");
    std::env::current_exe().unwrap_or_else(|_| usual()).with_file_name(name)
}

/// Where a step's output is.
pub fn log_file(name: &str) -> PathBuf {
    root().join("target/verify").join(format!("{}.log", name.replace([' ', '/', ':'], "-")))
}

/// The lines of a failed step that say what failed, as far as they can be told from others.
pub fn telling_lines(name: &str) -> Vec<String> {
    tell(&fs::read_to_string(log_file(name)).unwrap_or_default())
}

fn tell(output: &str) -> Vec<String> {
    let tells = |line: &&str| {
        let line = line.trim_start();
        ["FAILED", "STOPPED", "error", "seed "].iter().any(|word| line.starts_with(word))
            || line.contains("panicked at")
    };
    output.lines().filter(tells).take(LINES_TOLD).map(str::to_owned).collect()
}

/// What a command printed, and whether it ended well.
#[derive(Debug)]
pub struct Ran {
    pub ok: bool,
    pub code: Option<i32>,
    pub output: String,
}

/// Runs a command in the root of the project with both outputs in one log.
pub fn run(log_name: &str, program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    run_in(&root(), log_name, program, arguments, variables)
}

/// Runs a program of the project.
pub fn run_program(log_name: &str, name: &str, arguments: &[&str]) -> Ran {
    run(log_name, &program(name).display().to_string(), arguments, &[])
}

/// The same in another folder.
pub fn run_in(
    place: &Path,
    log_name: &str,
    program: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Ran {
    let log = log_file(log_name);
    let opened = fs::create_dir_all(log.parent().unwrap_or(&log))
        .and_then(|()| fs::File::create(&log))
        .and_then(|file| Ok((file.try_clone()?, file)));
    let (out, err) = match opened {
        Ok(files) => files,
        Err(error) => {
            let output = format!("{}: {error}", log.display());
            return Ran { ok: false, code: None, output };
        }
    };
    let status = Command::new(program)
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .status();
    let output = fs::read_to_string(&log).unwrap_or_default();
    match status {
        Ok(status) => Ran { ok: status.success(), code: status.code(), output },
        Err(error) => {
            let output = format!("{program} could not be started: {error}");
            Ran { ok: false, code: None, output }
        }
    }
}

/// The end of what a failed step printed.
pub fn show(output: &str) {
    let lines: Vec<&str> = output.lines().collect();
    for line in &lines[lines.len().saturating_sub(LINES_SHOWN)..] {
        println!("     | {line}");
    }
}

/// Adds up the closing lines of Rust's test harness.
pub fn count_tests(ran: &Ran) -> Verdict {
    let mut verdict = Verdict::default();
    for line in ran.output.lines().filter(|line| line.starts_with("test result:")) {
        let number = |what: &str| {
            let words: Vec<&str> = line.split([' ', ';']).collect();
            let at = words.iter().position(|word| *word == what)?;
            words.get(at.checked_sub(1)?)?.parse::<u64>().ok()
        };
        verdict.passed += number("passed").unwrap_or(0);
        verdict.failed += number("failed").unwrap_or(0);
    }
    if !ran.ok && verdict.failed == 0 {
        verdict.failed = 1; // it did not even come to a test
    }
    if ran.ok && verdict.passed == 0 {
        verdict.failed = 1; // a test run without tests proves nothing
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(ok: bool, output: &str) -> Ran {
        Ran { ok, code: Some(0), output: output.to_owned() }
    }

    #[test]
    fn closing_lines_add_up() {
        let output = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\n\
                      test result: FAILED. 2 passed; 1 failed; 0 ignored\n";
        let verdict = count_tests(&ran(false, output));
        assert_eq!((verdict.passed, verdict.failed), (5, 1));
    }

    #[test]
    fn a_verdict_is_read_back() {
        let verdict = Verdict { passed: 12, failed: 3 };
        assert_eq!(Verdict::read(&verdict.describe()), Some(verdict));
        assert_eq!(Verdict::read("     ok: 12 passed, 3 failed in 4 s"), None);
    }

    #[test]
    fn what_failed_is_told_from_the_rest() {
        let output = "ok      budget, 0 s\nFAILED  crash (ring), 9 s\n        at 4 s\n\
                      error[E0308]: types\nthread 'x' (7) panicked at src/x.rs:1\nno error here\n";
        let told = tell(output);
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].starts_with("FAILED  crash"));
    }

    #[test]
    fn a_run_without_tests_or_with_a_broken_build_fails() {
        assert_eq!(count_tests(&ran(true, "")).failed, 1);
        assert_eq!(count_tests(&ran(false, "error: could not compile")).failed, 1);
    }
}
