//! Where the newest record of every key lies.

use super::error::Which;
use super::record::KEYS;

/// The place of every key in both regions; an address of zero means none.
#[derive(Debug)]
pub(super) struct Index {
    address: [[u32; KEYS]; 2],
    /// Padded bytes of the newest record of each key.
    length: [u16; KEYS],
}

impl Index {
    /// Nothing is known yet.
    pub const EMPTY: Index = Index { address: [[0; KEYS]; 2], length: [0; KEYS] };

    pub fn address(&self, which: Which, key: u8) -> Option<u32> {
        let address = *self.address.get(which.index())?.get(usize::from(key))?;
        (address != 0).then_some(address)
    }

    pub fn length(&self, key: u8) -> u32 {
        self.length.get(usize::from(key)).copied().unwrap_or(0).into()
    }

    pub fn set(&mut self, which: Which, key: u8, address: u32) {
        if let Some(slot) =
            self.address.get_mut(which.index()).and_then(|row| row.get_mut(usize::from(key)))
        {
            *slot = address;
        }
    }

    pub fn set_length(&mut self, key: u8, length: usize) {
        if let Some(slot) = self.length.get_mut(usize::from(key)) {
            *slot = u16::try_from(length).unwrap_or(u16::MAX);
        }
    }
}
