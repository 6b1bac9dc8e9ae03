//! The keys of a flock, as a board holds them: two slots, so that a flock can move from one key to
//! the next without an outage.
//!
//! A board never holds the root key of its network. The host derives a [`LinkKey`] from it and puts
//! that into the board's flash; whoever steals a board can read the link key of today, not derive
//! the next one.

use core::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

/// What seals datagrams. It is wiped from memory when it is dropped, and it never prints itself.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct LinkKey([u8; KEY_BYTES]);

impl LinkKey {
    #[must_use]
    pub const fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    #[must_use]
    pub const fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkKey(..)")
    }
}

/// A key and the number by which datagrams name it. No number is 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    pub id: u8,
    pub key: LinkKey,
}

/// What a node accepts, and what it sends with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// All datagrams that leave are sealed with this one.
    pub send: Slot,
    /// Accepted too: the key before, or the key to come.
    pub other: Option<Slot>,
}

impl Keys {
    #[must_use]
    pub const fn one(id: u8, key: LinkKey) -> Self {
        Self { send: Slot { id, key }, other: None }
    }

    /// The key with this number.
    #[must_use]
    pub fn by_id(&self, id: u8) -> Option<&LinkKey> {
        if self.send.id == id {
            return Some(&self.send.key);
        }
        self.other.as_ref().filter(|slot| slot.id == id).map(|slot| &slot.key)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn a_key_is_found_by_its_number_and_never_printed() {
        let mut keys = Keys::one(3, LinkKey::new([0xAB; KEY_BYTES]));
        keys.other = Some(Slot { id: 4, key: LinkKey::new([0xCD; KEY_BYTES]) });
        assert_eq!(keys.by_id(3).map(LinkKey::bytes), Some(&[0xAB; KEY_BYTES]));
        assert_eq!(keys.by_id(4).map(LinkKey::bytes), Some(&[0xCD; KEY_BYTES]));
        assert_eq!(keys.by_id(5), None);
        let printed = std::format!("{keys:?}").to_lowercase();
        assert!(!printed.contains("ab,") && !printed.contains("171"), "{printed}");
    }
}
