//! For measurements only: what sealing and opening a datagram costs.
//!
//! QEMU can be told to let one nanosecond pass per instruction; time then counts instructions.

use bellwether::id::{GroupId, NodeId, NodeSet};
use bellwether::key::{KEY_BYTES, LinkKey};
use bellwether::link::Gaps;
use bellwether::link::seal::{self, HEADER_BYTES, Header, TAG_BYTES};
use bellwether::shell::{WORDS, log};
use bellwether::wire::{Destination, Envelope, Kind, Message};
use core::hint::black_box;
use embassy_time::Instant;

const ROUNDS: u32 = 200;
/// Call number, receiver's boot, group, members, length: what is left of 64 bytes.
const DEFINITION_BYTES: usize = 64 - 4 - 4 - 9 - 2 - 2;

pub fn measure() {
    let key = LinkKey::new([7; KEY_BYTES]);
    let (Some(one), Some(two)) = (NodeId::new(1), NodeId::new(2)) else { return };
    let header = Header {
        kind: Kind::Ready,
        network: 1,
        source: one,
        destination: Destination::Node(two),
        boot: 2,
        sequence: 3,
        key: 1,
    };
    let members: NodeSet<WORDS> = [two].into_iter().collect();
    let group = GroupId { coordinator: one, number: 1 };
    let message = Message::Ready { group, up: members, definition: &[0x55; DEFINITION_BYTES] };
    let mut sealed = [0; 160];
    let seal_once = |room: &mut [u8]| {
        seal::seal(&header, &key, (9, 4), &Envelope::Request, &message, room).unwrap_or(0)
    };
    let began = Instant::now();
    let mut len = 0;
    for _ in 0..ROUNDS {
        len = black_box(seal_once(black_box(&mut sealed)));
    }
    let seal_us = began.elapsed().as_micros();
    // Opening happens in place: the copy is measured apart and taken off.
    let mut room = [0; 160];
    let began = Instant::now();
    for _ in 0..ROUNDS {
        room = black_box(sealed);
    }
    let copy_us = began.elapsed().as_micros();
    let began = Instant::now();
    let mut opened = 0;
    for _ in 0..ROUNDS {
        room = black_box(sealed);
        if let Some(datagram) = room.get_mut(..len) {
            opened +=
                u32::from(black_box(seal::open(&header, &key, Gaps::default(), datagram)).is_ok());
        }
    }
    let open_us = began.elapsed().as_micros().saturating_sub(copy_us);
    let text = len.saturating_sub(HEADER_BYTES + TAG_BYTES);
    let good = opened == ROUNDS;
    // Thousands of instructions in all, so that a division gives instructions per datagram.
    let each = |us: u64| (us * 1000 / u64::from(ROUNDS)) as u32;
    log::cost(text as u32, each(seal_us), each(open_us), good);
    black_box(room);
}
