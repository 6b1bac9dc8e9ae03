//! What the image takes of the board, and whether it lies where it should.

use std::path::Path;

use object::{Object, ObjectSection};

/// Bytes of flash and of static memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    pub flash: u64,
    pub memory: u64,
}

pub const FLASH_MAX: u64 = 110 << 10;
pub const MEMORY_MAX: u64 = 40 << 10;
/// Below lies the stack of the thread, and nothing else (memory.x).
const MEMORY_START: u64 = 0x2000_4800;
const MEMORY_END: u64 = 0x2001_0000;

/// The sizes of an image, or what is wrong with it.
pub fn measure(path: &Path) -> Result<Sizes, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let file = object::File::parse(&*bytes).map_err(|error| error.to_string())?;
    let mut sizes = Sizes { flash: 0, memory: 0 };
    for section in file.sections() {
        let (name, start) = (section.name().unwrap_or_default(), section.address());
        let end = start + section.size();
        match name {
            ".vector_table" if start != 0 => {
                return Err(format!("the vector table is at {start:#x}, not at 0"));
            }
            ".vector_table" | ".text" | ".rodata" => sizes.flash += section.size(),
            ".data" | ".bss" | ".uninit" => {
                if start < MEMORY_START || end > MEMORY_END {
                    return Err(format!("{name} is at {start:#x} to {end:#x}, outside its memory"));
                }
                sizes.memory += section.size();
                if name == ".data" {
                    sizes.flash += section.size();
                }
            }
            _ => {}
        }
    }
    if sizes.flash > FLASH_MAX {
        return Err(format!("{} bytes of flash; allowed: {FLASH_MAX}", sizes.flash));
    }
    if sizes.memory > MEMORY_MAX {
        return Err(format!("{} bytes of static memory; allowed: {MEMORY_MAX}", sizes.memory));
    }
    Ok(sizes)
}
