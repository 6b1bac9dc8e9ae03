//! Values that are wrong beside the others of the file.

use super::*;

#[test]
fn time_out_of_order() {
    let message = "`ms` is 999; allowed: 1000 (the entry before) to 9000 (`duration_ms`)";
    refuses(24, "ms = 2000", "ms = 999", message);
    let message = "`ms` is 4000.499; allowed: 4000.5 (the entry before) to 9000 (`duration_ms`)";
    refuses(39, "ms = 5000", "ms = 4000.499", message);
}

#[test]
fn time_beyond_the_end() {
    let message = "`ms` is 9000.001; allowed: 6000 (the entry before) to 9000 (`duration_ms`)";
    refuses(55, "ms = 7000", "ms = 9000.001", message);
    let message = "the time is 9001; allowed: 0 to 9000 (`duration_ms`)";
    refuses(59, "ms = 8000", "ms = 9001", message);
    let message = "the time is 9001; allowed: 0 to 9000 (the time of the expectation)";
    let old = "elections = { since_ms = 5000, at_most = 3 }";
    refuses(67, old, "elections = { since_ms = 9001, at_most = 3 }", message);
}

#[test]
fn round_shorter_than_an_answer_may_take() {
    let message = "`t_ms` is 49.999; allowed: at least 2 Tm + Tp = 50 ms";
    refuses(8, "t_ms = 60", "t_ms = 49.999", message);
}

#[test]
fn check_shorter_than_a_round() {
    let message = "`check_ms` is 59; allowed: at least T = 60 ms";
    refuses(9, "check_ms = 600", "check_ms = 59", message);
}

#[test]
fn node_in_two_sets() {
    let message = "node 2 stands twice in `sets`; allowed: each node once";
    let old = "sets = [[1, 2], [3, 4]]";
    refuses(41, old, "sets = [[1, 2], [2, 3]]", message);
    refuses_at(41, old, "sets = [[1, 2],\n[3, 2]]", 42, message);
}

#[test]
fn link_of_a_node_with_itself() {
    let message = "the only pair is node 1 to node 1; \
                   allowed: `from` and `to` with at least one pair of different nodes";
    refuses_at(47, "to = [2, 3]", "to = [1]", 43, message);
}

#[test]
fn killing_a_dead_node() {
    let message = "`kill` names node 5, which is dead at this time; allowed: a node with power";
    refuses(21, "nodes = [4]", "nodes = [4, 5]", message);
    // Node 4 is dead since 1000 ms.
    let message = "`kill` names node 4, which is dead at this time; allowed: a node with power";
    refuses_at(25, "do = \"boot\"", "do = \"kill\"", 26, message);
}

#[test]
fn booting_a_live_node() {
    let message =
        "`boot` names node 3, which is powered at this time; allowed: a node without power";
    refuses(26, "nodes = [4, 5]", "nodes = [4, 3]", message);
    let message =
        "`boot` names node 4, which is powered at this time; allowed: a node without power";
    refuses_at(20, "do = \"kill\"", "do = \"boot\"", 21, message);
}

#[test]
fn booting_a_paused_node() {
    let message =
        "`boot` names node 2, which is powered at this time; allowed: a node without power";
    refuses_at(35, "do = \"resume\"", "do = \"boot\"", 36, message);
}

#[test]
fn pausing_a_dead_node() {
    let message = "`pause` names node 4, which is dead at this time; allowed: a running node";
    refuses_at(25, "do = \"boot\"", "do = \"pause\"", 26, message);
}

#[test]
fn resetting_a_dead_node() {
    let message = "`leave` names node 4, which is dead at this time; allowed: a running node";
    refuses_at(25, "do = \"boot\"", "do = \"leave\"", 26, message);
    let message = "`reset` names node 4, which is dead at this time; allowed: a node with power";
    refuses_at(25, "do = \"boot\"", "do = \"reset\"", 26, message);
}

#[test]
fn pausing_a_paused_node() {
    let message = "`pause` names node 2, which is paused at this time; allowed: a running node";
    refuses_at(35, "do = \"resume\"", "do = \"pause\"", 36, message);
}

#[test]
fn moving_the_cable_of_a_paused_node() {
    for action in ["unplug", "plug"] {
        let message = format!(
            "`{action}` names node 2, which is paused at this time; \
             allowed: a node that is not paused"
        );
        refuses_at(35, "do = \"resume\"", &format!("do = \"{action}\""), 36, &message);
    }
}

#[test]
fn resuming_a_node_that_is_not_paused() {
    let message = "`resume` names node 3, which is not paused at this time; allowed: a paused node";
    refuses(36, "nodes = [2]", "nodes = [2, 3]", message);
    // Killed while paused: there is nothing to go on with.
    let message = "`resume` names node 2, which is not paused at this time; allowed: a paused node";
    let killed = "nodes = [2]\n[[at]]\nms = 3500\ndo = \"kill\"\nnodes = [2]";
    refuses_at(31, "nodes = [2]", killed, 40, message);
}

#[test]
fn expectation_about_nobody() {
    let message = "neither `nodes` nor `node` is given; \
                   required: one of them, to say whom the expectation is about";
    refuses_at(60, "nodes = [1, 2]", "", 58, message);
    let message = "both `nodes` and `node` are given; allowed: one of them";
    refuses(61, "settled = true", "node = 1", message);
}

#[test]
fn expectation_of_nothing() {
    let tail = "\n[[expect]]\nnode = 1\n";
    let text = format!("{GOOD}{tail}");
    let bad = Scenario::parse("f.toml", &text).unwrap_err();
    let message = "f.toml:69: nothing is expected; \
                   required: `settled`, `coordinator`, `resets` or `elections`";
    assert_eq!(bad.to_string(), message);
}
