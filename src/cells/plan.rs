//! From the markers of a region's sectors to what it is, and what must be done before it is used.
//!
//! A cut leaves at most one sector of a region unclear: a torn erase (of the oldest sector, whose
//! records all have copies elsewhere) or a torn marker (of a sector that holds nothing yet). Such
//! a sector is erased again. The map itself is not asked: it takes the bits after a torn erase at
//! their word, and can lose every key by that.

/// What the markers and the bytes of a sector say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// No marker, and every byte erased.
    Blank,
    /// No marker, but not blank: a torn erase or a torn start marker.
    Debris,
    /// Start marker only: the head, or a torn erase.
    Partial,
    /// Start marker, and an end marker with too few bits to count: a part that programs a word
    /// only once could never close this sector. A torn end marker, or a torn erase.
    Frayed,
    /// Both markers: full of records, or a torn erase.
    Closed,
    /// End marker only: a torn erase.
    Torn,
}

/// What to do with a region before it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    /// Bit i: sector i must be erased.
    pub erase: u32,
    /// The sector that takes the next records; `None` in an empty region.
    pub head: Option<u8>,
    /// The head has no start marker yet.
    pub mark_head: bool,
    /// How many closed sectors lie before the head.
    pub closed: u8,
    /// No consistent reading: erase everything and copy the other region.
    pub rebuild: bool,
}

impl Plan {
    /// The plan of a region in which nothing was ever written.
    pub const EMPTY: Plan =
        Plan { erase: 0, head: None, mark_head: false, closed: 0, rebuild: false };

    /// The plan that starts a region anew.
    pub fn rebuild(kinds: &[Kind]) -> Plan {
        Plan { erase: mask(kinds, |kind| kind != Kind::Blank), rebuild: true, ..Self::EMPTY }
    }

    /// The plan that starts a region anew, whatever its sectors look like.
    pub fn erase_all(kinds: &[Kind]) -> Plan {
        Plan { erase: mask(kinds, |_| true), rebuild: true, ..Self::EMPTY }
    }

    /// Finds the head and the closed run before it.
    pub fn find(kinds: &[Kind]) -> Plan {
        // There is always one; the compiler shall know.
        let count = kinds.len().max(1);
        let openish = |index: usize| {
            matches!(kinds.get(index % count), Some(Kind::Blank | Kind::Debris | Kind::Torn))
        };
        let is = |index: usize, kind: Kind| kinds.get(index % count) == Some(&kind);
        // The head is followed by an open sector. A torn erase that looks like a head is not: it
        // was the oldest sector, so a closed one or the head follows it.
        let started = |index: usize| is(index, Kind::Partial) || is(index, Kind::Frayed);
        let mut heads = (0..count).filter(|index| started(*index) && openish(*index + 1));
        let head = heads.next();
        if heads.next().is_some() {
            return Self::rebuild(kinds);
        }
        let (head, mark_head) = match head {
            Some(head) if is(head, Kind::Frayed) => return Self::rebuild(kinds),
            Some(head) => (head, false),
            None => {
                let mut ends =
                    (0..count).filter(|index| is(*index, Kind::Closed) && openish(*index + 1));
                match (ends.next(), ends.next()) {
                    (Some(end), None) => ((end + 1) % count, true),
                    (None, _) if (0..count).all(openish) => {
                        return Plan {
                            erase: mask(kinds, |kind| kind != Kind::Blank),
                            ..Self::EMPTY
                        };
                    }
                    _ => return Self::rebuild(kinds),
                }
            }
        };
        let closed = (1..count).take_while(|back| is(head + count - back, Kind::Closed)).count();
        // Whatever is neither the head nor in the run before it must be open, or about to be.
        let after = count - 1 - closed;
        let clear = (1..=after).all(|ahead| openish(head + ahead) || started(head + ahead));
        if after == 0 || !clear {
            return Self::rebuild(kinds);
        }
        let mut erase = mask(kinds, |kind| matches!(kind, Kind::Debris | Kind::Torn));
        for ahead in 1..=after {
            if started(head + ahead) {
                erase |= 1 << ((head + ahead) % count);
            }
        }
        match (u8::try_from(head), u8::try_from(closed)) {
            (Ok(head), Ok(closed)) => {
                Plan { erase, head: Some(head), mark_head, closed, rebuild: false }
            }
            _ => Self::rebuild(kinds),
        }
    }

    /// True when the region can be used as it is.
    pub fn is_sound(&self) -> bool {
        self.erase == 0 && !self.mark_head && !self.rebuild
    }
}

fn mask(kinds: &[Kind], pick: impl Fn(Kind) -> bool) -> u32 {
    kinds
        .iter()
        .enumerate()
        .filter(|(_, kind)| pick(**kind))
        .fold(0, |bits, (index, _)| bits | (1 << index))
}

#[cfg(test)]
mod tests {
    use super::Kind::{Blank as O, Closed as C, Debris as D, Partial as P, Torn as T};
    use super::*;

    fn found(kinds: &[Kind]) -> (Option<u8>, u8, u32, bool) {
        let plan = Plan::find(kinds);
        assert!(!plan.rebuild, "{kinds:?}");
        (plan.head, plan.closed, plan.erase, plan.mark_head)
    }

    #[test]
    fn ordinary_states_need_nothing() {
        assert_eq!(found(&[O, O, O, O]), (None, 0, 0, false));
        assert_eq!(found(&[P, O, O, O]), (Some(0), 0, 0, false));
        assert_eq!(found(&[C, C, P, O]), (Some(2), 2, 0, false));
        assert_eq!(found(&[P, O, O, C]), (Some(0), 1, 0, false));
        assert_eq!(found(&[O, C, C, P]), (Some(3), 2, 0, false));
    }

    #[test]
    fn a_torn_erase_of_the_oldest_sector_is_erased_again_however_it_reads() {
        assert_eq!(found(&[C, P, O, D]), (Some(1), 1, 8, false));
        assert_eq!(found(&[C, P, O, T]), (Some(1), 1, 8, false));
        assert_eq!(found(&[C, P, O, P]), (Some(1), 1, 8, false));
        assert_eq!(found(&[P, P, O]), (Some(1), 0, 1, false));
        assert_eq!(found(&[Kind::Frayed, P, O]), (Some(1), 0, 1, false));
        assert_eq!(found(&[C, P, O]), (Some(1), 1, 0, false));
    }

    #[test]
    fn a_cut_between_the_two_markers_of_a_switch_is_completed() {
        assert_eq!(found(&[O, C, C, O]), (Some(3), 2, 0, true));
        assert_eq!(found(&[O, O, C, C]), (Some(0), 2, 0, true));
        assert_eq!(found(&[C, D, O]), (Some(1), 1, 2, true));
    }

    #[test]
    fn what_no_cut_can_leave_is_rebuilt() {
        for kinds in [
            &[C, C, C][..],
            &[P, O, P, O],
            &[C, O, C, O],
            &[C, T, C, P, O],
            &[P, P, P],
            &[C, Kind::Frayed, O],
        ] {
            assert!(Plan::find(kinds).rebuild, "{kinds:?}");
        }
    }
}
