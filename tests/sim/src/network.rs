//! The wire: what happens to a frame between two nodes.
//!
//! A switched Ethernet keeps the order of the frames from one node to another, and so does this
//! one as a rule: a frame that would overtake the one before arrives right after it. `reorder` and
//! `jitter` break the order. A network that keeps none at all draws the delay of every frame by itself:
//! half of the random runs have such a one, and so have the tests that put errata back. Order is nothing
//! that the algorithms are promised; Tm is.

use std::ops::RangeInclusive;
use std::sync::Arc;

use bellwether_scenario::{Delays, LinkQuality};

use crate::clock::Time;

/// What became of a frame on one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives then; a duplicate arrives too if there is a second time.
    Arrives {
        first: Time,
        second: Option<Time>,
    },
    Lost,
}

#[derive(Debug)]
pub struct Network {
    nodes: usize,
    base_us: RangeInclusive<Time>,
    /// Drawn from instead, if there are any.
    measured: Option<Arc<Delays>>,
    links: Vec<LinkQuality>,
    keeps_order: bool,
    /// When the latest frame of each pair arrives that was not held back.
    latest_in_order: Vec<Time>,
    /// The set of the partition that each node is in.
    side: Vec<usize>,
    /// Whose cable is plugged in.
    plugged: Vec<bool>,
}

impl Network {
    /// Perfect links between `nodes` nodes, with a base delay drawn from `base_us`.
    pub fn new(nodes: usize, base_us: RangeInclusive<Time>, keeps_order: bool) -> Self {
        Self {
            nodes,
            base_us,
            measured: None,
            keeps_order,
            links: vec![LinkQuality::default(); nodes * nodes],
            latest_in_order: vec![0; nodes * nodes],
            side: vec![0; nodes],
            plugged: vec![true; nodes],
        }
    }

    /// Perfect links take what was measured on some network.
    pub fn replay(&mut self, measured: Arc<Delays>) {
        self.measured = Some(measured);
    }

    /// The delay of a perfect link.
    fn base_delay(&self, rng: &mut fastrand::Rng) -> Time {
        match &self.measured {
            Some(measured) => measured.way_us(rng.f64()),
            None => rng.u64(self.base_us.clone()),
        }
    }

    /// All links perfect again, no partition.
    pub fn heal(&mut self) {
        self.links.fill(LinkQuality::default());
        self.side.fill(0);
    }

    /// Frames pass only inside a set of node indices; a node in no set is alone.
    pub fn partition(&mut self, sets: &[Vec<usize>]) {
        for (node, side) in self.side.iter_mut().enumerate() {
            let set = sets.iter().position(|set| set.contains(&node));
            *side = set.unwrap_or(sets.len() + node);
        }
    }

    pub fn set_link(&mut self, from: usize, to: usize, quality: LinkQuality) {
        self.links[from * self.nodes + to] = quality;
    }

    pub fn set_all_links(&mut self, quality: LinkQuality) {
        self.links.fill(quality);
    }

    /// Perfect links take another time from now on.
    pub fn set_base_delay(&mut self, base_us: RangeInclusive<Time>) {
        self.base_us = base_us;
    }

    pub fn set_plugged(&mut self, node: usize, plugged: bool) {
        self.plugged[node] = plugged;
    }

    /// Whether nothing but the quality of a link lies between two nodes.
    pub fn same_side(&self, one: usize, other: usize) -> bool {
        self.side[one] == self.side[other] && self.plugged[one] && self.plugged[other]
    }

    /// Draws what happens to a frame that leaves at that time.
    pub fn carry(&mut self, from: usize, to: usize, leaves: Time, rng: &mut fastrand::Rng) -> Fate {
        let pair = from * self.nodes + to;
        let link = self.links[pair];
        if !self.same_side(from, to) || happens(link.loss, rng) {
            return Fate::Lost;
        }
        let first = self.arrival(pair, &link, leaves, rng);
        let second = happens(link.duplicate, rng).then(|| self.arrival(pair, &link, leaves, rng));
        Fate::Arrives { first, second }
    }

    /// A frame that arrives then, behind those that left before it.
    pub fn carry_until(&mut self, from: usize, to: usize, at: Time) -> Fate {
        if !self.same_side(from, to) {
            return Fate::Lost;
        }
        let pair = from * self.nodes + to;
        let first = if self.keeps_order { at.max(self.latest_in_order[pair]) } else { at };
        self.latest_in_order[pair] = first.max(self.latest_in_order[pair]);
        Fate::Arrives { first, second: None }
    }

    fn arrival(
        &mut self,
        pair: usize,
        link: &LinkQuality,
        leaves: Time,
        rng: &mut fastrand::Rng,
    ) -> Time {
        let at = leaves + self.base_delay(rng) + link.delay_us;
        if link.jitter_us > 0 {
            return at + rng.u64(0..=link.jitter_us);
        }
        if happens(link.reorder, rng) {
            // Held back, so that what is sent after it may arrive before it.
            return at + rng.u64(0..=*self.base_us.end());
        }
        if !self.keeps_order {
            return at;
        }
        let latest = &mut self.latest_in_order[pair];
        *latest = at.max(*latest);
        *latest
    }
}

fn happens(probability: f64, rng: &mut fastrand::Rng) -> bool {
    probability > 0.0 && rng.f64() < probability
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_scenario::Distribution;

    /// What is drawn has the quantiles of what was measured, bucket by bucket.
    #[test]
    fn a_replay_reproduces_the_distribution() {
        let buckets = [(1000, 0), (2000, 50), (4000, 500), (8000, 0), (16_000, 400), (32_000, 50)];
        let trips = Distribution::new(buckets, 24_000).unwrap();
        let handling = trips.clone();
        let measured = Delays { tm_us: 20_000, tp_us: 10_000, trips, handling };
        let mut network = Network::new(2, 0..=0, false);
        network.replay(Arc::new(measured));
        let mut rng = fastrand::Rng::with_seed(7);
        let mut ways: Vec<Time> = (0..100_000)
            .map(|_| match network.carry(0, 1, 0, &mut rng) {
                Fate::Arrives { first, .. } => first,
                Fate::Lost => panic!("a perfect link loses nothing"),
            })
            .collect();
        ways.sort_unstable();
        let below = |trip: Time| ways.partition_point(|way| 2 * way < trip) as f64 / 100_000.0;
        for (trip, share) in [(2000, 0.05), (4000, 0.55), (8000, 0.55), (16_000, 0.95)] {
            assert!((below(trip) - share).abs() < 0.01, "{} of {trip} us", below(trip));
        }
        assert!(ways[0] >= 500 && ways[99_999] <= 12_000, "{} to {}", ways[0], ways[99_999]);
    }
}
