//! Datagrams on their way: from the node that sends, over the network, to the queue of the receiver.

use std::rc::Rc;

use crate::choices::Deviation;
use crate::clock::Time;
use crate::machine::{Packet, Received};
use crate::network::Fate;
use crate::world::{Happening, World};

impl<const W: usize> World<W> {
    pub(crate) fn transmit(&mut self, from: usize, to: Option<usize>, packet: Packet) {
        self.tally.datagrams += 1;
        self.machines[from].sent += 1;
        self.tally.bytes += packet.bytes.len() as u64;
        // What the node sends leaves when it is done with the datagram that it handles.
        let leaves = self.now.max(self.machines[from].busy_until);
        let packet = Rc::new(packet);
        if let Some(attacker) = &mut self.attacker {
            attacker.hear(&packet, self.now);
        }
        match to {
            // A switch does not send a frame back to where it came from.
            Some(to) if to == from => {}
            Some(to) => self.carry(from, to, &packet, leaves),
            None => {
                for to in (0..self.machines.len()).filter(|to| *to != from) {
                    self.carry(from, to, &packet, leaves);
                }
            }
        }
    }

    fn carry(&mut self, from: usize, to: usize, packet: &Rc<Packet>, leaves: Time) {
        let tm = self.timing().tm.us();
        let deviation = self.choices.as_mut().and_then(|choices| choices.frame(self.now));
        let fate = match deviation {
            Some(Deviation::Lost) => Fate::Lost,
            Some(Deviation::Slow) => self.network.carry_until(from, to, leaves + tm),
            _ => self.network.carry(from, to, leaves, &mut self.rng),
        };
        match fate {
            Fate::Lost => {
                if self.machines[to].powered {
                    self.checker.assumption_broken(self.now);
                }
            }
            Fate::Arrives { first, second } => {
                let latest = leaves + tm;
                if first > latest || second.is_some_and(|second| second > latest) {
                    self.checker.assumption_broken(self.now);
                }
                for at in [Some(first), second].into_iter().flatten() {
                    let arrive = Happening::Arrive { to: to as u8, packet: Rc::clone(packet) };
                    self.schedule(at, arrive);
                }
            }
        }
    }

    pub(crate) fn arrive(&mut self, to: usize, packet: Rc<Packet>) {
        let machine = &mut self.machines[to];
        if machine.node.is_none() {
            return;
        }
        if machine.queue.len() >= self.settings.queue_frames {
            self.tally.overflows += 1;
            self.checker.assumption_broken(self.now);
            return;
        }
        machine.queue.push_back(Received { arrived: self.now, packet });
        if machine.busy_until <= self.now {
            self.run_machine(to);
        } else {
            self.wake(to, self.machines[to].busy_until);
        }
    }
}
