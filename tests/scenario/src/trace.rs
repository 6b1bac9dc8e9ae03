//! The trace of a run: JSON Lines in time order, from simulator and lab alike.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, Write};

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::scenario::{Algorithm, Group, NodeId, ResetCause, Status};
use crate::time::Ms;

/// The first line: the values that were used, after overrides and stretching.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub algorithm: Algorithm,
    pub nodes: NodeId,
    #[serde(rename = "tm_ms", with = "ms")]
    pub tm_us: u64,
    #[serde(rename = "tp_ms", with = "ms")]
    pub tp_us: u64,
    /// How much every time of the scenario was stretched; 1 in the simulator.
    pub factor: f64,
}

/// Every line but the first.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeEvent {
    pub at_us: u64,
    pub node: NodeId,
    /// How well the time is known. The simulator knows it exactly and leaves this out.
    pub uncertainty_us: Option<u64>,
    pub what: What,
}

/// What happened. Field names are those of the JSON line.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum What {
    /// Firmware starts.
    Boot,
    /// Power cut.
    Kill,
    /// The node restarted itself.
    Reset { cause: ResetCause },
    /// The state vector changed to this.
    State {
        status: Status,
        coordinator: Option<NodeId>,
        /// For Bully the election number of the coordinator, for the ring the run.
        group: Option<Group>,
        up: Vec<NodeId>,
        /// Digest of S(i).d.
        #[serde(default, deserialize_with = "hex::deserialize")]
        definition: Option<u64>,
    },
    /// A datagram was handed to the network; `bytes` is its UDP payload.
    Send { to: Target, message: Cow<'static, str>, bytes: usize },
}

/// Whom a datagram is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Node(NodeId),
    All,
}

/// A line of a trace.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceEvent {
    Run(Run),
    Node(NodeEvent),
}

/// A trace that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadTrace {
    /// Counted from 1; 0 where a single line was read and its place is not known.
    pub line: usize,
    pub wrong: String,
}

impl TraceEvent {
    pub fn parse_line(text: &str) -> Result<TraceEvent, BadTrace> {
        parse(text).map_err(|error| BadTrace { line: 0, wrong: error.to_string() })
    }
}

fn parse(text: &str) -> Result<TraceEvent, serde_json::Error> {
    #[derive(Deserialize)]
    struct Common {
        #[serde(rename = "ms", with = "ms")]
        at_us: u64,
        node: NodeId,
        #[serde(default, deserialize_with = "ms::deserialize_some")]
        uncertainty_ms: Option<u64>,
    }
    let value: serde_json::Value = serde_json::from_str(text)?;
    if value.get("event").is_some_and(|event| event == "run") {
        return Run::deserialize(&value).map(TraceEvent::Run);
    }
    let what = What::deserialize(&value)?;
    let common = Common::deserialize(&value)?;
    Ok(TraceEvent::Node(NodeEvent {
        at_us: common.at_us,
        node: common.node,
        uncertainty_us: common.uncertainty_ms,
        what,
    }))
}

/// Reads a whole trace and checks that it is one: the run first and only there, times in order.
pub fn read_trace(reader: impl BufRead) -> Result<(Run, Vec<NodeEvent>), BadTrace> {
    let mut run = None;
    let mut events: Vec<NodeEvent> = Vec::new();
    for (index, text) in reader.lines().enumerate() {
        let bad = |wrong: String| BadTrace { line: index + 1, wrong };
        let text = text.map_err(|error| bad(error.to_string()))?;
        match (parse(&text).map_err(|error| bad(error.to_string()))?, &run) {
            (TraceEvent::Run(first), None) => run = Some(first),
            (TraceEvent::Run(_), Some(_)) => return Err(bad("a second `run`".to_owned())),
            (TraceEvent::Node(_), None) => return Err(bad("not a `run`".to_owned())),
            (TraceEvent::Node(event), Some(_)) => {
                check_order(&event, events.last().map_or(0, |last| last.at_us)).map_err(bad)?;
                events.push(event);
            }
        }
    }
    match run {
        Some(run) => Ok((run, events)),
        None => Err(BadTrace { line: 1, wrong: "the trace is empty".to_owned() }),
    }
}

/// Writes a trace, one line per event.
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    out: W,
    last_us: u64,
}

impl<W: Write> TraceWriter<W> {
    /// Writes the first line.
    pub fn new(mut out: W, run: &Run) -> io::Result<Self> {
        write_line(&mut out, &TraceEvent::Run(run.clone()))?;
        Ok(TraceWriter { out, last_us: 0 })
    }

    /// Events come in time order: readers rely on it. One that does not is refused with
    /// `InvalidInput`, and nothing of it is written.
    pub fn write(&mut self, event: &NodeEvent) -> io::Result<()> {
        check_order(event, self.last_us)
            .map_err(|wrong| io::Error::new(io::ErrorKind::InvalidInput, wrong))?;
        self.last_us = event.at_us;
        write_line(&mut self.out, event)
    }

    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

fn check_order(event: &NodeEvent, last_us: u64) -> Result<(), String> {
    if event.at_us < last_us {
        return Err(format!(
            "an event of node {} at {} ms after one at {} ms",
            event.node,
            Ms(event.at_us),
            Ms(last_us)
        ));
    }
    Ok(())
}

fn write_line(out: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

impl Serialize for TraceEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Line<'r> {
            event: &'static str,
            #[serde(flatten)]
            run: &'r Run,
        }
        match self {
            TraceEvent::Run(run) => Line { event: "run", run }.serialize(serializer),
            TraceEvent::Node(event) => event.serialize(serializer),
        }
    }
}

// By hand, so that what and when stand first in each line, where people look for them.
impl Serialize for NodeEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("event", self.what.name())?;
        line.serialize_entry("ms", &ms::Number(self.at_us))?;
        line.serialize_entry("node", &self.node)?;
        match &self.what {
            What::Boot | What::Kill => {}
            What::Reset { cause } => line.serialize_entry("cause", cause)?,
            What::State { status, coordinator, group, up, definition } => {
                line.serialize_entry("status", status)?;
                line.serialize_entry("coordinator", coordinator)?;
                line.serialize_entry("group", group)?;
                line.serialize_entry("up", up)?;
                line.serialize_entry("definition", &definition.map(hex::shown))?;
            }
            What::Send { to, message, bytes } => {
                line.serialize_entry("to", to)?;
                line.serialize_entry("message", message)?;
                line.serialize_entry("bytes", bytes)?;
            }
        }
        if let Some(us) = self.uncertainty_us {
            line.serialize_entry("uncertainty_ms", &ms::Number(us))?;
        }
        line.end()
    }
}

impl What {
    /// The name of the event in the trace.
    pub fn name(&self) -> &'static str {
        match self {
            What::Boot => "boot",
            What::Kill => "kill",
            What::Reset { .. } => "reset",
            What::State { .. } => "state",
            What::Send { .. } => "send",
        }
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Target::Node(id) => serializer.serialize_u8(*id),
            Target::All => serializer.serialize_str("all"),
        }
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "`to` is neither an id nor \"all\"")]
        enum Form {
            Node(NodeId),
            All(All),
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum All {
            All,
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Node(id) => Target::Node(id),
            Form::All(All::All) => Target::All,
        })
    }
}

impl fmt::Display for BadTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.wrong),
            line => write!(f, "line {line}: {}", self.wrong),
        }
    }
}

impl std::error::Error for BadTrace {}

/// Microseconds as a number of milliseconds.
mod ms {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub struct Number(pub u64);

    impl Serialize for Number {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serialize(&self.0, serializer)
        }
    }

    /// The nearest float to a multiple of 0.001 is written with at most three decimals.
    pub fn serialize<S: Serializer>(us: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        match us % 1000 {
            0 => serializer.serialize_u64(us / 1000),
            _ => serializer.serialize_f64(*us as f64 / 1000.0),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let us = f64::deserialize(deserializer)? * 1000.0;
        if !(0.0..9e15).contains(&us) {
            return Err(D::Error::custom("a time is negative or too large"));
        }
        Ok(us.round() as u64)
    }

    pub fn deserialize_some<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<u64>, D::Error> {
        deserialize(deserializer).map(Some)
    }
}

/// A digest as 16 hexadecimal digits, because JSON numbers are not exact beyond 53 bits everywhere.
mod hex {
    use serde::{Deserialize, Deserializer, de::Error};

    pub fn shown(digest: u64) -> String {
        format!("{digest:016x}")
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<u64>, D::Error> {
        let Some(digits) = Option::<String>::deserialize(deserializer)? else {
            return Ok(None);
        };
        let plain = digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        match u64::from_str_radix(&digits, 16) {
            Ok(digest) if plain => Ok(Some(digest)),
            _ => Err(D::Error::custom("`definition` is not 16 hexadecimal digits")),
        }
    }
}
