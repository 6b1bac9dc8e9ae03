//! Safe storage in a run: what the shell does with flash, and what a boot must find there.

use bellwether::config::Durability;
use bellwether::node::Event;
use bellwether::state::Status;

use crate::clock::Time;
use crate::machine::Write;
use crate::world::{Happening, World};

impl<const W: usize> World<W> {
    /// What a boot reads from flash: the boot epoch, or nothing. Checks that nothing was lost.
    pub(crate) fn read_flash(&mut self, node: usize) -> Option<u32> {
        // A strict coordinator saves with every Accept or acknowledgement, and a few times besides.
        let saves = match self.settings.durability {
            Durability::Strict => u32::from(self.settings.nodes) + 5,
            Durability::Group => 1,
        };
        let machine = &mut self.machines[node];
        let Some(found) = machine.flash.power_up(self.now, saves) else {
            let what = format!("node {}", node + 1);
            self.checker.violation(self.now, "the cells could not be opened", what);
            return None;
        };
        self.tally.flash_repairs += u64::from(found.repaired);
        if !found.fits {
            let what = format!("node {}: {saves} saves per election", node + 1);
            self.checker.violation(self.now, "an election does not fit the flash", what);
        }
        let lost = match found.epoch {
            Some(epoch) if !machine.epoch.allows(&epoch) => Some(format!("epoch {epoch}")),
            None => Some("no epoch".to_owned()),
            Some(_) if !machine.record.allows(&found.record) => {
                Some(format!("state {:?}", found.record))
            }
            Some(_) => None,
        };
        if let Some(record) = &found.record {
            machine.note_durable(record);
        }
        if let Some(lost) = lost {
            let what = format!(
                "node {} found {lost}; acknowledged were {} and {:?}",
                node + 1,
                machine.epoch.acknowledged,
                machine.record.acknowledged
            );
            self.checker.violation(self.now, "safe storage lost what it had", what);
        }
        found.epoch
    }

    pub(crate) fn begin_write(&mut self, node: usize, write: Write) {
        let machine = &mut self.machines[node];
        let before = machine.flash.retried;
        let done = match &write {
            Write::Epoch(epoch) => machine.flash.save_epoch(self.now, *epoch, &mut self.rng),
            Write::State { record, .. } => {
                machine.flash.save_state(self.now, record, &mut self.rng)
            }
        };
        self.tally.saves_retried += machine.flash.retried - before;
        machine.writes.push_back(write);
        match done {
            Ok(at) => {
                let (node, life) = (node as u8, machine.life);
                self.schedule(at, Happening::WriteDone { node, life });
                self.perhaps_cut(node, life, at);
            }
            Err(why) => {
                let (worn, life) = (machine.flash.is_worn(), machine.life);
                if !worn {
                    let what = format!("node {}: {why}", node + 1);
                    self.checker.violation(self.now, "a save failed", what);
                }
                self.tally.muted += 1;
                self.schedule(self.now, Happening::WriteFailed { node: node as u8, life });
            }
        }
    }

    pub(crate) fn write_done(&mut self, node: usize) {
        let machine = &mut self.machines[node];
        let life = machine.life;
        if machine.paused {
            // The flash part works on; the processor notices later.
            self.schedule(self.now + 100, Happening::WriteDone { node: node as u8, life });
            return;
        }
        let Some(write) = machine.writes.pop_front() else { return };
        machine.commit(write.clone());
        match write {
            Write::Epoch(epoch) => {
                self.step(node, Event::EpochSaved { read_back: Some(epoch) });
            }
            Write::State { wait: true, .. } => {
                machine.blocked = false;
                self.carry_out_deferred(node);
            }
            Write::State { ticket, .. } => self.step(node, Event::Saved(ticket)),
        }
        // Idle time is staggered, so that a flock does not erase in step.
        let wait = self.timing().t.us() * (2 + node as u64 % 5);
        self.schedule(self.now + wait, Happening::Idle { node: node as u8, life });
        self.run_machine(node);
    }

    /// The flash has let the node down: it falls silent.
    pub(crate) fn write_failed(&mut self, node: usize) {
        self.machines[node].blocked = false;
        self.machines[node].deferred.clear();
        self.step(node, Event::SaveFailed);
    }

    /// Makes room in flash while the node is Normal and nothing is being saved.
    pub(crate) fn idle(&mut self, node: usize) {
        let is_normal = self.checker.view(node).status == Status::Normal;
        let t = self.timing().t.us();
        let machine = &mut self.machines[node];
        if !machine.flash.needs_preparing() {
            return;
        }
        let (node, life) = (node as u8, machine.life);
        let next = if machine.paused || !is_normal || !machine.writes.is_empty() {
            Some(self.now + t)
        } else {
            machine.flash.prepare(self.now)
        };
        if let Some(next) = next {
            self.schedule(next, Happening::Idle { node, life });
            self.perhaps_cut(node, life, next);
        }
    }

    /// Draws whether the power goes before a write ends at `end`.
    fn perhaps_cut(&mut self, node: u8, life: u32, end: Time) {
        if self.cut_writes > 0.0 && self.rng.f64() < self.cut_writes {
            let at = self.rng.u64(self.now..=end);
            self.schedule(at, Happening::Cut { node, life });
        }
    }
}
