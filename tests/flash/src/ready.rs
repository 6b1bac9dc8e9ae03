//! Futures that never wait, unless for a power that is off.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

/// Runs a future to its end, or to the cut: `None` means that the power is off.
///
/// On [`Nor`](crate::Nor) nothing ever waits, so one poll decides.
pub fn until_cut<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
