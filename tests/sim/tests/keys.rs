//! A running flock moves from one key to the next, and who missed the move.

use bellwether::config::{Algorithm, Timing};
use bellwether::id::NodeId;
use bellwether::key::{KEY_BYTES, Keys, LinkKey, Slot};
use bellwether::time::Duration;
use bellwether_sim::settings::Settings;
use bellwether_sim::world::World;

const ALL: [usize; 5] = [0, 1, 2, 3, 4];
/// The node that is without power while the others move.
const AWAY: usize = 1;

fn slot(id: u8) -> Slot {
    Slot { id, key: LinkKey::new([id; KEY_BYTES]) }
}

fn keys(send: u8, other: Option<u8>) -> Keys {
    Keys { send: slot(send), other: other.map(slot) }
}

fn flock(algorithm: Algorithm) -> World<1> {
    let ms = Duration::from_millis;
    let timing = Timing::derive(ms(20), ms(10), ms(5));
    let settings = Settings { keys: keys(1, None), ..Settings::new(5, algorithm, timing, 3) };
    let mut world = World::new(settings);
    ALL.into_iter().for_each(|node| world.power_on(node));
    world.run_for(3_000_000);
    assert!(world.is_settled(&ALL));
    world
}

/// Gives these keys to one board after the other.
fn hand_out(world: &mut World<1>, nodes: &[usize], keys: &Keys) {
    for node in nodes {
        world.set_keys(*node, keys);
        world.run_for(150_000);
    }
}

fn failures(world: &World<1>, at: usize, of: usize) -> u16 {
    let id = NodeId::new(of as u8 + 1);
    let node = world.machines[at].node.as_ref();
    node.zip(id).map_or(0, |(node, id)| node.authentication_failures(id))
}

#[test]
fn a_flock_moves_to_a_new_key_without_an_election() {
    for algorithm in [Algorithm::Bully, Algorithm::Invitation] {
        let mut world = flock(algorithm);
        let elections = world.tally.elections;
        hand_out(&mut world, &ALL, &keys(1, Some(2)));
        hand_out(&mut world, &ALL, &keys(2, Some(1)));
        hand_out(&mut world, &ALL, &keys(2, None));
        world.run_for(2_000_000);
        assert!(world.is_settled(&ALL));
        assert_eq!(world.tally.elections, elections, "nobody was missed");
        assert!(ALL.iter().all(|at| ALL.iter().all(|of| failures(&world, *at, *of) == 0)));
        assert_eq!(world.checker.violations, []);
    }
}

/// The others end up with `theirs`, while the one that was away has `own`.
fn comes_back(algorithm: Algorithm, theirs: &Keys, own: &Keys) -> World<1> {
    let mut world = flock(algorithm);
    world.kill(AWAY);
    let others = [0, 2, 3, 4];
    hand_out(&mut world, &others, &keys(1, Some(2)));
    hand_out(&mut world, &others, &keys(2, Some(1)));
    hand_out(&mut world, &others, theirs);
    world.set_keys(AWAY, own);
    world.power_on(AWAY);
    world.run_for(5_000_000);
    assert!(world.is_settled(&others));
    assert_eq!(world.checker.view(0).coordinator, Some(5));
    world
}

#[test]
fn who_has_the_new_key_in_its_other_slot_joins_as_long_as_the_old_one_is_taken() {
    for algorithm in [Algorithm::Bully, Algorithm::Invitation] {
        let world = comes_back(algorithm, &keys(2, Some(1)), &keys(1, Some(2)));
        assert!(world.is_settled(&ALL));
    }
}

#[test]
fn who_missed_the_move_is_refused_and_everybody_says_so() {
    for algorithm in [Algorithm::Bully, Algorithm::Invitation] {
        let world = comes_back(algorithm, &keys(2, None), &keys(1, Some(2)));
        assert!(!world.is_settled(&ALL));
        assert!(failures(&world, 4, AWAY) > 0, "the others hear a key that they do not know");
        let world = comes_back(algorithm, &keys(2, None), &keys(1, None));
        assert!(!world.is_settled(&ALL));
        assert!(failures(&world, 4, AWAY) > 0 && failures(&world, AWAY, 4) > 0);
    }
}
