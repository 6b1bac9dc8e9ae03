//! The simulated shell: steps a node and carries out its effects, in order.

use bellwether::effects::{Effect, FailCause, Note};
use bellwether::id::NodeId;
use bellwether::link::look_into;
use bellwether::node::Event;
use bellwether::state::{StateVector, Status};
use bellwether::wire::{Destination, Frame, Kind, Lap, Message};
use bellwether_scenario::{ResetCause, Status as TraceStatus, Target, What};

use crate::clock::Time;
use crate::machine::{LastRequest, Packet, Write};
use crate::world::World;

/// An effect that waits for a save.
#[derive(Debug)]
pub enum Deferred<const W: usize> {
    Send { to: Destination, kind: Kind, datagram: Vec<u8> },
    Other(Effect<'static, W>),
}

impl<const W: usize> World<W> {
    /// One step of a node, after the ticks that were due before it.
    pub(crate) fn step(&mut self, node: usize, event: Event<'_>) {
        if self.give_ticks(node) {
            self.step_once(node, self.now, event);
        }
    }

    /// The ticks that a board gives every Tp/4 while it runs; `false` if one came too late.
    pub(crate) fn give_ticks(&mut self, node: usize) -> bool {
        let quarter = (self.timing().tp.us() / 4).max(1);
        while self.machines[node].next_tick <= self.now {
            let tick = self.machines[node].next_tick;
            self.machines[node].next_tick += quarter;
            if !self.step_once(node, tick, Event::Tick) {
                return false;
            }
        }
        true
    }

    /// `false` if the node has failed in it.
    fn step_once(&mut self, node: usize, at: Time, event: Event<'_>) -> bool {
        let Some(mut effects) = self.effects.take() else { return false };
        let machine = &mut self.machines[node];
        let life = machine.life;
        let is_tick = matches!(event, Event::Tick);
        if let Some(running) = &mut machine.node {
            let asked = running.step(machine.clock.local(at), event);
            if is_tick && asked.is_empty() {
                self.effects = Some(effects);
                return true;
            }
            // To carry them out is to change the world that the node is part of.
            effects.as_mut().clone_from(asked);
            if !effects.is_empty()
                && let Some(choices) = &mut self.choices
            {
                choices.act(self.now, node);
            }
            let lost = effects.overflowed();
            self.carry_out(node, effects.iter());
            if lost > 0 {
                let what = format!("node {} lost {lost} effects", node + 1);
                self.checker.violation(self.now, "a step had too many effects", what);
            }
        }
        self.effects = Some(effects);
        self.observe_and_trace(node);
        self.machines[node].life == life
    }

    fn carry_out<'e>(&mut self, node: usize, effects: impl Iterator<Item = Effect<'e, W>>) {
        let mut waiting = false;
        for effect in effects {
            if waiting {
                self.machines[node].deferred.push(match effect {
                    Effect::Send { to, kind, datagram } => {
                        Deferred::Send { to, kind, datagram: datagram.to_vec() }
                    }
                    Effect::SaveEpoch(epoch) => Deferred::Other(Effect::SaveEpoch(epoch)),
                    Effect::SaveState { ticket, wait } => {
                        Deferred::Other(Effect::SaveState { ticket, wait })
                    }
                    Effect::StopApplication => Deferred::Other(Effect::StopApplication),
                    Effect::Reorganize { group, members } => {
                        Deferred::Other(Effect::Reorganize { group, members })
                    }
                    Effect::StartApplication => Deferred::Other(Effect::StartApplication),
                    Effect::FailSelf(cause) => Deferred::Other(Effect::FailSelf(cause)),
                    Effect::Note(note) => Deferred::Other(Effect::Note(note)),
                    Effect::Election(group) => Deferred::Other(Effect::Election(group)),
                });
                continue;
            }
            waiting = self.carry_out_one(node, effect);
        }
    }

    /// Goes on where a save with `wait` had stopped.
    pub(crate) fn carry_out_deferred(&mut self, node: usize) {
        for effect in std::mem::take(&mut self.machines[node].deferred) {
            match &effect {
                Deferred::Send { to, kind, datagram } => {
                    self.carry_out_one(node, Effect::Send { to: *to, kind: *kind, datagram });
                }
                Deferred::Other(effect) => {
                    self.carry_out_one(node, *effect);
                }
            }
        }
        self.observe_and_trace(node);
    }

    /// `true` if what follows has to wait.
    fn carry_out_one(&mut self, node: usize, effect: Effect<'_, W>) -> bool {
        match effect {
            Effect::Send { to, kind, datagram } => self.send(node, to, kind, datagram),
            Effect::SaveEpoch(epoch) => self.begin_write(node, Write::Epoch(epoch)),
            Effect::SaveState { ticket, wait } => {
                let record = self.record_of(node);
                self.machines[node].saves += 1;
                self.tally.saves += 1;
                self.machines[node].blocked = wait;
                self.begin_write(node, Write::State { ticket, wait, record });
                return wait;
            }
            Effect::StopApplication => {
                self.machines[node].task_runs = false;
                self.machines[node].task.stop();
            }
            Effect::Reorganize { group, members } => {
                self.schedule_reorganization(node, group, members);
            }
            Effect::StartApplication => self.start_application(node),
            Effect::FailSelf(cause) => self.reset(
                node,
                match cause {
                    FailCause::Deadline => ResetCause::Deadline,
                    FailCause::NumbersExhausted | FailCause::FollowedTwin(_) => ResetCause::Request,
                },
            ),
            Effect::Note(note) => self.note(node, note),
            Effect::Election(_) => self.tally.elections += 1,
        }
        false
    }

    fn start_application(&mut self, node: usize) {
        let machine = &mut self.machines[node];
        let Some(running) = &machine.node else { return };
        let state = running.state_vector();
        let (status, definition) = (state.status, state.definition.clone());
        let twice = machine.task_runs;
        match definition {
            Some(definition) if status == Status::Normal && !twice => {
                machine.task_runs = true;
                machine.task.start(crate::settings::node_id(node), &definition);
            }
            _ => {
                let what = format!("node {} in {status:?}, running already: {twice}", node + 1);
                self.checker.violation(self.now, "the task was started out of turn", what);
            }
        }
    }

    fn record_of(&self, node: usize) -> Box<[u8]> {
        let mut room = [0; 1024];
        let state = self.machines[node].node.as_ref().map(|running| running.state_vector());
        let len = state.and_then(|state| StateVector::encode(state, &mut room)).unwrap_or(0);
        room[..len].into()
    }

    fn note(&mut self, _node: usize, note: Note) {
        match note {
            Note::Suspected(_) | Note::Foreign(_) | Note::ProvokedBy(_) => {
                if let Note::Suspected(id) = note {
                    let alive = self.is_running(usize::from(id.get()) - 1);
                    self.tally.suspicions += 1;
                    self.tally.suspicions_of_live += u64::from(alive);
                }
                if self.tally.first_suspicion.is_none() {
                    self.tally.first_suspicion = Some(self.now);
                    self.tally.datagrams_at_suspicion = self.tally.datagrams;
                    self.tally.bytes_at_suspicion = self.tally.bytes;
                }
            }
            Note::SuspicionWrong(_) => self.tally.suspicions_wrong += 1,
            _ => {}
        }
    }

    fn send(&mut self, node: usize, to: Destination, kind: Kind, datagram: &[u8]) {
        let request = self.check_send(node, kind, datagram);
        let (target, index) = match to {
            Destination::All => (Target::All, None),
            Destination::Node(id) => (Target::Node(id.get()), Some(usize::from(id.get()) - 1)),
        };
        if self.settings.trace {
            let (message, bytes) = (kind.name().into(), datagram.len());
            self.record(node, What::Send { to: target, message, bytes });
        }
        self.transmit(
            node,
            index,
            Packet { id: self.tally.datagrams, bytes: datagram.into(), request },
        );
    }

    /// Checks what a node sends; a request is remembered, so that the time of its answer can be
    /// checked too.
    fn check_send(&mut self, node: usize, kind: Kind, datagram: &[u8]) -> Option<LastRequest> {
        let now = self.now;
        let machine = &self.machines[node];
        let running = machine.node.as_ref()?;
        if machine.epoch.acknowledged != running.boot_epoch() {
            let what = format!("node {}: {kind:?} in boot {}", node + 1, running.boot_epoch());
            self.checker.violation(now, "a datagram before its boot epoch was durable", what);
        }
        if matches!(kind, Kind::Beat | Kind::Hello) {
            return None;
        }
        let mut bytes = datagram.to_vec();
        let Some((frame, message)) = look_into(&machine.keys, &mut bytes)
            .and_then(|opened| Ok((opened.frame, Message::<W>::parse(&opened.frame)?.1)))
            .ok()
        else {
            let what = format!("node {}: {kind:?}", node + 1);
            self.checker.violation(now, "a datagram that cannot be read", what);
            return None;
        };
        // An acknowledged hop of the Ready lap is an answer to Ready, too.
        let hop_of_ready = kind == Kind::HopAck
            && matches!(frame.destination, Destination::Node(to)
                if machine.requests[usize::from(to.get()) - 1].ready.is_some());
        let accepted = Message::ReadyAck { accepted: true };
        let joined =
            hop_of_ready || message == accepted || message == Message::ReadyAns { ok: true };
        if joined && let Destination::Node(to) = frame.destination {
            let request = &machine.requests[usize::from(to.get()) - 1];
            let durable =
                request.ready.is_some_and(|group| machine.durable_groups.contains(&group));
            if request.call == frame.call && !durable {
                let what = format!("node {}: {kind:?} for {:?}", node + 1, request.ready);
                self.checker.violation(now, "an answer to Ready before its save", what);
            }
        }
        if let Message::Token(token) = &message
            && token.lap == Lap::Ready
            && !machine.durable_groups.contains(&token.run)
            && running.state_vector().coordinator.is_none_or(|id| id != frame.source)
        {
            let what = format!("node {}: {:?}", node + 1, token.run);
            self.checker.violation(now, "Ready passed on before its save", what);
        }
        if kind.is_reply() {
            self.check_answer_time(node, &frame, joined);
            if let (Kind::HopAck, Destination::Node(to)) = (kind, frame.destination) {
                let acknowledged = &mut self.machines[node].acknowledged[usize::from(to.get()) - 1];
                let before = std::mem::replace(acknowledged, frame.call);
                self.tally.hops_repeated += u64::from(before == frame.call);
            }
            return None;
        }
        let (source, boot, call) = (frame.source.get(), frame.boot, frame.call);
        let known = self.checker.check_call(now, (source, boot, call), content_digest(&message));
        let hop = matches!(kind, Kind::Elect | Kind::Coord | Kind::RingReady);
        self.tally.hops_repeated += u64::from(known && hop);
        let ready = match message {
            Message::Ready { group, .. } => Some(group),
            Message::Token(token) if token.lap == Lap::Ready => Some(token.run),
            _ => None,
        };
        Some(LastRequest { source, boot, call, arrived: now, ready })
    }

    fn check_answer_time(&mut self, node: usize, frame: &Frame<'_>, saved: bool) {
        let Destination::Node(to) = frame.destination else { return };
        let machine = &self.machines[node];
        let LastRequest { call, arrived, .. } = machine.requests[usize::from(to.get()) - 1];
        if call != frame.call {
            return;
        }
        let timing = self.timing();
        let most = timing.tp.us() + if saved { timing.ts.us() } else { 0 };
        // The node's clock may be slow by rho.
        let most = most + most * Time::from(timing.drift_ppm) / 1_000_000 + 1;
        if self.now > arrived + most {
            let what =
                format!("node {}: {:?} after {} us", node + 1, frame.kind, self.now - arrived);
            self.checker.violation(self.now, "an answer after Tp", what);
        }
    }

    fn observe_and_trace(&mut self, node: usize) {
        self.observe(node);
        if self.settings.trace {
            self.trace_state(node);
        }
    }

    fn trace_state(&mut self, node: usize) {
        let Some(state) = self.summary(node) else { return };
        if self.machines[node].traced == Some(state) {
            return;
        }
        self.machines[node].traced = Some(state);
        let what = What::State {
            status: match state.status {
                Status::Down => TraceStatus::Down,
                Status::Election => TraceStatus::Election,
                Status::Reorganization => TraceStatus::Reorganization,
                Status::Normal => TraceStatus::Normal,
            },
            coordinator: state.coordinator.map(NodeId::get),
            group: state.group.map(|group| (group.coordinator.get(), group.number)),
            up: state.up.iter().map(NodeId::get).collect(),
            definition: state.definition_digest,
        };
        self.record(node, what);
    }
}

/// What a request says, apart from whom it still awaits and whether it still binds.
fn content_digest<const W: usize>(message: &Message<'_, W>) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = rustc_hash::FxHasher::default();
    message.kind().hash(&mut hasher);
    match message {
        Message::AreYouThere { group, .. } | Message::Leaving { group } => group.hash(&mut hasher),
        Message::AreYouNormal { group }
        | Message::Halt { group, .. }
        | Message::NewCoordinator { group }
        | Message::AreYouCoordinator { group, .. }
        | Message::Invitation { group, .. }
        | Message::Accept { group }
        | Message::HaveYouHeard { group, .. }
        | Message::Beat { group, .. } => group.hash(&mut hasher),
        Message::Ready { group, up, definition } => {
            (group, up, definition).hash(&mut hasher);
        }
        Message::Token(token) => {
            (
                (token.run, token.round, token.list),
                (token.suspects, token.incumbent, token.definition),
            )
                .hash(&mut hasher);
        }
        _ => {}
    }
    hasher.finish()
}
