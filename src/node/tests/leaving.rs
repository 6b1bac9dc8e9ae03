//! Leaving on purpose, seen from the node that leaves and from those that it leaves.

use super::*;
use crate::effects::{Effect, Note};
use crate::node::testing::{Acts, group_of, id, set};
use crate::state::Status;
use crate::wire::{Envelope, Lap, Reject, Token};

fn farewell(group: GroupId) -> Message<'static, 1> {
    Message::Leaving { group: Some(group) }
}

/// A token of the run of node 5.
fn token(lap: Lap) -> Message<'static, 1> {
    Message::Token(Token {
        lap,
        run: group_of(5, 1),
        round: 9,
        list: set(1..=5),
        suspects: NodeSet::EMPTY,
        incumbent: None,
        definition: if lap == Lap::Ready { b"task" } else { b"" },
    })
}

/// Node `me`, Normal in a group of all five under node 5.
fn member(me: u8, algorithm: Algorithm) -> Bench<1> {
    let (mut bench, acts) = Bench::booted(config(me, 5, algorithm));
    acts.ignore();
    let group = group_of(5, 1);
    let all = [1, 2, 3, 4];
    match algorithm {
        Algorithm::Bully => {
            bench.hear(5, &all, Message::Halt { group, binding: true }).ignore();
            bench.hear(5, &all, Message::NewCoordinator { group }).ignore();
        }
        Algorithm::Invitation => {
            let leave = bench.state().group.unwrap();
            bench.request(5, invite_one(me, group, leave)).ignore();
        }
        Algorithm::Ring => {
            bench.fire(Timer::Phase).ignore();
            for lap in [Lap::Elect, Lap::Coord] {
                bench.request(5, token(lap)).ignore();
            }
        }
    }
    let acts = match algorithm {
        Algorithm::Ring => bench.request(5, token(Lap::Ready)),
        _ => bench.hear(5, &all, Message::Ready { group, up: set(all), definition: b"task" }),
    };
    bench.saved(acts.save()).ignore();
    if algorithm == Algorithm::Ring {
        bench.reply(me + 1, Message::HopAck).none();
    }
    assert_eq!((bench.status(), bench.coordinator()), (Status::Normal, Some(5)));
    bench
}

#[test]
fn who_leaves_says_so_three_times_and_is_silent() {
    for algorithm in ALL {
        let mut bench = member(3, algorithm);
        let acts = bench.step(Event::StepDown);
        assert_eq!(acts.messages(), [farewell(group_of(5, 1))]);
        assert!(acts.stops() && acts.has(Effect::Note(Note::Leaving(id(3)))));
        assert!(bench.node.has_left());
        assert_eq!((bench.status(), bench.coordinator()), (Status::Down, None));
        for _ in 0..2 {
            assert_eq!(bench.next().messages(), [farewell(group_of(5, 1))]);
        }
        assert_eq!(bench.node.next_deadline(), None, "silent from now on");
        let question = Message::AreYouThere { group: None, status: Status::Down };
        bench.request(1, question).none();
        assert_eq!(bench.rejected(Reject::Down), 1);
        bench.step(Event::StepDown).none();
    }
}

fn takes_over(acts: &Acts<1>, algorithm: Algorithm) -> bool {
    acts.messages().iter().any(|message| match algorithm {
        Algorithm::Bully => matches!(message, Message::Halt { .. }),
        Algorithm::Invitation => matches!(message, Message::Invitation { .. }),
        Algorithm::Ring => matches!(message, Message::Token(_)),
    })
}

#[test]
fn the_highest_member_takes_over_at_once_and_the_others_leave_it_to_that_one() {
    for algorithm in ALL {
        let mut highest = member(4, algorithm);
        assert!(takes_over(&highest.hear(5, &[], farewell(group_of(5, 1))), algorithm));
        let mut other = member(3, algorithm);
        let acts = other.hear(5, &[], farewell(group_of(5, 1)));
        assert_eq!(acts.messages(), []);
        assert!(other.due_in(Timer::Quiet) >= Some(other.timing().t.times(2)));
    }
}

#[test]
fn a_departed_node_is_not_asked_until_it_is_heard_in_another_boot() {
    let mut bench = member(3, Algorithm::Bully);
    bench.hear(5, &[], farewell(group_of(5, 1))).ignore();
    assert_eq!(bench.fire(Timer::Quiet).broadcast().0, [4], "not 5");
    bench.hear(5, &[], farewell(group_of(5, 1))).ignore();
    assert!(bench.station_mut().departed.contains(id(5)), "still the same boot");
    bench.reboot_peer(5);
    bench.request(5, Bench::answer_to_greeting()).ignore();
    assert!(bench.station_mut().departed.is_empty());
}

#[test]
fn a_coordinator_re_forms_at_once_without_the_member_that_leaves() {
    let mut bench = member(4, Algorithm::Invitation);
    // Node 4 becomes the coordinator of what node 5 leaves behind.
    let group = bench.state().group.unwrap();
    bench.hear(5, &[], farewell(group)).ignore();
    let group = bench.state().group.unwrap();
    for other in [1, 2, 3] {
        bench.request(other, Message::Accept { group }).ignore();
    }
    let acts = bench.reorganized(group, b"task");
    bench.saved(acts.save()).ignore();
    for other in [1, 2, 3] {
        bench.reply(other, Message::ReadyAns { ok: true }).ignore();
    }
    assert_eq!((bench.status(), bench.up()), (Status::Normal, [1, 2, 3].into()));
    let acts = bench.hear(2, &[], farewell(group));
    assert!(takes_over(&acts, Algorithm::Invitation));
    assert_eq!(acts.sent()[0].envelope, Envelope::Broadcast { awaited: set([1, 3]) });
}
