//! `cargo lab attach` with a stand-in for probe-rs that plays what was recorded of two boards.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Command;

use bellwether::advice::Histogram;
use bellwether::time::Duration;

const PROBES: &str = "The following debug probes were found:
[0]: STLink V3 -- 0483:374e:ONE (ST-LINK)
[1]: STLink V3 -- 0483:374e:TWO (ST-LINK)
";

/// A folder with the stand-in, the probes that it lists, and the recording of each board.
fn bench(list: &str, recordings: [&str; 2]) -> tempfile::TempDir {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attach");
    let folder = tempfile::tempdir().unwrap();
    fs::copy(source.join("probe-rs"), folder.path().join("probe-rs")).unwrap();
    fs::write(folder.path().join("list"), list).unwrap();
    for (serial, recording) in ["ONE", "TWO"].into_iter().zip(recordings) {
        let to = folder.path().join(format!("{serial}.log"));
        fs::copy(source.join(recording), to).unwrap();
    }
    folder
}

/// Exit code, and both outputs together.
fn attach(folder: &Path, more: &[&str]) -> (i32, String) {
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let output = Command::new(env!("CARGO_BIN_EXE_bellwether-lab"))
        .args(["attach", "--headless", "--image", "/dev/null"])
        .args(more)
        .env("PATH", path)
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code().unwrap(), text)
}

const BOARD: [&str; 2] = ["--board", "nucleo-h563zi"];

#[test]
fn two_boards_are_followed_traced_and_judged() {
    let bench = bench(PROBES, ["one.log", "two.log"]);
    let trace = bench.path().join("trace.jsonl");
    let (code, said) =
        attach(bench.path(), &[&BOARD[..], &["--trace", trace.to_str().unwrap()]].concat());
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("settled under 2: 1 2"), "{said}");
    // The recording of the first board lacks one line.
    assert!(said.contains("2 boards, 1 lines lost"), "{said}");
    let trace = fs::read_to_string(trace).unwrap();
    let first = trace.lines().next().unwrap();
    assert!(first.contains("\"algorithm\":\"bully\"") && first.contains("\"nodes\":2"), "{first}");
    for node in [1, 2] {
        let normal = |line: &&str| {
            line.contains(&format!("\"node\":{node},")) && line.contains("\"status\":\"Normal\"")
        };
        let line = trace.lines().find(normal).unwrap();
        assert!(line.contains("\"coordinator\":2") && line.contains("uncertainty_ms"), "{line}");
    }
    assert!(trace.contains("\"message\":\"AreYouThere\""), "{trace}");
}

#[test]
fn two_coordinators_are_seen() {
    let bench = bench(PROBES, ["one-alone.log", "two-alone.log"]);
    let (code, said) = attach(bench.path(), &BOARD);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("assertion 1"), "{said}");
}

#[test]
fn one_probe_can_be_chosen() {
    let bench = bench(PROBES, ["one-alone.log", "two-alone.log"]);
    let (code, said) = attach(bench.path(), &[&BOARD[..], &["--probe", "0483:374e:TWO"]].concat());
    assert!(code == 0 && said.contains("1 boards") && !said.contains("node 1"), "{said}");
    let (code, said) = attach(bench.path(), &[&BOARD[..], &["--probe", "1:2:3"]].concat());
    assert!(code == 1 && said.contains("there is no probe 1:2:3; found: 0483:374e:ONE"), "{said}");
}

/// Lines of a board that has measured round trips and handlings of so many milliseconds.
fn measured(first_line: u32, ms: u64) -> String {
    let line = |number: u32, what: &str| {
        let mut times = Histogram::new(Duration::from_millis(120));
        (0..10).for_each(|_| times.note(Duration::from_millis(ms)));
        let [a, b, c, d] = times.words();
        let (first, max_us) = (times.first(), times.max_us());
        format!(
            "bellwether 9.000000 {number} delays what={what} first={first} max_us={max_us} \
             a={a:x} b={b:x} c={c:x} d={d:x}\n"
        )
    };
    line(first_line, "trips") + &line(first_line + 1, "handling")
}

#[test]
fn times_are_judged_and_kept_for_the_simulator() {
    let bench = bench(PROBES, ["one.log", "two.log"]);
    let delays = bench.path().join("delays");
    let keep = [&BOARD[..], &["--delays", delays.to_str().unwrap()]].concat();
    let (code, said) = attach(bench.path(), &keep);
    assert!(code == 1 && said.contains("too little was measured"), "{said}");
    assert!(!delays.exists());
    // Tm = 20 ms and Tp = 10 ms: 2 Tm + Tp is enough for 12 ms, but Tp is not.
    let log = bench.path().join("ONE.log");
    let text = fs::read_to_string(&log).unwrap() + &measured(900, 12);
    fs::write(log, text).unwrap();
    let (code, said) = attach(bench.path(), &keep);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("Tm = 20 ms is safe") && said.contains("Tp = 10 ms is NOT safe"),
        "{said}"
    );
    assert!(fs::read_to_string(delays).unwrap().contains("trips"));
}

#[test]
fn boards_may_be_of_several_kinds() {
    let bench = bench(PROBES, ["one.log", "two.log"]);
    let kinds = |list| ["--board", list];
    let (code, said) = attach(bench.path(), &kinds("nucleo-h563zi,nucleo-h563zi"));
    assert!(code == 0 && said.contains("2 boards"), "{said}");
    refuses(bench.path(), &kinds("nucleo-h563zi,nope"), 2, "there is no board \"nope\" to buy");
    let three = kinds("nucleo-h563zi,nucleo-f429zi,nucleo-h563zi");
    refuses(bench.path(), &three, 1, "--board names 3 kinds for 2 probes");
    let two = kinds("nucleo-h563zi,nucleo-f429zi");
    refuses(bench.path(), &two, 1, "--image is for boards of one kind");
}

/// A line, and nothing else.
fn refuses(folder: &Path, arguments: &[&str], exit: i32, why: &str) {
    let (code, said) = attach(folder, arguments);
    assert_eq!(code, exit, "{said}");
    assert!(said.contains(why) && said.trim().lines().count() == 1, "{said}");
}

#[test]
fn what_is_missing_is_said_in_one_line() {
    let empty = tempfile::tempdir().unwrap();
    refuses(empty.path(), &BOARD, 1, "probe-rs is missing: run `cargo install");
    let bench = bench("No debug probes were found.\n", ["one.log", "two.log"]);
    refuses(bench.path(), &BOARD, 1, "no debug probe was found");
    refuses(bench.path(), &["--board", "sf2"], 2, "allowed: nucleo-h563zi, w5500-evb-pico2");
}
