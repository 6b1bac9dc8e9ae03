//! The keys of the flock: one cell, so that a change is one save, and a wipe that follows it.
//!
//! ```text
//!  ┌────────┬─────────┬──────────┬──────────┬───────────┐
//!  │ change │ send id │ send key │ other id │ other key │   other id 0: none, its key is zero
//!  └────────┴─────────┴──────────┴──────────┴───────────┘
//!  0        1         2          34         35          67
//! ```
//!
//! A value that was replaced stays readable in flash until its sector is erased, and a key must
//! not. So every change has a number, and the notes about erases (see `erasing`) say up to which
//! change the flash is wiped. While the two differ, idle time closes the head of each region and
//! recycles every sector that was in use, a step at a time like all idle work; when both regions
//! are through, a note says so. After a boot that finds a wipe unfinished it begins again at once,
//! without waiting for idle time.

use zeroize::Zeroize;

use super::error::{Error, Reason, Which};
use super::guard::Flash;
use super::store::{Path, Save, Store};
use super::typed::keys;
use crate::key::{KEY_BYTES, Keys, LinkKey, Slot};

/// Bytes of the cell.
const BYTES: usize = 1 + 2 * SLOT_BYTES;
const SLOT_BYTES: usize = 1 + KEY_BYTES;
const FORMAT: u8 = 1;

/// What the `wipe` of a region says while its head is still to be closed.
pub(super) const WIPE_HEAD: u8 = u8::MAX;

fn encode(change: u8, keys: &Keys) -> [u8; BYTES] {
    let mut out = [0; BYTES];
    let (head, slots) = out.split_at_mut(1);
    head.fill(change);
    let filled = [Some(&keys.send), keys.other.as_ref()];
    for (room, slot) in slots.chunks_mut(SLOT_BYTES).zip(filled) {
        if let (Some(slot), Some((id, key))) = (slot, room.split_first_mut()) {
            *id = slot.id;
            key.copy_from_slice(slot.key.bytes());
        }
    }
    out
}

fn decode(bytes: &[u8]) -> Option<Keys> {
    let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
    let (send, other) = bytes.get(1..)?.split_first_chunk::<SLOT_BYTES>()?;
    let other: &[u8; SLOT_BYTES] = other.first_chunk()?;
    let [send_id, other_id] = [send[0], other[0]];
    if send_id == 0 || send_id == other_id {
        return None;
    }
    let slot = |slot: &[u8; SLOT_BYTES]| {
        let [id, key @ ..] = *slot;
        Slot { id, key: LinkKey::new(key) }
    };
    Some(Keys { send: slot(send), other: (other_id != 0).then(|| slot(other)) })
}

impl<F: Flash, const PAGES: usize, const BUFFER: usize> Store<F, PAGES, BUFFER> {
    /// The keys in force; `None` where there never were any.
    pub fn keys(&mut self) -> Result<Option<Keys>, Error> {
        let found = match self.load(keys::SECRET)? {
            None => Ok(None),
            Some(loaded) if loaded.format > FORMAT => {
                Err(Error::new(Reason::NewerFormat { stored: loaded.format }))
            }
            Some(loaded) => decode(loaded.value).map(Some).ok_or(Error::new(Reason::Malformed)),
        };
        self.buffer.0.zeroize();
        found
    }

    /// Puts other keys into force: one save, so that a cut leaves the old ones or the new ones.
    /// Idle time then wipes the old ones from flash ([`Store::is_wiped`]). Two keys with one number are
    /// refused: they could not be read again.
    ///
    /// Cancel safety: not cancel safe, like [`Store::save`].
    pub async fn replace_keys(&mut self, keys: &Keys) -> Result<(), Error> {
        if !keys.are_distinct() {
            return Err(Error::new(Reason::Malformed));
        }
        let first = !self.is_live(keys::SECRET);
        self.change = self.wiped.wrapping_add(u8::from(!first));
        let mut bytes = encode(self.change, keys);
        let (key, format, path) = (keys::SECRET, FORMAT, Path::Idle);
        let parts: [&[u8]; 1] = [&bytes];
        let saved = self.save_parts(&Save { key, format, parts: &parts, path, verify: true }).await;
        bytes.zeroize();
        self.buffer.0.zeroize();
        saved?;
        if !first {
            self.begin_wipe();
        }
        Ok(())
    }

    /// Whether no bytes of former keys are left in flash; [`Store::prepare_step`] sees to it.
    #[must_use]
    pub fn is_wiped(&self) -> bool {
        self.regions.iter().all(|region| region.wipe == 0)
    }

    fn begin_wipe(&mut self) {
        for which in self.in_use() {
            self.parts(*which).0.wipe = WIPE_HEAD;
        }
    }

    /// One of the sectors that hold former keys was erased, or all of a region. The note that
    /// follows says so.
    pub(super) fn account_wipe(&mut self, which: Which, all: bool) {
        let (region, _, _) = self.parts(which);
        region.wipe = match region.wipe {
            0 => return,
            _ if all => 0,
            WIPE_HEAD => WIPE_HEAD,
            sectors => sectors - 1,
        };
        if self.is_wiped() {
            self.wiped = self.change;
        }
    }

    /// Looks whether a boot has a wipe to end.
    pub(super) fn load_change(&mut self) {
        if let Ok(Some(loaded)) = self.load(keys::SECRET) {
            self.change = loaded.value.first().copied().unwrap_or(0);
            if self.change != self.wiped {
                self.begin_wipe();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(send: u8, other: Option<u8>) -> Keys {
        let slot = |id| Slot { id, key: LinkKey::new([id; KEY_BYTES]) };
        Keys { send: slot(send), other: other.map(slot) }
    }

    #[test]
    fn keys_read_back_and_no_shorter_or_ambiguous_record_does() {
        for other in [None, Some(8)] {
            let keys = keys(7, other);
            let bytes = encode(1, &keys);
            assert_eq!(decode(&bytes), Some(keys));
            assert_eq!(decode(&bytes[1..]), None);
            for (at, value) in [(1, 0), (34, 7)] {
                let mut bad = bytes;
                bad[at] = value;
                assert_eq!(decode(&bad), None, "byte {at} = {value}");
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_again_byte_by_byte(
            mut bytes in prop::collection::vec(any::<u8>(), BYTES),
            lone in any::<bool>(),
        ) {
            if lone || bytes[34] == 0 {
                bytes[34..].fill(0);
            }
            if let Some(keys) = decode(&bytes) {
                prop_assert_eq!(&encode(bytes[0], &keys)[..], &bytes);
            } else {
                prop_assert!(bytes[1] == 0 || bytes[1] == bytes[34]);
            }
        }
    }
}
