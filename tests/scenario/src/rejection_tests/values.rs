//! Values that are wrong by themselves.

use super::*;

#[test]
fn number_of_nodes_out_of_range() {
    let allowed = "allowed: a whole number from 1 to 255";
    refuses(3, "nodes = 5", "nodes = 0", &format!("`nodes` is 0; {allowed}"));
    refuses(3, "nodes = 5", "nodes = 256", &format!("`nodes` is 256; {allowed}"));
    refuses(3, "nodes = 5", "nodes = -1", &format!("`nodes` is -1; {allowed}"));
}

#[test]
fn unknown_algorithm() {
    let message = "`algorithm` is \"raft\"; allowed: \"bully\", \"invitation\", \"ring\"";
    refuses(2, "algorithm = \"bully\"", "algorithm = \"raft\"", message);
    let message = "`algorithm` is \"Bully\"; allowed: \"bully\", \"invitation\", \"ring\"";
    refuses(2, "algorithm = \"bully\"", "algorithm = \"Bully\"", message);
}

#[test]
fn unknown_durability() {
    let message = "`durability` is \"none\"; allowed: \"group\", \"strict\"";
    refuses(12, "durability = \"group\"", "durability = \"none\"", message);
}

#[test]
fn unknown_detector_and_observers_that_are_no_nodes() {
    let old = "durability = \"group\"";
    let message = "`detector` is \"good\"; \
                   allowed: \"reliable\", \"heartbeat\", \"adaptive\", \"indirect\"";
    refuses(12, old, "detector = \"good\"", message);
    let message = "`observers` is 6; allowed: a node id from 1 to 5";
    refuses(12, old, "observers = [6]", message);
}

#[test]
fn unknown_action() {
    let message = "`do` is \"shake\"; allowed: \"kill\", \"boot\", \"pause\", \"resume\", \
                   \"leave\", \"reset\", \"partition\", \"link\", \"unplug\", \"plug\", \"heal\"";
    refuses(20, "do = \"kill\"", "do = \"shake\"", message);
}

#[test]
fn time_that_is_no_time() {
    let allowed = "allowed: 0 to 1000000000 milliseconds, with at most three decimals";
    for value in ["-1", "-0.5", "1000000001", "1000.0001", "inf", "nan", "\"1 s\""] {
        let message = format!("`ms` is {value}; {allowed}");
        refuses(19, "ms = 1000", &format!("ms = {value}"), &message);
    }
    let message = format!("`delay_ms` is -1; {allowed}");
    refuses(49, "delay_ms = 1", "delay_ms = -1", &message);
    let message = format!("`jitter_ms` is -1; {allowed}");
    refuses(50, "jitter_ms = 1", "jitter_ms = -1", &message);
}

#[test]
fn time_that_must_not_be_zero() {
    let allowed = "allowed: more than 0 and up to 1000000000 milliseconds, \
                   with at most three decimals";
    let zero = |line, old: &str, key: &str, value: &str| {
        let message = format!("`{key}` is {value}; {allowed}");
        refuses(line, old, &format!("{key} = {value}"), &message);
    };
    zero(5, "duration_ms = 9000", "duration_ms", "0");
    zero(6, "tm_ms = 20", "tm_ms", "0");
    zero(6, "tm_ms = 20", "tm_ms", "0.0");
    zero(7, "tp_ms = 10", "tp_ms", "0");
    zero(8, "t_ms = 60", "t_ms", "0");
    zero(9, "check_ms = 600", "check_ms", "0");
    zero(10, "quiet_ms = 90", "quiet_ms", "0");
}

#[test]
fn id_out_of_range() {
    let allowed = "allowed: a node id from 1 to 5";
    for value in ["0", "6", "-1", "256", "1.0"] {
        let message = format!("`nodes` is {value}; {allowed}");
        refuses(21, "nodes = [4]", &format!("nodes = [{value}]"), &message);
    }
    let refuses = |line, old, new, key| {
        refuses(line, old, new, &format!("`{key}` is 6; {allowed}"));
    };
    refuses(13, "boot = [1, 2, 3, 4]", "boot = [6]", "boot");
    refuses(41, "sets = [[1, 2], [3, 4]]", "sets = [[1, 6]]", "sets");
    refuses(46, "from = [1]", "from = [6]", "from");
    refuses(47, "to = [2, 3]", "to = [6]", "to");
    refuses(60, "nodes = [1, 2]", "nodes = [6]", "nodes");
    refuses(62, "coordinator = 5", "coordinator = 6", "coordinator");
    refuses(65, "node = 2", "node = 6", "node");
}

#[test]
fn preference_of_nobody() {
    let allowed = "allowed: a node id from 1 to 5";
    for key in ["0", "6", "02", "two"] {
        let message = format!("`preference` names node `{key}`; {allowed}");
        refuses(16, "2 = 10", &format!("{key} = 10"), &message);
    }
    let message = "`2` is 256; allowed: a whole number from 0 to 255";
    refuses(16, "2 = 10", "2 = 256", message);
}

#[test]
fn the_line_is_that_of_the_element() {
    let message = "`nodes` is 6; allowed: a node id from 1 to 5";
    refuses_at(21, "nodes = [4]", "nodes = [\n4,\n6\n]", 23, message);
}

#[test]
fn empty_list() {
    let allowed = "allowed: a list of at least one node id from 1 to 5, each once";
    let empty = |line, old: &str, new: &str, key: &str| {
        refuses(line, old, new, &format!("`{key}` is an empty list; {allowed}"));
    };
    empty(13, "boot = [1, 2, 3, 4]", "boot = []", "boot");
    empty(21, "nodes = [4]", "nodes = []", "nodes");
    empty(41, "sets = [[1, 2], [3, 4]]", "sets = [[1, 2], []]", "sets");
    empty(46, "from = [1]", "from = []", "from");
    empty(47, "to = [2, 3]", "to = []", "to");
    empty(60, "nodes = [1, 2]", "nodes = []", "nodes");
}

#[test]
fn id_given_twice() {
    let twice = |line, old: &str, new: &str, id: u8, key: &str| {
        let message = format!("node {id} stands twice in `{key}`; allowed: each node once");
        refuses(line, old, new, &message);
    };
    twice(13, "boot = [1, 2, 3, 4]", "boot = [1, 2, 3, 2]", 2, "boot");
    twice(21, "nodes = [4]", "nodes = [4, 4]", 4, "nodes");
    twice(46, "from = [1]", "from = [1, 1]", 1, "from");
    twice(47, "to = [2, 3]", "to = [2, 3, 2]", 2, "to");
    twice(60, "nodes = [1, 2]", "nodes = [1, 1]", 1, "nodes");
}

#[test]
fn probability_out_of_range() {
    for value in ["1.01", "-0.1", "2", "-1", "nan", "\"half\""] {
        for (line, old, key) in [
            (48, "loss = 0.5", "loss"),
            (51, "duplicate = 0.1", "duplicate"),
            (52, "reorder = 0.1", "reorder"),
        ] {
            let message = format!("`{key}` is {value}; allowed: 0 to 1");
            refuses(line, old, &format!("{key} = {value}"), &message);
        }
    }
}

#[test]
fn counts_that_say_nothing() {
    let resets = |new: &str, message: &str| {
        let old = "resets = { cause = \"deadline\", at_least = 1, at_most = 2 }";
        refuses(66, old, &format!("resets = {{ {new} }}"), message);
    };
    resets(
        "cause = \"panic\"",
        "neither `at_least` nor `at_most` is given; required: one of them or both",
    );
    resets(
        "cause = \"panic\", at_least = 2, at_most = 1",
        "`at_least` 2 exceeds `at_most` 1; allowed: `at_least` up to `at_most`",
    );
    resets(
        "cause = \"panic\", at_least = -1",
        "`at_least` is -1; allowed: a whole number from 0 to 1000000000",
    );
    resets(
        "at_least = 1",
        "`cause` is missing; \
         required: `cause`, one of deadline, watchdog, panic, request, power",
    );
    resets(
        "cause = \"boredom\", at_least = 1",
        "`cause` is \"boredom\"; \
         allowed: \"deadline\", \"watchdog\", \"panic\", \"request\", \"power\"",
    );
    let old = "elections = { since_ms = 5000, at_most = 3 }";
    let message = "neither `at_least` nor `at_most` is given; required: one of them or both";
    refuses(67, old, "elections = { since_ms = 5000 }", message);
}
