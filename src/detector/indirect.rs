//! Tells a dead node from a dead link: before a node is suspected, a few other members are asked
//! whether they have heard of it (`HaveYouHeard`, answered by `Heard`).
//!
//! A Beat of this very group, heard by anybody, shows that the coordinator is alive and still has
//! every member in Up: it cannot drop one without another group number. So a member that cannot hear
//! its coordinator is content as long as others vouch for it.
//!
//! Members do not hear each other in quiet times. But who misses its coordinator asks by broadcast,
//! so that all others know that it is there, and who hears that it is missed itself says so to all.
//! When the coordinator asks for a member that Check did not reach, they vouch for it; and those who know nothing
//! of it pass the question on to it, because it may not hear the coordinator, and not have noticed yet.
//!
//! A link that is dead between two members, or between a member and the coordinator, in one
//! direction or in both, therefore causes no election. (A new group cannot form over it.)

use super::{FailureDetector, Watch};
use crate::answers::Request;
use crate::config::Config;
use crate::effects::FailCause;
use crate::id::{GroupId, NodeId, NodeSet};
use crate::phase::Phase;
use crate::state::Status;
use crate::station::Turn;
use crate::time::{Duration, Instant};
use crate::timers::Timer;
use crate::wire::{Destination, Envelope, Kind, Message};

/// How many others are asked.
const ASKED_MAX: usize = 3;

#[derive(Debug, Clone, Copy)]
pub struct Indirect<const W: usize> {
    /// The coordinator, and when it was last heard.
    heard: Option<(NodeId, Instant)>,
    /// The members that spoke up since then.
    spoke: NodeSet<W>,
    spoke_since: Instant,
    /// Whom the inquiry that is under way is about: those for whom nobody has vouched yet.
    about: NodeSet<W>,
    /// The member that a coordinator asked about last.
    asked_about: Option<NodeId>,
}

impl<const W: usize> Default for Indirect<W> {
    fn default() -> Self {
        let nobody = NodeSet::EMPTY;
        Self {
            heard: None,
            spoke: nobody,
            spoke_since: Instant(0),
            about: nobody,
            asked_about: None,
        }
    }
}

impl<const W: usize> FailureDetector<W> for Indirect<W> {
    fn heard(&mut self, now: Instant, by: (NodeId, GroupId), _config: &Config<W>) {
        self.heard = Some((by.0, now));
    }

    fn patience(&self, config: &Config<W>) -> Duration {
        config.timing.quiet
    }
}

impl<const W: usize> Indirect<W> {
    /// Whoever misses its coordinator speaks again before this is over.
    pub(super) fn memory(config: &Config<W>) -> Duration {
        let timing = &config.timing;
        timing.quiet.times(2) + timing.t + timing.stagger.times(config.members().len() as u32)
    }

    fn note_spoke(&mut self, from: NodeId, now: Instant, config: &Config<W>) {
        if now.since(self.spoke_since) > Self::memory(config) {
            self.spoke = NodeSet::EMPTY;
            self.spoke_since = now;
        }
        self.spoke.insert(from);
    }

    /// Who has lately been heard by this node.
    fn heard_of(&self, coordinator: NodeId, now: Instant, config: &Config<W>) -> NodeSet<W> {
        let mut heard = NodeSet::EMPTY;
        if now.since(self.spoke_since) <= Self::memory(config).times(2) {
            heard = self.spoke;
        }
        heard.remove(coordinator);
        // A period of Beats and the way of one: the coordinator was alive just now.
        let fresh = config.timing.beat + config.timing.tm;
        if self.heard.is_some_and(|(of, at)| of == coordinator && now.since(at) <= fresh) {
            heard.insert(coordinator);
        }
        heard
    }
}

impl<const W: usize> Turn<W> {
    /// Which of these silent members others are asked about, if they are. Each in its turn: one for whom
    /// they vouch every time must not hide another that is dead.
    pub fn next_to_ask_about(&mut self, silent: &NodeSet<W>) -> Option<NodeId> {
        let Watch::Indirect(indirect) = &mut self.node.watch else { return None };
        let next = match indirect.asked_about {
            Some(last) => silent.next_after(last),
            None => silent.iter().next(),
        };
        indirect.asked_about = next;
        next
    }

    /// The members that have lately been heard asking about their coordinator, by the coordinator itself.
    pub fn overheard(&self) -> NodeSet<W> {
        let node = &self.node;
        match &node.watch {
            Watch::Indirect(indirect) => indirect.heard_of(node.id, node.now, &node.config),
            _ => NodeSet::EMPTY,
        }
    }

    /// Opens a round that asks some other members about `about`; `false` if there is nobody to ask,
    /// or another detector at work.
    pub fn inquire(&mut self, about: NodeSet<W>) -> bool {
        // A coordinator waits until the member has heard the question and told the others.
        let rounds = if self.node.is_coordinator() { 2 } else { 1 };
        let wait = self.node.config.timing.t.times(rounds);
        let others = self.node.state.up.difference(&about);
        let Watch::Indirect(indirect) = &mut self.node.watch else { return false };
        if about.is_empty() || others.is_empty() {
            return false;
        }
        indirect.about = about;
        self.cancel(Timer::Quiet);
        // Others each time, so that nobody depends on the same few links.
        let skip = (self.node.call.number() as usize).checked_rem(others.len());
        let mut next = others.iter().nth(skip.unwrap_or(0));
        let mut asked = NodeSet::EMPTY;
        for _ in 0..ASKED_MAX {
            if let Some(member) = next {
                asked.insert(member);
                next = others.next_after(member);
            }
        }
        self.node.phase = Phase::Inquire;
        self.open_round(Kind::Heard, asked, wait);
        self.send_inquiry();
        self.arm_early_repeat();
        true
    }

    /// The question of the open round, to those who have not answered it.
    pub fn send_inquiry(&mut self) {
        let about = self.missed();
        if let Some(group) = self.node.state.group {
            self.broadcast_round(Message::HaveYouHeard { group, about });
        }
    }

    /// Those for whom nobody has vouched in the inquiry that is under way.
    #[inline(never)] // copied five times otherwise
    pub fn missed(&self) -> NodeSet<W> {
        match &self.node.watch {
            Watch::Indirect(indirect) => indirect.about,
            _ => NodeSet::EMPTY,
        }
    }

    /// Somebody has heard of these; `true` if nobody is missed any more, or all have answered.
    pub fn vouched(&mut self, heard: &NodeSet<W>) -> bool {
        if let Watch::Indirect(indirect) = &mut self.node.watch {
            indirect.about = indirect.about.difference(heard);
        }
        self.missed().is_empty() || self.node.call.awaited().is_empty()
    }

    fn clear_of_suspicion(&mut self, member: NodeId) {
        if let Watch::Indirect(indirect) = &mut self.node.watch {
            indirect.about.remove(member);
        }
    }

    /// Asks a member whom the coordinator misses in its stead. The answer goes to all.
    fn pass_question_on(&mut self, group: GroupId, about: &NodeSet<W>) {
        let Some(member) = about.iter().next() else { return };
        let Some(call) = self.node.call.take_number() else {
            self.fail(FailCause::NumbersExhausted);
            return;
        };
        let question = Message::HaveYouHeard { group, about: *about };
        self.emit(Destination::Node(member), call, Envelope::Request, question);
    }

    /// A member of this group asks about others, or only says that it is there; `true` if it is on
    /// the case of the coordinator, and this node can leave that to it.
    pub fn have_you_heard(
        &mut self,
        request: &Request,
        group: GroupId,
        about: &NodeSet<W>,
    ) -> bool {
        let me = self.me();
        let node = &mut self.node;
        let (Watch::Indirect(indirect), Some(coordinator)) =
            (&mut node.watch, node.state.coordinator)
        else {
            return false;
        };
        if !group.is(&node.state.group) || node.state.status != Status::Normal {
            return false;
        }
        indirect.note_spoke(request.from, node.now, &node.config);
        let known = indirect.heard_of(coordinator, node.now, &node.config);
        let mut heard = known.intersection(about);
        let missed = about.contains(me);
        if missed {
            heard.insert(me);
        }
        // Who knows nothing of a member stays silent: it may hear of it before the question is
        // repeated. Who does not hear the coordinator knows enough.
        let knows = about.contains(coordinator) || !heard.is_empty();
        if !knows && request.named && request.from == coordinator {
            self.pass_question_on(group, about);
        }
        if knows {
            let named = request.named || missed;
            self.answer_each(&Request { named, ..*request }, Message::Heard { heard });
        }
        if coordinator == me {
            // It need not be asked about any more.
            self.clear_of_suspicion(request.from);
            return false;
        }
        if missed {
            self.announce(Message::HaveYouHeard { group, about: NodeSet::EMPTY });
        }
        about.contains(coordinator) && self.may_take_over(request.from)
    }
}
