//! The wire: what happens to a frame between two nodes.
//!
//! A switched Ethernet keeps the order of the frames from one node to another, and so does this
//! one: a frame that would overtake the one before arrives right after it. Only `reorder` and
//! `jitter` break the order. A node handles the datagrams of another one in order and drops what was
//! overtaken, so that to the algorithms such a frame is lost. (The tests that put errata back need
//! frames that overtake each other: their nodes speak in the clear, and their network keeps no order.)

use std::ops::RangeInclusive;

use bellwether_scenario::LinkQuality;

use crate::clock::Time;

/// What became of a frame on one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives then; a duplicate arrives too if there is a second time.
    Arrives {
        first: Time,
        second: Option<Time>,
        overtakes: bool,
    },
    Lost,
}

#[derive(Debug)]
pub struct Network {
    nodes: usize,
    base_us: RangeInclusive<Time>,
    links: Vec<LinkQuality>,
    keeps_order: bool,
    /// When the latest frame of each pair arrives.
    latest: Vec<Time>,
    /// When the latest of them arrives that was not held back.
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
            keeps_order,
            links: vec![LinkQuality::default(); nodes * nodes],
            latest: vec![0; nodes * nodes],
            latest_in_order: vec![0; nodes * nodes],
            side: vec![0; nodes],
            plugged: vec![true; nodes],
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
        let earliest = second.map_or(first, |second| first.min(second));
        let latest = &mut self.latest[pair];
        let overtakes = self.keeps_order && earliest < *latest;
        *latest = earliest.max(*latest);
        Fate::Arrives { first, second, overtakes }
    }

    fn arrival(
        &mut self,
        pair: usize,
        link: &LinkQuality,
        leaves: Time,
        rng: &mut fastrand::Rng,
    ) -> Time {
        let at = leaves + rng.u64(self.base_us.clone()) + link.delay_us;
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
