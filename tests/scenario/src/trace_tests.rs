//! What a trace looks like, and that it is read back as it was written.

use std::io;

use crate::scenario::*;
use crate::time::Ms;
use crate::trace::*;

fn run() -> Run {
    Run { algorithm: Algorithm::Invitation, nodes: 5, tm_us: 20_000, tp_us: 10_500, factor: 1.0 }
}

fn event(at_us: u64, what: What) -> NodeEvent {
    NodeEvent { at_us, node: 3, uncertainty_us: None, what }
}

fn settled_state() -> What {
    What::State {
        status: Status::Normal,
        coordinator: Some(5),
        group: Some((5, (1 << 63) + 1)),
        up: vec![1, 2],
        definition: Some(0xab),
    }
}

fn empty_state() -> What {
    What::State {
        status: Status::Down,
        coordinator: None,
        group: None,
        up: vec![],
        definition: None,
    }
}

fn send(to: Target) -> What {
    What::Send { to, message: "AreYouNormal".into(), bytes: 48 }
}

fn events() -> Vec<NodeEvent> {
    let mut events = vec![
        event(0, What::Boot),
        event(1, empty_state()),
        event(12_345, settled_state()),
        event(12_345, send(Target::Node(1))),
        event(12_350, send(Target::All)),
        event(13_000, What::Kill),
    ];
    events.extend(ResetCause::ALL.map(|cause| event(999_999_999_999, What::Reset { cause })));
    events.push(NodeEvent { uncertainty_us: Some(250), ..event(1_000_000_000_000, What::Boot) });
    events
}

fn written() -> String {
    let mut writer = TraceWriter::new(Vec::new(), &run()).unwrap();
    for event in events() {
        writer.write(&event).unwrap();
    }
    String::from_utf8(writer.finish().unwrap()).unwrap()
}

#[test]
fn lines_are_as_the_interface_has_them() {
    let wanted = r#"{"event":"run","algorithm":"invitation","nodes":5,"tm_ms":20,"tp_ms":10.5,"factor":1.0}
{"event":"boot","ms":0,"node":3}
{"event":"state","ms":0.001,"node":3,"status":"Down","coordinator":null,"group":null,"up":[],"definition":null}
{"event":"state","ms":12.345,"node":3,"status":"Normal","coordinator":5,"group":[5,9223372036854775809],"up":[1,2],"definition":"00000000000000ab"}
{"event":"send","ms":12.345,"node":3,"to":1,"message":"AreYouNormal","bytes":48}
{"event":"send","ms":12.35,"node":3,"to":"all","message":"AreYouNormal","bytes":48}
{"event":"kill","ms":13,"node":3}
{"event":"reset","ms":999999999.999,"node":3,"cause":"deadline"}
{"event":"reset","ms":999999999.999,"node":3,"cause":"watchdog"}
{"event":"reset","ms":999999999.999,"node":3,"cause":"panic"}
{"event":"reset","ms":999999999.999,"node":3,"cause":"request"}
{"event":"reset","ms":999999999.999,"node":3,"cause":"power"}
{"event":"boot","ms":1000000000,"node":3,"uncertainty_ms":0.25}
"#;
    assert_eq!(written(), wanted);
}

#[test]
fn what_is_written_is_read_back() {
    assert_eq!(read_trace(written().as_bytes()), Ok((run(), events())));
    let mut lines = written().lines().map(TraceEvent::parse_line).collect::<Vec<_>>();
    assert_eq!(lines.remove(0), Ok(TraceEvent::Run(run())));
    let nodes = events().into_iter().map(|event| Ok(TraceEvent::Node(event)));
    assert_eq!(lines, nodes.collect::<Vec<_>>());
}

#[test]
fn every_time_has_at_most_three_decimals() {
    for at_us in (0..2_000_000).step_by(97).chain((0..1000).map(|us| 86_400_000_000 + us)) {
        let line = serde_json::to_string(&event(at_us, What::Boot)).unwrap();
        let wanted = format!(r#"{{"event":"boot","ms":{},"node":3}}"#, Ms(at_us));
        assert_eq!(line, wanted);
    }
}

#[test]
fn fields_added_later_are_no_hindrance() {
    let line = r#"{"colour":"red","node":3,"ms":0,"event":"boot"}"#;
    let boot = TraceEvent::Node(event(0, What::Boot));
    assert_eq!(TraceEvent::parse_line(line), Ok(boot));
}

#[test]
fn a_line_that_is_no_event_is_refused() {
    for line in [
        "",
        "{}",
        "[]",
        r#"{"event":"sing","ms":0,"node":1}"#,
        r#"{"event":"boot","node":1}"#,
        r#"{"event":"boot","ms":0}"#,
        r#"{"event":"boot","ms":-1,"node":1}"#,
        r#"{"event":"boot","ms":"0","node":1}"#,
        r#"{"event":"boot","ms":0,"node":256}"#,
        r#"{"event":"boot","ms":0,"node":1} {}"#,
        r#"{"event":"reset","ms":0,"node":1,"cause":"boredom"}"#,
        r#"{"event":"send","ms":0,"node":1,"to":"some","message":"Halt","bytes":1}"#,
        r#"{"event":"run","algorithm":"raft","nodes":5,"tm_ms":1,"tp_ms":1,"factor":1}"#,
    ] {
        assert!(TraceEvent::parse_line(line).is_err(), "{line}");
    }
    for definition in [r#""ab""#, r#""+0000000000000ab""#, r#""000000000000000g""#, "171"] {
        let line = r#"{"event":"state","ms":0,"node":1,"status":"Down","coordinator":null,"group":null,"up":[],"definition":D}"#;
        let line = line.replace("D}", &format!("{definition}}}"));
        assert!(TraceEvent::parse_line(&line).is_err(), "{line}");
    }
}

#[test]
fn an_event_out_of_order_is_refused_and_not_written() {
    let mut writer = TraceWriter::new(Vec::new(), &run()).unwrap();
    writer.write(&event(2_000, What::Boot)).unwrap();
    let error = writer.write(&event(1_999, What::Kill)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert_eq!(error.to_string(), "an event of node 3 at 1.999 ms after one at 2 ms");
    writer.write(&event(2_000, What::Kill)).unwrap();
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    assert_eq!(text.lines().count(), 3);
}

#[test]
fn a_trace_starts_with_its_run_and_goes_forward() {
    let text = written();
    let lines: Vec<&str> = text.lines().collect();
    let refusal = |lines: &[&str]| {
        let text = lines.join("\n");
        read_trace(text.as_bytes()).unwrap_err().to_string()
    };
    assert_eq!(refusal(&[]), "line 1: the trace is empty");
    assert_eq!(refusal(&lines[1..]), "line 1: not a `run`");
    assert_eq!(refusal(&[lines[0], lines[0]]), "line 2: a second `run`");
    assert_eq!(
        refusal(&[lines[0], lines[6], lines[1]]),
        "line 3: an event of node 3 at 0 ms after one at 13 ms"
    );
    assert!(refusal(&[lines[0], "?"]).starts_with("line 2: "));
}
