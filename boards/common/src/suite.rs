//! What drivers must be able to do, tried on the board itself.
//!
//! The firmware logs a line `case` for each check. Its last ones are resets, each with its cause: the
//! boot after one goes on with the next. The host of an emulated board (`cargo lab boards`) sends every
//! frame back, and says whether all cases came and were good. On a board that can be bought it is the
//! first thing to run, see boards/README.md; whoever runs it reads the lines.

mod flash;
mod network;

use bellwether::shell::{Door, ResetCause, log};
use defmt::{Str, intern};
use embassy_executor::Spawner;
use embassy_time::{Instant, Timer};

use crate::{Guard, Hardware, bring_up, retained};

/// What the host needs to read the log before a reset.
const READ_MS: u64 = 500;
/// More than any part of the suite takes.
const PART: bellwether::time::Duration = bellwether::time::Duration::from_millis(15_000);
/// The deadline of these tests.
const SPAN: bellwether::time::Duration = bellwether::time::Duration::from_millis(200);

fn case(name: Str, good: bool) {
    log::case(name, good);
}

/// Runs what comes after a boot with this cause.
pub async fn run<H: Hardware>(
    spawner: Spawner,
    cause: ResetCause,
    mut hardware: H,
    mut flash: H::Flash,
    mut guard: H::Guard,
) {
    match cause {
        ResetCause::Power => {
            flash::run::<H>(&mut flash).await;
            guard.feed(PART);
            time().await;
            random(&mut hardware);
            guard.feed(PART);
            network::run::<H>(spawner, hardware).await;
            deadline(&mut guard).await;
        }
        ResetCause::Deadline => {
            case(intern!("flash-outlives-a-reset"), flash::outlived::<H>(&mut flash).await);
            if H::WATCHDOG {
                hang(&mut guard).await;
            }
            panic_now().await;
        }
        ResetCause::Watchdog => {
            if H::DEADLINE_IS_WATCHDOG {
                case(intern!("flash-outlives-a-reset"), flash::outlived::<H>(&mut flash).await);
            }
            panic_now().await;
        }
        ResetCause::Panic => {
            Timer::after_millis(READ_MS).await;
            retained::reset(ResetCause::Request);
        }
        ResetCause::Request => case(intern!("end"), true),
    }
    bring_up::idle(guard).await
}

/// The clock goes forward, by no more than it should, and alarms do not come early.
async fn time() {
    // Long enough for a counter of 24 bits at 4 MHz to wrap.
    let (began, mut before, mut steady) = (Instant::now(), Instant::now(), true);
    while before - began < embassy_time::Duration::from_millis(4_500) {
        let now = Instant::now();
        // A second is for a host that is away.
        steady &= now >= before && now.as_micros() - before.as_micros() < 1_000_000;
        before = now;
    }
    case(intern!("clock-goes-forward"), steady);
    let mut in_time = true;
    for ms in [1, 2, 5, 10, 20, 50, 100] {
        let began = Instant::now();
        Timer::after_millis(ms).await;
        in_time &= began.elapsed().as_millis() >= ms;
    }
    case(intern!("alarms-are-not-early"), in_time);
    let (short, long) = (Timer::after_millis(20), Timer::after_millis(60));
    long.await;
    let at = Instant::now();
    short.await;
    case(intern!("alarms-come-in-order"), at.elapsed().as_millis() < 1_000);
}

/// Where a chip has random numbers, no two are alike.
fn random<H: Hardware>(hardware: &mut H) {
    let (first, second) = (hardware.random(), hardware.random());
    case(intern!("random-numbers-differ"), first.is_none() || first != second);
}

/// The deadline timer waits as long as it is fed, and then ends a critical section.
async fn deadline<G: Guard>(guard: &mut G) {
    for _ in 0..5 {
        guard.feed(SPAN);
        Timer::after_micros(SPAN.us() / 2).await;
    }
    case(intern!("deadline-waits"), true);
    guard.feed(bellwether::time::Duration::from_millis(2 * READ_MS));
    Timer::after_millis(READ_MS).await;
    guard.feed(SPAN);
    critical_section::with(|_| stall())
}

/// A core that only the watchdog can reach.
async fn hang<G: Guard>(guard: &mut G) {
    Timer::after_millis(READ_MS).await;
    guard.feed(SPAN);
    cortex_m::interrupt::disable();
    stall()
}

fn stall() -> ! {
    loop {
        cortex_m::asm::nop();
    }
}

#[allow(clippy::panic)] // that is what is tried
async fn panic_now() {
    Timer::after_millis(READ_MS).await;
    panic!("tried");
}

/// A door for one member.
fn door(address: [u8; 6]) -> Option<Door> {
    let me = bellwether::id::NodeId::new(1)?;
    let members = [me].into_iter().collect();
    let groups = [[0x01, 0, 0x5e, 0x40, 1, 1], [0x01, 0, 0x5e, 0x40, 1, 0]];
    Some(Door { address, groups, port: network::PORT, network: network::NETWORK, me, members })
}
