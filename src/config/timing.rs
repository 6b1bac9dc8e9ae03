//! The spans of time that a node goes by, and how they follow from Tm, Tp and Ts.

use crate::time::Duration;

/// All spans of time that a node goes by. [`Timing::derive`] fills in what follows from Tm and Tp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Tm: the longest way of a datagram, queues included.
    pub tm: Duration,
    /// Tp: from the reception of a request to its answer, if that waits for no save.
    pub tp: Duration,
    /// Ts: what a save adds to that.
    pub ts: Duration,
    /// T: how long a call waits for its answers. At least [`Timing::t_min`].
    pub t: Duration,
    /// P: the period of the coordinator's Check.
    pub check: Duration,
    /// Q: how long the coordinator may be silent before it is suspected.
    pub quiet: Duration,
    /// How often a coordinator gives a sign of life.
    pub beat: Duration,
    /// How much later each next member in rank suspects, so that one probe serves all.
    pub stagger: Duration,
    /// When a request is repeated inside its round. Questions whether a node is there are repeated
    /// twice as often.
    pub repeat: Duration,
    /// Tacc: how long an inviter waits for accepts (three hops: invite, forward, accept).
    pub accept: Duration,
    /// Tr: how long the application may take to reorganize.
    pub reorganize: Duration,
    /// How far answers to one broadcast are spread, per rank of the answering node.
    pub answer_spacing: Duration,
    /// How many T the rounds Announce and Distribute repeat before they give up.
    pub patience: u32,
    /// rho: how far a clock may be off, in parts per million.
    pub drift_ppm: u32,
    /// The resolution of the timers.
    pub tick: Duration,
}

impl Timing {
    /// The defaults for a network with bounds `tm` and `tp` whose saves add `ts`.
    #[must_use]
    pub fn derive(tm: Duration, tp: Duration, ts: Duration) -> Self {
        let zero = Duration::ZERO;
        let timing = Self {
            tm,
            tp,
            ts,
            t: zero,
            check: zero,
            quiet: zero,
            beat: zero,
            stagger: tm.times(2),
            repeat: zero,
            accept: zero,
            reorganize: zero,
            answer_spacing: zero,
            patience: 3,
            drift_ppm: 100,
            tick: Duration(50),
        };
        timing.with_t(timing.t_min())
    }

    /// For strict durability among `nodes` nodes: an answer may wait for a save, and so may each of
    /// the answers that are due before it.
    #[must_use]
    pub fn strict(self, nodes: usize) -> Self {
        let timing = Self { tp: self.tp + self.ts.times(nodes as u32), ..self };
        timing.with_t(timing.t_min())
    }

    /// Another T, and what follows from it. A T above the minimum leaves room for repeats of Halt,
    /// which a lossy network needs.
    #[must_use]
    pub fn with_t(self, t: Duration) -> Self {
        let beat = t.fraction(3, 5);
        Self {
            t,
            check: t.times(10),
            // One Beat may be lost, the next one may take all of Tm.
            quiet: beat.times(2) + self.tm,
            beat,
            repeat: t.fraction(1, 2),
            accept: self.allow_for_drift(self.tm.times(3) + self.tp.times(2)),
            reorganize: t,
            ..self
        }
    }

    /// The least T at which a node that is silent for T has certainly failed.
    #[must_use]
    pub fn t_min(&self) -> Duration {
        self.allow_for_drift(self.tm.times(2) + self.tp)
    }

    /// How long after a datagram has left it has certainly arrived.
    #[must_use]
    pub fn arrived(&self) -> Duration {
        self.allow_for_drift(self.tm)
    }

    /// How far into the Halt round a repeat may still halt a node for the first time: everything that
    /// such a node sent before has then arrived when the round ends.
    #[must_use]
    #[inline(never)]
    pub fn halt_window(&self) -> Duration {
        self.t.minus(self.t_min())
    }

    /// How long a round with all its repeats may last.
    #[must_use]
    pub fn patient(&self) -> Duration {
        self.t.times(self.patience)
    }

    /// The same when every answer waits for a save.
    #[must_use]
    pub fn distribute(&self) -> Duration {
        self.patient() + self.ts
    }

    /// How long an inviter waits for those who have not accepted, with repeats.
    #[must_use]
    pub fn merge(&self) -> Duration {
        self.accept.times(self.patience)
    }

    /// When a Check is repeated: later than any answer comes that is not kept waiting.
    #[must_use]
    pub fn check_repeat(&self) -> Duration {
        self.t.fraction(3, 4)
    }

    /// From then on, how often members are asked that have not answered it.
    #[must_use]
    pub fn insistence(&self) -> Duration {
        self.t.fraction(1, 8)
    }

    /// How long a Check waits for its members, who are asked again and again. Who is silent for so long is
    /// gone.
    #[must_use]
    pub fn roll_call(&self) -> Duration {
        self.t.fraction(9, 4).min(self.check)
    }

    /// R: nobody waits longer than this for a group that it accepted to become Normal.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.merge() + self.reorganize + self.distribute() + self.t
    }

    /// R of a ring of `nodes` nodes: a run that has lost nobody ends within it. (A dead node costs one
    /// T, and none of the three hops that a live one takes.)
    #[must_use]
    pub fn run_limit(&self, nodes: usize) -> Duration {
        let hops = (self.tm + self.tp).times(3).max(self.t);
        (hops + self.ts).times(nodes as u32) + self.reorganize + self.t
    }

    /// How long a node of a ring is deaf after it has woken: until every hop to its earlier life has
    /// ended, and any token that it did not hear is past the next node.
    #[must_use]
    pub fn waking(&self) -> Duration {
        self.t.fraction(3, 2)
    }

    /// How long the token may take once round a ring of `nodes` nodes, however many of them are dead.
    #[must_use]
    pub fn lap(&self, nodes: usize) -> Duration {
        self.t.times(nodes as u32)
    }

    fn allow_for_drift(&self, span: Duration) -> Duration {
        let million = 1_000_000;
        let drift = u64::from(self.drift_ppm.min(million / 2));
        let million = u64::from(million);
        let scaled = (span.us() * (million + drift)).div_ceil(million - drift);
        Duration::from_us(scaled) + self.tick
    }
}
