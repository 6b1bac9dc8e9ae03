//! Random operations and cuts, against a plain map.

use std::collections::BTreeMap;

use bellwether::cells::{Path, Reason, Which, keys};

use crate::nor::{Nor, Tear, WordRule};
use crate::scenario::{Bench, Cells, Halt, finish};

type Flash = Nor<4, 4096>;

/// Reads bytes one by one; after the end there are only zeros.
struct Bytes<'d>(&'d [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn next_u16(&mut self) -> u16 {
        u16::from_le_bytes([self.next(), self.next()])
    }
}

/// Does what the bytes say, and compares with a map after each operation that was cut, and at the
/// end.
pub fn drive(data: &[u8]) -> Result<(), String> {
    let mut bytes = Bytes(data);
    let mut bench = Bench::<4, 4096>::new(3);
    let flags = bytes.next();
    bench.flicker = flags & 1 == 1;
    if flags & 2 == 2 {
        bench.rule = WordRule::ClearBits;
    }
    let mut flash = bench.flash(u64::from(bytes.next_u16()));
    let mut reference = BTreeMap::<u8, Vec<u8>>::new();
    let mut pending = None;
    while !bytes.0.is_empty() {
        flash.power_up();
        let (mut store, _) = bench.open(&mut flash).map_err(|halt| halt.to_string())?;
        if reference.is_empty() && pending.is_none() {
            finish(store.format()).map_err(|halt| format!("format: {halt}"))?;
        }
        settle(&mut store, &mut reference, &mut pending)?;
        match session(&mut store, &mut bytes, &mut reference, &mut pending) {
            Ok(()) | Err(Halt::Cut) => {}
            Err(Halt::Failed(error)) => return Err(format!("refused: {error}")),
        }
    }
    flash.power_up();
    let (mut store, _) = bench.open(&mut flash).map_err(|halt| halt.to_string())?;
    settle(&mut store, &mut reference, &mut pending)
}

/// Operations until a reboot or a cut.
fn session(
    store: &mut Cells<'_, 4, 4096>,
    bytes: &mut Bytes<'_>,
    reference: &mut BTreeMap<u8, Vec<u8>>,
    pending: &mut Option<(u8, Vec<u8>)>,
) -> Result<(), Halt> {
    while !bytes.0.is_empty() {
        match bytes.next() % 8 {
            0 => return Ok(()),
            1 => {
                let after = u64::from(bytes.next_u16());
                let flash: &mut Flash = store.flash_mut();
                flash.tear = Tear::ALL[usize::from(bytes.next()) % Tear::ALL.len()];
                flash.cut_after(after);
            }
            2 => {
                let flash: &mut Flash = store.flash_mut();
                flash.tear = Tear::Bits;
                flash.cut_in_erase(u32::from(bytes.next_u16()) % 4096);
            }
            3 => finish(store.prepare()).map(drop)?,
            4 => {
                let which = Which::BOTH[usize::from(bytes.next() & 1)];
                finish(store.prepare_step(which)).map(drop)?;
            }
            kind => {
                let key = keys::TRANSACTION + bytes.next() % 9;
                let value = vec![bytes.next(); usize::from(bytes.next())];
                let path = if kind == 5 { Path::Answer } else { Path::Idle };
                *pending = Some((key, value.clone()));
                match finish(store.save(key, 1, &value, path, kind != 6)) {
                    Ok(()) => {
                        reference.insert(key, value);
                        *pending = None;
                    }
                    Err(Halt::Failed(error)) if error.reason == Reason::NotPrepared => {
                        *pending = None;
                    }
                    // A word that was torn before and reads as erased now: with an answer waiting
                    // there is no time to copy the region anew. The value may be there or not.
                    Err(Halt::Failed(_)) if path == Path::Answer => return Ok(()),
                    Err(other) => return Err(other),
                }
            }
        }
    }
    Ok(())
}

/// Compares; a value that was being written when the power went may be the old or the new one.
fn settle(
    store: &mut Cells<'_, 4, 4096>,
    reference: &mut BTreeMap<u8, Vec<u8>>,
    pending: &mut Option<(u8, Vec<u8>)>,
) -> Result<(), String> {
    for key in keys::TRANSACTION..keys::CHUNKS {
        let found = finish(store.load(key))
            .map_err(|halt| format!("key {key}: {halt}"))?
            .map(|loaded| loaded.value.to_vec());
        if found.as_ref() == reference.get(&key) {
            continue;
        }
        match (pending.as_ref(), found) {
            (Some((written, value)), Some(found)) if *written == key && *value == found => {
                reference.insert(key, found);
            }
            (_, found) => {
                return Err(format!(
                    "key {key}: {:?} bytes where {:?} were",
                    found.map(|found| found.len()),
                    reference.get(&key).map(Vec::len)
                ));
            }
        }
    }
    Ok(())
}
