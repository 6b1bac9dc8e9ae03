//! What the shell needs of a board beside a network driver, a clock and a flash.

use super::door::TurnedAway;
use crate::state::Summary;
use crate::time::{Duration, Instant};

/// Why the processor started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ResetCause {
    /// Power came on, or the memory that remembers the cause is void.
    Power = 1,
    /// The node ran late: its own check or the deadline timer found it.
    Deadline = 2,
    /// A watchdog of the chip.
    Watchdog = 3,
    /// A panic or a fault.
    Panic = 4,
    /// The node asked for it.
    Request = 5,
}

impl ResetCause {
    /// The cause that a retained byte stands for.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        [Self::Power, Self::Deadline, Self::Watchdog, Self::Panic, Self::Request]
            .into_iter()
            .find(|cause| *cause as u8 == byte)
    }
}

/// The hardware under a node.
pub trait Board {
    /// (Re)starts the deadline timer: without another call the core is reset after `span`, even
    /// inside a critical section, with cause `deadline`.
    fn feed(&mut self, span: Duration);

    /// Resets at once; queued datagrams are lost in both directions.
    fn reset(&mut self, cause: ResetCause) -> !;

    /// When the network hardware took in this datagram, if the driver still knows.
    fn arrived(&mut self, datagram: &[u8]) -> Option<Instant>;

    /// What the driver has turned away since the boot.
    fn turned_away(&self) -> TurnedAway;

    /// Page programs and sector erases since the boot.
    fn flash_counts(&self) -> (u32, u32);

    /// Keys were replaced: wipes what is left of the former ones where calls have returned.
    fn forget(&mut self);

    /// Keeps the state vector where a panic or a hardware reset can find it.
    fn remember(&mut self, state: &Summary<{ super::WORDS }>);
}
