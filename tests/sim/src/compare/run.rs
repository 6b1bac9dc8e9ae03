//! One run of one case.

use bellwether_scenario::LinkQuality;

use super::plan::{Case, Ground, QUIET_T, Situation};
use crate::clock::Time;
use crate::measure::sample::await_settled;
use crate::settings::{Settings, Tally};
use crate::world::World;

/// How often the highest node goes down and comes back.
pub const FLAPS: u32 = 5;

/// What one run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    pub settled: bool,
    /// From the disturbance (its last part) to the settled flock, if there was one.
    pub settle_us: Option<Time>,
    /// Suspicions of nodes that were running.
    pub wrong_suspicions: u64,
    pub datagrams: u64,
    pub bytes: u64,
    /// The most state-vector saves of any one node.
    pub saves: u64,
    pub violations: u64,
}

/// Runs a case; what is counted begins with the disturbance.
pub fn run(ground: &Ground, case: &Case, seed: u64) -> Sample {
    let settings = case.settings(ground, seed);
    if case.nodes <= 64 { run_in::<1>(case, settings) } else { run_in::<4>(case, settings) }
}

/// Where the counting began.
struct Before {
    tally: Tally,
    saves: Vec<u64>,
}

impl Before {
    fn of<const W: usize>(world: &World<W>) -> Self {
        let saves = world.machines.iter().map(|machine| machine.saves).collect();
        Self { tally: world.tally, saves }
    }

    fn until_now<const W: usize>(&self, world: &World<W>, ended: End) -> Sample {
        let saved = world.machines.iter().zip(&self.saves);
        let tally = &world.tally;
        Sample {
            settled: ended.settled,
            settle_us: ended.settle_us,
            wrong_suspicions: tally.suspicions_of_live - self.tally.suspicions_of_live,
            datagrams: tally.datagrams - self.tally.datagrams,
            bytes: tally.bytes - self.tally.bytes,
            saves: saved.map(|(machine, before)| machine.saves - before).max().unwrap_or(0),
            violations: world.checker.violations.len() as u64,
        }
    }
}

struct End {
    settled: bool,
    settle_us: Option<Time>,
}

fn run_in<const W: usize>(case: &Case, settings: Settings) -> Sample {
    let mut world = World::<W>::new(settings);
    let ready = match case.situation {
        Situation::ColdStart => {
            set_loss(&mut world, case);
            true
        }
        Situation::Heal => {
            let ready = calm(&mut world, case);
            divide(&mut world);
            ready
        }
        _ => calm(&mut world, case),
    };
    let before = Before::of(&world);
    let ended = if ready { disturb(&mut world, case.situation) } else { End::NEVER };
    before.until_now(&world, ended)
}

fn set_loss<const W: usize>(world: &mut World<W>, case: &Case) {
    world.network.set_all_links(LinkQuality { loss: case.loss(), ..LinkQuality::default() });
}

impl End {
    const NEVER: Self = Self { settled: false, settle_us: None };
}

/// A settled flock, at some moment of its periods; `false` if it did not come to be.
fn calm<const W: usize>(world: &mut World<W>, case: &Case) -> bool {
    power_on_all(world);
    if await_settled(world, &[]).is_none() {
        return false;
    }
    set_loss(world, case);
    let check = world.timing().check.us();
    let pause = world.rng.u64(0..check) + check;
    world.run_for(pause);
    await_settled(world, &[]).is_some()
}

fn power_on_all<const W: usize>(world: &mut World<W>) {
    for node in 0..world.machines.len() {
        world.power_on(node);
    }
    wait_for_boot(world);
}

/// Nobody is settled before everybody is there.
fn wait_for_boot<const W: usize>(world: &mut World<W>) {
    world.run_for(world.settings.boot_us + 2 * world.settings.flash.save_us_max());
}

/// Two halves work apart for a while.
fn divide<const W: usize>(world: &mut World<W>) {
    let all: Vec<usize> = (0..world.machines.len()).collect();
    let (low, high) = all.split_at(all.len() / 2);
    let sides = [low.to_vec(), high.to_vec()];
    world.network.partition(&sides);
    let check = world.timing().check.us();
    let pause = 5 * check + world.rng.u64(0..check);
    world.run_for(pause);
    // Under heavy loss one side may be at odds with itself; it is when they meet, then.
    let _ = await_settled(world, &sides);
}

/// Carries the disturbance out and waits for its end.
fn disturb<const W: usize>(world: &mut World<W>, situation: Situation) -> End {
    let began = match situation {
        Situation::ColdStart => {
            let began = world.now;
            power_on_all(world);
            began
        }
        Situation::Crash(nodes) => {
            crash(world, nodes);
            world.now
        }
        Situation::Heal => {
            let all = (0..world.machines.len()).collect();
            world.network.partition(&[all]);
            world.now
        }
        Situation::Flapping => flap(world),
        Situation::Quiet => {
            world.run_for(QUIET_T * world.timing().t.us());
            let all: Vec<usize> = (0..world.machines.len()).collect();
            return End { settled: world.is_settled(&all), settle_us: None };
        }
    };
    let settle_us = await_settled(world, &[]).map(|ended| ended - began);
    End { settled: settle_us.is_some(), settle_us }
}

/// The coordinator loses its power, and the highest of the others with it.
fn crash<const W: usize>(world: &mut World<W>, nodes: u8) {
    let mut falling: Vec<usize> = (0..world.machines.len()).rev().collect();
    falling.sort_by_key(|node| !world.is_coordinator(*node));
    falling.into_iter().take(nodes.into()).for_each(|node| world.kill(node));
}

/// Says when the highest node came back for the last time.
fn flap<const W: usize>(world: &mut World<W>) -> Time {
    let highest = world.machines.len() - 1;
    let t = world.timing().t.us();
    let mut back = world.now;
    for _ in 0..FLAPS {
        let (down, up) = (world.rng.u64(2 * t..=12 * t), world.rng.u64(2 * t..=12 * t));
        world.run_for(up);
        world.kill(highest);
        world.run_for(down);
        world.power_on(highest);
        back = world.now;
        wait_for_boot(world);
    }
    back
}
