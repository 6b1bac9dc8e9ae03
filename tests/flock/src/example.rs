//! The flock file that `cargo flock new` writes.

use zeroize::Zeroizing;

use crate::board::Board;
use crate::file::number_of;
use crate::keys::RootKey;

/// Tp where the board does not need a longer one.
const TP_MS: u64 = 20;

/// A commented file for so many nodes of one kind, with a fresh key.
pub fn example(
    name: &str,
    algorithm: &str,
    board: &Board,
    nodes: u8,
) -> Result<Zeroizing<String>, String> {
    let root = RootKey::random()?.to_hex();
    let number = number_of(name);
    let low = number.to_le_bytes()[0];
    let tp_ms = board.tp_us_min.div_ceil(1000).max(TP_MS);
    let board = board.name;
    let mut text = Zeroizing::new(String::with_capacity(4096));
    text.push_str(&format!(
        r#"# A flock of boards. This file holds its root key: keep it secret, and keep a copy.
# `cargo flock make` writes one flash image per member; `cargo flock rotate` changes the key.

network = {name:?}
# number = {number}             # tells flocks on one wire apart; derived from the name
algorithm = "{algorithm}"       # "bully", "invitation" or "ring"
board = "{board}"
port = 4711

tm_ms = 20                      # Tm: the longest way of a datagram
tp_ms = {tp_ms:<24}# Tp: from a request to its answer
# ts_ms = 4200                  # Ts: what a save adds; what the board's flash needs otherwise
# t_ms = 60                     # T: how long a call waits; 2 Tm + Tp otherwise
# check_ms = 600                # P: the period of Check; 10 T otherwise
# quiet_ms = 80                 # Q: silence before the coordinator is suspected
durability = "group"            # or "strict": every change is saved before it is told
# detector = "heartbeat"        # or "adaptive", "indirect"; "reliable" for bully
# quiet_max_ms = 320            # the longest silence that "adaptive" bears; 4 Q otherwise
# preempt = true                # false: a node that comes back leaves the coordinator its role
# hold_off_ms = 5000            # a node that reboots twice in this time must stay up as long
# observers = [1]               # members that never coordinate
accept_version_1 = false        # true only while a flock without keys gets them

send = 1                        # the key that boards send with
keys = [
    {{ id = 1, root = ""#,
    ));
    text.push_str(&root);
    text.push_str("\" },\n]\n");
    for id in 1..=nodes {
        text.push_str(&format!("\n[[member]]\nid = {id}\npreference = 0\n"));
        if id == 1 {
            text.push_str(&format!("# address = \"10.66.{low}.{id}\"\n"));
        }
        let comment = "# counted by `cargo flock make`: never count back";
        let comment = if id == 1 { comment } else { "" };
        text.push_str(format!("incarnation = 0  {comment}").trim_end());
        text.push('\n');
    }
    Ok(text)
}
