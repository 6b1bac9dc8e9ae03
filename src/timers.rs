//! The timer table: one deadline per purpose.
//!
//! The node owns its deadlines and the shell asks for the next one; so a timer that was set anew or
//! cancelled cannot fire from a queue where it still lay. That is what a generation number would
//! buy, without the number.

use crate::time::Instant;

/// What a deadline is for. Where two are due at once, the earlier in this list goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timer {
    /// A delayed answer is due.
    Answer,
    /// The next step of the greeting of a node that has just woken.
    Greeting,
    /// A Hello is owed to others.
    Hello,
    /// The current phase ends.
    Phase,
    /// The request of the current round is due again.
    Repeat,
    /// Silence has lasted long enough to suspect the coordinator.
    Quiet,
    /// The absolute limit R outside Normal has passed.
    Limit,
    /// The periodic check, every P.
    Check,
    /// The coordinator's next sign of life.
    Beat,
}

const COUNT: usize = 9;
const ALL: [Timer; COUNT] = [
    Timer::Answer,
    Timer::Greeting,
    Timer::Hello,
    Timer::Phase,
    Timer::Repeat,
    Timer::Quiet,
    Timer::Limit,
    Timer::Check,
    Timer::Beat,
];

#[derive(Debug, Clone)]
pub struct TimerTable {
    deadlines: [Instant; COUNT],
}

impl Default for TimerTable {
    fn default() -> Self {
        Self { deadlines: [Instant::FAR; COUNT] }
    }
}

impl TimerTable {
    pub fn set(&mut self, timer: Timer, at: Instant) {
        self.deadlines[timer as usize] = at;
    }

    pub fn cancel(&mut self, timer: Timer) {
        self.deadlines[timer as usize] = Instant::FAR;
    }

    /// When it is due; [`Instant::FAR`] if it is not set.
    #[must_use]
    pub fn at(&self, timer: Timer) -> Instant {
        self.deadlines[timer as usize]
    }

    #[must_use]
    pub fn deadline(&self, timer: Timer) -> Option<Instant> {
        Some(self.at(timer)).filter(|at| *at != Instant::FAR)
    }

    /// The timer that is due first, and when.
    fn first(&self) -> (Timer, Instant) {
        let mut first = (Timer::Answer, Instant::FAR);
        for (timer, at) in ALL.iter().zip(&self.deadlines) {
            if *at < first.1 {
                first = (*timer, *at);
            }
        }
        first
    }

    /// The earliest deadline.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        Some(self.first().1).filter(|at| *at != Instant::FAR)
    }

    /// Takes the timer that has been due for longest.
    pub fn take_due(&mut self, now: Instant) -> Option<Timer> {
        let (timer, at) = self.first();
        if at > now || at == Instant::FAR {
            return None;
        }
        self.cancel(timer);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lists_every_timer_at_its_own_place() {
        for (index, timer) in ALL.into_iter().enumerate() {
            assert_eq!(timer as usize, index);
        }
    }

    #[test]
    fn due_timers_come_in_order_and_cancelled_ones_never() {
        let mut table = TimerTable::default();
        assert_eq!(table.next(), None);
        table.set(Timer::Quiet, Instant(30));
        table.set(Timer::Beat, Instant(10));
        table.set(Timer::Phase, Instant(20));
        table.set(Timer::Repeat, Instant(5));
        table.cancel(Timer::Repeat);
        assert_eq!(table.take_due(Instant(9)), None);
        assert_eq!(table.take_due(Instant(25)), Some(Timer::Beat));
        assert_eq!(table.take_due(Instant(25)), Some(Timer::Phase));
        assert_eq!(table.take_due(Instant(25)), None);
        assert_eq!(table.next(), Some(Instant(30)));
    }
}
