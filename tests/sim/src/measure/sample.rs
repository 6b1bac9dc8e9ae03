//! One measured run each: a failover, a merge, a cold start, a quiet minute.

use bellwether_scenario::LinkQuality;

use crate::clock::Time;
use crate::settings::Settings;
use crate::world::World;

/// A flock that is not settled by then never will be.
const GIVE_UP_US: Time = 30_000_000;

/// How a disturbance was overcome.
#[derive(Debug, Clone, Copy)]
pub struct Recovery {
    /// From the disturbance to the first suspicion (a crash) or to the settled flock.
    pub detection_us: Time,
    /// From the first suspicion to all Normal.
    pub election_us: Time,
    /// From the disturbance to all Normal.
    pub total_us: Time,
    /// From the first suspicion (or the disturbance) to all Normal.
    pub datagrams: u64,
    pub bytes: u64,
    /// The most state-vector saves of any one node.
    pub saves: u64,
}

/// How the death of a node that does not coordinate was overcome.
#[derive(Debug, Clone, Copy)]
pub struct MemberLoss {
    /// From the death to the election, merge or run without it.
    pub noticed_us: Time,
    /// From the death to all others Normal without it.
    pub settled_us: Time,
    /// Datagrams sent per live node and second when that was over.
    pub sent_afterwards: f64,
}

/// What a settled flock costs.
#[derive(Debug, Clone, Copy)]
pub struct Quiet {
    /// Datagrams sent per node and second, over the flock.
    pub mean: f64,
    /// Datagrams sent per second by the coordinator.
    pub coordinator: f64,
    /// Elections per minute that nothing called for.
    pub elections: f64,
    /// Suspicions per minute of a node that was alive.
    pub wrong_suspicions: f64,
}

/// A flock that has just settled, or `None` if it did not.
pub fn settled<const W: usize>(settings: Settings, loss: f64) -> Option<World<W>> {
    let mut world = World::<W>::new(settings);
    world.network.set_all_links(LinkQuality { loss, ..LinkQuality::default() });
    for node in 0..world.machines.len() {
        world.power_on(node);
    }
    await_settled(&mut world, &[])?;
    // Where in its periods the flock is disturbed is left to chance.
    let check = world.timing().check.us();
    let pause = world.rng.u64(0..check) + check;
    world.run_for(pause);
    await_settled(&mut world, &[])?;
    Some(world)
}

/// Lets time pass until all live nodes of each side (or of all sides) are settled, and says when.
pub fn await_settled<const W: usize>(world: &mut World<W>, sides: &[Vec<usize>]) -> Option<Time> {
    let all: Vec<usize> = (0..world.machines.len()).collect();
    let whole = [all];
    let sides = if sides.is_empty() { &whole } else { sides };
    let is_settled = |world: &World<W>| sides.iter().all(|side| world.is_settled(side));
    if is_settled(world) {
        return Some(world.now);
    }
    let mut changes = world.checker.changes;
    let mut found = false;
    world.run_until(world.now + GIVE_UP_US, |world| {
        if world.checker.changes != changes {
            changes = world.checker.changes;
            found = is_settled(world);
        }
        found
    });
    found.then_some(world.now)
}

fn recovery<const W: usize>(
    world: &mut World<W>,
    disturb: impl FnOnce(&mut World<W>),
) -> Option<Recovery> {
    let saves: Vec<u64> = world.machines.iter().map(|machine| machine.saves).collect();
    let began = world.now;
    world.tally.first_suspicion = None;
    let before = world.tally;
    disturb(world);
    let ended = await_settled(world, &[])?;
    let (noticed, sent, bytes) = match world.tally.first_suspicion {
        Some(at) => (at, world.tally.datagrams_at_suspicion, world.tally.bytes_at_suspicion),
        None => (began, before.datagrams, before.bytes),
    };
    let saved = world.machines.iter().zip(saves).map(|(machine, before)| machine.saves - before);
    Some(Recovery {
        detection_us: noticed - began,
        election_us: ended - noticed,
        total_us: ended - began,
        datagrams: world.tally.datagrams - sent,
        bytes: world.tally.bytes - bytes,
        saves: saved.max().unwrap_or(0),
    })
}

/// The coordinator loses its power.
pub fn failover<const W: usize>(settings: Settings, loss: f64) -> Option<Recovery> {
    let mut world = settled::<W>(settings, loss)?;
    let coordinator = (0..world.machines.len()).find(|node| world.is_coordinator(*node))?;
    recovery(&mut world, |world| world.kill(coordinator))
}

/// A member that does not coordinate loses its power.
pub fn member_loss<const W: usize>(settings: Settings) -> Option<MemberLoss> {
    let mut world = settled::<W>(settings, 0.0)?;
    let nodes = world.machines.len();
    let member = (0..nodes).find(|node| !world.is_coordinator(*node))?;
    let began = world.now;
    let elections = world.tally.elections;
    world.kill(member);
    world.run_until(began + GIVE_UP_US, |world| world.tally.elections > elections);
    let noticed_us = world.now - began;
    let settled_us = await_settled(&mut world, &[])? - began;
    // Ten Checks.
    let span_us = 10 * world.timing().check.us();
    let before = world.tally.datagrams;
    world.run_for(span_us);
    let sent = (world.tally.datagrams - before) as f64;
    let sent_afterwards = sent / (span_us as f64 / 1e6) / (nodes - 1) as f64;
    Some(MemberLoss { noticed_us, settled_us, sent_afterwards })
}

/// Two halves that worked apart meet again.
pub fn merge<const W: usize>(settings: Settings, loss: f64) -> Option<Recovery> {
    let mut world = settled::<W>(settings, loss)?;
    let all: Vec<usize> = (0..world.machines.len()).collect();
    let (low, high) = all.split_at(all.len() / 2);
    let sides = [low.to_vec(), high.to_vec()];
    world.network.partition(&sides);
    world.run_for(world.timing().check.us() * 5);
    await_settled(&mut world, &sides)?;
    let pause = world.rng.u64(0..world.timing().check.us());
    world.run_for(pause);
    await_settled(&mut world, &sides)?;
    recovery(&mut world, |world| world.network.partition(&[all]))
}

/// All nodes get power at the same moment.
pub fn cold_start<const W: usize>(settings: Settings, loss: f64) -> Option<Recovery> {
    let mut world = World::<W>::new(settings);
    world.network.set_all_links(LinkQuality { loss, ..LinkQuality::default() });
    recovery(&mut world, |world| {
        for node in 0..world.machines.len() {
            world.power_on(node);
        }
        // Nobody is settled before everybody is there.
        let booted = world.settings.boot_us + 2 * world.settings.flash.save_us_max();
        world.run_for(booted);
    })
}

/// A settled flock in which nothing happens for a while.
pub fn quiet<const W: usize>(settings: Settings, loss: f64, span_us: Time) -> Option<Quiet> {
    let mut world = settled::<W>(settings, 0.0)?;
    world.network.set_all_links(LinkQuality { loss, ..LinkQuality::default() });
    let nodes = world.machines.len();
    let coordinator = (0..nodes).find(|node| world.is_coordinator(*node))?;
    let before = (world.tally, world.machines[coordinator].sent);
    world.run_for(span_us);
    let seconds = span_us as f64 / 1e6;
    Some(Quiet {
        mean: (world.tally.datagrams - before.0.datagrams) as f64 / seconds / nodes as f64,
        coordinator: (world.machines[coordinator].sent - before.1) as f64 / seconds,
        elections: (world.tally.elections - before.0.elections) as f64 / seconds * 60.0,
        wrong_suspicions: (world.tally.suspicions_of_live - before.0.suspicions_of_live) as f64
            / seconds
            * 60.0,
    })
}
