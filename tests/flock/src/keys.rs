//! Root keys, which never leave the host, and the link keys that boards get instead.

use std::fmt;

use bellwether::key::{KEY_BYTES, LinkKey};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

/// What the derivation is for; another use of a root key would take another one.
const SALT: &[u8] = b"bellwether link v2";

/// The secret of a flock. It is wiped from memory when it is dropped, and it never prints itself.
#[derive(Clone, PartialEq, Eq)]
pub struct RootKey(Zeroizing<[u8; KEY_BYTES]>);

impl RootKey {
    /// A key from the random numbers of the operating system.
    pub fn random() -> Result<Self, String> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(&mut *bytes).map_err(|error| format!("no random numbers: {error}"))?;
        Ok(Self(bytes))
    }

    /// `None` for anything but 64 hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != KEY_BYTES || !rest.is_empty() {
            return None;
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            let digit = |digit: &u8| char::from(*digit).to_digit(16);
            *byte = u8::try_from(digit(high)? << 4 | digit(low)?).ok()?;
        }
        Some(Self(bytes))
    }

    /// As a flock file keeps it.
    #[must_use]
    pub fn to_hex(&self) -> Zeroizing<String> {
        let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('0');
        let digits = self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
        Zeroizing::new(digits.collect())
    }

    /// HKDF-SHA256: what the boards of this network share under the number of this key.
    pub fn link_key(&self, network: u16, id: u8) -> Result<LinkKey, String> {
        let [low, high] = network.to_le_bytes();
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        Hkdf::<Sha256>::new(Some(SALT), &*self.0)
            .expand(&[low, high, id], &mut *bytes)
            .map_err(|error| error.to_string())?;
        Ok(LinkKey::new(*bytes))
    }
}

impl fmt::Debug for RootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RootKey(..)")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_link_key_is_the_one_that_another_implementation_derives() {
        // Computed with Python's hmac and hashlib from bytes 0 to 31, network 0x1234, key 7.
        let expected = "f3eab4a1c0674a4e3e906ba57958483a77cae97208b5d0923b3cff9467d8a098";
        let root = RootKey(Zeroizing::new(std::array::from_fn(|index| index as u8)));
        let link = root.link_key(0x1234, 7).unwrap();
        assert_eq!(*RootKey(Zeroizing::new(*link.bytes())).to_hex(), expected);
        assert_ne!(root.link_key(0x1234, 8).unwrap(), link);
        assert_ne!(root.link_key(0x1235, 7).unwrap(), link);
    }

    #[test]
    fn a_root_key_reads_back_and_never_prints_itself() {
        let root = RootKey::random().unwrap();
        assert_eq!(RootKey::from_hex(&root.to_hex()), Some(root.clone()));
        assert_eq!(format!("{root:?}"), "RootKey(..)");
        for bad in ["", "00", &"0".repeat(63), &"0".repeat(65), &"g".repeat(64)] {
            assert_eq!(RootKey::from_hex(bad), None, "{bad}");
        }
        assert_ne!(RootKey::random().unwrap(), root);
    }
}
