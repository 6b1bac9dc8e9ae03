//! The store behind a channel: nothing can cancel a write, and the order of the requests is the
//! order on flash.
//!
//! A save is a sequence of flash operations that must not be dropped half-way, which a `select` or
//! a timeout around it would do. Here the future that writes belongs to a task of its own; whoever
//! asked may stop waiting for the answer, the write still ends. Idle work is done one step at a
//! time, and a request that arrives meanwhile is served after the running step: that is the wait
//! in [`Part::wait_us_max`](super::Part::wait_us_max).

use embassy_sync::blocking_mutex::raw::RawMutex;
use embassy_sync::channel::{Receiver, Sender};
use heapless::Vec;

use super::error::{Error, Reason, Which};
use super::guard::Flash;
use super::store::{Path, Store};
use super::{ELECTION_BYTES_MAX, Progress};
use crate::key::KeyBox;

/// What the task is asked to do.
// There is no heap to put the large ones on.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Save what an election decided. Answered.
    Election {
        /// Comes back with the answer.
        ticket: u32,
        /// The core's format version.
        format: u8,
        /// How many of the bytes are the state vector; the rest is the history entry.
        state_bytes: u16,
        /// Both.
        bytes: Vec<u8, ELECTION_BYTES_MAX>,
        /// Whether an answer waits.
        path: Path,
        /// Read back before answering.
        verify: bool,
    },
    /// Put the keys of the box into force, and wipe the former ones. Answered.
    Keys {
        /// Comes back with the answer.
        ticket: u32,
    },
    /// The node is idle: make one region ready. Not answered, but counted in the store.
    Prepare(Which),
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The ticket of the request.
    pub ticket: u32,
    /// `Ok`: durable in both regions.
    pub result: Result<(), Error>,
}

/// Serves requests for ever.
///
/// A save that is refused because room was not ready is answered at once, and the room is then
/// made without waiting for an idle moment, so that the next attempt succeeds.
///
/// Cancel safety: not cancel safe. Give it a task of its own, and nothing can cancel it.
pub async fn run<F, M, const PAGES: usize, const BUFFER: usize, const IN: usize, const OUT: usize>(
    store: &mut Store<F, PAGES, BUFFER>,
    requests: Receiver<'_, M, Request, IN>,
    answers: Sender<'_, M, Answer, OUT>,
    keys: &KeyBox<M>,
) -> !
where
    F: Flash,
    M: RawMutex,
{
    // Former keys that a boot found are wiped at once.
    let mut preparing: [bool; 2] = [!store.is_wiped(); 2];
    loop {
        let waiting = Which::BOTH.into_iter().zip(&mut preparing).find(|(_, wanted)| **wanted);
        if waiting.is_none() {
            requests.ready_to_receive().await;
        }
        let Ok(request) = requests.try_receive() else {
            if let Some((which, wanted)) = waiting {
                *wanted = matches!(store.prepare_step(which).await, Ok(Progress::More));
            }
            continue;
        };
        let answer = match request {
            Request::Prepare(which) => {
                if let Some(wanted) = preparing.get_mut(which.index()) {
                    *wanted = true;
                }
                continue;
            }
            // Not moved once more: it is long.
            Request::Election { ticket, format, state_bytes, ref bytes, path, verify } => Answer {
                ticket,
                result: match bytes.split_at_checked(usize::from(state_bytes)) {
                    Some((state, history)) => {
                        store.save_election(format, state, history, path, verify).await
                    }
                    None => Err(Error::new(Reason::Malformed)),
                },
            },
            Request::Keys { ticket } => {
                let result = match keys.take() {
                    Some(keys) => store.replace_keys(&keys).await,
                    // An order that came later has been carried out in its place.
                    None => Ok(()),
                };
                preparing = [!store.is_wiped(); 2];
                Answer { ticket, result }
            }
        };
        if let Err(error) = answer.result
            && error.reason == Reason::NotPrepared
        {
            preparing = [true; 2];
        }
        answers.send(answer).await;
    }
}
