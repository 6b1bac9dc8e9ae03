//! The paper's own detector: a node that leaves a call unanswered for T has failed.
//!
//! It is right as long as Tm and Tp hold. Coordinators send no Beats: members call them, and who hears
//! another's call leaves it to that one for a while.
//!
//! Only Bully has it. Invitation promises to work without those bounds, and in both other algorithms
//! Beats are more than signs of life: by them groups that formed apart find each other (Bully's Check
//! asks all nodes, not only members).

use super::FailureDetector;
use crate::config::Config;
use crate::id::{GroupId, NodeId};
use crate::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
pub struct Reliable;

impl<const W: usize> FailureDetector<W> for Reliable {
    fn heard(&mut self, _now: Instant, _by: (NodeId, GroupId), _config: &Config<W>) {}

    fn patience(&self, config: &Config<W>) -> Duration {
        config.timing.quiet
    }
}
