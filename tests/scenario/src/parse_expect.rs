//! The `[[expect]]` entries: what must be true, and when.

use crate::bad::BadFile;
use crate::scenario::{Bounds, Expectation, ExpectedElections, ExpectedResets, NodeId, ResetCause};
use crate::time::Ms;
use crate::toml_table::{Field, Table};

const KEYS: [&str; 7] = ["ms", "nodes", "node", "settled", "coordinator", "resets", "elections"];

/// Far beyond what a run can count.
const COUNT_MAX: u64 = 1_000_000_000;

pub(crate) fn parse_expectations(
    document: Table<'_>,
    nodes: NodeId,
    duration_us: u64,
) -> Result<Vec<Expectation>, BadFile> {
    let allowed = "[[expect]] tables";
    let entries = match document.get("expect") {
        Some(field) => field.list(allowed)?,
        None => Vec::new(),
    };
    entries
        .iter()
        .map(|entry| parse_expectation(entry.table(allowed)?, nodes, duration_us))
        .collect()
}

fn parse_expectation(
    entry: Table<'_>,
    nodes: NodeId,
    duration_us: u64,
) -> Result<Expectation, BadFile> {
    entry.allow_only(&KEYS)?;
    let at_us = match entry.get("ms") {
        Some(field) => Some(time_until(field, duration_us, "`duration_ms`")?),
        None => None,
    };
    let listed = match (entry.get("nodes"), entry.get("node")) {
        (Some(field), None) => field.ids(nodes)?,
        (None, Some(field)) => vec![field.id(nodes)?],
        (None, None) => {
            return Err(entry.bad(
                "neither `nodes` nor `node` is given",
                "required: one of them, to say whom the expectation is about",
            ));
        }
        (Some(_), Some(field)) => {
            return Err(field.bad("both `nodes` and `node` are given", "allowed: one of them"));
        }
    };
    let until_us = at_us.unwrap_or(duration_us);
    let expectation = Expectation {
        at_us: until_us,
        at_end: at_us.is_none(),
        line: entry.line,
        nodes: listed,
        settled: entry.get("settled").map(|field| field.flag()).transpose()?,
        coordinator: (entry.get("coordinator").map(|field| field.id(nodes))).transpose()?,
        resets: entry.get("resets").map(parse_resets).transpose()?,
        elections: (entry.get("elections"))
            .map(|field| parse_elections(field, until_us))
            .transpose()?,
    };
    let Expectation { settled: None, coordinator: None, resets: None, elections: None, .. } =
        expectation
    else {
        return Ok(expectation);
    };
    Err(entry
        .bad("nothing is expected", "required: `settled`, `coordinator`, `resets` or `elections`"))
}

fn time_until(field: Field<'_>, until_us: u64, name: &str) -> Result<u64, BadFile> {
    let us = field.time_us()?;
    if us > until_us {
        return Err(field.bad(
            format!("the time is {}", Ms(us)),
            format!("allowed: 0 to {} ({name})", Ms(until_us)),
        ));
    }
    Ok(us)
}

fn parse_resets(field: Field<'_>) -> Result<ExpectedResets, BadFile> {
    let table = field.table("{ cause = …, at_least = …, at_most = … }")?;
    table.allow_only(&["cause", "at_least", "at_most"])?;
    let causes = ResetCause::ALL.map(|known| (known.name(), known));
    let names = ResetCause::ALL.map(ResetCause::name).join(", ");
    Ok(ExpectedResets {
        cause: table.need("cause", &format!("one of {names}"))?.one_of(&causes)?,
        count: parse_bounds(table)?,
    })
}

fn parse_elections(field: Field<'_>, until_us: u64) -> Result<ExpectedElections, BadFile> {
    let table = field.table("{ since_ms = …, at_least = …, at_most = … }")?;
    table.allow_only(&["since_ms", "at_least", "at_most"])?;
    let since_us = match table.get("since_ms") {
        Some(since) => time_until(since, until_us, "the time of the expectation")?,
        None => 0,
    };
    Ok(ExpectedElections { since_us, count: parse_bounds(table)? })
}

fn parse_bounds(table: Table<'_>) -> Result<Bounds, BadFile> {
    let at_least = table.get("at_least").map(|field| field.whole(0, COUNT_MAX)).transpose()?;
    let at_most = table.get("at_most").map(|field| field.whole(0, COUNT_MAX)).transpose()?;
    match (at_least, at_most) {
        (None, None) => {
            Err(table
                .bad("neither `at_least` nor `at_most` is given", "required: one of them or both"))
        }
        (Some(least), Some(most)) if least > most => Err(table.bad(
            format!("`at_least` {least} exceeds `at_most` {most}"),
            "allowed: `at_least` up to `at_most`",
        )),
        _ => Ok(Bounds { at_least: at_least.unwrap_or(0), at_most }),
    }
}
