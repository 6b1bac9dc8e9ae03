//! A simulated board: what surrounds a node.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use bellwether::application::Application;
use bellwether::effects::Ticket;
use bellwether::id::{GroupId, NodeId, NodeSet};
use bellwether::key::Keys;
use bellwether::node::Node;
use bellwether::state::{Definition, StateVector, Summary};
use bellwether_scenario::ResetCause;
use rustc_hash::FxHashSet;

use crate::clock::{Clock, Time};
use crate::flash::Flash;
use crate::shell::Deferred;

/// What a cell must hold, as far as that is known from outside.
#[derive(Debug, Default)]
pub struct Known<T> {
    /// The last value whose save was acknowledged.
    pub acknowledged: T,
    /// Values whose save was cut since: one of them may be there instead.
    pub perhaps: Vec<T>,
}

impl<T: PartialEq> Known<T> {
    fn acknowledge(&mut self, value: T) {
        self.acknowledged = value;
        self.perhaps.clear();
    }

    /// Whether a boot may find this.
    pub fn allows(&self, found: &T) -> bool {
        self.acknowledged == *found || self.perhaps.contains(found)
    }
}

/// A write that is under way.
#[derive(Debug, Clone)]
pub enum Write {
    Epoch(u32),
    State { ticket: Ticket, wait: bool, record: Box<[u8]> },
}

/// A datagram on the wire.
#[derive(Debug)]
pub struct Packet {
    /// No two datagrams have the same.
    pub id: u64,
    pub bytes: Box<[u8]>,
    /// What the simulator knows of it, if it is a request.
    pub request: Option<LastRequest>,
}

/// A frame in the receive queue.
#[derive(Debug, Clone)]
pub struct Received {
    pub arrived: Time,
    pub packet: Rc<Packet>,
}

/// The latest request of a peer, to check how long its answer took.
#[derive(Debug, Clone, Copy, Default)]
pub struct LastRequest {
    pub source: u8,
    pub boot: u32,
    pub call: u32,
    pub arrived: Time,
    /// The group of a Ready.
    pub ready: Option<GroupId>,
}

/// The task of a simulated node: its definitions tell groups, members and computations apart.
#[derive(Debug, Default)]
pub struct SimTask {
    computed: u32,
}

impl<const W: usize> Application<W> for SimTask {
    fn stop(&mut self) {}

    fn reorganize(&mut self, group: GroupId, members: &NodeSet<W>) -> Definition {
        self.computed += 1;
        let mut bytes = vec![group.coordinator.get()];
        bytes.extend(group.number.to_le_bytes());
        bytes.extend(self.computed.to_le_bytes());
        bytes.extend(members.iter().map(NodeId::get));
        Definition::new(&bytes).unwrap_or(Definition::SINGLE)
    }

    fn start(&mut self, _me: NodeId, _definition: &Definition) {}
}

pub struct Machine<const W: usize> {
    pub clock: Clock,
    /// The keys in its flash.
    pub keys: Keys,
    /// The node, while the power is on and the firmware has started.
    pub node: Option<Node<W>>,
    pub powered: bool,
    pub paused: bool,
    /// Goes up with every loss of RAM, so that what was scheduled for an earlier life is void.
    pub life: u32,
    pub flash: Flash,
    pub epoch: Known<u32>,
    pub record: Known<Option<Box<[u8]>>>,
    pub writes: VecDeque<Write>,
    /// A save with `wait` is under way: no event is handled.
    pub blocked: bool,
    /// The node is asked to leave, and learns of it when it handles events again.
    pub leaves: bool,
    pub queue: VecDeque<Received>,
    pub busy_until: Time,
    pub wake_at: Time,
    /// When the node is told next that it runs on time.
    pub next_tick: Time,
    pub task: Box<dyn Application<W>>,
    pub task_runs: bool,
    pub resets: BTreeMap<ResetCause, u64>,
    pub requests: Vec<LastRequest>,
    /// The call of each peer whose hop was acknowledged last.
    pub acknowledged: Vec<u32>,
    pub saves: u64,
    pub sent: u64,
    /// When the firmware started last, and the datagrams that it was handed since. Only looked at
    /// while there is an attacker.
    pub woke_at: Time,
    pub handled: FxHashSet<u64>,
    /// The groups whose state vector was ever durable here.
    pub durable_groups: FxHashSet<GroupId>,
    /// Effects that wait for a save.
    pub deferred: Vec<Deferred<W>>,
    /// What the trace last said of the state vector.
    pub traced: Option<Summary<W>>,
}

impl<const W: usize> Machine<W> {
    pub fn new(
        clock: Clock,
        keys: Keys,
        nodes: usize,
        flash: Flash,
        task: Box<dyn Application<W>>,
    ) -> Self {
        Self {
            clock,
            keys,
            node: None,
            powered: false,
            paused: false,
            life: 0,
            flash,
            epoch: Known::default(),
            record: Known::default(),
            writes: VecDeque::new(),
            blocked: false,
            leaves: false,
            queue: VecDeque::new(),
            busy_until: 0,
            wake_at: Time::MAX,
            next_tick: 0,
            task,
            task_runs: false,
            resets: BTreeMap::new(),
            requests: vec![LastRequest::default(); nodes],
            acknowledged: vec![0; nodes],
            saves: 0,
            sent: 0,
            woke_at: 0,
            handled: FxHashSet::default(),
            durable_groups: FxHashSet::default(),
            deferred: Vec::new(),
            traced: None,
        }
    }

    /// RAM is lost, and with it what was being written; `true` if flash was torn by that.
    pub fn lose_ram(&mut self, now: Time) -> bool {
        self.life += 1;
        self.node = None;
        self.blocked = false;
        self.leaves = false;
        self.queue.clear();
        self.handled.clear();
        self.deferred.clear();
        self.traced = None;
        self.wake_at = Time::MAX;
        self.task_runs = false;
        for write in std::mem::take(&mut self.writes) {
            match write {
                Write::Epoch(epoch) => self.epoch.perhaps.push(epoch),
                Write::State { record, .. } => self.record.perhaps.push(Some(record)),
            }
        }
        self.flash.cut(now)
    }

    pub fn commit(&mut self, write: Write) {
        match write {
            Write::Epoch(epoch) => self.epoch.acknowledge(epoch),
            Write::State { record, .. } => {
                self.note_durable(&record);
                self.record.acknowledge(Some(record));
            }
        }
    }

    /// The group of this record is durable here.
    pub fn note_durable(&mut self, record: &[u8]) {
        let state = StateVector::<W>::decode(record);
        self.durable_groups.extend(state.ok().and_then(|state| state.group));
    }
}

impl<const W: usize> std::fmt::Debug for Machine<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.node.as_ref().map(Node::state_vector);
        f.debug_struct("Machine").field("powered", &self.powered).field("state", &state).finish()
    }
}
