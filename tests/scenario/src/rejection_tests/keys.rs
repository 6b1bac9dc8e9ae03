//! Keys that are unknown, missing, misplaced or of the wrong type.

use super::*;

#[test]
fn broken_toml() {
    let message = refusal(3, "nodes = 5", "nodes = ");
    assert!(message.starts_with("f.toml:3: "), "{message}");
    assert!(message.ends_with("; allowed: TOML, each key once"), "{message}");
    assert_eq!(message.lines().count(), 1);
}

#[test]
fn key_given_twice() {
    let message = refusal(4, "seed = 7", "nodes = 4");
    assert!(message.starts_with("f.toml:4: duplicate key"), "{message}");
}

#[test]
fn unknown_key() {
    let allowed = "name, algorithm, nodes, seed, duration_ms, tm_ms, tp_ms, t_ms, check_ms, \
                   quiet_ms, quiet_max_ms, detector, preempt, hold_off_ms, durability, observers, boot, preference, at, expect";
    let message = format!("unknown key `duration`; allowed here: {allowed}");
    refuses(5, "duration_ms = 9000", "duration = 9000", &message);
}

#[test]
fn unknown_key_of_an_action() {
    let message = "unknown key `node`; allowed here: ms, do, nodes, sets, from, to, loss, \
                   delay_ms, jitter_ms, duplicate, reorder";
    refuses(21, "nodes = [4]", "node = 4", message);
}

#[test]
fn unknown_key_of_an_expectation() {
    let message = "unknown key `stable`; allowed here: ms, nodes, node, settled, coordinator, \
                   resets, elections";
    refuses(61, "settled = true", "stable = true", message);
    let message = "unknown key `min`; allowed here: cause, at_least, at_most";
    let old = "resets = { cause = \"deadline\", at_least = 1, at_most = 2 }";
    refuses(66, old, "resets = { cause = \"panic\", min = 1 }", message);
    let message = "unknown key `since`; allowed here: since_ms, at_least, at_most";
    let old = "elections = { since_ms = 5000, at_most = 3 }";
    refuses(67, old, "elections = { since = 1, at_most = 3 }", message);
}

#[test]
fn missing_key() {
    let message = "`name` is missing; required: `name`, a text that says what the scenario shows";
    refuses_at(1, "name = \"good\"", "", 1, message);
    let message =
        "`algorithm` is missing; required: `algorithm`, \"bully\", \"invitation\" or \"ring\"";
    refuses_at(2, "algorithm = \"bully\"", "", 1, message);
    let message = "`nodes` is missing; required: `nodes`, the number of nodes, 1 to 255";
    refuses_at(3, "nodes = 5", "", 1, message);
    let message = "`duration_ms` is missing; required: `duration_ms`, how long the run lasts";
    refuses_at(5, "duration_ms = 9000", "", 1, message);
    let message = "`tm_ms` is missing; required: `tm_ms`, the bound Tm of message propagation";
    refuses_at(6, "tm_ms = 20", "", 1, message);
    let message = "`tp_ms` is missing; required: `tp_ms`, the bound Tp of handling a message";
    refuses_at(7, "tp_ms = 10", "", 1, message);
}

#[test]
fn missing_key_of_an_action() {
    let message = "`ms` is missing; required: `ms`, the time of the action";
    refuses_at(19, "ms = 1000", "", 18, message);
    let message = "`do` is missing; required: `do`, the action";
    refuses_at(20, "do = \"kill\"", "", 18, message);
    let message = "`nodes` is missing; required: `nodes`, the ids that the action is for";
    refuses_at(21, "nodes = [4]", "", 18, message);
    let message = "`sets` is missing; required: `sets`, the sets inside which frames pass";
    refuses_at(41, "sets = [[1, 2], [3, 4]]", "", 38, message);
    let message = "`from` is missing; required: `from`, the ids that send";
    refuses_at(46, "from = [1]", "", 43, message);
    let message = "`to` is missing; required: `to`, the ids that receive";
    refuses_at(47, "to = [2, 3]", "", 43, message);
}

#[test]
fn wrong_type() {
    let allowed = "allowed: a text that is not empty";
    refuses(1, "name = \"good\"", "name = 5", &format!("`name` is 5; {allowed}"));
    refuses(1, "name = \"good\"", "name = \" \"", &format!("`name` is \" \"; {allowed}"));
    let allowed = "allowed: a whole number from 1 to 255";
    refuses(3, "nodes = 5", "nodes = \"5\"", &format!("`nodes` is \"5\"; {allowed}"));
    refuses(3, "nodes = 5", "nodes = 5.0", &format!("`nodes` is 5.0; {allowed}"));
    let message = "`seed` is -1; allowed: a whole number from 0 to 9223372036854775807";
    refuses(4, "seed = 7", "seed = -1", message);
    let message = "`preempt` is \"yes\"; allowed: true or false";
    refuses(11, "preempt = true", "preempt = \"yes\"", message);
    let message = "`boot` is 4; allowed: a list of at least one node id from 1 to 5, each once";
    refuses(13, "boot = [1, 2, 3, 4]", "boot = 4", message);
    let message = "`boot` is \"1\"; allowed: a node id from 1 to 5";
    refuses(13, "boot = [1, 2, 3, 4]", "boot = [\"1\"]", message);
    let message = "`sets` is 7; allowed: a list of lists of node ids";
    refuses(41, "sets = [[1, 2], [3, 4]]", "sets = 7", message);
    let message = "`sets` is 1; allowed: a list of at least one node id from 1 to 5, each once";
    refuses(41, "sets = [[1, 2], [3, 4]]", "sets = [1, 2]", message);
    let message = "`settled` is 1; allowed: true or false";
    refuses(61, "settled = true", "settled = 1", message);
    let message = "`resets` is 1; allowed: { cause = …, at_least = …, at_most = … }";
    let old = "resets = { cause = \"deadline\", at_least = 1, at_most = 2 }";
    refuses(66, old, "resets = 1", message);
    let message = "`elections` is 1; allowed: { since_ms = …, at_least = …, at_most = … }";
    let old = "elections = { since_ms = 5000, at_most = 3 }";
    refuses(67, old, "elections = 1", message);
}

#[test]
fn single_brackets_where_double_ones_belong() {
    let head =
        "name = \"x\"\nalgorithm = \"bully\"\nnodes = 2\nduration_ms = 9\ntm_ms = 2\ntp_ms = 1\n";
    let refusal = |tail: &str| {
        let text = format!("{head}{tail}");
        Scenario::parse("f.toml", &text).unwrap_err().to_string()
    };
    let message = refusal("[at]\nms = 1\ndo = \"heal\"\n");
    assert_eq!(message, "f.toml:7: `at` is a table; allowed: [[at]] tables");
    let message = refusal("[expect]\nnode = 1\nsettled = true\n");
    assert_eq!(message, "f.toml:7: `expect` is a table; allowed: [[expect]] tables");
    let message = refusal("preference = [1]\n");
    assert_eq!(message, "f.toml:7: `preference` is a list; allowed: a table of id = preference");
}

#[test]
fn key_of_another_action() {
    let message = "`sets` does not belong to do = \"kill\"; allowed with it: ms, do, nodes";
    refuses(21, "nodes = [4]", "sets = [[4]]", message);
    let message = "`nodes` does not belong to do = \"partition\"; allowed with it: ms, do, sets";
    refuses(41, "sets = [[1, 2], [3, 4]]", "nodes = [1, 2]", message);
    let message = "`nodes` does not belong to do = \"link\"; allowed with it: ms, do, from, to, \
                   loss, delay_ms, jitter_ms, duplicate, reorder";
    refuses(48, "loss = 0.5", "nodes = [1]", message);
    let message = "`loss` does not belong to do = \"heal\"; allowed with it: ms, do";
    let with_loss = "do = \"heal\"\nloss = 1";
    refuses_at(56, "do = \"heal\"", with_loss, 57, message);
}
