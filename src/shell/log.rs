//! The log is an interface: a host rebuilds every state vector from it.
//!
//! Every line is `SEQUENCE WORD key=value …`. The sequence number counts the lines of one boot from
//! 0, so that a lost line is seen. Node 0 means none (of `to`: all); sets are hexadecimal bit masks,
//! bit 0 is node 1.
//!
//! | word | keys | when |
//! |---|---|---|
//! | `start` | `cause` | the firmware starts; why |
//! | `last` | `place`, `line`, `status`, `coordinator`, `group`, `number`, `what` | a panic or fault ended the boot before |
//! | `repair` | `region`, `verdict`, `records`, `cleared`, `behind`, `missing` | the cells were not in order |
//! | `mute` | `reason` | the node may not speak |
//! | `boot` | `id`, `epoch`, `cause`, `algorithm`, `tm_us`, `tp_us`, `ts_us`, `t_us` | the boot epoch is durable |
//! | `state` | `status`, `coordinator`, `group`, `number`, `up`, `defined`, `definition`, `halted`, `halted_number` | S(i) changed |
//! | `send` | `to`, `message`, `bytes` | a datagram was handed to the network |
//! | `note` | `what`, `node`, `number` | suspicions, elections and other news of the core |
//! | `reject` | `reason`, `count` | datagrams were dropped; the count of this boot |
//! | `margin` | `answer_us`, `late_us`, `step_us`, `trip_us`, `tm_safe`, `tp_safe`, `tm_us`, `tp_us` | a high-water mark rose: answers, ticks, steps, round trips; whether Tm and Tp cover what was measured so far with a quarter to spare, and what would ([`Advice`]) |
//! | `delays` | `what` (`trips`, `handling`), `first`, `max_us`, `a`, `b`, `c`, `d` | a [`Histogram`], now and then; four counts of 16 bits in each letter, the shortest times lowest in `a` |
//! | `save` | `ticket`, `us` | the state vector is durable, and how long it took |
//! | `fault` | `what` | a save or a send failed |
//! | `flash` | `programs`, `erases` | the flash was written; the counts of this boot |
//! | `link` | `up` | the cable was pulled or plugged |
//! | `door` | `noise`, `crowded` | frames that the driver turned away: no member can have sent them; no room |
//! | `keys` | `send`, `other` | other keys are in force: their numbers, 0 = none |
//! | `reset` | `cause` | the node resets itself; the next `start` says it again |

use core::sync::atomic::{AtomicU32, Ordering};

use defmt::{Str, intern};

use super::WORDS;
use super::board::ResetCause;
use super::door::TurnedAway;
use crate::advice::{Advice, Histogram};
use crate::cells::{Reason, RegionReport, Verdict};
use crate::config::{Algorithm, Config};
use crate::effects::{MuteReason, Note};
use crate::id::{GroupId, NodeId, NodeSet};
use crate::key::Keys;
use crate::state::{Definition, StateVector, Status};
use crate::wire::{Destination, Kind, Reject};

static SEQUENCE: AtomicU32 = AtomicU32::new(0);

// In every line.
#[inline(never)]
fn next() -> u32 {
    SEQUENCE.fetch_add(1, Ordering::Relaxed)
}

fn id_of(id: Option<NodeId>) -> u8 {
    id.map_or(0, NodeId::get)
}

fn group_of(group: Option<GroupId>) -> (u8, u64) {
    group.map_or((0, 0), |group| (group.coordinator.get(), group.number))
}

fn mask(set: &NodeSet<WORDS>) -> u64 {
    set.iter().fold(0, |mask, id| mask | 1 << (id.get() - 1))
}

pub fn cause_name(cause: ResetCause) -> Str {
    match cause {
        ResetCause::Power => intern!("power"),
        ResetCause::Deadline => intern!("deadline"),
        ResetCause::Watchdog => intern!("watchdog"),
        ResetCause::Panic => intern!("panic"),
        ResetCause::Request => intern!("request"),
    }
}

fn status_name(status: Status) -> Str {
    match status {
        Status::Down => intern!("Down"),
        Status::Election => intern!("Election"),
        Status::Reorganization => intern!("Reorganization"),
        Status::Normal => intern!("Normal"),
    }
}

pub fn start(cause: ResetCause) {
    defmt::info!("{=u32} start cause={=istr}", next(), cause_name(cause));
}

/// `what` and `place` are of the panic that ended the boot before, the rest is where the node stood.
pub fn last(what: &[u8], place: &[u8], line: u32, state: (u8, u8, u8, u64)) {
    let (status, coordinator, group, number) = state;
    defmt::error!(
        "{=u32} last place={=[u8]:a} line={=u32} status={=u8} coordinator={=u8} group={=u8} number={=u64} what={=[u8]:a}",
        next(),
        place,
        line,
        status,
        coordinator,
        group,
        number,
        what
    );
}

pub fn repair(region: u8, report: &RegionReport) {
    let verdict = match report.verdict() {
        Verdict::Good => intern!("good"),
        Verdict::Torn => intern!("torn"),
        Verdict::Lost => intern!("lost"),
        Verdict::Rebuilt => intern!("rebuilt"),
        Verdict::Failing => intern!("failing"),
    };
    defmt::warn!(
        "{=u32} repair region={=u8} verdict={=istr} records={=u32} cleared={=u8} behind={=u8} missing={=u8}",
        next(),
        region,
        verdict,
        report.records,
        report.sectors_cleared,
        report.behind,
        report.missing
    );
}

pub fn mute(reason: Str) {
    defmt::error!("{=u32} mute reason={=istr}", next(), reason);
}

pub fn boot(cause: ResetCause, epoch: u32, config: &Config<WORDS>) {
    let algorithm = match config.algorithm {
        Algorithm::Bully => intern!("bully"),
        Algorithm::Invitation => intern!("invitation"),
        Algorithm::Ring => intern!("ring"),
    };
    let timing = &config.timing;
    defmt::info!(
        "{=u32} boot id={=u8} epoch={=u32} cause={=istr} algorithm={=istr} tm_us={=u32} tp_us={=u32} ts_us={=u32} t_us={=u32}",
        next(),
        config.id.get(),
        epoch,
        cause_name(cause),
        algorithm,
        timing.tm.0,
        timing.tp.0,
        timing.ts.0,
        timing.t.0
    );
}

pub fn state(state: &StateVector<WORDS>) {
    let (group, number) = group_of(state.group);
    let (halted, halted_number) = group_of(state.halted_by);
    let digest = state.definition.as_ref().map(Definition::digest);
    defmt::info!(
        "{=u32} state status={=istr} coordinator={=u8} group={=u8} number={=u64} up={=u64:x} defined={=bool} definition={=u64:x} halted={=u8} halted_number={=u64}",
        next(),
        status_name(state.status),
        id_of(state.coordinator),
        group,
        number,
        mask(&state.up),
        digest.is_some(),
        digest.unwrap_or(0),
        halted,
        halted_number
    );
}

pub fn send(to: Destination, kind: Kind, bytes: usize) {
    let to = match to {
        Destination::Node(id) => id.get(),
        Destination::All => 0,
    };
    defmt::debug!(
        "{=u32} send to={=u8} message={=istr} bytes={=u16}",
        next(),
        to,
        kind_name(kind),
        bytes as u16
    );
}

pub fn election(group: GroupId) {
    let (node, number) = (group.coordinator.get(), group.number);
    write_note(intern!("election"), node, number);
}

fn write_note(what: Str, node: u8, number: u64) {
    defmt::info!("{=u32} note what={=istr} node={=u8} number={=u64}", next(), what, node, number);
}

pub fn note(note: Note) {
    let (what, node) = match note {
        Note::Suspected(id) => (intern!("suspected"), id.get()),
        Note::SuspicionWrong(id) => (intern!("suspicion-wrong"), id.get()),
        Note::Foreign(id) => (intern!("foreign"), id.get()),
        Note::ProvokedBy(id) => (intern!("provoked"), id.get()),
        Note::HaltFromBelow(id) => (intern!("halt-from-below"), id.get()),
        Note::NotAuthentic(id) => (intern!("not-authentic"), id.get()),
        Note::IdClash(id) => (intern!("id-clash"), id.get()),
        Note::InTheClear(id) => (intern!("in-the-clear"), id.get()),
        Note::OnlyObservers => (intern!("only-observers"), 0),
        Note::Leaving(id) => (intern!("leaving"), id.get()),
        Note::Mute(reason) => {
            return mute(match reason {
                MuteReason::NoEpoch => intern!("no-epoch"),
                MuteReason::EpochExhausted => intern!("epoch-exhausted"),
                MuteReason::EpochNotDurable => intern!("epoch-not-durable"),
                MuteReason::StateNotDurable => intern!("state-not-durable"),
                MuteReason::IdClash => intern!("id-clash"),
            });
        }
    };
    if matches!(note, Note::NotAuthentic(_) | Note::IdClash(_) | Note::InTheClear(_)) {
        // Somebody should look at the wire, or at the boards.
        return defmt::warn!("{=u32} note what={=istr} node={=u8} number=0", next(), what, node);
    }
    write_note(what, node, 0);
}

pub fn reject(reason: Reject, count: u32) {
    defmt::warn!("{=u32} reject reason={=istr} count={=u32}", next(), reject_name(reason), count);
}

/// Answers, ticks, steps, round trips.
pub fn margin([answer_us, late_us, step_us, trip_us]: [u32; 4], advice: &Advice) {
    defmt::info!(
        "{=u32} margin answer_us={=u32} late_us={=u32} step_us={=u32} trip_us={=u32} tm_safe={=bool} tp_safe={=bool} tm_us={=u32} tp_us={=u32}",
        next(),
        answer_us,
        late_us,
        step_us,
        trip_us,
        advice.tm_safe,
        advice.tp_safe,
        advice.tm.0,
        advice.tp.0
    );
}

pub fn delays(what: Str, times: &Histogram) {
    let words = times.words();
    defmt::info!(
        "{=u32} delays what={=istr} first={=u8} max_us={=u32} a={=u64:x} b={=u64:x} c={=u64:x} d={=u64:x}",
        next(),
        what,
        times.first(),
        times.max_us(),
        words[0],
        words[1],
        words[2],
        words[3]
    );
}

pub fn saved(ticket: u32, us: u32) {
    defmt::info!("{=u32} save ticket={=u32} us={=u32}", next(), ticket, us);
}

pub fn fault(what: Str) {
    defmt::error!("{=u32} fault what={=istr}", next(), what);
}

pub fn flash(programs: u32, erases: u32) {
    defmt::info!("{=u32} flash programs={=u32} erases={=u32}", next(), programs, erases);
}

pub fn door(turned_away: TurnedAway) {
    let TurnedAway { noise, crowded } = turned_away;
    defmt::warn!("{=u32} door noise={=u32} crowded={=u32}", next(), noise, crowded);
}

pub fn keys(keys: &Keys) {
    let other = keys.other.as_ref().map_or(0, |slot| slot.id);
    defmt::warn!("{=u32} keys send={=u8} other={=u8}", next(), keys.send.id, other);
}

/// Of measurements only.
pub fn cost(bytes: u32, seal: u32, open: u32, good: bool) {
    defmt::info!(
        "{=u32} cost bytes={=u32} seal={=u32} open={=u32} good={=bool}",
        next(),
        bytes,
        seal,
        open,
        good
    );
}

/// Of the suite of a board only: a check and how it ended.
pub fn case(name: Str, good: bool) {
    defmt::info!("{=u32} case name={=istr} good={=bool}", next(), name, good);
}

pub fn link(up: bool) {
    defmt::warn!("{=u32} link up={=bool}", next(), up);
}

pub fn reset(cause: ResetCause) {
    defmt::error!("{=u32} reset cause={=istr}", next(), cause_name(cause));
}

pub fn reason_name(reason: Reason) -> Str {
    match reason {
        Reason::ProgramFailed => intern!("program-failed"),
        Reason::EraseFailed => intern!("erase-failed"),
        Reason::VerifyMismatch => intern!("verify-mismatch"),
        Reason::Full => intern!("full"),
        Reason::NotPrepared => intern!("not-prepared"),
        Reason::TooLong => intern!("too-long"),
        Reason::NewerFormat { .. } => intern!("newer-format"),
        Reason::Unreadable { .. } => intern!("unreadable"),
        Reason::Unprovisioned => intern!("unprovisioned"),
        Reason::Exhausted => intern!("exhausted"),
        Reason::Malformed => intern!("malformed"),
        Reason::Structure => intern!("structure"),
        Reason::Layout(_) => intern!("layout"),
    }
}

fn kind_name(kind: Kind) -> Str {
    match kind {
        Kind::AreYouThere => intern!("AreYouThere"),
        Kind::AreYouNormal => intern!("AreYouNormal"),
        Kind::Halt => intern!("Halt"),
        Kind::NewCoordinator => intern!("NewCoordinator"),
        Kind::Ready => intern!("Ready"),
        Kind::AreYouCoordinator => intern!("AreYouCoordinator"),
        Kind::Invitation => intern!("Invitation"),
        Kind::Accept => intern!("Accept"),
        Kind::Beat => intern!("Beat"),
        Kind::Hello => intern!("Hello"),
        Kind::Clash => intern!("Clash"),
        Kind::Elect => intern!("Elect"),
        Kind::Coord => intern!("Coord"),
        Kind::RingReady => intern!("RingReady"),
        Kind::HaveYouHeard => intern!("HaveYouHeard"),
        Kind::Leaving => intern!("Leaving"),
        Kind::AytAns => intern!("AytAns"),
        Kind::AynAns => intern!("AynAns"),
        Kind::HaltAck => intern!("HaltAck"),
        Kind::NcAck => intern!("NcAck"),
        Kind::ReadyAck => intern!("ReadyAck"),
        Kind::AycAns => intern!("AycAns"),
        Kind::AcceptAns => intern!("AcceptAns"),
        Kind::ReadyAns => intern!("ReadyAns"),
        Kind::HopAck => intern!("HopAck"),
        Kind::Heard => intern!("Heard"),
    }
}

/// All reasons, to look through the counters.
pub const REJECTS: [Reject; Reject::COUNT] = [
    Reject::TooShort,
    Reject::TooLong,
    Reject::Version,
    Reject::Network,
    Reject::Kind,
    Reject::UnknownSender,
    Reject::OwnId,
    Reject::NotForMe,
    Reject::Length,
    Reject::Field,
    Reject::Capacity,
    Reject::OldBoot,
    Reject::Key,
    Reject::Replayed,
    Reject::Forged,
    Reject::Unproven,
    Reject::Budget,
    Reject::WrongAlgorithm,
    Reject::NotAwaited,
    Reject::Down,
    Reject::HaltFromBelow,
    Reject::HeldOff,
];

fn reject_name(reason: Reject) -> Str {
    match reason {
        Reject::TooShort => intern!("too-short"),
        Reject::TooLong => intern!("too-long"),
        Reject::Version => intern!("version"),
        Reject::Network => intern!("network"),
        Reject::Kind => intern!("kind"),
        Reject::UnknownSender => intern!("unknown-sender"),
        Reject::OwnId => intern!("own-id"),
        Reject::NotForMe => intern!("not-for-me"),
        Reject::Length => intern!("length"),
        Reject::Field => intern!("field"),
        Reject::Capacity => intern!("capacity"),
        Reject::OldBoot => intern!("old-boot"),
        Reject::Key => intern!("key"),
        Reject::Replayed => intern!("replayed"),
        Reject::Forged => intern!("forged"),
        Reject::Unproven => intern!("unproven"),
        Reject::Budget => intern!("budget"),
        Reject::WrongAlgorithm => intern!("wrong-algorithm"),
        Reject::NotAwaited => intern!("not-awaited"),
        Reject::Down => intern!("down"),
        Reject::HaltFromBelow => intern!("halt-from-below"),
        Reject::HeldOff => intern!("held-off"),
    }
}
