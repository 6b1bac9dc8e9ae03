//! A scenario from its TOML text.

use std::collections::BTreeMap;
use std::num::NonZeroU8;

use crate::bad::BadFile;
use crate::parse_at::parse_actions;
use crate::parse_expect::parse_expectations;
use crate::scenario::{Algorithm, DEFAULT_SEED, Detector, Durability, NodeId, Scenario};
use crate::time::Ms;
use crate::toml_table::{Field, Source, Table};

/// What a command line says instead of the file. It is applied before the file is checked, so
/// that a scenario for five nodes cannot be played with three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    pub algorithm: Option<Algorithm>,
    pub nodes: Option<NonZeroU8>,
    pub seed: Option<u64>,
    pub detector: Option<Detector>,
    pub preempt: Option<bool>,
}

const KEYS: [&str; 20] = [
    "name",
    "algorithm",
    "nodes",
    "seed",
    "duration_ms",
    "tm_ms",
    "tp_ms",
    "t_ms",
    "check_ms",
    "quiet_ms",
    "quiet_max_ms",
    "detector",
    "preempt",
    "hold_off_ms",
    "durability",
    "observers",
    "boot",
    "preference",
    "at",
    "expect",
];

impl Scenario {
    /// Reads a scenario; `file_name` only serves the message of an error.
    pub fn parse(file_name: &str, text: &str) -> Result<Scenario, BadFile> {
        Scenario::parse_with(file_name, text, Overrides::default())
    }

    /// The same, with what the command line says put in the place of what the file says.
    pub fn parse_with(
        file_name: &str,
        text: &str,
        overrides: Overrides,
    ) -> Result<Scenario, BadFile> {
        let source = Source { file: file_name, text };
        let document = source.parse()?;
        parse_document(Table::document(source, &document), overrides)
    }
}

fn parse_document(document: Table<'_>, overrides: Overrides) -> Result<Scenario, BadFile> {
    document.allow_only(&KEYS)?;

    let name = document.need("name", "a text that says what the scenario shows")?;
    let algorithm = document
        .need("algorithm", "\"bully\", \"invitation\" or \"ring\"")?
        .one_of(&Algorithm::ALL.map(|known| (known.name(), known)))?;
    let nodes_in_file = document
        .need("nodes", "the number of nodes, 1 to 255")?
        .whole(1, NodeId::MAX.into())? as NodeId;
    let nodes = overrides.nodes.map_or(nodes_in_file, NonZeroU8::get);
    let seed = match document.get("seed") {
        Some(field) => field.whole(0, i64::MAX as u64)?,
        None => DEFAULT_SEED,
    };
    let duration_us =
        document.need("duration_ms", "how long the run lasts")?.time_us_above_zero()?;
    let times = parse_times(document)?;
    let preempt = match document.get("preempt") {
        Some(field) => field.flag()?,
        None => true,
    };
    let detector = match document.get("detector") {
        Some(field) => field.one_of(&Detector::ALL.map(|known| (known.name(), known)))?,
        None => Detector::default(),
    };
    let durability = match document.get("durability") {
        Some(field) => field.one_of(&Durability::ALL.map(|known| (known.name(), known)))?,
        None => Durability::default(),
    };
    let mut observers = match document.get("observers") {
        Some(field) => field.ids(nodes)?,
        None => Vec::new(),
    };
    observers.sort_unstable();
    let mut boot = match document.get("boot") {
        Some(field) => field.ids(nodes)?,
        None => (1..=nodes).collect(),
    };
    boot.sort_unstable();
    let preference = match document.get("preference") {
        Some(field) => parse_preference(field, nodes)?,
        None => BTreeMap::new(),
    };

    Ok(Scenario {
        name: name.text()?.to_owned(),
        algorithm: overrides.algorithm.unwrap_or(algorithm),
        nodes,
        seed: overrides.seed.unwrap_or(seed),
        duration_us,
        tm_us: times.tm_us,
        tp_us: times.tp_us,
        t_us: times.t_us,
        check_us: times.check_us,
        quiet_us: times.quiet_us,
        quiet_max_us: times.quiet_max_us,
        detector: overrides.detector.unwrap_or(detector),
        preempt: overrides.preempt.unwrap_or(preempt),
        hold_off_us: times.hold_off_us,
        durability,
        observers,
        actions: parse_actions(document, nodes, duration_us, &boot)?,
        expectations: parse_expectations(document, nodes, duration_us)?,
        boot,
        preference,
    })
}

#[derive(Debug)]
struct Times {
    tm_us: u64,
    tp_us: u64,
    t_us: Option<u64>,
    check_us: Option<u64>,
    quiet_us: Option<u64>,
    quiet_max_us: Option<u64>,
    hold_off_us: Option<u64>,
}

fn parse_times(document: Table<'_>) -> Result<Times, BadFile> {
    let optional_us = |key| document.get(key).map(|field| field.time_us_above_zero()).transpose();
    let tm_us =
        document.need("tm_ms", "the bound Tm of message propagation")?.time_us_above_zero()?;
    let tp_us =
        document.need("tp_ms", "the bound Tp of handling a message")?.time_us_above_zero()?;
    let times = Times {
        tm_us,
        tp_us,
        t_us: optional_us("t_ms")?,
        check_us: optional_us("check_ms")?,
        quiet_us: optional_us("quiet_ms")?,
        quiet_max_us: optional_us("quiet_max_ms")?,
        hold_off_us: optional_us("hold_off_ms")?,
    };

    // A round shorter than the answer may take would declare healthy nodes dead.
    let round_us_min = 2 * tm_us + tp_us;
    let round_us = times.t_us.unwrap_or(round_us_min);
    let too_short = |key, us, least_us, why: &str| {
        let line = document.get(key).map_or(document.line, |field| field.line);
        let wrong = format!("`{key}` is {}", Ms(us));
        let allowed = format!("allowed: at least {why} = {} ms", Ms(least_us));
        document.source.bad(line, wrong, allowed)
    };
    match times {
        Times { t_us: Some(us), .. } if us < round_us_min => {
            Err(too_short("t_ms", us, round_us_min, "2 Tm + Tp"))
        }
        Times { check_us: Some(us), .. } if us < round_us => {
            Err(too_short("check_ms", us, round_us, "T"))
        }
        _ => Ok(times),
    }
}

fn parse_preference(field: Field<'_>, nodes: NodeId) -> Result<BTreeMap<NodeId, u8>, BadFile> {
    let table = field.table("a table of id = preference")?;
    let mut preference = BTreeMap::new();
    for (key, line) in table.keys() {
        // Only the plain spelling, so that "2" and "02" cannot both stand for node 2.
        let id = (1..=nodes).find(|id| id.to_string() == key).ok_or_else(|| {
            table.source.bad(
                line,
                format!("`preference` names node `{key}`"),
                format!("allowed: a node id from 1 to {nodes}"),
            )
        })?;
        let value = table.need(key, "a preference")?.whole(0, u8::MAX.into())?;
        preference.insert(id, value as u8);
    }
    Ok(preference)
}
