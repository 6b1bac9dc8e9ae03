//! Two boards with one id.

use super::*;
use crate::effects::{Effect, FailCause, MuteReason, Note};
use crate::node::testing::PEER_BOOT;
use crate::node::{Event, Node};
use crate::time::Instant;
use crate::timers::Timer;
use crate::wire::{Kind, Reject};

/// A board with a clock of its own.
struct Board {
    node: Node<1>,
    now: u64,
    /// How often the node has reset itself.
    resets: u32,
}

impl Board {
    /// Node 3 of the nodes 1 to 5, up for so long.
    fn up(stored: u32, instance: u32, uptime_ms: u64) -> (Self, Vec<Vec<u8>>) {
        let (mut board, first) = Self::wakes(3, stored, instance);
        while board.now < uptime_ms * 1000 {
            board.now += 1000;
            board.step(Event::Tick);
            board.step(Event::Timer);
        }
        (board, first)
    }

    /// This node of the nodes 1 to 5, and what it says first.
    fn wakes(me: u8, stored: u32, instance: u32) -> (Self, Vec<Vec<u8>>) {
        let node = Node::new(config(me, 5, Algorithm::Invitation), keys(), instance).unwrap();
        let mut board = Self { node, now: 0, resets: 0 };
        board.step(Event::Boot { stored_epoch: Some(stored) });
        let (first, _) = board.step(Event::EpochSaved { read_back: Some(stored + 2) });
        (board, first)
    }

    /// In which boot this node follows another.
    fn follows(&self, other: u8) -> Option<u32> {
        let link = &self.node.station().link;
        link.proven().contains(id(other)).then(|| link.followed_epoch(id(other)))
    }

    fn step(&mut self, event: Event<'_>) -> (Vec<Vec<u8>>, Vec<Note>) {
        let effects = self.node.step(Instant(self.now), event);
        let (mut sent, mut notes) = (Vec::new(), Vec::new());
        for effect in effects.iter() {
            match effect {
                Effect::Send { datagram, .. } => sent.push(datagram.to_vec()),
                Effect::Note(note) => notes.push(note),
                _ => {}
            }
        }
        (sent, notes)
    }

    fn receive(&mut self, bytes: &[u8]) -> (Vec<Vec<u8>>, Vec<Note>) {
        self.step(Event::Datagram { received: Instant(self.now), bytes: &mut bytes.to_vec() })
    }
}

fn kinds(sent: &[Vec<u8>]) -> Vec<Kind> {
    sent.iter().map(|bytes| Header::new_checked(bytes).unwrap().kind).collect()
}

/// The late one wakes with `stored`; both talk until nobody has anything to say.
fn meet(stored: u32, instance: u32) {
    let (mut first, _) = Board::up(40, 7, 2000);
    let (mut late, hello) = Board::up(stored, instance, 0);
    let (mut sent, notes) = first.receive(&hello[0]);
    assert_eq!((kinds(&sent), notes), ([Kind::Hello].into(), [].into()), "a question, no more");
    let (mut said, notes) = late.receive(&sent.remove(0));
    assert_eq!(notes, [Note::Mute(MuteReason::IdClash)]);
    assert!(late.node.is_mute() && late.node.next_deadline().is_none());
    assert_eq!(kinds(&said), [Kind::Hello]);
    let last_word = said.remove(0);
    let (sent, notes) = first.receive(&last_word);
    assert_eq!(kinds(&sent), [Kind::Hello, Kind::Clash]);
    assert_eq!(notes, [Note::IdClash(id(3))]);
    assert!(!first.node.is_mute());
    assert_eq!(late.receive(&sent[0]).0, [] as [Vec<u8>; 0], "mute");
    assert_eq!(first.receive(&last_word), ([].into(), [].into()), "said once is enough");
}

#[test]
fn the_later_of_two_boards_falls_silent() {
    meet(60, 1);
    meet(60, 9);
    meet(20, 1);
}

#[test]
fn a_cloned_image_is_known_by_its_instance() {
    meet(40, 9);
}

#[test]
fn boards_that_wake_together_are_told_apart_by_their_instance() {
    let (mut low, _) = Board::up(40, 1, 20);
    let (mut high, hello) = Board::up(60, 2, 10);
    let (sent, _) = low.receive(&hello[0]);
    let (sent, notes) = high.receive(&sent[0]);
    assert_eq!(notes, [Note::IdClash(id(3))]);
    assert_eq!(kinds(&sent), [Kind::Hello, Kind::Clash]);
    let (_, notes) = low.receive(&sent[0]);
    assert_eq!(notes, [Note::Mute(MuteReason::IdClash)]);
}

/// Two boards of one id hear each other on a wire that takes `delay_ms`, for four T from the moment at
/// which the younger one wakes. Says whether the elder and the younger are mute then.
fn talk(boards: &mut [Board; 2], hello: Vec<Vec<u8>>, delay_ms: u64, ms: u64) -> [bool; 2] {
    // When, to whom, what.
    let mut wire: Vec<(u64, usize, Vec<u8>)> = Vec::new();
    wire.extend(hello.into_iter().map(|bytes| (delay_ms, 0, bytes)));
    for now in 0..ms {
        let due: Vec<_> = wire.extract_if(.., |(at, ..)| *at <= now).collect();
        for (me, board) in boards.iter_mut().enumerate() {
            let mut said = [board.step(Event::Tick).0, board.step(Event::Timer).0].concat();
            for (_, _, bytes) in due.iter().filter(|(_, to, _)| *to == me) {
                said.extend(board.receive(bytes).0);
            }
            board.now += 1000;
            wire.extend(said.into_iter().map(|bytes| (now + delay_ms, 1 - me, bytes)));
        }
    }
    boards.each_ref().map(|board| board.node.is_mute())
}

#[test]
fn one_of_two_stays_however_far_apart_they_woke() {
    let timing = config::<1>(3, 5, Algorithm::Invitation).timing;
    let (t, tm) = (timing.t.us() / 1000, timing.tm.us() / 1000);
    for apart in 0..=3 * t {
        for delay in [0, tm / 2, tm] {
            for (instance, other) in [(1, 2), (2, 1)] {
                for stored in [40, 60] {
                    let (elder, _) = Board::up(40, instance, apart);
                    let (younger, hello) = Board::up(stored, other, 0);
                    let [first, late] = talk(&mut [elder, younger], hello, delay, 4 * t);
                    let what = std::format!("{apart} ms apart, {delay} ms, {instance}, {stored}");
                    assert_ne!(first, late, "{what}");
                    assert!(apart <= t || late, "the later one: {what}");
                }
            }
        }
    }
}

#[test]
fn neither_a_reflection_nor_a_recording_of_an_earlier_boot_mutes_a_node() {
    let (_, earlier) = Board::up(20, 3, 300);
    let (mut board, mut sent) = Board::up(40, 7, 300);
    sent.extend(earlier);
    for _ in 0..3 {
        for bytes in &sent {
            let (answers, notes) = board.receive(bytes);
            assert_eq!(notes, []);
            // Even its own question back.
            answers.iter().for_each(|answer| drop(board.receive(answer)));
        }
    }
    assert!(!board.node.is_mute());
    assert!(board.node.counters().rejected(Reject::OwnId) >= 6);
}

#[test]
fn others_follow_the_board_that_they_know_and_note_the_clash() {
    let mut bench = awake();
    // A second node 2, in a boot of its own, is not proven to anybody.
    let twin = question(&bench, 0, |header| header.boot = PEER_BOOT + 20);
    bench.receive(&twin).none();
    let question = |bench: &Bench<1>| question(bench, bench.node.boot_epoch(), |_| {});
    let known = question(&bench);
    assert_eq!(bench.receive(&known).unicast().0, 2);
    let envelope = Envelope::Broadcast { awaited: crate::id::NodeSet::EMPTY };
    let clash = Message::Clash { instance: 9 };
    let clash = bench.datagram(2, Destination::All, 0, envelope, clash);
    assert_eq!(bench.receive(&clash).notes(), [Note::IdClash(id(2))]);
    bench.fire(Timer::Hello).ignore();
    bench.hellos.clear();
    for _ in 0..5 {
        bench.pass(bench.timing().t).ignore();
        let known = question(&bench);
        assert_eq!(bench.receive(&known).sent().len(), 1, "it goes on as before");
    }
    assert_eq!(bench.hellos, [], "and nobody asks it any more");
}

/// Boards on a wire that takes a millisecond. Who resets itself wakes again at once.
fn live(boards: &mut [Board], ms: u64, hears: impl Fn(usize, usize) -> bool) -> Vec<(usize, Note)> {
    let (mut wire, mut noted) = (Vec::<(usize, Vec<u8>)>::new(), Vec::new());
    for _ in 0..ms {
        let due = core::mem::take(&mut wire);
        for (me, board) in boards.iter_mut().enumerate() {
            let mut steps = [board.step(Event::Tick), board.step(Event::Timer)].to_vec();
            for (from, bytes) in &due {
                if *from != me && hears(*from, me) {
                    steps.push(board.receive(bytes));
                }
                if board.node.station().failed.is_some() {
                    let station = board.node.station();
                    let (node, boot) = (station.config.id.get(), station.boot);
                    let (next, hello) = Board::wakes(node, boot, 77);
                    *board = Board { resets: board.resets + 1, ..next };
                    steps.push((hello, Vec::new()));
                }
            }
            board.now += 1000;
            for (sent, notes) in steps {
                wire.extend(sent.into_iter().map(|bytes| (me, bytes)));
                noted.extend(notes.into_iter().map(|note| (me, note)));
            }
        }
    }
    noted
}

/// The replacement of a board that was thought dead wakes where the other cannot be heard.
#[test]
fn who_followed_the_twin_follows_the_board_that_stays() {
    const ELDER: usize = 0;
    const OTHER: usize = 2; // 1 is the twin
    let (elder, _) = Board::up(40, 7, 3000);
    let (twin, _) = Board::wakes(3, 1000, 9);
    let (other, _) = Board::wakes(1, 10, 5);
    let mut boards = [elder, twin, other];
    live(&mut boards, 1000, |from, to| from != ELDER && to != ELDER);
    assert_eq!(boards[OTHER].follows(3), Some(1002));
    let noted = live(&mut boards, 1000, |_, _| true);
    assert_eq!(boards.each_ref().map(|board| board.node.is_mute()), [false, true, false]);
    assert_eq!(boards.each_ref().map(|board| board.resets), [0, 0, 1]);
    assert_eq!(boards[OTHER].follows(3), Some(42), "the one that stays");
    assert!(noted.contains(&(ELDER, Note::IdClash(id(3)))));
    assert!(noted.contains(&(OTHER, Note::IdClash(id(3)))));
}

/// Loss hides a clash from nobody.
#[test]
fn a_clash_is_told_three_times() {
    let (mut first, _) = Board::up(40, 7, 2000);
    let (mut late, hello) = Board::up(60, 9, 0);
    let asked = first.receive(&hello[0]).0;
    let last_word = late.receive(&asked[0]).0;
    let mut told = kinds(&first.receive(&last_word[0]).0);
    let mut fell = Vec::new();
    for _ in 0..9 {
        told.extend(kinds(&first.step(Event::Tick).0));
        fell.extend(late.step(Event::Tick).0);
    }
    assert_eq!(told, [Kind::Hello, Kind::Clash, Kind::Clash, Kind::Clash]);
    assert_eq!(kinds(&fell), [Kind::Clash; 3], "and then it is silent");
}

/// Neither its own recordings nor those of the twin prove anything to the next boot of the node that
/// reset itself; and a claim of the twin, from the past, does not shut the other out.
#[test]
fn after_that_reset_no_recording_is_followed() {
    let mut bench = awake();
    let boot = bench.node.boot_epoch();
    let elder = question(&bench, boot, |_| {});
    let twin = question(&bench, boot, |header| header.boot = PEER_BOOT + 20);
    assert_eq!(bench.receive(&twin).unicast().0, 2, "proven");
    bench.receive(&elder).none();
    assert_eq!(bench.rejected(Reject::OldBoot), 1);
    let mut header = bench.header(2, Destination::All, Kind::Clash);
    (header.boot, header.sequence) = (PEER_BOOT + 20, 500);
    let (envelope, clash) = (
        Envelope::Broadcast { awaited: crate::id::NodeSet::EMPTY },
        Message::Clash { instance: 0 },
    );
    let mut room = [0; 200];
    let key = &keys().send.key;
    let len = seal::seal::<1>(&header, key, (0, 0), &envelope, &clash, &mut room).unwrap();
    let acts = bench.receive(&room[..len]);
    assert_eq!(acts.failed(), Some(FailCause::FollowedTwin(id(2))));
    assert_eq!(acts.notes(), [Note::IdClash(id(2))]);

    let mut bench = Bench::<1>::off(config(3, 5, Algorithm::Bully));
    bench.step(Event::Boot { stored_epoch: Some(boot) }).ignore();
    bench.step(Event::EpochSaved { read_back: Some(boot + 2) }).ignore();
    for recording in [&elder, &twin, &room[..len].to_vec(), &elder, &twin] {
        bench.receive(recording).ignore();
        assert!(!bench.node.station().link.proven().contains(id(2)));
    }
    bench.peer_sequence.set(900);
    let fresh = question(&bench, boot + 2, |_| {});
    bench.receive(&fresh).ignore();
    let link = &bench.node.station().link;
    assert!(link.proven().contains(id(2)));
    assert_eq!(link.followed_epoch(id(2)), PEER_BOOT);
}
