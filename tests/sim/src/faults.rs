//! A random mix of faults, another one for each seed, some kinds switched off entirely.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bellwether_scenario::LinkQuality;

use crate::clock::Time;
use crate::world::World;

/// Which faults a run draws, and how often.
#[derive(Debug, Clone)]
pub struct Mix {
    crash: bool,
    pause_short: bool,
    pause_long: bool,
    partition: bool,
    loss: bool,
    one_way: bool,
    slow: bool,
    decay: bool,
    leave: bool,
    /// One board's flash has a sector that can no longer be written.
    worn: bool,
    cut_writes: f64,
    /// Mean time between faults.
    mean_us: Time,
    /// Set on every link from the start.
    pub everywhere: LinkQuality,
}

impl Mix {
    /// With `inside_assumptions` only faults that Bully and the ring promise to bear: crashes, pauses,
    /// duplicates, delays up to Tm.
    pub fn draw(rng: &mut fastrand::Rng, t_us: Time, inside_assumptions: bool) -> Self {
        let mut outside = || !inside_assumptions && rng.bool();
        let [partition, loss, one_way, slow, reorder] = std::array::from_fn(|_| outside());
        let duplicate = if rng.bool() { rng.f64() * 0.3 } else { 0.0 };
        let reorder = if reorder { rng.f64() * 0.3 } else { 0.0 };
        Self {
            crash: rng.f64() < 0.8,
            pause_short: rng.bool(),
            pause_long: rng.bool(),
            partition,
            loss,
            one_way,
            slow,
            decay: rng.f64() < 0.3,
            leave: rng.f64() < 0.2,
            worn: rng.f64() < 0.1,
            cut_writes: if rng.f64() < 0.3 { rng.f64() * 0.1 } else { 0.0 },
            // Now and then a storm: several faults within one election.
            mean_us: if rng.f64() < 0.2 {
                rng.u64(t_us / 4..2 * t_us)
            } else {
                t_us * rng.u64(3..40)
            },
            everywhere: LinkQuality { duplicate, reorder, ..LinkQuality::default() },
        }
    }
}

/// A fault that ends later, or a node that comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Later {
    Boot(usize),
    Reset(usize),
    Resume(usize),
    HealPartition,
    RestoreLinks,
}

/// Plays a mix of faults on a world.
#[derive(Debug)]
pub struct Faults {
    mix: Mix,
    rng: fastrand::Rng,
    later: BinaryHeap<Reverse<(Time, Later)>>,
}

impl Faults {
    pub fn new(mix: Mix, rng: fastrand::Rng) -> Self {
        Self { mix, rng, later: BinaryHeap::new() }
    }

    /// Faults until `end`; then the network is whole and every node runs or is without power.
    pub fn play<const W: usize>(&mut self, world: &mut World<W>, end: Time) {
        world.network.set_all_links(self.mix.everywhere);
        world.cut_writes = self.mix.cut_writes;
        if self.mix.worn {
            let node = self.rng.usize(0..world.machines.len());
            world.machines[node].flash.wear_out(&mut self.rng);
        }
        let mut next = world.now + self.gap();
        while world.now < end {
            let planned = self.later.peek().map_or(Time::MAX, |Reverse((at, _))| *at);
            let at = next.min(planned).min(end);
            world.run_until(at, |_| false);
            if at == planned {
                if let Some(Reverse((_, later))) = self.later.pop() {
                    self.undo(world, later);
                }
            } else if at == next {
                self.strike(world);
                next = world.now + self.gap();
            }
        }
        world.cut_writes = 0.0;
        world.network.heal();
        for node in 0..world.machines.len() {
            world.resume(node);
        }
    }

    /// Exponentially distributed.
    fn gap(&mut self) -> Time {
        let uniform = self.rng.f64().max(1e-9);
        (-uniform.ln() * self.mix.mean_us as f64) as Time + 1
    }

    fn undo<const W: usize>(&mut self, world: &mut World<W>, later: Later) {
        match later {
            Later::Boot(node) => world.power_on(node),
            Later::Reset(node) => world.pull_reset(node),
            Later::Resume(node) => world.resume(node),
            Later::HealPartition => {
                let all = (0..world.machines.len()).collect();
                world.network.partition(&[all]);
            }
            Later::RestoreLinks => world.network.set_all_links(self.mix.everywhere),
        }
    }

    fn after<const W: usize>(
        &mut self,
        world: &World<W>,
        span_t: std::ops::Range<u64>,
        later: Later,
    ) {
        let t = world.timing().t.us();
        let span = self.rng.u64(span_t.start * t..span_t.end * t);
        self.later.push(Reverse((world.now + span, later)));
    }

    fn strike<const W: usize>(&mut self, world: &mut World<W>) {
        let nodes = world.machines.len();
        // The coordinator is the most interesting victim.
        let victim = match (0..nodes).find(|node| world.is_coordinator(*node)) {
            Some(coordinator) if self.rng.f64() < 0.4 => coordinator,
            _ => self.rng.usize(0..nodes),
        };
        let (tm, tp) = (world.timing().tm.us(), world.timing().tp.us());
        match self.rng.u8(0..10) {
            0 | 1 if self.mix.crash && world.machines[victim].powered => {
                world.kill(victim);
                self.after(world, 0..30, Later::Boot(victim));
            }
            2 if self.mix.pause_short && world.is_running(victim) => {
                world.pause(victim);
                let span = self.rng.u64(0..tp * 7 / 10);
                self.later.push(Reverse((world.now + span, Later::Resume(victim))));
            }
            3 if self.mix.pause_long && world.is_running(victim) => {
                world.pause(victim);
                self.after(world, 0..30, Later::Resume(victim));
            }
            4 if self.mix.partition => {
                let sides = self.rng.usize(2..4);
                let mut sets = vec![Vec::new(); sides];
                for node in 0..nodes {
                    sets[self.rng.usize(0..sides)].push(node);
                }
                world.network.partition(&sets);
                self.after(world, 2..60, Later::HealPartition);
            }
            5 if self.mix.loss => {
                let loss = self.rng.f64() * 0.3;
                world.network.set_all_links(LinkQuality { loss, ..self.mix.everywhere });
                self.after(world, 2..60, Later::RestoreLinks);
            }
            6 if self.mix.one_way => {
                for _ in 0..self.rng.usize(1..4) {
                    let (from, to) = (self.rng.usize(0..nodes), self.rng.usize(0..nodes));
                    let cut = LinkQuality { loss: 1.0, ..LinkQuality::default() };
                    world.network.set_link(from, to, cut);
                }
                self.after(world, 2..60, Later::RestoreLinks);
            }
            7 if self.mix.slow => {
                let (delay_us, jitter_us) = (self.rng.u64(0..2 * tm), self.rng.u64(0..2 * tm));
                let slow = LinkQuality { delay_us, jitter_us, ..self.mix.everywhere };
                world.network.set_all_links(slow);
                self.after(world, 2..60, Later::RestoreLinks);
            }
            9 if self.mix.leave => {
                world.leave(victim);
                self.after(world, 2..30, Later::Reset(victim));
            }
            8 if self.mix.decay => world.machines[victim].flash.decay(&mut self.rng),
            _ => {}
        }
    }
}
