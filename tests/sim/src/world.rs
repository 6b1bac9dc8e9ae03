//! The world: nodes, wire and time.
//!
//! Events are taken from one queue in order of time, then of their making; every random choice comes
//! from one generator. So the same seed gives the same run, bit for bit.

use std::rc::Rc;
use std::sync::Arc;

use bellwether::application::Application;
use bellwether::config::Timing;
use bellwether::effects::Effects;
use bellwether::id::{GroupId, NodeId, NodeSet};
use bellwether::key::Keys;
use bellwether::node::{Event, Node};
use bellwether::wire::Reject;
use bellwether_scenario::{Action, NodeEvent, ResetCause, What};

use crate::agenda::Agenda;
use crate::attacker::Attacker;
use crate::checker::Checker;
use crate::choices::Choices;
use crate::clock::{Clock, Time};
use crate::flash::Flash;
use crate::machine::{LastRequest, Machine, Packet, Received, SimTask};
use crate::network::Network;
use crate::settings::{Settings, Tally, node_id};

/// What happens in the world.
#[derive(Debug)]
pub(crate) enum Happening {
    Arrive {
        to: u8,
        packet: Rc<Packet>,
    },
    Wake {
        node: u8,
    },
    /// The attacker puts a frame in.
    Attack,
    /// The firmware of a powered board starts.
    Start {
        node: u8,
        life: u32,
    },
    WriteDone {
        node: u8,
        life: u32,
    },
    WriteFailed {
        node: u8,
        life: u32,
    },
    /// The power of a board is cut, because it is writing to flash.
    Cut {
        node: u8,
        life: u32,
    },
    PowerOn {
        node: u8,
    },
    /// The shell looks whether there is room to be made in flash.
    Idle {
        node: u8,
        life: u32,
    },
    Reorganized {
        node: u8,
        life: u32,
        group: GroupId,
        members: [u64; 4],
    },
}

#[derive(Debug)]
pub struct World<const W: usize> {
    pub settings: Settings,
    timing: Timing,
    pub now: Time,
    pub(crate) rng: fastrand::Rng,
    agenda: Agenda<Happening>,
    pub network: Network,
    pub(crate) attacker: Option<Attacker>,
    /// What differs from the usual in this run, if somebody chooses.
    pub(crate) choices: Option<Choices>,
    pub machines: Vec<Machine<W>>,
    pub checker: Checker,
    pub tally: Tally,
    /// The probability that the power is cut during a write to flash.
    pub cut_writes: f64,
    /// Collected while `settings.trace`; the caller drains it.
    pub trace: Vec<NodeEvent>,
    pub(crate) effects: Option<Box<Effects<W>>>,
}

impl<const W: usize> World<W> {
    /// All nodes without power, with a task that only tells groups apart.
    pub fn new(settings: Settings) -> Self {
        Self::with_tasks(settings, |_| Box::new(SimTask::default()))
    }

    /// All nodes without power; `task` makes the task of each node.
    pub fn with_tasks(
        settings: Settings,
        task: impl Fn(NodeId) -> Box<dyn Application<W>>,
    ) -> Self {
        let mut rng = fastrand::Rng::with_seed(settings.seed);
        let nodes = usize::from(settings.nodes);
        let (low, high) = settings.base_delay_us;
        let drift = settings.drift_ppm;
        let machines = (0..nodes)
            .map(|node| {
                let clock = Clock::new(rng.u32(0..10_000_000), rng.i32(-drift..=drift));
                let flash = Flash::new(settings.flash, rng.u64(..));
                Machine::new(clock, settings.keys.clone(), nodes, flash, task(node_id(node)))
            })
            .collect();
        let keeps_order = !settings.overtakes && !settings.errata.needs_the_clear();
        let mut network = Network::new(nodes, low..=high, keeps_order);
        if let Some(measured) = &settings.measured {
            network.replay(Arc::clone(measured));
        }
        Self {
            timing: settings.node_timing(),
            now: 0,
            agenda: Agenda::new(),
            network,
            attacker: None,
            choices: None,
            machines,
            checker: Checker::new(nodes, settings.promises_assertion_1(), settings.grace_us())
                .with_observers(&settings.observers),
            tally: Tally::default(),
            cut_writes: 0.0,
            trace: Vec::new(),
            effects: Some(Box::default()),
            rng,
            settings,
        }
    }

    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    pub(crate) fn schedule(&mut self, at: Time, happening: Happening) {
        self.agenda.add(at, happening);
    }

    /// Lets time pass until `end`, or until `stop` says so after an event.
    pub fn run_until(&mut self, end: Time, mut stop: impl FnMut(&Self) -> bool) {
        while let Some((at, happening)) = self.agenda.take(end) {
            self.now = at;
            self.happen(happening);
            self.strike();
            if stop(self) {
                return;
            }
        }
        self.now = end;
    }

    /// Cuts the power of a node that was chosen for it.
    fn strike(&mut self) {
        let struck = self.choices.as_mut().and_then(|choices| choices.struck.take());
        if let Some((node, back_at_once)) = struck {
            self.kill(node);
            if back_at_once {
                self.power_on(node);
            }
        }
    }

    pub fn run_for(&mut self, span: Time) {
        self.run_until(self.now + span, |_| false);
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrive { to, packet } => self.arrive(to.into(), packet),
            Happening::Attack => self.attacked(),
            Happening::Wake { node } => {
                let machine = &mut self.machines[usize::from(node)];
                if machine.wake_at == self.now {
                    machine.wake_at = Time::MAX;
                    self.run_machine(node.into());
                }
            }
            Happening::Start { node, life } => {
                if self.machines[usize::from(node)].life == life {
                    self.start(node.into());
                }
            }
            Happening::WriteDone { node, life } => {
                if self.machines[usize::from(node)].life == life {
                    self.write_done(node.into());
                }
            }
            Happening::Cut { node, life } => {
                if self.machines[usize::from(node)].life == life {
                    self.kill(node.into());
                    let back = self.now + self.rng.u64(0..20 * self.timing.t.us());
                    self.schedule(back, Happening::PowerOn { node });
                }
            }
            Happening::WriteFailed { node, life } => {
                if self.machines[usize::from(node)].life == life {
                    self.write_failed(node.into());
                }
            }
            Happening::PowerOn { node } => self.power_on(node.into()),
            Happening::Idle { node, life } => {
                if self.machines[usize::from(node)].life == life {
                    self.idle(node.into());
                }
            }
            Happening::Reorganized { node, life, group, members } => {
                if self.machines[usize::from(node)].life == life {
                    self.reorganized(node.into(), group, members);
                }
            }
        }
    }

    // --- what is done to the nodes ----------------------------------------------------------

    /// Carries out an action of a scenario or of a random run.
    pub fn act(&mut self, action: &Action) {
        let index = |id: &u8| usize::from(*id) - 1;
        match action {
            Action::Kill { nodes } => nodes.iter().map(index).for_each(|node| self.kill(node)),
            Action::Boot { nodes } => nodes.iter().map(index).for_each(|node| self.power_on(node)),
            Action::Pause { nodes } => nodes.iter().map(index).for_each(|node| self.pause(node)),
            Action::Resume { nodes } => nodes.iter().map(index).for_each(|node| self.resume(node)),
            Action::Reset { nodes } => {
                nodes.iter().map(index).for_each(|node| self.pull_reset(node));
            }
            Action::Leave { nodes } => nodes.iter().map(index).for_each(|node| self.leave(node)),
            Action::Partition { sets } => {
                let sets: Vec<Vec<usize>> =
                    sets.iter().map(|set| set.iter().map(index).collect()).collect();
                self.network.partition(&sets);
            }
            Action::Link { from, to, quality } => {
                for from in from.iter().map(index) {
                    for to in to.iter().map(index).filter(|to| *to != from) {
                        self.network.set_link(from, to, *quality);
                    }
                }
            }
            Action::Unplug { nodes } => {
                nodes.iter().map(index).for_each(|node| self.network.set_plugged(node, false));
            }
            Action::Plug { nodes } => {
                nodes.iter().map(index).for_each(|node| self.network.set_plugged(node, true));
            }
            Action::Heal => self.network.heal(),
        }
    }

    pub fn power_on(&mut self, node: usize) {
        let machine = &mut self.machines[node];
        if machine.powered {
            return;
        }
        machine.powered = true;
        machine.paused = false;
        let life = machine.life;
        self.schedule(
            self.now + self.settings.boot_us,
            Happening::Start { node: node as u8, life },
        );
    }

    pub fn kill(&mut self, node: usize) {
        let machine = &mut self.machines[node];
        if !machine.powered {
            return;
        }
        machine.powered = false;
        machine.paused = false;
        self.tally.writes_cut += u64::from(machine.lose_ram(self.now));
        self.record(node, What::Kill);
        self.observe(node);
    }

    /// The reset pin: the boot that follows looks like one after a power cut.
    pub(crate) fn pull_reset(&mut self, node: usize) {
        if self.machines[node].powered {
            self.machines[node].paused = false;
            self.reset(node, ResetCause::Power);
            self.observe(node);
        }
    }

    /// Gives a board other keys, in its flash and, if it runs, in its memory.
    pub fn set_keys(&mut self, node: usize, keys: &Keys) {
        let machine = &mut self.machines[node];
        machine.keys = keys.clone();
        if let Some(running) = &mut machine.node {
            running.set_keys(keys.clone());
        }
    }

    /// The node is asked to leave the flock.
    pub fn leave(&mut self, node: usize) {
        if self.is_running(node) {
            self.machines[node].leaves = true;
            self.run_machine(node);
        }
    }

    pub fn pause(&mut self, node: usize) {
        self.give_ticks(node);
        self.machines[node].paused = true;
        self.observe(node);
    }

    /// The node goes on where it was. What it first learns is how late it is.
    pub fn resume(&mut self, node: usize) {
        let machine = &mut self.machines[node];
        if !machine.paused {
            return;
        }
        machine.paused = false;
        machine.next_tick = machine.next_tick.max(self.now);
        self.step(node, Event::Tick);
        self.observe(node);
        self.run_machine(node);
    }

    fn start(&mut self, node: usize) {
        let machine = &mut self.machines[node];
        // As random as it need be: another one for each board and boot.
        let instance = machine.life << 8 | node as u32;
        let configured = self
            .settings
            .configuration(node)
            .and_then(|config| Node::new(config, machine.keys.clone(), instance));
        match configured {
            Ok(started) => machine.node = Some(started),
            Err(error) => {
                let what = format!("node {}: {error}", node + 1);
                self.checker.violation(self.now, "a configuration was refused", what);
                return;
            }
        }
        machine.next_tick = self.now;
        machine.busy_until = self.now;
        machine.woke_at = self.now;
        let stored_epoch = self.read_flash(node);
        self.record(node, What::Boot);
        self.step(node, Event::Boot { stored_epoch });
        self.run_machine(node);
    }

    /// The node reset itself.
    pub(crate) fn reset(&mut self, node: usize, cause: ResetCause) {
        let machine = &mut self.machines[node];
        *machine.resets.entry(cause).or_default() += 1;
        self.tally.writes_cut += u64::from(machine.lose_ram(self.now));
        let life = machine.life;
        self.tally.resets += 1;
        self.record(node, What::Reset { cause });
        self.schedule(
            self.now + self.settings.boot_us,
            Happening::Start { node: node as u8, life },
        );
    }

    // --- the processor ----------------------------------------------------------------------

    pub(crate) fn wake(&mut self, node: usize, at: Time) {
        let machine = &mut self.machines[node];
        if at < machine.wake_at {
            machine.wake_at = at;
            self.schedule(at, Happening::Wake { node: node as u8 });
        }
    }

    /// Does what is due at a node: timers first, then datagrams in order of arrival.
    pub(crate) fn run_machine(&mut self, node: usize) {
        loop {
            let machine = &mut self.machines[node];
            if machine.paused || machine.blocked {
                return; // whoever ends that calls again
            }
            let Some(running) = &machine.node else { return };
            if std::mem::take(&mut machine.leaves) {
                self.step(node, Event::StepDown);
                continue;
            }
            let deadline = running.next_deadline();
            if machine.busy_until > self.now {
                if deadline.is_some() || !machine.queue.is_empty() {
                    let until = machine.busy_until;
                    self.wake(node, until);
                }
                return;
            }
            if deadline.is_some_and(|deadline| deadline <= machine.clock.local(self.now)) {
                self.step(node, Event::Timer);
            } else if let Some(received) = machine.queue.pop_front() {
                self.handle(node, &received);
            } else {
                if let Some(deadline) = deadline {
                    let at = machine.clock.global(deadline);
                    self.wake(node, at);
                }
                return;
            }
        }
    }

    fn handle(&mut self, node: usize, received: &Received) {
        if let Some(request) = received.packet.request {
            let last = &mut self.machines[node].requests[usize::from(request.source) - 1];
            *last = LastRequest { arrived: received.arrived, ..request };
        }
        let machine = &mut self.machines[node];
        if self.attacker.is_some() {
            machine.handled.insert(received.packet.id);
        }
        machine.busy_until = self.now + self.settings.handling_us;
        let arrived = machine.clock.local(received.arrived);
        let mut bytes = received.packet.bytes.to_vec();
        let refused = |world: &Self| {
            let node = world.machines[node].node.as_ref();
            node.map_or(0, |node| node.counters().rejected(Reject::Budget))
        };
        let before = refused(self);
        self.step(node, Event::Datagram { received: arrived, bytes: &mut bytes });
        if refused(self) > before {
            let what = format!("node {}: {:?}", node + 1, received.packet.request);
            self.checker.violation(self.now, "an honest request was over the budget", what);
        }
    }

    fn reorganized(&mut self, node: usize, group: GroupId, members: [u64; 4]) {
        let machine = &mut self.machines[node];
        if machine.paused {
            // Computed, but handed over only when the node runs again.
            let life = machine.life;
            let again = Happening::Reorganized { node: node as u8, life, group, members };
            self.schedule(self.now + 100, again);
            return;
        }
        let members: NodeSet<W> = (0..255)
            .filter(|bit| members[bit / 64] & (1 << (bit % 64)) != 0)
            .map(node_id)
            .collect();
        let definition = machine.task.reorganize(group, &members);
        self.step(node, Event::Reorganized { group, definition: definition.as_bytes() });
        self.run_machine(node);
    }

    pub(crate) fn schedule_reorganization(
        &mut self,
        node: usize,
        group: GroupId,
        members: NodeSet<W>,
    ) {
        let mut bits = [0u64; 4];
        for member in members.iter() {
            let bit = usize::from(member.get()) - 1;
            bits[bit / 64] |= 1 << (bit % 64);
        }
        let (low, high) = self.settings.reorganize_us;
        let at = self.now + self.rng.u64(low..=high);
        let life = self.machines[node].life;
        self.schedule(at, Happening::Reorganized { node: node as u8, life, group, members: bits });
    }
}
