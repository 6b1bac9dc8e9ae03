//! Nodes that keep rebooting are held off: nobody lets them disturb the flock until one of their boots
//! has lasted.
//!
//! Such a node cannot know by itself how often it woke lately, because no clock survives its reboots.
//! Its peers can: every datagram carries a boot epoch.

use crate::id::NodeId;
use crate::time::{Duration, Instant};

/// So many nodes at a time; more, and the one that was quiet for longest is forgotten.
const NODES_MAX: usize = 4;

/// So many reboots, each within the span of the one before, are too many.
const REBOOTS: u8 = 2;

#[derive(Debug, Clone, Copy)]
struct Restless {
    id: Option<NodeId>,
    reboots: u8,
    last: Instant,
}

#[derive(Debug)]
pub struct HoldOff {
    restless: [Restless; NODES_MAX],
}

impl Default for HoldOff {
    fn default() -> Self {
        Self { restless: [Restless { id: None, reboots: 0, last: Instant(0) }; NODES_MAX] }
    }
}

impl HoldOff {
    /// The node was heard in a later boot than before.
    pub fn rebooted(&mut self, id: NodeId, now: Instant, span: Duration) {
        if span == Duration::ZERO {
            return;
        }
        // Its own place, or that of the one that was quiet for longest.
        let place = self.restless.iter_mut().min_by_key(|node| {
            if node.id == Some(id) { Instant(0) } else { node.last.max(Instant(1)) }
        });
        let Some(place) = place else { return };
        let again = place.id == Some(id) && now.since(place.last) < span;
        let reboots = if again { place.reboots.saturating_add(1) } else { 1 };
        *place = Restless { id: Some(id), reboots, last: now };
    }

    /// Whether the node has not stayed up for long enough after too many reboots.
    pub fn holds(&self, id: NodeId, now: Instant, span: Duration) -> bool {
        self.restless.iter().any(|node| {
            node.id == Some(id) && node.reboots >= REBOOTS && now.since(node.last) < span
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> NodeId {
        NodeId::new(n).unwrap()
    }

    const SPAN: Duration = Duration(100);

    #[test]
    fn two_reboots_in_a_row_hold_a_node_off_until_it_has_stayed_up() {
        let mut hold_off = HoldOff::default();
        hold_off.rebooted(id(5), Instant(1000), SPAN);
        assert!(!hold_off.holds(id(5), Instant(1000), SPAN), "anybody may reboot once");
        hold_off.rebooted(id(5), Instant(1060), SPAN);
        assert!(hold_off.holds(id(5), Instant(1159), SPAN));
        assert!(!hold_off.holds(id(4), Instant(1159), SPAN), "the others have done nothing");
        assert!(!hold_off.holds(id(5), Instant(1160), SPAN), "it has stayed up");
        hold_off.rebooted(id(5), Instant(1200), SPAN);
        assert!(!hold_off.holds(id(5), Instant(1200), SPAN), "and may reboot again");
    }

    #[test]
    fn the_one_that_was_quiet_for_longest_is_forgotten() {
        let mut hold_off = HoldOff::default();
        for node in 1..=5 {
            for boot in 0..2 {
                hold_off.rebooted(id(node), Instant(1000 + u64::from(node * 2 + boot)), SPAN);
            }
        }
        let held = |node| hold_off.holds(id(node), Instant(1020), SPAN);
        assert_eq!([1, 2, 3, 4, 5].map(held), [false, true, true, true, true]);
    }

    #[test]
    fn without_a_span_nobody_is_held_off() {
        let mut hold_off = HoldOff::default();
        for at in 1000..1010 {
            hold_off.rebooted(id(5), Instant(at), Duration::ZERO);
        }
        assert!(!hold_off.holds(id(5), Instant(1010), Duration::ZERO));
    }
}
