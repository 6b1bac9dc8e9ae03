//! For system tests only: the host asks for a failure or a measurement by a word in memory that nothing else uses.

use embassy_time::{Duration, Timer};

use crate::cost;
use crate::registers::Register;

/// The first word of the DDR memory, which the firmware does not use.
const MAILBOX: Register = Register(0xa000_0000);

/// Does what the host asks for.
pub async fn obey() -> ! {
    MAILBOX.write(0);
    loop {
        match MAILBOX.read() {
            1 => critical_section::with(|_| stall()),
            2 => stall(),
            3 => provoked_panic(),
            4 => {
                overflow(1);
            }
            5 => {
                MAILBOX.write(0);
                cost::measure();
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
