//! The content of every kind of message: what is understood is written back the same, for both sizes
//! of flock. The first byte chooses the kind, so that none is rare.
#![no_main]

use bellwether::wire::{Frame, Kind, Message, VERSION};
use libfuzzer_sys::fuzz_target;

fn read_and_write<const W: usize>(datagram: &[u8]) {
    let Ok(frame) = Frame::new_checked(datagram) else { return };
    let Ok((envelope, message)) = Message::<W>::parse(&frame) else { return };
    let mut room = [0; 1472];
    let len = message.emit(&frame, &envelope, &mut room);
    assert_eq!(len.map(|len| &room[..len]), Some(datagram));
}

fuzz_target!(|bytes: &[u8]| {
    let [choice, to, body @ ..] = bytes else { return };
    let kind = Kind::ALL[usize::from(*choice) % Kind::ALL.len()] as u8;
    let head = [VERSION, kind, 1, 0, 5, *to, 7, 0, 0, 0, 9, 0, 0, 0];
    let datagram = [&head[..], body].concat();
    read_and_write::<1>(&datagram);
    read_and_write::<4>(&datagram);
});
