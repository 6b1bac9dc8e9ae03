//! The keys of a flock, as a board holds them: two slots, so that a flock can move from one key to
//! the next without an outage.
//!
//! A board never holds the root key of its network. The host derives a [`LinkKey`] from it and puts
//! that into the board's flash; whoever steals a board can read the link key of today, not derive
//! the next one.

use core::cell::RefCell;
use core::fmt;

use embassy_sync::blocking_mutex::Mutex;
use embassy_sync::blocking_mutex::raw::RawMutex;
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

    /// Whether each number stands for one key. A board could not start with others.
    #[must_use]
    pub fn are_distinct(&self) -> bool {
        self.other.as_ref().is_none_or(|other| other.id != self.send.id)
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

/// Hands keys from one task to another. A channel or a signal would do, but leaves the bytes of what was
/// taken out where they lay; here they are wiped.
#[derive(Debug)]
pub struct KeyBox<M: RawMutex>(Mutex<M, RefCell<Option<Keys>>>);

impl<M: RawMutex> KeyBox<M> {
    #[must_use]
    pub const fn empty() -> Self {
        Self(Mutex::new(RefCell::new(None)))
    }

    /// Puts keys in; what was there is wiped.
    pub fn put(&self, keys: &Keys) {
        self.0.lock(|slot| *slot.borrow_mut() = Some(keys.clone()));
    }

    /// Takes out what is there.
    pub fn take(&self) -> Option<Keys> {
        self.0.lock(|slot| {
            let mut slot = slot.borrow_mut();
            let keys = slot.clone();
            // Dropped where it lies, so that it is wiped there; `Option::take` would only move it.
            *slot = None;
            keys
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use embassy_sync::blocking_mutex::raw::NoopRawMutex;

    #[test]
    fn a_key_is_found_by_its_number_and_never_printed() {
        let mut keys = Keys::one(3, LinkKey::new([0xAB; KEY_BYTES]));
        keys.other = Some(Slot { id: 4, key: LinkKey::new([0xCD; KEY_BYTES]) });
        assert_eq!(keys.by_id(3).map(LinkKey::bytes), Some(&[0xAB; KEY_BYTES]));
        assert_eq!(keys.by_id(4).map(LinkKey::bytes), Some(&[0xCD; KEY_BYTES]));
        assert_eq!(keys.by_id(5), None);
        assert!(keys.are_distinct());
        let printed = std::format!("{keys:?}").to_lowercase();
        assert!(!printed.contains("ab,") && !printed.contains("171"), "{printed}");
    }
    #[test]
    fn two_keys_with_one_number_are_told_from_two_keys() {
        let mut keys = Keys::one(3, LinkKey::new([0xAB; KEY_BYTES]));
        assert!(keys.are_distinct());
        keys.other = Some(Slot { id: 3, key: LinkKey::new([0xCD; KEY_BYTES]) });
        assert!(!keys.are_distinct());
    }

    #[test]
    fn a_box_hands_over_once_and_keeps_no_byte() {
        let keys = Keys::one(3, LinkKey::new([0xAB; KEY_BYTES]));
        let handed = KeyBox::<NoopRawMutex>::empty();
        assert_eq!(handed.take(), None);
        handed.put(&keys);
        assert_eq!(handed.take(), Some(keys));
        assert_eq!(handed.take(), None);
    }
}
