//! What the STM32 boards share. A board of a family that is known here is one folder with a manifest, a
//! memory map and one page of code: boards/nucleo-h563zi is the example.
//!
//! | module | what |
//! |---|---|
//! | `flash` | cells in the second bank, behind a family's controller |
//! | `f4`, `h5` | the families: controller, reset cause |
//! | `guard` | deadline timer (TIM5) and independent watchdog |
//! | `front` | lamp and button |
//!
//! TIM2 is embassy's clock. TIM5, IWDG and the flash controller belong to this crate: a board leaves
//! them alone.
#![no_std]

#[cfg(feature = "f4")]
pub mod f4;
pub mod flash;
pub mod front;
pub mod guard;
#[cfg(feature = "h5")]
pub mod h5;

use bellwether_board::gate::Gate;
use bellwether_board::{chip, priority};
use cortex_m::peripheral::NVIC;
use embassy_stm32::eth::{Ethernet, GenericPhy, PacketQueue, Sma};
use embassy_stm32::{Config, Peripherals, interrupt, peripherals};
use static_cell::ConstStaticCell;

/// The Ethernet MAC with the PHY of the board, behind the door.
pub type Network =
    Gate<Ethernet<'static, peripherals::ETH, GenericPhy<Sma<'static, peripherals::ETH_SMA>>>>;

/// More interrupts than any of these chips has.
const INTERRUPTS: usize = 240;

/// Takes clocks, time and interrupts into use. Call once.
pub fn init(config: Config) -> Peripherals {
    // Until the priorities are set, an interrupt could break into a critical section.
    cortex_m::interrupt::disable();
    let peripherals = embassy_stm32::init(config);
    // SAFETY: nobody else has taken them: the start-up code leaves them alone, and so do the boards.
    let mut core = unsafe { cortex_m::Peripherals::steal() };
    priority::set(&mut core.NVIC, &mut core.SCB, INTERRUPTS, interrupt::TIM5);
    // SAFETY: the handler is in `guard`, and no critical section is active.
    unsafe {
        NVIC::unmask(interrupt::TIM5);
        cortex_m::interrupt::enable();
    }
    peripherals
}

/// A hardware address from the number that the chip was born with.
pub fn address() -> [u8; 6] {
    chip::address(&embassy_stm32::uid::uid())
}

/// Frames on their way: 4 out, 12 in. Call once.
pub fn queue() -> &'static mut PacketQueue<4, 12> {
    static QUEUE: ConstStaticCell<PacketQueue<4, 12>> = ConstStaticCell::new(PacketQueue::new());
    QUEUE.take()
}
