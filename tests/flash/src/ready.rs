//! Futures that never wait.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

/// Runs a future to its end. On [`Nor`](crate::Nor) nothing ever waits, so it ends at once.
pub fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}
