//! A driver for embassy-net, of a MAC whose interrupt fills the [`inbox`].

use core::marker::PhantomData;
use core::task::Context;

use bellwether::shell::Door;
use bellwether::shell::member::DATAGRAM_ROOM;
use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};

use crate::{arrivals, inbox};

/// A flock of 64 has no longer datagrams than the shell's bound; what is longer can be dropped.
pub const FRAME_BYTES_MAX: usize = 768;
const HEADER_BYTES: usize = 14 + 20 + 8;
const _: () = assert!(HEADER_BYTES + DATAGRAM_ROOM <= FRAME_BYTES_MAX);

/// What sends frames. There is one, and only the thread sends.
pub trait Mac {
    /// Has `write` fill a frame of `len` bytes, which are at most [`FRAME_BYTES_MAX`], and sends it.
    fn send<R>(len: usize, write: impl FnOnce(&mut [u8]) -> R) -> R;
}

/// The MAC. There is one.
pub struct Ethernet<M> {
    address: [u8; 6],
    frame: [u8; FRAME_BYTES_MAX],
    mac: PhantomData<M>,
}

impl<M: Mac> Ethernet<M> {
    /// Lets frames in. Call once, before the MAC is started.
    pub fn new(door: Door) -> Self {
        let address = door.address;
        inbox::open(door);
        Self { address, frame: [0; FRAME_BYTES_MAX], mac: PhantomData }
    }
}

pub struct Received<'a>(pub(crate) &'a mut [u8]);

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

pub struct Transmit<M>(PhantomData<M>);

impl<M: Mac> TxToken for Transmit<M> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        M::send(len.min(FRAME_BYTES_MAX), write)
    }
}

impl<M: Mac> Driver for Ethernet<M> {
    type RxToken<'a>
        = Received<'a>
    where
        M: 'a;
    type TxToken<'a>
        = Transmit<M>
    where
        M: 'a;

    fn receive(&mut self, context: &mut Context<'_>) -> Option<(Received<'_>, Transmit<M>)> {
        inbox::register(context.waker());
        let (time_us, len) = inbox::pop(&mut self.frame)?;
        let frame = self.frame.get_mut(..len)?;
        arrivals::note(frame, time_us);
        Some((Received(frame), Transmit(PhantomData)))
    }

    fn transmit(&mut self, _context: &mut Context<'_>) -> Option<Transmit<M>> {
        Some(Transmit(PhantomData))
    }

    fn link_state(&mut self, context: &mut Context<'_>) -> LinkState {
        inbox::register(context.waker());
        if inbox::link_is_up() { LinkState::Up } else { LinkState::Down }
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = FRAME_BYTES_MAX;
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet(self.address)
    }
}
