//! Every way in which a file is refused, with line and message.
//!
//! Each test takes a file that is accepted and changes one line of it.

mod consistency;
mod keys;
mod values;

use crate::Scenario;

pub const GOOD: &str = r#"name = "good"
algorithm = "bully"
nodes = 5
seed = 7
duration_ms = 9000
tm_ms = 20
tp_ms = 10
t_ms = 60
check_ms = 600
quiet_ms = 90
preempt = true
durability = "group"
boot = [1, 2, 3, 4]

[preference]
2 = 10

[[at]]
ms = 1000
do = "kill"
nodes = [4]

[[at]]
ms = 2000
do = "boot"
nodes = [4, 5]

[[at]]
ms = 3000
do = "pause"
nodes = [2]

[[at]]
ms = 4000.5
do = "resume"
nodes = [2]

[[at]]
ms = 5000
do = "partition"
sets = [[1, 2], [3, 4]]

[[at]]
ms = 6000
do = "link"
from = [1]
to = [2, 3]
loss = 0.5
delay_ms = 1
jitter_ms = 1
duplicate = 0.1
reorder = 0.1

[[at]]
ms = 7000
do = "heal"

[[expect]]
ms = 8000
nodes = [1, 2]
settled = true
coordinator = 5

[[expect]]
node = 2
resets = { cause = "deadline", at_least = 1, at_most = 2 }
elections = { since_ms = 5000, at_most = 3 }
"#;

/// The message about GOOD with this line of it, counted from 1, replaced.
#[track_caller]
pub fn refusal(line: usize, old: &str, new: &str) -> String {
    let mut lines: Vec<&str> = GOOD.lines().collect();
    assert_eq!(lines[line - 1], old, "the test looks at another line");
    lines[line - 1] = new;
    match Scenario::parse("f.toml", &lines.join("\n")) {
        Ok(_) => panic!("{new:?} was accepted"),
        Err(bad) => bad.to_string(),
    }
}

/// Checks the whole message, which is at the changed line unless `at` says otherwise.
#[track_caller]
pub fn refuses(line: usize, old: &str, new: &str, message: &str) {
    refuses_at(line, old, new, line, message);
}

#[track_caller]
pub fn refuses_at(line: usize, old: &str, new: &str, at: usize, message: &str) {
    assert_eq!(refusal(line, old, new), format!("f.toml:{at}: {message}"));
}

#[test]
fn the_file_that_the_tests_change_is_good() {
    assert_eq!(Scenario::parse("f.toml", GOOD).err(), None);
}
