//! The longest datagrams, and the fullest step.

use super::*;
use crate::id::NodeSet;
use crate::invitation::coordinator::INVITEES_ROOM;
use crate::link::seal::{HEADER_BYTES, TAG_BYTES};
use crate::wire::DATAGRAM_BYTES_MAX;

#[test]
fn the_longest_chunk_of_an_invitation_fits_one_datagram() {
    // Header, call, the set of those who are awaited, the group, the count, the entries, the tag.
    let text = 4 + 1 + NodeSet::<4>::BYTES_MAX + 9 + 1 + INVITEES_ROOM;
    let longest = HEADER_BYTES + text + TAG_BYTES;
    assert!(longest <= DATAGRAM_BYTES_MAX, "{longest} bytes");
}

/// Node 255 of 255 invites `groups` groups, each of a coordinator and the node `above` ids higher.
fn invite_groups_of_two(groups: u8, above: u8) -> (Bench<4>, Acts<4>) {
    let (mut bench, acts) = Bench::<4>::booted(config(255, 255, Algorithm::Invitation));
    acts.ignore();
    bench.fire(Timer::Check).ignore();
    for other in 1..=groups {
        let up = if above == 0 { set([]) } else { set([other + above]) };
        let message = Message::AycAns { yes: true, group: Some(group_of(other, 1)), up };
        bench.reply(other, message).ignore();
    }
    let acts = bench.fire(Timer::Phase);
    (bench, acts)
}

/// How many nodes the Invitations of a step invite.
fn invited_nodes(acts: &Acts<4>) -> usize {
    let entries = acts.messages().into_iter().map(|message| match message {
        Message::Invitation { invitees, .. } => invitees.iter().map(|(_, set)| set.len()).sum(),
        _ => 0,
    });
    entries.sum()
}

#[test]
fn all_lone_coordinators_of_a_full_flock_fit_into_one_step() {
    // 253, because the Check ends at once when all 254 have answered.
    let (_, acts) = invite_groups_of_two(253, 0);
    assert_eq!(acts.sent().len(), 2);
    assert_eq!(invited_nodes(&acts), 253);
}

#[test]
fn half_a_flock_in_groups_of_two_fits_into_one_step() {
    assert_eq!(invited_nodes(&invite_groups_of_two(64, 64).1), 128);
}

#[test]
fn a_full_flock_in_groups_of_two_is_invited_in_two_steps() {
    let (mut bench, acts) = invite_groups_of_two(127, 127);
    let first = invited_nodes(&acts);
    assert!((128..254).contains(&first), "{first}");
    for message in acts.messages() {
        let Message::Invitation { group, invitees } = message else { continue };
        for invited in invitees.iter().flat_map(|(_, set)| set.iter()) {
            bench.request(invited.get(), Message::Accept { group }).ignore();
        }
    }
    let acts = bench.fire(Timer::Repeat);
    assert_eq!(first + invited_nodes(&acts), 254);
    assert_eq!(bench.up().len(), first);
}
