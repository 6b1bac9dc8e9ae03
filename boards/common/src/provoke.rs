//! For system tests only: the host asks for a failure or a measurement by a word in
//! memory that nothing else uses.

use core::sync::atomic::{AtomicU32, Ordering};

use embassy_time::{Duration, Timer};

use crate::cost;

/// Found by its name in the image.
#[unsafe(no_mangle)]
static BELLWETHER_PROVOKE: AtomicU32 = AtomicU32::new(0);

/// Does what the host asks for.
#[embassy_executor::task]
pub async fn obey() -> ! {
    loop {
        match BELLWETHER_PROVOKE.load(Ordering::Relaxed) {
            1 => critical_section::with(|_| stall()),
            2 => stall(),
            3 => provoked_panic(),
            4 => {
                overflow(1);
            }
            5 => {
                BELLWETHER_PROVOKE.store(0, Ordering::Relaxed);
                cost::measure();
            }
            6 => {
                cortex_m::interrupt::disable();
                stall()
            }
            _ => {}
        }
        Timer::after(Duration::from_millis(20)).await;
    }
}

fn stall() -> ! {
    loop {
        cortex_m::asm::nop();
    }
}

#[allow(clippy::panic)] // that is what was asked for
fn provoked_panic() {
    panic!("provoked");
}

/// Recurses until the stack is used up.
#[allow(unconditional_recursion)]
#[inline(never)]
fn overflow(depth: u32) -> u32 {
    let room = core::hint::black_box([depth; 64]);
    overflow(depth.wrapping_add(room[0])).wrapping_add(core::hint::black_box(room)[1])
}
