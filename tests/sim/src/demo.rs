//! A small flock for trying out a task.

use bellwether::application::Application;
use bellwether::config::{Algorithm, Timing};
use bellwether::id::NodeId;
use bellwether::time::Duration;

use crate::settings::Settings;
use crate::world::World;

/// Runs `nodes` nodes with tasks of the caller's: they elect, lose their coordinator after two
/// seconds, and have four to go on without it.
pub fn run(nodes: u8, task: impl Fn(NodeId) -> Box<dyn Application<1>>) {
    let ms = Duration::from_millis;
    let timing = Timing::derive(ms(20), ms(10), ms(5));
    let settings = Settings::new(nodes, Algorithm::Bully, timing, 1);
    let mut world = World::with_tasks(settings, task);
    for node in 0..world.machines.len() {
        world.power_on(node);
    }
    world.run_for(2_000_000);
    if let Some(coordinator) = (0..world.machines.len()).find(|node| world.is_coordinator(*node)) {
        println!("node {} loses its power", coordinator + 1);
        world.kill(coordinator);
    }
    world.run_for(4_000_000);
}
