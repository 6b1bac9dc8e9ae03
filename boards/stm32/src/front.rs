//! Lamp and button.

use bellwether_board::lamp;
use embassy_executor::Spawner;
use embassy_stm32::gpio::{Input, Level, Output};

/// The lamp shines, and the button is down, at a high level. A node without them is still a node.
pub fn start(spawner: Spawner, lamp: Output<'static>, button: Input<'static>) {
    if let Ok(task) = attend(lamp, button) {
        spawner.spawn(task);
    }
}

#[embassy_executor::task]
async fn attend(mut lamp: Output<'static>, button: Input<'static>) {
    lamp::attend(|lit| lamp.set_level(Level::from(lit)), || button.is_high()).await
}
