//! Answers to the calls of others: each once while it may still be under way, those to a broadcast one
//! after another, and all of them in time or not at all.

use core::cmp::Ordering;

use crate::config::Durability;
use crate::effects::FailCause;
use crate::id::{NodeId, PerNode};
use crate::station::Turn;
use crate::time::{Duration, Instant};
use crate::timers::Timer;
use crate::wire::{Destination, Envelope, Message};

/// How many delayed answers a node keeps; one more is sent at once instead.
const DELAYED_ANSWERS_MAX: usize = 8;

/// A request that is being handled, or whose answer is still to come.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub from: NodeId,
    pub boot: u32,
    pub call: u32,
    /// It was sent to this node alone, or this node is among those whose answer is awaited.
    pub named: bool,
    /// The place of this node among those who are to answer.
    pub rank: usize,
    pub received: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Peer {
    answered_call: (u32, u32),
    /// In microseconds; wraps. A call is repeated for seconds, not for an hour.
    answered_at: u32,
}

#[derive(Debug, Clone, Copy)]
struct DelayedAnswer<const W: usize> {
    due: Instant,
    request: Request,
    message: Message<'static, W>,
}

/// The answers that a node has given, and those that it will give.
#[derive(Debug)]
pub(crate) struct Answers<const W: usize> {
    peers: PerNode<Peer, W>,
    delayed: heapless::Vec<DelayedAnswer<W>, DELAYED_ANSWERS_MAX>,
}

impl<const W: usize> Answers<W> {
    pub fn new() -> Self {
        Self {
            peers: const { PerNode::all(Peer { answered_call: (0, 0), answered_at: 0 }) },
            delayed: heapless::Vec::new(),
        }
    }
}

impl<const W: usize> Turn<W> {
    /// Answers a request that waits for an answer of this node; not twice within a round trip,
    /// because then the first answer may still be under way.
    pub fn answer(&mut self, request: &Request, message: Message<'static, W>) {
        self.answer_unless_within(self.node.config.timing.tm.times(2).0, request, message);
    }

    /// Answers however often it is asked: where silence counts as death, no answer is too many.
    pub fn answer_each(&mut self, request: &Request, message: Message<'static, W>) {
        self.answer_unless_within(0, request, message);
    }

    /// `hush`: in microseconds.
    fn answer_unless_within(&mut self, hush: u32, request: &Request, message: Message<'static, W>) {
        if !request.named {
            return;
        }
        let timing = &self.node.config.timing;
        let peer = &mut self.node.answers.peers[request.from];
        let call = (request.boot, request.call);
        let now = self.node.now.0 as u32;
        if peer.answered_call == call && now.wrapping_sub(peer.answered_at) < hush {
            let withheld = &mut self.node.counters.answers_withheld;
            *withheld = withheld.saturating_add(1);
            return;
        }
        peer.answered_call = call;
        peer.answered_at = now;
        let delay = timing.answer_spacing.times(request.rank as u32);
        let answer = DelayedAnswer { due: self.node.now + delay, request: *request, message };
        if delay == Duration::ZERO || self.node.answers.delayed.push(answer).is_err() {
            self.send_answer(request, message, Duration::ZERO);
        } else {
            self.arm_answers();
        }
    }

    /// How a request stands to the latest one of its sender that was answered: the same, newer, older.
    pub fn compare_with_answered(&self, request: &Request) -> Ordering {
        (request.boot, request.call).cmp(&self.node.answers.peers[request.from].answered_call)
    }

    /// The guard of Assumption 9 for what follows from a request: late is failed.
    pub fn in_time(&mut self, request: &Request, more: Duration) -> bool {
        let config = &self.node.config;
        // Under strict durability it leaves only after the save of this turn.
        let save_ahead = match config.durability {
            Durability::Strict => config.timing.ts,
            Durability::Group => Duration::ZERO,
        };
        let last = request.received + config.timing.tp + more;
        let in_time = self.node.now + save_ahead <= last;
        if in_time {
            self.out.must_leave_by(last);
        } else {
            self.fail(FailCause::Deadline);
        }
        in_time
    }

    /// Answers now, after a save; the answer had Ts more time.
    pub fn answer_after_save(&mut self, request: &Request, message: Message<'static, W>) {
        self.send_answer(request, message, self.node.config.timing.ts);
    }

    /// Sends the answers whose time has come.
    pub fn send_due_answers(&mut self) {
        while let Some(index) =
            self.node.answers.delayed.iter().position(|answer| answer.due <= self.node.now)
        {
            let answer = self.node.answers.delayed.swap_remove(index);
            self.send_answer(&answer.request, answer.message, Duration::ZERO);
        }
        self.arm_answers();
    }

    fn arm_answers(&mut self) {
        match self.node.answers.delayed.iter().map(|answer| answer.due).min() {
            Some(due) => self.node.timers.set(Timer::Answer, due),
            None => self.cancel(Timer::Answer),
        }
    }

    /// An answer leaves in time or not at all.
    fn send_answer(&mut self, request: &Request, message: Message<'static, W>, more: Duration) {
        if !self.in_time(request, more) {
            return;
        }
        if more == Duration::ZERO {
            self.node.handling.note(self.node.now.since(request.received));
        }
        let envelope = Envelope::Reply { requester_boot: request.boot };
        self.emit(Destination::Node(request.from), request.call, envelope, message);
    }
}
