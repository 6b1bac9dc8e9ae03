//! A node on a board: hands events to the core, one at a time, and carries out its effects in
//! order.

use embassy_futures::select::{Either3, select3};
use embassy_net::udp::{RecvError, UdpMetadata, UdpSocket};
use embassy_net::{IpAddress, IpEndpoint, Stack};
use embassy_sync::blocking_mutex::raw::RawMutex;
use embassy_sync::channel::{Receiver, Sender};
use embassy_time::Timer;

use super::board::{Board, ResetCause};
use super::door::TurnedAway;
use super::mailbox::{Mailbox, Order};
use super::{WORDS, log};
use crate::advice::advise;
use crate::application::Application;
use crate::cells::task::{Answer, Request};
use crate::cells::{ELECTION_BYTES_MAX, Path, Reason, Which};
use crate::effects::{Effect, FailCause, Ticket};
use crate::id::GroupId;
use crate::key::KeyBox;
use crate::node::{Event, Node};
use crate::state::{Definition, StateVector, Status};
use crate::time::{Duration, Instant};
use crate::wire::{DEFINITION_BYTES_MAX, Destination, Reject};

/// The version of the records of the state vector on flash.
const RECORD_FORMAT: u8 = 1;
/// Saves that were asked for and not answered yet; an older one than these is of no interest.
const OPEN_SAVES_MAX: usize = 4;
/// How often idle flash work is offered, and for the first time after the boot; the second region
/// comes a little after the first.
const PREPARE_PERIOD: Duration = Duration::from_millis(30_000);
const PREPARE_FIRST: Duration = Duration::from_millis(5_000);
const PREPARE_SECOND: Duration = Duration::from_millis(2_000);
/// No save of a state vector has this number.
const KEYS_TICKET: u32 = u32::MAX;
/// How often counters are looked through.
const REPORT_PERIOD: Duration = Duration::from_millis(1_000);

/// Room for the longest datagram of a flock of 64: an Invitation to 63 coordinators (19 bytes of
/// header and call, 9 of the awaited set, 10 of group and count, 10 for each, 16 of the tag), or a
/// Ready (64 bytes and its definition).
pub const DATAGRAM_ROOM: usize = 704;

const _: () = assert!(StateVector::<WORDS>::RECORD_BYTES_MAX <= ELECTION_BYTES_MAX);
const _: () = assert!(19 + 9 + 10 + 63 * 10 + 16 <= DATAGRAM_ROOM);
const _: () = assert!(64 + DEFINITION_BYTES_MAX <= DATAGRAM_ROOM);

/// The multicast group of a node, or of all: see the module's text.
#[must_use]
pub fn group_address(network: u16, to: Destination) -> IpAddress {
    let [low, _] = network.to_le_bytes();
    let last = match to {
        Destination::Node(id) => id.get(),
        Destination::All => 0,
    };
    IpAddress::v4(239, 192, low, last)
}

fn now() -> Instant {
    Instant(embassy_time::Instant::now().as_micros())
}

/// Everything that a node needs to live.
#[allow(missing_debug_implementations)] // sockets and channels have none
pub struct Member<'m, B, A, M: RawMutex, const IN: usize, const OUT: usize> {
    pub node: &'m mut Node<WORDS>,
    pub board: B,
    pub application: A,
    pub stack: Stack<'m>,
    pub socket: UdpSocket<'m>,
    pub port: u16,
    pub requests: Sender<'m, M, Request, IN>,
    pub answers: Receiver<'m, M, Answer, OUT>,
    pub mailbox: &'m Mailbox,
    /// What goes to the cells.
    pub keys: &'m KeyBox<M>,
}

/// What the shell remembers between two events.
#[derive(Debug)]
struct Memory {
    open_saves: heapless::Vec<(Ticket, Instant), OPEN_SAVES_MAX>,
    /// A save for which there was no room in the queue.
    waiting_save: Option<Ticket>,
    save_failed: bool,
    /// Somebody has ordered the node to leave.
    leaves: bool,
    epoch_saved: Option<u32>,
    reorganized: Option<(GroupId, Definition)>,
    /// When an event was handed to the core whose effects are to be carried out.
    stepped: Option<Instant>,
    /// When the tick came that the core has had; the shell's own work of that tick is still to be done.
    ticked: Option<Instant>,
    next_tick: Instant,
    next_report: Instant,
    next_prepare: Instant,
    prepared: Which,
    late_max: Duration,
    step_max: Duration,
    reported: [u32; 4],
    /// How many times there must be before their counts are told again.
    next_delays: u32,
    rejected: [u32; Reject::COUNT],
    flash: (u32, u32),
    turned_away: TurnedAway,
    link_up: bool,
}

impl<B, A, M, const IN: usize, const OUT: usize> Member<'_, B, A, M, IN, OUT>
where
    B: Board,
    A: Application<WORDS>,
    M: RawMutex,
{
    /// Lives until a reset. `epoch` is the epoch of this boot, durable already; `cause` is logged.
    ///
    /// Cancel safety: not cancel safe; give it a task of its own.
    pub async fn run(&mut self, cause: ResetCause, epoch: u32) -> ! {
        let network = self.node.config().network;
        let mine = Destination::Node(self.node.config().id);
        for group in [mine, Destination::All] {
            if self.stack.join_multicast_group(group_address(network, group)).is_err() {
                log::fault(defmt::intern!("multicast"));
            }
        }
        if self.socket.bind(self.port).is_err() {
            log::fault(defmt::intern!("bind"));
        }
        log::boot(cause, epoch, self.node.config());
        let began = now();
        let stagger = u32::from(self.node.config().id.get()) * 400_000;
        let mut memory = Memory {
            open_saves: heapless::Vec::new(),
            waiting_save: None,
            save_failed: false,
            leaves: false,
            epoch_saved: None,
            reorganized: None,
            stepped: None,
            ticked: None,
            next_tick: began,
            next_report: began + REPORT_PERIOD,
            next_prepare: began + PREPARE_FIRST + Duration(stagger),
            prepared: Which::B,
            late_max: Duration::ZERO,
            step_max: Duration::ZERO,
            reported: [0; 4],
            next_delays: 1,
            rejected: [0; Reject::COUNT],
            flash: (0, 0),
            turned_away: TurnedAway::default(),
            link_up: true,
        };
        log::state(self.node.state_vector());
        // The core counts two on from the stored epoch; the cells have done so and saved already.
        memory.stepped = Some(self.hand_over(Event::Boot { stored_epoch: epoch.checked_sub(2) }));
        let mut room = [0; DATAGRAM_ROOM];
        loop {
            while let Some(at) = self.catch_up(&mut memory) {
                self.carry_out(&mut memory, at).await;
            }
            let wake =
                self.node.next_deadline().map_or(memory.next_tick, |at| at.min(memory.next_tick));
            let timer = Timer::at(embassy_time::Instant::from_micros(wake.0));
            let next =
                select3(self.answers.receive(), self.socket.recv_from(&mut room), timer).await;
            match next {
                Either3::First(answer) => {
                    if self.settle(&mut memory, &answer) {
                        let event = Event::Saved(Ticket(answer.ticket));
                        memory.stepped = Some(self.hand_over(event));
                    }
                }
                Either3::Second(received) => {
                    memory.stepped = self.datagram(&mut room, received);
                }
                Either3::Third(()) => {}
            }
        }
    }

    /// When the last event was handed to the core, if its effects are still to be carried out. If there
    /// is none, the next one that does not have to be waited for: first what follows from the last one,
    /// then ticks and timers that are due, before anything else: lateness must be known first.
    fn catch_up(&mut self, memory: &mut Memory) -> Option<Instant> {
        if memory.stepped.is_some() {
            return memory.stepped.take();
        }
        if let Some((group, definition)) = &memory.reorganized
            && !memory.save_failed
            && memory.epoch_saved.is_none()
        {
            let event = Event::Reorganized { group: *group, definition: definition.as_bytes() };
            let at = self.hand_over(event);
            memory.reorganized = None;
            return Some(at);
        }
        let event = if core::mem::take(&mut memory.save_failed) {
            Event::SaveFailed
        } else if let Some(epoch) = memory.epoch_saved.take() {
            // Durable since `start::open`: the core and the cells count alike.
            Event::EpochSaved { read_back: Some(epoch) }
        } else {
            let tp = self.node.config().timing.tp;
            if let Some(at) = memory.ticked.take() {
                self.board.feed(tp);
                memory.next_tick = at + tp.fraction(1, 4);
                self.obey(memory);
                self.report(memory, at);
            }
            let at = now();
            if at >= memory.next_tick {
                memory.late_max = memory.late_max.max(at.since(memory.next_tick));
                memory.ticked = Some(at);
                Event::Tick
            } else if core::mem::take(&mut memory.leaves) {
                Event::StepDown
            } else if self.node.next_deadline().is_some_and(|deadline| deadline <= at) {
                Event::Timer
            } else {
                return None;
            }
        };
        Some(self.hand_over(event))
    }

    /// Carries out what somebody at the probe, or at a button, has ordered.
    fn obey(&mut self, memory: &mut Memory) {
        let keys = match self.mailbox.take() {
            Some(Order::SetKeys(keys)) => keys,
            Some(Order::StepDown) => {
                memory.leaves = true;
                return;
            }
            None => return,
        };
        if self.requests.try_send(Request::Keys { ticket: KEYS_TICKET }).is_err() {
            log::fault(defmt::intern!("order-refused"));
            return;
        }
        // The task of the cells does not run before this one waits.
        self.keys.put(&keys);
        log::keys(&keys);
        self.node.set_keys(keys);
    }

    fn datagram(
        &mut self,
        room: &mut [u8],
        received: Result<(usize, UdpMetadata), RecvError>,
    ) -> Option<Instant> {
        let bytes = match received {
            Ok((len, _)) => room.get_mut(..len).unwrap_or(&mut []),
            Err(RecvError::Truncated) => {
                self.node.refuse(Reject::TooLong);
                return None;
            }
        };
        let received = self.board.arrived(bytes).unwrap_or_else(now);
        Some(self.hand_over(Event::Datagram { received, bytes }))
    }

    /// Whether the save is durable. One that found no room is asked for again: the cells make room
    /// at once. Of any other failure the core is told.
    fn settle(&mut self, memory: &mut Memory, answer: &Answer) -> bool {
        let ticket = Ticket(answer.ticket);
        let open = memory.open_saves.iter().position(|(open, _)| *open == ticket);
        let began = open.map(|index| memory.open_saves.remove(index).1);
        if let Some(waiting) = memory.waiting_save.take() {
            self.ask_to_save(memory, waiting);
        }
        if answer.ticket == KEYS_TICKET {
            self.board.forget();
        }
        match answer.result {
            Ok(()) => {
                log::saved(answer.ticket, began.map_or(0, |began| now().since(began).0));
                true
            }
            Err(error) if error.reason == Reason::NotPrepared && answer.ticket != KEYS_TICKET => {
                log::fault(defmt::intern!("save-not-prepared"));
                self.ask_to_save(memory, ticket);
                false
            }
            Err(error) => {
                log::fault(log::reason_name(error.reason));
                memory.save_failed = true;
                false
            }
        }
    }

    fn fail(&mut self, cause: ResetCause) -> ! {
        log::reset(cause);
        self.board.reset(cause)
    }

    /// Hands one event to the core, and says when. Its effects are to be carried out next.
    fn hand_over(&mut self, event: Event<'_>) -> Instant {
        let at = now();
        let lost = self.node.step(at, event).overflowed();
        let state = self.node.state_vector();
        if self.node.changed() {
            self.board.remember(&state.summary());
            log::state(state);
        }
        if lost > 0 {
            log::fault(defmt::intern!("effects-overflowed"));
        }
        at
    }

    /// Carries out the effects of the event that was handed over at `at`.
    async fn carry_out(&mut self, memory: &mut Memory, at: Instant) {
        // The effects are carried out from a place of their own, because saves look at the node.
        let mut index = 0;
        let mut since = at;
        loop {
            let Some(effect) = self.node.effects().iter().nth(index) else { break };
            index += 1;
            match effect {
                Effect::Send { to, kind, datagram } => {
                    // Between the core's look at the clock and this one nothing may take long, and
                    // an answer leaves in time or not at all. What the network task then does with
                    // it is watched by the deadline timer.
                    let last = since + self.node.config().timing.tp;
                    if now() > self.node.effects().leaves_by().map_or(last, |by| by.min(last)) {
                        self.fail(ResetCause::Deadline);
                    }
                    let address = group_address(self.node.config().network, to);
                    let bytes = datagram.len();
                    match self.socket.send_to(datagram, IpEndpoint::new(address, self.port)).await {
                        Ok(()) => log::send(to, kind, bytes),
                        // No route, no port, too long: none can happen on a board that was set up.
                        Err(_) => log::fault(defmt::intern!("send")),
                    }
                }
                Effect::SaveEpoch(epoch) => memory.epoch_saved = Some(epoch),
                Effect::SaveState { ticket, wait } => {
                    self.ask_to_save(memory, ticket);
                    while wait && memory.open_saves.iter().any(|(open, _)| *open == ticket) {
                        let answer = self.answers.receive().await;
                        self.settle(memory, &answer);
                        since = now();
                        if memory.save_failed {
                            // What follows must not happen without it.
                            return;
                        }
                    }
                }
                Effect::StopApplication => self.application.stop(),
                Effect::Reorganize { group, members } => {
                    memory.reorganized =
                        Some((group, self.application.reorganize(group, &members)));
                }
                Effect::StartApplication => {
                    let me = self.node.config().id;
                    let definition = self.node.state_vector().definition.as_ref();
                    self.application.start(me, definition.unwrap_or(&Definition::SINGLE));
                }
                Effect::FailSelf(FailCause::Deadline) => self.fail(ResetCause::Deadline),
                Effect::FailSelf(_) => self.fail(ResetCause::Request),
                Effect::Note(note) => log::note(note),
                Effect::Election(group) => log::election(group),
            }
        }
        memory.step_max = memory.step_max.max(now().since(at));
    }

    fn ask_to_save(&mut self, memory: &mut Memory, ticket: Ticket) {
        let mut bytes = heapless::Vec::new();
        if bytes.resize(StateVector::<WORDS>::RECORD_BYTES_MAX, 0).is_err() {
            return; // impossible: asserted above
        }
        let len = self.node.state_vector().encode(&mut bytes).unwrap_or(0);
        bytes.truncate(len);
        let request = Request::Election {
            ticket: ticket.0,
            format: RECORD_FORMAT,
            state_bytes: len as u16,
            bytes,
            path: Path::Answer,
            verify: true,
        };
        if memory.open_saves.iter().all(|(open, _)| *open != ticket) {
            if memory.open_saves.is_full() {
                memory.open_saves.remove(0);
            }
            let _ = memory.open_saves.push((ticket, now()));
        }
        if self.requests.try_send(request).is_err() {
            // The flash is busy. Only the newest save counts: whoever waited for an older one has
            // gone on since.
            memory.waiting_save = Some(ticket);
        }
    }

    fn report(&mut self, memory: &mut Memory, at: Instant) {
        let link_up = self.stack.is_link_up();
        if link_up != memory.link_up {
            memory.link_up = link_up;
            log::link(link_up);
        }
        if at >= memory.next_prepare {
            // Erases belong into quiet moments; the ids keep a flock from erasing in step. One at a
            // time: it is never answered, and a save must always find a place in the queue.
            let quiet = memory.open_saves.is_empty() && self.requests.is_empty();
            if self.node.state_vector().status == Status::Normal && quiet {
                let (which, next) = match memory.prepared {
                    Which::A => (Which::B, PREPARE_PERIOD),
                    Which::B => (Which::A, PREPARE_SECOND),
                };
                memory.prepared = which;
                memory.next_prepare = at + next;
                let _ = self.requests.try_send(Request::Prepare(which));
            }
        }
        if at < memory.next_report {
            return;
        }
        memory.next_report = at + REPORT_PERIOD;
        let counters = self.node.counters();
        let (trips, handling) = (self.node.round_trips(), self.node.handling());
        let (late, step) = (memory.late_max.0, memory.step_max.0);
        let marks = [handling.max_us(), late, step, trips.max_us()];
        if marks != memory.reported {
            memory.reported = marks;
            let timing = &self.node.config().timing;
            let [trip, handling] = [trips, handling].map(|one| Duration(one.max_us()));
            log::margin(marks, &advise(timing.tm, timing.tp, trip, handling));
        }
        let times = trips.samples() + handling.samples();
        if times >= memory.next_delays {
            memory.next_delays = 2 * times;
            log::delays(defmt::intern!("trips"), trips);
            log::delays(defmt::intern!("handling"), handling);
        }
        for (known, reason) in memory.rejected.iter_mut().zip(log::REJECTS) {
            let count = counters.rejected(reason);
            // Several for one node are everyday: a broadcast answered twice, another's datagram.
            if count != *known {
                *known = count;
                log::reject(reason, count);
            }
        }
        let turned_away = self.board.turned_away();
        if turned_away != memory.turned_away {
            memory.turned_away = turned_away;
            log::door(turned_away);
        }
        let flash = self.board.flash_counts();
        if flash != memory.flash {
            memory.flash = flash;
            log::flash(flash.0, flash.1);
        }
    }
}
