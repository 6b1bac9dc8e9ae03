//! What is made of the number that a chip was born with.

/// A hardware address: locally administered, for one station. Chips of one wafer differ in a few bits
/// of their numbers, so all bits go into all of the address.
#[must_use]
pub fn address(id: &[u8]) -> [u8; 6] {
    let mixed = id.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let [a, b, c, d, e, ..] = (mixed ^ mixed >> 40).to_le_bytes();
    [0x02, a, b, c, d, e]
}
