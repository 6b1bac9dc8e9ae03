//! Two boards with one id.

use super::*;
use crate::effects::{Effect, Effects, MuteReason, Note};
use crate::node::testing::PEER_BOOT;
use crate::node::{Event, Node};
use crate::time::Instant;
use crate::timers::Timer;
use crate::wire::{Kind, Reject};

/// A board with a clock of its own.
struct Board {
    node: Node<1>,
    effects: Effects<1>,
    now: u64,
}

impl Board {
    /// Node 3 of the nodes 1 to 5, up for so long.
    fn up(stored: u32, instance: u32, uptime_ms: u64) -> (Self, Vec<Vec<u8>>) {
        let node = Node::new(config(3, 5, Algorithm::Invitation), keys(), instance).unwrap();
        let mut board = Self { node, effects: Effects::default(), now: 0 };
        board.step(Event::Boot { stored_epoch: Some(stored) });
        let (first, _) = board.step(Event::EpochSaved { read_back: Some(stored + 2) });
        while board.now < uptime_ms * 1000 {
            board.now += 1000;
            board.step(Event::Tick);
            board.step(Event::Timer);
        }
        (board, first)
    }

    fn step(&mut self, event: Event<'_>) -> (Vec<Vec<u8>>, Vec<Note>) {
        self.node.step(Instant(self.now), event, &mut self.effects);
        let (mut sent, mut notes) = (Vec::new(), Vec::new());
        for effect in self.effects.iter() {
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
