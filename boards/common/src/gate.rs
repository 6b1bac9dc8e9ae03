//! The door and the time stamps around a driver that somebody else wrote.
//!
//! Such a driver hands frames on without the time at which its interrupt took them in. But it wakes
//! whoever waits for a frame, from that interrupt: the gate waits in between and looks at the clock.
//! All frames of one burst get the time of the first: a node may think that it is later than it is,
//! never earlier.
//!
//! Where the flash takes the code away while it is written, nobody looks at the clock meanwhile: a frame
//! that is found soon after such a stall may have come when it began.

use core::cell::Cell;
use core::task::{Context, RawWaker, RawWakerVTable, Waker};

use bellwether::shell::{Door, Guest};
use critical_section::Mutex;
use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken};
use embassy_sync::waitqueue::AtomicWaker;
use embassy_time::Instant;

use crate::ethernet::{FRAME_BYTES_MAX, Received};
use crate::stall::Stall;
use crate::{arrivals, counts};

/// When the driver first woke the stack since the last look; 0: it has not.
static WOKEN_US: Mutex<Cell<u64>> = Mutex::new(Cell::new(0));
static WAKER: AtomicWaker = AtomicWaker::new();

/// The last stall of the whole board.
static STALL: Mutex<Cell<Stall>> = Mutex::new(Cell::new(Stall::NONE));

/// Says that no interrupt could come from `began` until now.
pub fn stalled(began: Instant) {
    let (from, to) = (began.as_micros(), Instant::now().as_micros());
    critical_section::with(|section| {
        let stall = STALL.borrow(section);
        stall.set(stall.get().and(from, to));
    });
}

/// The earliest time that a frame with this stamp can have come at.
fn not_later(stamp_us: u64) -> u64 {
    critical_section::with(|section| STALL.borrow(section).get()).not_later(stamp_us)
}

static STAMPING: RawWakerVTable = RawWakerVTable::new(clone, wake, wake, |_| ());

fn clone(data: *const ()) -> RawWaker {
    RawWaker::new(data, &STAMPING)
}

/// A waker for the driver that looks at the clock and passes the call on to `waker`.
fn stamping(waker: &Waker) -> Waker {
    WAKER.register(waker);
    // SAFETY: the functions of the table take no account of the data pointer and own nothing.
    unsafe { Waker::from_raw(RawWaker::new(core::ptr::null(), &STAMPING)) }
}

fn wake(_data: *const ()) {
    critical_section::with(|section| {
        let woken = WOKEN_US.borrow(section);
        if woken.get() == 0 {
            woken.set(Instant::now().as_micros().max(1));
        }
    });
    WAKER.wake();
}

/// A driver behind the door. There is one.
pub struct Gate<D> {
    driver: D,
    door: Door,
    /// No frame that is in the driver came before this; 0: it was empty at the last look.
    since_us: u64,
    frame: [u8; FRAME_BYTES_MAX],
    /// Bytes of the frame that waits for room to answer it, and whether it is a member's.
    waiting: Option<(usize, bool)>,
}

impl<D: Driver> Gate<D> {
    pub fn new(driver: D, door: Door) -> Self {
        Self { driver, door, since_us: 0, frame: [0; FRAME_BYTES_MAX], waiting: None }
    }

    /// The next frame that may pass, in `self.frame`.
    fn next(&mut self, context: &mut Context<'_>) -> Option<(usize, bool)> {
        loop {
            let frame = &mut self.frame;
            let Some((received, _)) = self.driver.receive(context) else {
                self.since_us = 0;
                return None;
            };
            let len = received.consume(|bytes| {
                let room = frame.get_mut(..bytes.len())?;
                room.copy_from_slice(bytes);
                Some(bytes.len())
            });
            let Some(len) = len else {
                counts::CROWDED.add();
                continue;
            };
            match self.door.look(self.frame.get(..len).unwrap_or(&[])) {
                Guest::Passing => {}
                Guest::Noise => counts::NOISE.add(),
                Guest::Stranger => return Some((len, false)),
                Guest::Request | Guest::Answer => return Some((len, true)),
            }
        }
    }
}

impl<D: Driver> Driver for Gate<D> {
    type RxToken<'a>
        = Received<'a>
    where
        D: 'a;
    type TxToken<'a>
        = D::TxToken<'a>
    where
        D: 'a;

    fn receive(&mut self, context: &mut Context<'_>) -> Option<(Received<'_>, D::TxToken<'_>)> {
        let stamping = stamping(context.waker());
        let mut context = Context::from_waker(&stamping);
        // What wakes from here on belongs to a frame that this look may or may not see: it counts
        // for the next.
        let woken = critical_section::with(|section| WOKEN_US.borrow(section).replace(0));
        if self.since_us == 0 {
            self.since_us = woken;
        }
        if self.waiting.is_none() {
            self.waiting = Some(self.next(&mut context)?);
        }
        let reply = self.driver.transmit(&mut context)?;
        let (len, of_member) = self.waiting.take()?;
        let frame = self.frame.get_mut(..len)?;
        if of_member {
            let now = Instant::now().as_micros();
            let stamp = not_later(if self.since_us == 0 { now } else { self.since_us });
            arrivals::note(frame, stamp.max(1));
        }
        Some((Received(frame), reply))
    }

    fn transmit(&mut self, context: &mut Context<'_>) -> Option<D::TxToken<'_>> {
        // A driver may keep one waker for both directions, and the last one counts.
        self.driver.transmit(&mut Context::from_waker(&stamping(context.waker())))
    }

    /// With the plain waker: some drivers look after the cable by a timer of their own, and wake every
    /// time that it ends. One that keeps the waker for frames must not keep this one in its place.
    fn link_state(&mut self, context: &mut Context<'_>) -> LinkState {
        self.driver.link_state(context)
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.driver.capabilities();
        capabilities.max_transmission_unit =
            capabilities.max_transmission_unit.min(FRAME_BYTES_MAX);
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        self.driver.hardware_address()
    }
}
