//! The store behind its channel.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Waker};

use bellwether::cells::task::{Answer, Request, run};
use bellwether::cells::{Path, Reason, Which};
use bellwether::key::{KEY_BYTES, KeyBox, Keys, LinkKey, Slot};
use bellwether_flash::scenario::{Bench, Step};
use embassy_sync::blocking_mutex::raw::NoopRawMutex;
use embassy_sync::channel::Channel;

type Requests = Channel<NoopRawMutex, Request, 8>;
type Answers = Channel<NoopRawMutex, Answer, 8>;

fn election(ticket: u32, byte: u8) -> Request {
    Request::Election {
        ticket,
        format: 1,
        state_bytes: 100,
        bytes: [byte; 120].into_iter().collect(),
        path: Path::Answer,
        verify: true,
    }
}

#[test]
fn requests_are_served_in_order_and_a_refused_save_makes_room_for_the_next() {
    let bench = Bench::<4, 4096>::new(3);
    let mut flash = bench.flash(1);
    let (mut store, _) = bench.open(&mut flash).unwrap();
    let provision = Step::Provision { chunks: vec![vec![1; 50]], first_epoch: 1 };
    bench.run(&mut store, &provision).unwrap();
    let (requests, answers) = (Requests::new(), Answers::new());
    let mut refused = 0;
    {
        let keys = KeyBox::empty();
        let mut task = pin!(run(&mut store, requests.receiver(), answers.sender(), &keys));
        let mut poll = || {
            let mut context = Context::from_waker(Waker::noop());
            assert!(task.as_mut().poll(&mut context).is_pending());
        };
        for ticket in 0..200_u32 {
            // Two at once: nobody waits for the first.
            requests.try_send(election(2 * ticket, 1)).unwrap();
            requests.try_send(election(2 * ticket + 1, ticket as u8)).unwrap();
            if ticket % 50 == 0 {
                requests.try_send(Request::Prepare(Which::A)).unwrap();
            }
            poll();
            for expected in [2 * ticket, 2 * ticket + 1] {
                let answer = answers.try_receive().unwrap();
                assert_eq!(answer.ticket, expected);
                if let Err(error) = answer.result {
                    assert_eq!(error.reason, Reason::NotPrepared);
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 0 && refused < 40, "{refused}");
    let counters = *store.counters();
    assert_eq!(counters.saves_refused, refused);
    assert!(counters.erases > 0);
    let election = store.election(0).unwrap();
    let election = election.unwrap();
    assert_eq!(election.state, [199; 100]);
    assert_eq!(election.history, [199; 20]);
}

#[test]
fn keys_come_through_the_box_and_two_under_one_number_are_refused() {
    let bench = Bench::<4, 4096>::new(3);
    let mut flash = bench.flash(1);
    let (mut store, _) = bench.open(&mut flash).unwrap();
    let provision = Step::Provision { chunks: vec![vec![1; 50]], first_epoch: 1 };
    bench.run(&mut store, &provision).unwrap();
    let slot = |id, byte| Slot { id, key: LinkKey::new([byte; KEY_BYTES]) };
    let good = Keys { send: slot(1, 7), other: Some(slot(2, 8)) };
    let bad = Keys { send: slot(3, 7), other: Some(slot(3, 8)) };
    let (requests, answers, keys) = (Requests::new(), Answers::new(), KeyBox::empty());
    {
        let mut task = pin!(run(&mut store, requests.receiver(), answers.sender(), &keys));
        for (given, reason) in
            [(Some(&good), None), (Some(&bad), Some(Reason::Malformed)), (None, None)]
        {
            if let Some(given) = given {
                keys.put(given);
            }
            requests.try_send(Request::Keys { ticket: 9 }).unwrap();
            assert!(task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            let answer = answers.try_receive().unwrap();
            assert_eq!((answer.ticket, answer.result.err().map(|error| error.reason)), (9, reason));
            assert_eq!(keys.take(), None);
        }
    }
    assert_eq!(store.keys().unwrap(), Some(good), "the bad ones never got there");
}
