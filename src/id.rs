//! Who is who: node ids, sets of nodes, group numbers.
//!
//! A set is a fixed bitset of `W` times 64 bits, in the 32-bit words that small processors like:
//! `W = 1` serves the 64 nodes of a firmware, `W = 4` the 255 of a host build. Everything that is kept per node is a [`PerNode`] of the same
//! shape, so that one const parameter sizes a whole node and nothing can run over.

use core::num::NonZeroU8;

/// The id of a node, 1..=255, unique in the provisioned member table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(NonZeroU8);

impl NodeId {
    /// The lowest.
    pub const FIRST: Self = Self(NonZeroU8::MIN);

    /// `None` for 0, which names nobody.
    pub const fn new(id: u8) -> Option<Self> {
        match NonZeroU8::new(id) {
            Some(id) => Some(Self(id)),
            None => None,
        }
    }

    pub const fn get(self) -> u8 {
        self.0.get()
    }

    /// Counted from 0.
    const fn index(self) -> usize {
        self.get() as usize - 1
    }

    const fn word(self) -> usize {
        self.index() / 32
    }

    const fn mask(self) -> u32 {
        1 << (self.index() % 32)
    }
}

impl core::fmt::Display for NodeId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a group (Invitation) or of an election (Bully): GM's pair of the coordinator that
/// made it and a counter that it never uses twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)] // see `Station`
pub struct GroupId {
    pub coordinator: NodeId,
    /// Boot epoch in the upper 32 bits, a sequence number within that boot in the lower.
    pub number: u64,
}

impl GroupId {
    /// Whether that is this group. A function of its own, because it is asked in many places.
    #[inline(never)]
    #[must_use]
    pub fn is(&self, that: &Option<Self>) -> bool {
        that.as_ref() == Some(self)
    }

    /// Whether it is the first one that its coordinator made since it woke.
    pub const fn is_first(self) -> bool {
        self.number as u32 <= 1
    }
}

/// A set of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeSet<const W: usize>([[u32; 2]; W]);

impl<const W: usize> Default for NodeSet<W> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<const W: usize> NodeSet<W> {
    pub const EMPTY: Self = Self([[0; 2]; W]);
    /// The highest id that fits.
    pub const CAPACITY: usize = {
        assert!(W >= 1 && W <= 4, "a node set has one to four words");
        if W == 4 { 255 } else { 64 * W }
    };
    /// The most bytes that a set takes in a datagram, its length byte not counted.
    pub const BYTES_MAX: usize = Self::CAPACITY.div_ceil(8);

    pub const fn fits(id: NodeId) -> bool {
        id.get() as usize <= Self::CAPACITY
    }

    fn words(&self) -> &[u32] {
        self.0.as_flattened()
    }

    fn words_mut(&mut self) -> &mut [u32] {
        self.0.as_flattened_mut()
    }

    pub fn only(id: NodeId) -> Self {
        let mut set = Self::EMPTY;
        set.insert(id);
        set
    }

    /// Ids above the capacity are ignored; the codec and the configuration refuse them before.
    pub fn insert(&mut self, id: NodeId) {
        if let Some(word) = self.words_mut().get_mut(id.word()) {
            *word |= id.mask();
        }
    }

    pub fn remove(&mut self, id: NodeId) {
        if let Some(word) = self.words_mut().get_mut(id.word()) {
            *word &= !id.mask();
        }
    }

    #[must_use]
    pub fn contains(&self, id: NodeId) -> bool {
        self.words().get(id.word()).is_some_and(|word| word & id.mask() != 0)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|[low, high]| low | high == 0)
    }

    /// Small processors cannot count bits; this is short, and sets are small.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    #[must_use]
    pub fn with(mut self, id: NodeId) -> Self {
        self.insert(id);
        self
    }

    #[must_use]
    pub fn without(mut self, id: NodeId) -> Self {
        self.remove(id);
        self
    }

    /// Word by word. Where `W` is 1 there is no loop, and what is left is shorter than a call.
    fn combined(mut self, other: &Self, combine: impl Fn(u32, u32) -> u32) -> Self {
        for ([low, high], [other_low, other_high]) in self.0.iter_mut().zip(&other.0) {
            *low = combine(*low, *other_low);
            *high = combine(*high, *other_high);
        }
        self
    }

    #[must_use]
    pub fn union(self, other: &Self) -> Self {
        self.combined(other, |mine, theirs| mine | theirs)
    }

    #[must_use]
    pub fn intersection(self, other: &Self) -> Self {
        self.combined(other, |mine, theirs| mine & theirs)
    }

    #[must_use]
    pub fn difference(self, other: &Self) -> Self {
        self.combined(other, |mine, theirs| mine & !theirs)
    }

    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.difference(other).is_empty()
    }

    /// How many members of the set have an id below `id`: a cheap order for spreading answers.
    #[must_use]
    pub fn rank_by_id(&self, id: NodeId) -> usize {
        self.iter().take_while(|member| *member < id).count()
    }

    /// The members in ascending order of their ids.
    pub fn iter(&self) -> Members<W> {
        Members(*self)
    }

    /// The first member above `id`, or else the lowest: the next one of a ring.
    #[must_use]
    pub fn next_after(&self, id: NodeId) -> Option<NodeId> {
        self.iter().find(|member| *member > id).or(self.iter().next())
    }

    /// The set as bytes, the lowest ids first.
    pub(crate) fn byte(&self, index: usize) -> u8 {
        let word = self.words().get(index / 4).copied().unwrap_or(0);
        (word >> (8 * (index % 4))) as u8
    }

    /// `false` if a bit lies beyond the capacity.
    pub(crate) fn set_byte(&mut self, index: usize, value: u8) -> bool {
        if index == 31 && value & 0x80 != 0 {
            return false; // id 256 does not exist
        }
        match self.words_mut().get_mut(index / 4) {
            Some(word) => {
                *word |= u32::from(value) << (8 * (index % 4));
                true
            }
            None => value == 0,
        }
    }

    /// Bytes up to the last one that is not zero: the canonical length in a datagram.
    pub(crate) fn byte_len(&self) -> usize {
        let last = self.words().iter().enumerate().rfind(|(_, word)| **word != 0);
        last.map_or(0, |(index, word)| index * 4 + 4 - word.leading_zeros() as usize / 8)
    }
}

/// The members of a set that are still to be listed.
#[derive(Debug, Clone, Copy)]
pub struct Members<const W: usize>(NodeSet<W>);

impl<const W: usize> Iterator for Members<W> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        let mut words = (0..).zip(self.0.words_mut());
        let (index, word) = words.find(|(_, word)| **word != 0)?;
        let bit = word.trailing_zeros() as u8;
        *word &= *word - 1;
        NodeId::new(index * 32 + bit + 1)
    }
}

impl<const W: usize> FromIterator<NodeId> for NodeSet<W> {
    fn from_iter<I: IntoIterator<Item = NodeId>>(ids: I) -> Self {
        let mut set = Self::EMPTY;
        for id in ids {
            set.insert(id);
        }
        set
    }
}

/// One value per node.
#[derive(Debug, Clone)]
pub struct PerNode<T, const W: usize>([[T; 64]; W]);

impl<T: Copy, const W: usize> PerNode<T, W> {
    pub const fn all(value: T) -> Self {
        Self([[value; 64]; W])
    }
}

impl<T, const W: usize> core::ops::Index<NodeId> for PerNode<T, W> {
    type Output = T;
    /// Ids come from the codec or the configuration, which both refuse ids above the capacity. (The
    /// remainder says so to the compiler, which need not provide for a panic.)
    fn index(&self, id: NodeId) -> &T {
        let id = usize::from(id.get());
        &self.0[id / 64 % W][id % 64]
    }
}

impl<T, const W: usize> core::ops::IndexMut<NodeId> for PerNode<T, W> {
    fn index_mut(&mut self, id: NodeId) -> &mut T {
        let id = usize::from(id.get());
        &mut self.0[id / 64 % W][id % 64]
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn id(n: u8) -> NodeId {
        NodeId::new(n).unwrap()
    }

    #[test]
    fn a_set_lists_what_was_put_in() {
        let ids = [1, 2, 63, 64, 65, 128, 129, 255].map(id);
        let set: NodeSet<4> = ids.into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), ids);
        assert_eq!(set.len(), ids.len());
        assert_eq!(set.rank_by_id(id(65)), 4);
        assert_eq!(set.next_after(id(2)), Some(id(63)));
        assert_eq!(set.next_after(id(200)), Some(id(255)));
        assert_eq!(set.next_after(id(255)), Some(id(1)));
        assert_eq!(NodeSet::<4>::EMPTY.next_after(id(1)), None);
        assert!(!set.without(id(64)).contains(id(64)));
        assert_eq!(NodeSet::<4>::EMPTY.iter().count(), 0);
    }

    #[test]
    fn canonical_length_covers_the_highest_member() {
        assert_eq!(NodeSet::<4>::EMPTY.byte_len(), 0);
        for n in 1..=255 {
            let set = NodeSet::<4>::only(id(n));
            assert_eq!(set.byte_len(), (n as usize - 1) / 8 + 1);
            assert_ne!(set.byte(set.byte_len() - 1), 0);
        }
    }

    #[test]
    fn ids_beyond_the_capacity_do_not_fit() {
        assert!(NodeSet::<1>::fits(id(64)));
        assert!(!NodeSet::<1>::fits(id(65)));
        let (mut small, mut large) = (NodeSet::<1>::EMPTY, NodeSet::<4>::EMPTY);
        assert!(!small.set_byte(8, 1));
        assert!(!large.set_byte(31, 0x80));
    }
}
