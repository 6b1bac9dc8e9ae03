//! What a flash image holds, in words. Never the bytes of a key.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use bellwether::config::Config;
use bellwether::provision::Provision;
use bellwether::state::StateVector;
use bellwether_flash::read::{Cells, read};

use crate::board::Board;

/// Describes an image; `Err` if it cannot even be opened.
pub fn show(board: &Board, bytes: Vec<u8>) -> Result<String, String> {
    Ok(describe(&read(&board.image(bytes)?)?))
}

fn describe(cells: &Cells) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_to(&mut text, cells);
    text
}

fn write_to(text: &mut String, cells: &Cells) -> std::fmt::Result {
    let [a, b] = &cells.report.regions;
    writeln!(
        text,
        "cells         {:?}; copies {:?} and {:?}",
        cells.report.provisioning,
        a.verdict(),
        b.verdict()
    )?;
    match &cells.configuration {
        Some((bytes, format)) => match Provision::<1>::decode(bytes) {
            Ok(provision) => {
                writeln!(text, "record        format {format}")?;
                write_provision(text, &provision)?;
            }
            Err(why) => writeln!(text, "record        format {format}, unreadable: {why:?}")?,
        },
        None => writeln!(text, "record        none")?,
    }
    match &cells.keys {
        Some(keys) => {
            write!(text, "keys          send with {}", keys.send.id)?;
            if let Some(other) = &keys.other {
                write!(text, ", accept {} too", other.id)?;
            }
            let former = if cells.is_wiped { "" } else { "; former ones are not wiped yet" };
            writeln!(text, "{former}")?;
        }
        None => writeln!(text, "keys          none: the board stays mute")?,
    }
    let or_none = |number: Option<u32>| number.map_or("none".into(), |number| number.to_string());
    writeln!(text, "incarnation   {}", or_none(cells.incarnation))?;
    writeln!(text, "boot epoch    {}", or_none(cells.epoch))?;
    match cells.state.as_deref().map(StateVector::<1>::decode) {
        None => writeln!(text, "last state    none"),
        Some(Err(why)) => writeln!(text, "last state    unreadable: {why:?}"),
        Some(Ok(state)) => {
            let group = state.group.map_or("none".into(), |group| {
                let (epoch, count) = (group.number >> 32, group.number & u64::from(u32::MAX));
                format!("{}.{epoch}.{count}", group.coordinator)
            });
            let coordinator = state.coordinator.map_or("none".into(), |id| id.to_string());
            let up: Vec<String> = state.up.iter().map(|id| id.to_string()).collect();
            let definition = state.definition.map_or(0, |known| known.as_bytes().len());
            writeln!(
                text,
                "last state    coordinator {coordinator}, group {group}, up [{}], definition of \
                 {definition} bytes",
                up.join(" ")
            )
        }
    }
}

fn write_provision(text: &mut String, provision: &Provision<1>) -> std::fmt::Result {
    let Config { id, network, algorithm, durability, timing, .. } = &provision.config;
    writeln!(text, "node          {id} of network {network}")?;
    writeln!(text, "address       {}:{}", Ipv4Addr::from(provision.address), provision.port)?;
    writeln!(text, "algorithm     {algorithm:?}, durability {durability:?}")?;
    writeln!(
        text,
        "timing        Tm {} Tp {} Ts {} T {} P {} Q {} beat {}",
        timing.tm, timing.tp, timing.ts, timing.t, timing.check, timing.quiet, timing.beat
    )?;
    let Config { detector, preempt, hold_off, observers, .. } = &provision.config;
    writeln!(
        text,
        "failures      detector {detector:?}, silence up to {}",
        provision.config.quiet_max
    )?;
    let observers: Vec<String> = observers.iter().map(|id| id.to_string()).collect();
    writeln!(
        text,
        "policies      preempt {preempt}, hold-off {hold_off}, observers [{}]",
        observers.join(" ")
    )?;
    let members: Vec<String> = (provision.config.members().iter())
        .map(|id| match provision.config.preference(id) {
            0 => id.to_string(),
            preference => format!("{id} (preference {preference})"),
        })
        .collect();
    writeln!(text, "members       {}", members.join(", "))?;
    if provision.config.accept_version_1 {
        writeln!(text, "version 1     still accepted, in the clear")?;
    }
    Ok(())
}
