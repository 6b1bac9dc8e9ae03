//! The store behind its channel.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Waker};

use bellwether::cells::task::{Answer, Request, run};
use bellwether::cells::{Path, Reason, Which};
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
        let mut task = pin!(run(&mut store, requests.receiver(), answers.sender()));
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
    let election = bellwether_flash::until_cut(store.election(0)).unwrap().unwrap();
    let election = election.unwrap();
    assert_eq!(election.state, [199; 100]);
    assert_eq!(election.history, [199; 20]);
}
