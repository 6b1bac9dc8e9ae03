//! Random operations and cuts, against a plain map.

use std::collections::BTreeMap;

use bellwether::cells::{Path, Reason, Which, keys};

use crate::nor::{Nor, Tear, WordRule};
use crate::scenario::{Bench, Cells, Halt, finish};

type Flash = Nor<4, 4096>;

/// What the store must hold.
#[derive(Debug, Default)]
struct Reference {
    /// Values whose save was acknowledged.
    kept: BTreeMap<u8, Vec<u8>>,
    /// Values since then whose save was cut. A torn record can read as good at a later boot, so
    /// each of them may turn up until the next acknowledged save of its key.
    perhaps: BTreeMap<u8, Vec<Vec<u8>>>,
}

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
    let mut reference = Reference::default();
    while !bytes.0.is_empty() {
        flash.power_up();
        let (mut store, _) = bench.open(&mut flash).map_err(|halt| halt.to_string())?;
        if reference.kept.is_empty() && reference.perhaps.is_empty() {
            finish(store.format()).map_err(|halt| format!("format: {halt}"))?;
        }
        compare(&mut store, &reference)?;
        match session(&mut store, &mut bytes, &mut reference) {
            Ok(()) | Err(Halt::Cut) => {}
            Err(Halt::Failed(error)) => return Err(format!("refused: {error}")),
        }
    }
    flash.power_up();
    let (mut store, _) = bench.open(&mut flash).map_err(|halt| halt.to_string())?;
    compare(&mut store, &reference)
}

/// Operations until a reboot or a cut.
fn session(
    store: &mut Cells<'_, 4, 4096>,
    bytes: &mut Bytes<'_>,
    reference: &mut Reference,
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
                let perhaps = reference.perhaps.entry(key).or_default();
                perhaps.push(value.clone());
                match finish(store.save(key, 1, &value, path, kind != 6)) {
                    Ok(()) => {
                        perhaps.clear();
                        reference.kept.insert(key, value);
                    }
                    Err(Halt::Failed(error)) if error.reason == Reason::NotPrepared => {
                        perhaps.pop();
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

/// Compares all keys.
fn compare(store: &mut Cells<'_, 4, 4096>, reference: &Reference) -> Result<(), String> {
    for key in keys::TRANSACTION..keys::CHUNKS {
        let found = store
            .load(key)
            .map_err(|halt| format!("key {key}: {halt}"))?
            .map(|loaded| loaded.value.to_vec());
        let kept = reference.kept.get(&key);
        let perhaps = reference.perhaps.get(&key);
        let is_new =
            found.as_ref().is_some_and(|found| perhaps.is_some_and(|all| all.contains(found)));
        if found.as_ref() != kept && !is_new {
            return Err(format!(
                "key {key}: {:?} bytes where {:?} were",
                found.map(|found| found.len()),
                kept.map(Vec::len)
            ));
        }
    }
    Ok(())
}
