//! The boards of a run, their switch and their probes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use bellwether::key::{KEY_BYTES, Keys};
use bellwether_scenario::{Action, NodeEvent, Observation, Scenario, Watch, What};
use tempfile::TempDir;

use crate::chronicle::{Chronicle, Said};
use crate::clock::{Clock, Moment};
use crate::display::Scene;
use crate::flash;
use crate::folder;
use crate::host::Lateness;
use crate::machine::{Files, Machine};
use crate::probe::{Heard, Image, Probe};
use crate::switch::Switch;

/// The order in src/shell/mailbox.rs.
const SET_KEYS: u32 = 1;
const STEP_DOWN: u32 = 2;

/// How long QEMUs may take to start, by the host's clock.
const COMING_UP: Duration = Duration::from_secs(30);

/// A board with power. The machine comes first: it must go before its probe.
struct Powered {
    machine: Machine,
    probe: Probe,
    /// Which of all the times that a board was given power.
    power: u32,
}

pub struct Flock {
    images: Vec<Arc<Image>>,
    files: Vec<Files>,
    boards: Vec<Option<Powered>>,
    /// Whose cable is out.
    unplugged: BTreeSet<u8>,
    powers: u32,
    /// Time counts instructions.
    pub counted: bool,
    pub switch: Switch,
    said: Receiver<Heard>,
    heard: Sender<Heard>,
    pub chronicle: Chronicle,
    pub watch: Watch,
    /// On the host's clock: how late the host was.
    pub lateness: Option<Lateness>,
    pub clock: Clock,
    pub actions: Vec<(u64, Action)>,
    pub broken: Vec<u64>,
    cpu_ticks_gone: u64,
    pub zero: Moment,
    // Last: the files go after everything that uses them.
    _folder: TempDir,
}

impl Flock {
    /// Everything but the power. `scenario` has the times that are really used; `images` are for the
    /// nodes in order of their ids, and begin again if they are fewer.
    pub fn prepare(
        scenario: &Scenario,
        images: &[Arc<Image>],
        pcap: Option<&Path>,
    ) -> Result<Self, String> {
        let folder = folder::create().map_err(|error| format!("no folder for the run: {error}"))?;
        let files: Vec<Files> =
            (1..=scenario.nodes).map(|id| Files::new(folder.path(), id)).collect();
        for (id, files) in (1..).zip(&files) {
            flash::prepare(&files.flash(), scenario, id)?;
        }
        let tm = Duration::from_micros(scenario.tm_us);
        let clock = Clock::start()?;
        let switch = Switch::start(&files, clock.clone(), tm, scenario.seed, pcap)?;
        let (heard, said) = channel();
        let zero = clock.now();
        Ok(Self {
            images: images.iter().cycle().take(files.len()).cloned().collect(),
            boards: files.iter().map(|_| None).collect(),
            files,
            unplugged: BTreeSet::new(),
            powers: 0,
            counted: false,
            switch,
            said,
            heard,
            chronicle: Chronicle::new(scenario.nodes, clock.clone(), zero),
            watch: Watch::new(scenario),
            lateness: clock.is_hosts().then(|| Lateness::watch(clock.clone())),
            actions: Vec::new(),
            broken: Vec::new(),
            cpu_ticks_gone: 0,
            clock,
            zero,
            _folder: folder,
        })
    }

    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    pub fn now_us(&self) -> u64 {
        self.now().since(self.zero).as_micros() as u64
    }

    pub fn nodes(&self) -> u8 {
        self.files.len() as u8
    }

    /// The time of the run begins.
    pub fn begin(&mut self) {
        self.zero = self.now();
        self.chronicle = Chronicle::new(self.nodes(), self.clock.clone(), self.zero);
    }

    pub fn flash_of(&self, id: u8) -> PathBuf {
        self.files[usize::from(id) - 1].flash()
    }

    pub fn has_power(&self, id: u8) -> bool {
        self.boards.get(usize::from(id) - 1).is_some_and(Option::is_some)
    }

    /// Gives boards power, all at the same moment.
    pub fn boot(&mut self, ids: impl IntoIterator<Item = u8>) -> Result<(), String> {
        // A QEMU takes its time to start; a board has power at once.
        let _hold = self.clock.hold();
        let mut started = Vec::new();
        for id in ids {
            self.start(id)?;
            started.push(id);
        }
        let give_up = Instant::now() + COMING_UP;
        for id in started {
            while self.probe(id).is_some_and(|probe| !probe.is_reached()) {
                if let Some(why) = self.died(id) {
                    return Err(why);
                }
                if Instant::now() > give_up {
                    return Err(format!("the QEMU of node {id} does not come up"));
                }
            }
        }
        // Each does what it can do in no time, so that none has a head start.
        self.clock.wait_until_asleep();
        Ok(())
    }

    fn start(&mut self, id: u8) -> Result<(), String> {
        let index = usize::from(id) - 1;
        self.powers += 1;
        let image = Arc::clone(self.images.get(index).ok_or("there is no image for it")?);
        let machine = Machine::start(&image, &self.files[index], &self.clock, self.counted)?;
        if self.unplugged.contains(&id) {
            machine.set_link(false)?;
        }
        let socket = self.files[index].probe();
        let (heard, power) = (self.heard.clone(), self.powers);
        let probe = Probe::start(image, socket, id, power, heard, self.clock.clone());
        self.boards[index] = Some(Powered { machine, probe, power });
        self.switch.set_power(index, true);
        Ok(())
    }

    pub fn kill(&mut self, id: u8) -> Option<NodeEvent> {
        let index = usize::from(id) - 1;
        let powered = self.boards[index].take()?;
        self.cpu_ticks_gone += powered.machine.cpu_ticks();
        self.switch.set_power(index, false);
        let Powered { machine, probe, .. } = powered;
        drop(machine);
        // Now: the probe takes a moment to end.
        let event = self.chronicle.did(id, What::Kill);
        drop(probe);
        Some(event)
    }

    pub fn probe(&self, id: u8) -> Option<&Probe> {
        self.boards.get(usize::from(id) - 1)?.as_ref().map(|powered| &powered.probe)
    }

    /// Gives a running board other keys.
    pub fn set_keys(&self, id: u8, keys: &Keys) {
        let mut content = Vec::new();
        for slot in [Some(&keys.send), keys.other.as_ref()] {
            content.push(slot.map_or(0, |slot| slot.id.into()));
            let bytes = slot.map_or([0; KEY_BYTES], |slot| *slot.key.bytes());
            content.extend(bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)));
        }
        if let Some(probe) = self.probe(id) {
            probe.order(SET_KEYS, &content);
        }
    }

    /// Carries out an action; the events that it causes by itself are noted and returned.
    pub fn act(&mut self, action: &Action) -> Result<Vec<NodeEvent>, String> {
        // What is done at one moment takes no time on a bench.
        let _hold = self.clock.hold();
        let mut events = Vec::new();
        let board = |boards: &Vec<Option<Powered>>, id: &u8, pause: bool| {
            if let Some(Some(powered)) = boards.get(usize::from(*id) - 1) {
                if pause { powered.machine.pause() } else { powered.machine.resume() }
            }
        };
        match action {
            Action::Kill { nodes } => events.extend(nodes.iter().filter_map(|id| self.kill(*id))),
            Action::Boot { nodes } => {
                self.boot(nodes.iter().copied())?;
            }
            Action::Pause { nodes } => nodes.iter().for_each(|id| board(&self.boards, id, true)),
            Action::Resume { nodes } => nodes.iter().for_each(|id| board(&self.boards, id, false)),
            Action::Reset { nodes } => {
                for id in nodes {
                    if let Some(Some(powered)) = self.boards.get(usize::from(*id) - 1) {
                        powered.machine.resume();
                        powered.machine.reset()?;
                        let cause = bellwether_scenario::ResetCause::Power;
                        events.push(self.chronicle.did(*id, What::Reset { cause }));
                    }
                }
            }
            Action::Leave { nodes } => {
                for probe in nodes.iter().filter_map(|id| self.probe(*id)) {
                    probe.order(STEP_DOWN, &[]);
                }
            }
            Action::Unplug { nodes } | Action::Plug { nodes } => {
                let up = matches!(action, Action::Plug { .. });
                for id in nodes {
                    if up {
                        self.unplugged.remove(id)
                    } else {
                        self.unplugged.insert(*id)
                    };
                    if let Some(Some(powered)) = self.boards.get(usize::from(*id) - 1) {
                        powered.machine.set_link(up)?;
                    }
                }
                self.switch.act(action);
            }
            Action::Partition { .. } | Action::Link { .. } | Action::Heal => {
                self.switch.act(action);
            }
        }
        self.actions.push((self.now_us(), action.clone()));
        for event in &events {
            self.watch.note(event);
        }
        self.watch.act(action);
        Ok(events)
    }

    /// The next line of any node, if one comes within this span.
    pub fn listen_for(&mut self, span: Duration) -> Option<Said> {
        self.listen(self.now() + span)
    }

    /// The next line of any node, if one comes until then.
    pub fn listen(&mut self, until: Moment) -> Option<Said> {
        loop {
            // The clock may stand still meanwhile: then the rest is waited for again.
            let wait = until.since(self.now());
            let heard = match self.said.recv_timeout(wait) {
                Ok(heard) => heard,
                Err(RecvTimeoutError::Timeout) if !wait.is_zero() => continue,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            };
            // What a board said before its power was cut may be read after.
            let board = self.boards.get(usize::from(heard.node).saturating_sub(1));
            let power = board.and_then(Option::as_ref).map(|powered| powered.power);
            let current = power == Some(heard.power);
            if let Some(said) = self.chronicle.hear(&heard) {
                if current {
                    for event in &said.events {
                        self.watch.note(event);
                    }
                }
                return Some(said);
            }
        }
    }

    /// Looks for boards that died by themselves and for broken promises of the network.
    pub fn look_after(&mut self) -> Result<(), String> {
        for at in self.switch.take_broken() {
            self.broken.push(at.since(self.zero).as_micros() as u64);
        }
        (1..=self.nodes()).find_map(|id| self.died(id)).map_or(Ok(()), Err)
    }

    /// What the QEMU of a board said when it ended by itself.
    fn died(&mut self, id: u8) -> Option<String> {
        let board = self.boards[usize::from(id) - 1].as_mut()?;
        let why = board.machine.died()?;
        Some(format!("the QEMU of node {id} ended by itself: {why}"))
    }

    /// Processor time of all boards together.
    pub fn cpu(&self) -> Duration {
        let running = self.boards.iter().flatten().map(|board| board.machine.cpu_ticks());
        Duration::from_millis(10 * (self.cpu_ticks_gone + running.sum::<u64>()))
    }
}

impl Scene for Flock {
    fn now_us(&self) -> u64 {
        self.now_us()
    }

    fn seen(&self) -> &Observation {
        self.watch.seen()
    }

    fn has_power(&self, id: u8) -> bool {
        self.has_power(id)
    }

    fn held_back(&self) -> Option<f64> {
        self.clock.held_back()
    }
}
