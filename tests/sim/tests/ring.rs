//! What a run of the ring election costs, and that it bears loss.

use bellwether::config::{Algorithm, Timing};
use bellwether::time::Duration;
use bellwether_scenario::LinkQuality;
use bellwether_sim::clock::Time;
use bellwether_sim::liveness::{Cause, bound_us};
use bellwether_sim::random;
use bellwether_sim::settings::Settings;
use bellwether_sim::world::World;

const GIVE_UP_US: Time = 60_000_000;

/// Tm = 20 ms, Tp = 10 ms; on a perfect link a round trip is shorter than the T/4 after which a hop is
/// repeated.
fn flock(nodes: u8, seed: u64, loss: f64) -> World<1> {
    flock_on((1_000, 4_000), nodes, seed, loss)
}

/// The same on a network with these one-way delays.
fn flock_on(base_delay_us: (Time, Time), nodes: u8, seed: u64, loss: f64) -> World<1> {
    let ms = Duration::from_millis;
    let timing = Timing::derive(ms(20), ms(10), ms(5));
    let mut settings = Settings::new(nodes, Algorithm::Ring, timing, seed);
    settings.base_delay_us = base_delay_us;
    let mut world = World::new(settings);
    world.network.set_all_links(LinkQuality { loss, ..LinkQuality::default() });
    for node in 0..usize::from(nodes) {
        world.power_on(node);
    }
    world.run_for(10_000);
    settle(&mut world);
    // Where in its periods the flock is disturbed is left to chance.
    world.run_for(500_000 + seed * 7_000);
    settle(&mut world);
    world
}

/// Lets time pass until all live nodes are settled, and says how long that took.
#[track_caller]
fn settle(world: &mut World<1>) -> Time {
    let all: Vec<usize> = (0..world.machines.len()).collect();
    let began = world.now;
    if !world.is_settled(&all) {
        world.run_until(began + GIVE_UP_US, |world| world.is_settled(&all));
    }
    assert!(world.is_settled(&all), "not settled within a minute");
    assert_eq!(world.checker.violations, []);
    world.now - began
}

/// PROTOCOLS section 5: three hops and three acknowledgements for each of the `a` live nodes, and at
/// most four datagrams for each dead one. The coordinator's first Beat makes up for its probe being
/// repeated only twice.
#[test]
fn one_run_costs_6_datagrams_per_live_node_and_4_per_dead_one() {
    for nodes in 3..=64u8 {
        for dead in 1..=2.min(u64::from(nodes) - 1) {
            let cost = one_run(flock(nodes, dead, 0.0), dead);
            let live = u64::from(nodes) - dead;
            cost.is_kept(nodes, live, dead, cost.sent);
            // And not for want of an election.
            assert!(live == 1 || cost.sent >= 6 * live, "{nodes} nodes, {dead} dead: {cost:?}");
        }
    }
}

/// On the usual network many a round trip is longer than T/4. What a hop then says twice comes on top; the
/// run itself costs no more than it should.
#[test]
fn on_the_usual_network_one_run_costs_the_same_without_repeats() {
    let mut repeated = 0;
    for nodes in [3, 5, 8, 16, 32, 64u8] {
        for (dead, seed) in [(1, 1), (1, 2), (2, 3)] {
            let cost = one_run(flock_on((1_000, 10_000), nodes, seed, 0.0), dead);
            repeated += cost.repeated;
            let live = u64::from(nodes) - dead;
            // The hops to dead nodes are repeats, too: four for each, one of them the first.
            cost.is_kept(nodes, live, dead, cost.sent - cost.repeated);
            assert!(live == 1 || cost.sent - cost.repeated >= 6 * live, "{nodes} nodes: {cost:?}");
        }
    }
    assert!(repeated > 100, "{repeated} repeats");
}

#[derive(Debug)]
struct Cost {
    sent: u64,
    /// Of those, tokens and acknowledgements that said the same again.
    repeated: u64,
}

impl Cost {
    #[track_caller]
    fn is_kept(&self, nodes: u8, live: u64, dead: u64, counted: u64) {
        assert!(counted <= 6 * live + 4 * dead, "{nodes} nodes, {dead} dead: {self:?}");
    }
}

/// Kills the coordinator and the highest of the others, so many in all, and counts from the suspicion.
#[track_caller]
fn one_run(mut world: World<1>, dead: u64) -> Cost {
    world.tally.first_suspicion = None;
    let before = world.tally;
    for node in 0..dead {
        let highest = world.machines.len() - 1;
        world.kill(highest - node as usize);
    }
    settle(&mut world);
    assert_eq!(world.tally.elections - before.elections, 1, "one run, {dead} dead");
    let sent = world.tally.datagrams - world.tally.datagrams_at_suspicion;
    Cost { sent, repeated: world.tally.hops_repeated - before.hops_repeated }
}

/// A node that is found dead in one lap is spared in the others.
#[test]
fn a_dead_node_costs_t_once_per_run() {
    let span = |dead: usize| {
        let mut world = flock(16, 3, 0.0);
        world.tally.first_suspicion = None;
        for node in 0..dead {
            world.kill(15 - node);
        }
        settle(&mut world);
        let suspected = world.tally.first_suspicion.unwrap_or_default();
        (world.now - suspected, world.timing().t.us())
    };
    let (one, t) = span(1);
    let (four, _) = span(4);
    assert!(four > one + 2 * t, "three more waits: {one} and {four} us");
    assert!(four < one + 4 * t, "three more waits and none of them twice: {one} and {four} us");
}

#[test]
fn simultaneous_starts_end_with_the_first_hop_of_all_but_one() {
    for nodes in [3, 16, 64u8] {
        let ms = Duration::from_millis;
        let timing = Timing::derive(ms(20), ms(10), ms(5));
        let mut settings = Settings::new(nodes, Algorithm::Ring, timing, 1);
        settings.base_delay_us = (1_000, 4_000);
        let mut world = World::<1>::new(settings);
        for node in 0..usize::from(nodes) {
            world.power_on(node);
        }
        world.run_for(10_000);
        settle(&mut world);
        let n = u64::from(nodes);
        assert_eq!(world.tally.elections, n, "everybody starts once");
        // Two Hellos or three, one hop and its acknowledgement for each run that ends at once, three laps, one
        // Beat.
        let most = 3 * n + 2 * (n - 1) + 6 * n + 1;
        assert!(world.tally.datagrams <= most, "{} of {most}", world.tally.datagrams);
    }
}

#[test]
fn settles_under_20_percent_loss() {
    for nodes in [2, 3, 5, 8, 16] {
        for seed in 1..=10 {
            let mut world = flock(nodes, seed, 0.2);
            let coordinator = (0..usize::from(nodes)).find(|node| world.is_coordinator(*node));
            world.kill(coordinator.unwrap_or_default());
            settle(&mut world);
        }
    }
}

/// Nodes 1 and 2, observers, are cut off. Their runs find nobody who could coordinate them, for ever.
/// The network heals while one of their tokens is under way, which has given up all candidates: node 11, an
/// observer with a coordinator, joins that run. Its group must not have to wait until the run has aged.
#[test]
fn a_run_of_observers_that_outlives_a_partition_does_not_hold_up_the_flock() {
    let ms = Duration::from_millis;
    // With a long Tp a run may last long.
    let timing = Timing::derive(ms(40), ms(180), ms(5));
    for moment in 0..96 {
        let mut settings = Settings::new(11, Algorithm::Ring, timing, 1);
        settings.observers = vec![0, 1, 10];
        let bound = bound_us(&settings, Cause::Heal);
        let mut world = World::<1>::new(settings);
        for node in 0..11 {
            world.power_on(node);
        }
        world.run_for(10_000);
        settle(&mut world);
        world.network.partition(&[vec![0, 1], (2..11).collect()]);
        // The tokens of the two take nine T to get past the others.
        let t = world.timing().t.us();
        world.run_for(60 * t + moment * t / 4);
        world.network.heal();
        let took = settle(&mut world);
        assert!(took <= bound, "moment {moment}: {took} of {bound} us");
    }
}

/// The run in which that was found.
#[test]
fn a_flock_with_a_run_of_observers_under_way_is_settled_in_time_after_a_heal() {
    let options =
        random::Options { algorithm: Some(Algorithm::Ring), ..random::Options::default() };
    assert_eq!(random::run_seed(7_015_706, &options).failures, [""; 0]);
}
