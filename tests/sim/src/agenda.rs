//! What is going to happen: taken in order of time, then of its making.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::clock::Time;

#[derive(Debug)]
struct Entry<E> {
    at: Time,
    order: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}
impl<E> Eq for Entry<E> {}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// Events to come.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    entries: BinaryHeap<Reverse<Entry<E>>>,
    made: u64,
}

impl<E> Agenda<E> {
    pub fn new() -> Self {
        Self { entries: BinaryHeap::new(), made: 0 }
    }

    pub fn add(&mut self, at: Time, event: E) {
        self.made += 1;
        self.entries.push(Reverse(Entry { at, order: self.made, event }));
    }

    /// The next event, unless it is later than `end`.
    pub fn take(&mut self, end: Time) -> Option<(Time, E)> {
        let next = self.entries.peek_mut().filter(|next| next.0.at <= end)?;
        let Reverse(Entry { at, event, .. }) = std::collections::binary_heap::PeekMut::pop(next);
        Some((at, event))
    }

    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.entries.iter().map(|Reverse(entry)| &entry.event)
    }
}
