//! The one lamp of a board, and its one button.

use core::cell::Cell;

use bellwether::id::NodeId;
use bellwether::lamp::{Button, Sign};
use bellwether::shell::WORDS;
use bellwether::state::{Status, Summary};
use critical_section::Mutex;
use embassy_time::{Duration, Instant, Ticker};

use crate::bring_up::BELLWETHER_MAILBOX;

/// Between two looks at the button; the lamp changes less often.
const STEP: Duration = Duration::from_millis(Button::LOOK_MS);

/// Who the node is, as soon as it knows.
static ME: Mutex<Cell<Option<NodeId>>> = Mutex::new(Cell::new(None));
/// What the node last was, and its coordinator.
static SHOWN: Mutex<Cell<(Status, Option<NodeId>)>> = Mutex::new(Cell::new((Status::Down, None)));

/// For [`crate::Hardware::connect`]: the node is this one.
pub fn introduce(me: NodeId) {
    critical_section::with(|section| ME.borrow(section).set(Some(me)));
}

/// For [`crate::Guard::show`].
pub fn show(state: &Summary<WORDS>) {
    critical_section::with(|section| SHOWN.borrow(section).set((state.status, state.coordinator)));
}

fn sign() -> Sign {
    critical_section::with(|section| {
        let (status, coordinator) = SHOWN.borrow(section).get();
        Sign::of(status, coordinator.is_some() && coordinator == ME.borrow(section).get())
    })
}

/// Shows for ever how the node is. Who presses the button has the node step down.
///
/// Cancel safety: the lamp stays as it is.
pub async fn attend(mut light: impl FnMut(bool), mut is_down: impl FnMut() -> bool) -> ! {
    let mut step = Ticker::every(STEP);
    let mut button = Button::default();
    loop {
        light(sign().is_lit(Instant::now().as_millis() as u32));
        if button.look(is_down()) {
            BELLWETHER_MAILBOX.step_down();
        }
        step.next().await;
    }
}
