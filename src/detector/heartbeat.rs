//! A fixed silence: Q covers a period of Beats, a lost one, and the way of the next.

use super::FailureDetector;
use crate::config::Config;
use crate::id::{GroupId, NodeId};
use crate::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
pub struct Heartbeat;

impl<const W: usize> FailureDetector<W> for Heartbeat {
    fn heard(&mut self, _now: Instant, _by: (NodeId, GroupId), _config: &Config<W>) {}

    fn patience(&self, config: &Config<W>) -> Duration {
        config.timing.quiet
    }
}
