//! What each part of the firmware takes of an image's flash, in two ways.
//!
//! By symbols: each belongs to the crate and the module that its own path names, with all that the
//! compiler has put into it. A function of the core that became a piece of a task's poll counts for that
//! task, and the other way round. Of functions that share one code the first by name has it.
//!
//! By origin: an instruction belongs to the innermost function that it stems from and that is somebody's,
//! as the debug information tells, wherever the compiler has put it.
//!
//! What no symbol covers, constants above all, and what is of everybody (the core library, heapless) is
//! `rest`; so is what the compiler has taken out of several functions at once.

use std::collections::BTreeMap;
use std::path::Path;

use addr2line::Loader;

use object::{Object, ObjectSymbol, SymbolKind};

use crate::boards::Board;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The protocol: see [`OTHER_MODULES`].
    Core,
    /// Seals and keys.
    Link,
    Network,
    Storage,
    /// Of the board and its chip.
    Driver,
    /// Tasks, and what they stand on.
    Shell,
    Logs,
    Rest,
}

use Part::{Core, Driver, Link, Logs, Network, Rest, Shell, Storage};

/// In the order of the table.
pub const PARTS: [(Part, &str); 8] = [
    (Core, "core"),
    (Link, "link"),
    (Network, "IP"),
    (Storage, "cells"),
    (Driver, "driver"),
    (Shell, "shell"),
    (Logs, "logs"),
    (Rest, "rest"),
];

/// The core is the crate `bellwether` without these modules.
const OTHER_MODULES: [(&str, Part); 7] = [
    ("shell::log", Logs),
    ("shell", Shell),
    ("provision", Shell),
    ("lamp", Shell),
    ("cells", Storage),
    ("link", Link),
    ("key", Link),
];

/// Beginnings of the names of crates. Routines of the compiler are nobody's.
const CRATES: [(&str, Part); 31] = [
    ("chacha20", Link),
    ("poly1305", Link),
    ("cipher", Link),
    ("aead", Link),
    ("universal_hash", Link),
    ("inout", Link),
    ("hybrid_array", Link),
    ("zeroize", Link),
    ("embassy_net_wiznet", Driver),
    ("embassy_net_driver_channel", Driver),
    ("embassy_net", Network),
    ("smoltcp", Network),
    ("managed", Network),
    ("sequential_storage", Storage),
    ("embedded_storage", Storage),
    ("crc", Storage),
    ("bellwether_", Driver),
    ("embassy_stm32", Driver),
    ("embassy_rp", Driver),
    ("stm32_metapac", Driver),
    ("rp_pac", Driver),
    ("embassy_hal_internal", Driver),
    ("cortex_m", Driver),
    ("critical_section", Driver),
    ("embassy_executor", Shell),
    ("embassy_sync", Shell),
    ("embassy_time", Shell),
    ("embassy_futures", Shell),
    ("static_cell", Shell),
    ("defmt", Logs),
    ("_defmt", Logs),
];

/// Bytes of each of [`PARTS`].
pub type Shares = [u64; PARTS.len()];

/// The path at the beginning of a demangled name: of `<a::B<c::D> as e::F>::g` it is `a::B`.
fn path(name: &str) -> &str {
    let start = name.find(|c: char| c.is_ascii_alphabetic() || c == '_').unwrap_or(name.len());
    let name = &name[start..];
    // Of `impl a::B for c::D`, `&mut c::D` and the like the path is still to come.
    for word in ["impl ", "mut ", "dyn ", "const "] {
        if let Some(rest) = name.strip_prefix(word) {
            return path(rest);
        }
    }
    let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    name[..end.unwrap_or(name.len())].trim_end_matches(':')
}

/// The part that a path belongs to; `None`: it is of everybody.
fn of_path(path: &str) -> Option<Part> {
    let (krate, module) = path.split_once("::").unwrap_or((path, ""));
    if krate == "bellwether" {
        let inside = |name: &str| {
            module.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        let other = OTHER_MODULES.iter().find(|(name, _)| inside(name));
        return Some(other.map_or(Core, |(_, part)| *part));
    }
    CRATES.iter().find(|(name, _)| krate.starts_with(name)).map(|(_, part)| *part)
}

/// The part that a demangled symbol belongs to.
fn of(name: &str) -> Part {
    known(name).unwrap_or(Rest)
}

/// The same; `None`: it is of everybody.
fn known(name: &str) -> Option<Part> {
    // What a crate implements for a type of everybody is that crate's.
    let implemented = name.split_once(" as ").map(|(_, rest)| path(rest));
    let handler = || {
        let upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let known = ["Reset", "HardFault", "SysTick", "NonMaskableInt", "DefaultHandler", "main"];
        (name.len() > 2 && name.chars().all(upper) && !name.starts_with("OUTLINED"))
            || known.contains(&name)
    };
    of_path(path(name))
        .or_else(|| implemented.and_then(of_path))
        .or_else(|| handler().then_some(Driver))
}

/// A symbol: its name, its length, and whether it is code.
struct Piece {
    name: String,
    size: u64,
    code: bool,
}

/// The symbols in an image's flash by their addresses.
fn pieces(bytes: &[u8], board: &Board) -> Result<BTreeMap<u64, Piece>, String> {
    let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
    let mut pieces: BTreeMap<u64, Piece> = BTreeMap::new();
    for symbol in file.symbols().filter(|symbol| symbol.size() > 0) {
        let code = symbol.kind() == SymbolKind::Text;
        // The lowest bit of a function's address says that it is Thumb code.
        let address = symbol.address() & !u64::from(code);
        if !(board.flash_start..board.flash_end).contains(&address) {
            continue;
        }
        let name = format!("{:#}", rustc_demangle::demangle(symbol.name().unwrap_or_default()));
        let size = symbol.size();
        let piece = pieces.entry(address).or_insert(Piece { name: name.clone(), size, code });
        if name < piece.name {
            *piece = Piece { name, size: size.max(piece.size), code };
        }
    }
    Ok(pieces)
}

/// What is missing in an image that takes so many bytes of flash is `rest`.
fn filled(mut shares: Shares, flash: u64) -> Shares {
    let covered: u64 = shares.iter().sum();
    shares[Rest as usize] += flash.saturating_sub(covered);
    shares
}

/// By symbols.
pub fn measure(bytes: &[u8], board: &Board, flash: u64) -> Result<Shares, String> {
    let mut shares = Shares::default();
    for piece in pieces(bytes, board)?.values() {
        shares[of(&piece.name) as usize] += piece.size;
    }
    Ok(filled(shares, flash))
}

/// By origin.
pub fn origins(image: &Path, bytes: &[u8], board: &Board, flash: u64) -> Result<Shares, String> {
    let loader = Loader::new(image).map_err(|error| error.to_string())?;
    let mut shares = Shares::default();
    for (start, piece) in pieces(bytes, board)? {
        if !piece.code {
            shares[of(&piece.name) as usize] += piece.size;
            continue;
        }
        for address in (start..start + piece.size).step_by(HALFWORD as usize) {
            let part = origin(&loader, address)?.unwrap_or_else(|| of(&piece.name));
            shares[part as usize] += HALFWORD.min(start + piece.size - address);
        }
    }
    Ok(filled(shares, flash))
}

/// The length of the shortest instructions.
const HALFWORD: u64 = 2;

/// Whose the instruction at an address is; `None`: it stems from nobody's functions alone.
fn origin(loader: &Loader, address: u64) -> Result<Option<Part>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("debug information: {error}");
    let mut frames = loader.find_frames(address).map_err(|error| wrong(&error))?;
    while let Some(frame) = frames.next().map_err(|error| wrong(&error))? {
        let Some(function) = frame.function else { continue };
        let raw = function.raw_name().map_err(|error| wrong(&error))?;
        if let Some(part) = known(&format!("{:#}", rustc_demangle::demangle(&raw))) {
            return Ok(Some(part));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_parts() {
        for (index, (part, _)) in PARTS.iter().enumerate() {
            assert_eq!(*part as usize, index);
        }
    }

    #[test]
    fn symbols_belong_to_the_crate_and_module_of_their_path() {
        for (name, part) in [
            ("bellwether::node::dispatch", Core),
            ("bellwether::bully::election::<impl bellwether::bully::Bully<_>>::halt_all", Core),
            ("<bellwether::wire::Kind as core::fmt::Debug>::fmt", Core),
            ("bellwether::keyring::open", Core),
            ("bellwether::key::LinkKey::new", Link),
            ("bellwether::link::hello::<impl bellwether::station::Turn<_>>::say_hello", Link),
            ("poly1305::backend::soft::State::update_with_backend", Link),
            ("<&mut bellwether::cells::store::Store<F,_,_> as X>::next", Storage),
            ("<bellwether_board::nor::Nor<C> as embedded_storage_async::NorFlash>::write", Driver),
            ("bellwether::shell::member::Member<B,A,M,_,_>::step_once::{{closure}}", Shell),
            ("embassy_executor::raw::TaskStorage<F>::poll", Shell),
            ("bellwether::shell::log::state", Logs),
            ("bellwether::shell::logic", Shell),
            ("_defmt_write", Logs),
            ("smoltcp::wire::ipv4::Repr::emit", Network),
            ("<core::option::Option<T> as defmt::Format>::format", Logs),
            ("embassy_net_wiznet::Runner::run", Driver),
            ("ETHERNET", Driver),
            ("OUTLINED_FUNCTION_4", Rest),
            ("core::slice::copy_from_slice", Rest),
            ("__udivmoddi4", Rest),
            ("", Rest),
        ] {
            assert_eq!(of(name), part, "{name}");
        }
    }
}
