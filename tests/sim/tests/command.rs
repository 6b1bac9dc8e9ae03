//! The command as a user meets it: exit codes, messages, the last line, the trace.

#![allow(clippy::expect_used)] // a test may fail where it stands

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn sim(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellwether-sim"));
    command.args(arguments).output().expect("the simulator starts")
}

fn scenario(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    folder.join(name).display().to_string()
}

/// A file of this test's own.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).expect("a file can be written");
    path
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const THREE: &str = "name = \"three\"\nalgorithm = \"bully\"\nnodes = 3\nduration_ms = 3000\n\
                     tm_ms = 20\ntp_ms = 10\n";

#[test]
fn a_scenario_that_holds_exits_0_and_json_is_the_last_line() {
    let output = sim(&[&scenario("coordinator-crash-and-return-bully.toml"), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let last = printed(&output).lines().last().unwrap_or_default().to_owned();
    let json: serde_json::Value = serde_json::from_str(&last).expect("the last line is JSON");
    for key in [
        "runs",
        "violations",
        "elections",
        "datagrams",
        "sim_seconds",
        "assertion1_seconds",
        "wall_seconds",
    ] {
        assert!(json[key].is_number(), "{key} in {last}");
    }
    assert_eq!(json["runs"], 1);
    assert_eq!(json["violations"], 0);
}

#[test]
fn an_expectation_that_is_false_exits_1_and_names_the_replay() {
    let text = format!("{THREE}[[expect]]\nnodes = [1, 2, 3]\nsettled = true\ncoordinator = 1\n");
    let path = file("false-expectation.toml", &text);
    let output = sim(&[&path.display().to_string()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = printed(&output);
    assert!(text.contains("line 7"), "{text}");
    assert!(text.contains("replay: cargo sim"), "{text}");
}

#[test]
fn bad_input_exits_2_and_says_where_and_what_is_allowed() {
    for (name, text, wanted) in [
        ("unknown-key.toml", format!("{THREE}colour = \"red\"\n"), ":7: "),
        ("bad-id.toml", format!("{THREE}[[at]]\nms = 5\ndo = \"kill\"\nnodes = [4]\n"), ":10: "),
        ("tm-zero.toml", THREE.replace("tm_ms = 20", "tm_ms = 0"), ":5: "),
        ("raft.toml", THREE.replace("bully", "raft"), "allowed"),
    ] {
        let path = file(name, &text);
        let output = sim(&[&path.display().to_string()]);
        assert_eq!(output.status.code(), Some(2), "{name}: {output:?}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(name) && message.contains(wanted), "{name}: {message}");
    }
}

#[test]
fn an_impossible_configuration_exits_2_with_the_reason() {
    let text = format!("{THREE}quiet_ms = 1\n");
    let path = file("quiet.toml", &text);
    let output = sim(&[&path.display().to_string()]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("Q = ") || message.contains("Beats"), "{message}");
    let output = sim(&["--nodes", "0"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn the_same_seed_gives_the_same_trace_bit_for_bit() {
    let trace = |name: &str, seed: &str| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let output = sim(&["--seed", seed, "--trace", &path.display().to_string()]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        fs::read(&path).expect("the trace is there")
    };
    let first = trace("first.jsonl", "11");
    assert!(first.starts_with(b"{\"event\":\"run\""));
    assert_eq!(first, trace("second.jsonl", "11"));
    assert_ne!(first, trace("third.jsonl", "12"));
}

#[test]
fn a_trace_can_be_read_and_judged_again() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("judged.jsonl");
    let file_name = scenario("coordinator-crash-and-return-invitation.toml");
    let output = sim(&[&file_name, "--trace", &path.display().to_string()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = fs::read_to_string(&file_name).expect("the scenario is there");
    let scenario = bellwether_scenario::Scenario::parse(&file_name, &text).expect("it is good");
    let reader = std::io::BufReader::new(fs::File::open(&path).expect("the trace is there"));
    let (run, events) = bellwether_scenario::read_trace(reader).expect("the trace is good");
    assert_eq!(bellwether_scenario::judge_trace(&scenario, &run, &events), []);
    // And a trace without its second half does not satisfy the scenario.
    let half = &events[..events.len() / 2];
    assert_ne!(bellwether_scenario::judge_trace(&scenario, &run, half), []);
}
