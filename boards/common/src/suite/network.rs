//! The network. The other end of an emulated one sends every frame back.

use core::future::poll_fn;
use core::task::Poll;

use defmt::intern;
use embassy_executor::Spawner;
use embassy_net_driver::{Driver, LinkState, RxToken, TxToken};
use embassy_time::{Duration, Instant, with_timeout};

use super::{case, door};
use crate::{Hardware, arrivals, counts};

pub const PORT: u16 = 7_400;
pub const NETWORK: u16 = 1;
const ADDRESS: [u8; 6] = [0x02, 0, 0, 0, 0, 1];
const HEADER_BYTES: usize = 14 + 20 + 8;
const FRAME_BYTES: usize = 200;
const PATIENCE: Duration = Duration::from_secs(2);
/// Two ends of a real cable negotiate for some seconds.
const LINK_PATIENCE: Duration = Duration::from_secs(8);

/// A datagram of member 1 to all, on this network.
fn frame(network: u16, mark: u8) -> [u8; FRAME_BYTES] {
    let mut frame = [mark; FRAME_BYTES];
    let udp_bytes = (FRAME_BYTES - 14 - 20) as u16;
    let [ip_high, ip_low] = (udp_bytes + 20).to_be_bytes();
    let [udp_high, udp_low] = udp_bytes.to_be_bytes();
    let [port_high, port_low] = PORT.to_be_bytes();
    let [network_low, network_high] = network.to_le_bytes();
    frame[..6].copy_from_slice(&[0x01, 0, 0x5e, 0x40, 1, 0]);
    frame[6..12].copy_from_slice(&ADDRESS);
    frame[12..14].copy_from_slice(&[0x08, 0]);
    let ip = [0x45, 0, ip_high, ip_low, 0, 0, 0, 0, 1, 17, 0, 0, 10, 66, 1, 1, 239, 192, 1, 0];
    frame[14..34].copy_from_slice(&ip);
    let udp = [port_high, port_low, port_high, port_low, udp_high, udp_low, 0, 0];
    frame[34..HEADER_BYTES].copy_from_slice(&udp);
    let head = [2, 1, network_low, network_high, 1, 0];
    frame[HEADER_BYTES..HEADER_BYTES + head.len()].copy_from_slice(&head);
    frame
}

async fn send<D: Driver>(driver: &mut D, frame: &[u8]) -> bool {
    let sent = poll_fn(|context| match driver.transmit(context) {
        Some(token) => {
            token.consume(frame.len(), |room| room.copy_from_slice(frame));
            Poll::Ready(())
        }
        None => Poll::Pending,
    });
    with_timeout(PATIENCE, sent).await.is_ok()
}

/// Whether the next frame is this one.
async fn receive<D: Driver>(driver: &mut D, wanted: &[u8]) -> bool {
    let received = poll_fn(|context| match driver.receive(context) {
        Some((token, _)) => Poll::Ready(token.consume(|frame| frame == wanted)),
        None => Poll::Pending,
    });
    with_timeout(PATIENCE, received).await.unwrap_or(false)
}

/// Whether no frame is there. Interrupts come from here on. Then looks at the cable, as embassy-net does
/// after every look at the frames: a driver whose waker for them is lost by that is found out.
async fn is_empty<D: Driver>(driver: &mut D) -> bool {
    poll_fn(|context| {
        let empty = driver.receive(context).is_none();
        Poll::Ready(driver.link_state(context) == LinkState::Up && empty)
    })
    .await
}

pub async fn run<H: Hardware>(spawner: Spawner, hardware: H) {
    let Some(door) = door(ADDRESS) else { return };
    let mut driver = hardware.connect(spawner, door).await;
    let up = poll_fn(|context| match driver.link_state(context) {
        LinkState::Up => Poll::Ready(()),
        LinkState::Down => Poll::Pending,
    });
    case(intern!("link-comes-up"), with_timeout(LINK_PATIENCE, up).await.is_ok());

    if H::ECHO {
        echo(driver).await;
    }
}

/// What can be tried where every frame comes back.
async fn echo<D: Driver>(mut driver: D) {
    let (mut good, mut stamped, mut early) = (true, true, false);
    for mark in 0..20 {
        let frame = frame(NETWORK, mark);
        good &= is_empty(&mut driver).await;
        let sent = Instant::now();
        good &= send(&mut driver, &frame).await;
        // It comes back while the thread does something else.
        while sent.elapsed().as_millis() < 10 {}
        good &= receive(&mut driver, &frame).await;
        let read = Instant::now().as_micros();
        let arrived = frame.get(HEADER_BYTES..).and_then(arrivals::of).map_or(0, |at| at.0);
        stamped &= (sent.as_micros()..=read).contains(&arrived);
        early |= read - arrived >= 5_000;
    }
    case(intern!("frames-come-back"), good);
    // The host may be late with some of them, but not with all.
    case(intern!("frames-have-the-time-of-their-arrival"), stamped && early);

    // Many at once, in order. They fit into the memory of any driver.
    let mut good = true;
    for mark in 100..108 {
        good &= send(&mut driver, &frame(NETWORK, mark)).await;
    }
    for mark in 100..108 {
        good &= receive(&mut driver, &frame(NETWORK, mark)).await;
    }
    case(intern!("bursts-come-back-in-order"), good);

    let noise = counts::NOISE.get();
    let mut good = send(&mut driver, &frame(NETWORK + 1, 200)).await;
    good &= send(&mut driver, &frame(NETWORK, 201)).await;
    good &= receive(&mut driver, &frame(NETWORK, 201)).await;
    case(intern!("noise-stays-outside"), good && counts::NOISE.get() == noise + 1);
}
