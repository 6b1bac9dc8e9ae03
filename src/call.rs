//! The numbered call facility: rounds of requests, and replies that belong to them.
//!
//! The paper's `CALL ..., ONTIMEOUT(T)` to one node after another becomes one round to a set of
//! nodes. A round has a number; a reply counts only if it echoes the boot epoch and the number of
//! the round that is open, and only from a node that is still awaited. Replies are collected in sets:
//! a duplicate changes nothing.

use crate::errata::{Errata, Erratum};
use crate::id::{NodeId, NodeSet};
use crate::time::{Duration, Instant};
use crate::wire::{Kind, Reject};

/// How a reply relates to the open round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// From a node that was awaited; now it is not any more.
    Awaited,
    /// It answers this round, but its sender was not awaited. (A broadcast is heard by all.)
    Extra,
}

/// What there is to know of the time that the answers of a round take.
#[derive(Debug, Clone, Copy, Default)]
struct Timed<const W: usize> {
    round: u32,
    /// When the round was opened, if that time is of interest.
    opened_at: Option<Instant>,
    /// Whose answers have been timed, also when they were too late.
    timed: NodeSet<W>,
}

/// The one round that a node can have open.
#[derive(Debug, Clone, Default)]
pub struct Call<const W: usize> {
    last_number: u32,
    /// The current or latest round.
    latest: Timed<W>,
    /// The reply that the open round waits for; any other is void.
    expects: Option<Kind>,
    awaited: NodeSet<W>,
    answered: NodeSet<W>,
    /// The round that was timed before this one: where answers take longer than T, they are to that.
    before: Timed<W>,
    /// Only looked at with erratum E8 put back.
    answers_counted: usize,
}

impl<const W: usize> Call<W> {
    /// The number of the current or latest round.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.latest.round
    }

    /// A number for a datagram outside any round; `None` when all are used up.
    pub fn take_number(&mut self) -> Option<u32> {
        self.last_number = self.last_number.checked_add(1)?;
        Some(self.last_number)
    }

    /// As after 2^32 calls.
    #[cfg(test)]
    pub(crate) fn use_up_numbers(&mut self) {
        self.last_number = u32::MAX;
    }

    /// Opens a round; the one before is closed. `None` when all numbers are used up. `opened_at`: now,
    /// if its answers are to be timed.
    pub fn open(
        &mut self,
        awaited: NodeSet<W>,
        expects: Kind,
        opened_at: Option<Instant>,
    ) -> Option<u32> {
        let round = self.take_number()?;
        if self.latest.opened_at.is_some() {
            self.before = self.latest;
        }
        self.latest = Timed { round, opened_at, timed: NodeSet::EMPTY };
        self.expects = Some(expects);
        self.awaited = awaited;
        self.answered = NodeSet::EMPTY;
        self.answers_counted = 0;
        Some(round)
    }

    /// Replies are void from now on.
    pub fn close(&mut self) {
        self.expects = None;
        self.awaited = NodeSet::EMPTY;
    }

    /// How long the first answer of a node to this round or to the one before took, in time or not.
    pub fn time(
        &mut self,
        from: NodeId,
        answers: (u32, u32),
        own_boot: u32,
        now: Instant,
    ) -> Option<Duration> {
        let (boot, round) = answers;
        let of = if round == self.latest.round { &mut self.latest } else { &mut self.before };
        if round != of.round || boot != own_boot || of.timed.contains(from) {
            return None;
        }
        let opened_at = of.opened_at?;
        of.timed.insert(from);
        Some(now.since(opened_at))
    }

    /// Judges a reply, and notes it if its sender was awaited.
    pub fn reply(
        &mut self,
        from: NodeId,
        kind: Kind,
        answers: (u32, u32),
        own_boot: u32,
        errata: Errata,
    ) -> Result<Standing, Reject> {
        let matches = answers == (own_boot, self.latest.round) || errata.has(Erratum::E6);
        // Without numbers a reply is taken for the answer to whatever call is open.
        let expected = self.expects == Some(kind) || errata.has(Erratum::E6);
        if self.expects.is_none() || !expected || !matches {
            return Err(Reject::NotAwaited);
        }
        if errata.has(Erratum::E8) {
            self.answers_counted += 1;
        }
        if self.answered.contains(from) {
            return if errata.has(Erratum::E8) {
                Ok(Standing::Awaited)
            } else {
                Err(Reject::NotAwaited)
            };
        }
        if !self.awaited.contains(from) {
            return Ok(Standing::Extra);
        }
        self.note(from);
        Ok(Standing::Awaited)
    }

    /// Notes an answer that came by another way than a reply (an Accept answers an Invitation).
    pub fn note(&mut self, from: NodeId) {
        self.awaited.remove(from);
        self.answered.insert(from);
    }

    #[must_use]
    pub fn awaited(&self) -> &NodeSet<W> {
        &self.awaited
    }

    #[must_use]
    pub fn answered(&self) -> &NodeSet<W> {
        &self.answered
    }

    /// Whether nobody is awaited any more.
    #[must_use]
    pub fn is_complete(&self, errata: Errata) -> bool {
        if errata.has(Erratum::E8) {
            return self.answers_counted >= self.answered.union(&self.awaited).len();
        }
        self.awaited.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> NodeId {
        NodeId::new(n).unwrap()
    }

    #[test]
    fn replies_count_once_and_only_for_the_open_round() {
        let errata = Errata::default();
        let mut call = Call::<1>::default();
        let number = call.open([1, 2].map(id).into_iter().collect(), Kind::HaltAck, None).unwrap();
        assert_eq!(call.reply(id(1), Kind::HaltAck, (7, number), 7, errata), Ok(Standing::Awaited));
        assert_eq!(
            call.reply(id(1), Kind::HaltAck, (7, number), 7, errata),
            Err(Reject::NotAwaited)
        );
        assert_eq!(
            call.reply(id(2), Kind::HaltAck, (6, number), 7, errata),
            Err(Reject::NotAwaited)
        );
        assert_eq!(
            call.reply(id(2), Kind::HaltAck, (7, number + 1), 7, errata),
            Err(Reject::NotAwaited)
        );
        assert_eq!(call.reply(id(3), Kind::HaltAck, (7, number), 7, errata), Ok(Standing::Extra));
        assert_eq!(call.reply(id(2), Kind::NcAck, (7, number), 7, errata), Err(Reject::NotAwaited));
        assert!(!call.is_complete(errata));
        assert_eq!(call.reply(id(2), Kind::HaltAck, (7, number), 7, errata), Ok(Standing::Awaited));
        assert!(call.is_complete(errata));
        call.close();
        assert_eq!(
            call.reply(id(3), Kind::HaltAck, (7, number), 7, errata),
            Err(Reject::NotAwaited)
        );
        assert_eq!(call.open(NodeSet::EMPTY, Kind::HaltAck, None), Some(number + 1));
    }

    #[test]
    fn the_first_answer_of_each_node_is_timed_also_when_it_is_late() {
        let mut call = Call::<1>::default();
        let began = Instant(1000);
        let number = call.open(NodeSet::only(id(1)), Kind::HaltAck, Some(began)).unwrap();
        let taken = |us| Some(Duration(us));
        assert_eq!(call.time(id(1), (7, number), 7, Instant(1500)), taken(500));
        assert_eq!(call.time(id(1), (7, number), 7, Instant(1600)), None);
        assert_eq!(call.time(id(2), (6, number), 7, Instant(1600)), None);
        call.close();
        assert_eq!(call.time(id(2), (7, number), 7, Instant(9000)), taken(8000));
        let number = call.open(NodeSet::only(id(1)), Kind::ReadyAck, None).unwrap();
        assert_eq!(call.time(id(1), (7, number), 7, Instant(9500)), None);
        // Of the round before, a first answer still tells how slow the network is.
        assert_eq!(call.time(id(2), (7, number - 1), 7, Instant(9500)), None);
        assert_eq!(call.time(id(3), (6, number - 1), 7, Instant(9600)), None);
        assert_eq!(call.time(id(3), (7, number - 1), 7, Instant(9600)), taken(8600));
        let later = call.open(NodeSet::only(id(1)), Kind::HaltAck, Some(Instant(10_000))).unwrap();
        assert_eq!(call.time(id(4), (7, number - 1), 7, Instant(10_100)), taken(9100));
        call.open(NodeSet::only(id(1)), Kind::HaltAck, Some(Instant(20_000))).unwrap();
        assert_eq!(call.time(id(1), (7, later), 7, Instant(25_000)), taken(15_000));
        assert_eq!(call.time(id(5), (7, number - 1), 7, Instant(25_000)), None);
    }

    #[test]
    fn numbers_end_instead_of_wrapping() {
        let mut call = Call::<1> { last_number: u32::MAX - 1, ..Call::default() };
        assert_eq!(call.take_number(), Some(u32::MAX));
        assert_eq!(call.open(NodeSet::EMPTY, Kind::HaltAck, None), None);
    }
}
