//! Good flock files are read as they stand; bad ones are refused with line, fault and cure.
#![allow(clippy::unwrap_used)]

use super::*;

const ROOT: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

fn good() -> String {
    format!(
        "network = \"greenhouse\"\nalgorithm = \"bully\"\nboard = \"sf2\"\ntm_ms = 20\ntp_ms = 20\n\
         send = 1\nkeys = [{{ id = 1, root = \"{ROOT}\" }}]\n\
         [[member]]\nid = 1\n[[member]]\nid = 7\npreference = 3\nincarnation = 4\n"
    )
}

#[test]
fn a_file_is_read_with_its_defaults() {
    let flock = Flock::parse("f.toml", &good()).unwrap();
    assert_eq!(flock.network, number_of("greenhouse"));
    assert_eq!((flock.port, flock.send, flock.accept_version_1), (4711, 1, false));
    let seven = &flock.members[1];
    let [low, _] = flock.network.to_le_bytes();
    assert_eq!(seven.address, Ipv4Addr::new(10, 66, low, 7));
    assert_eq!((seven.preference, seven.incarnation), (3, 4));
    assert_eq!(flock.timing.ts.us(), flock.board.ts_us_min());
    let provision = flock.provision(seven.id).unwrap();
    assert!(provision.keyed && provision.config.members().len() == 2);
    assert_eq!(flock.provision(NodeId::new(2).unwrap()).map(drop), None);
    let keys = flock.link_keys().unwrap();
    assert_eq!((keys.send.id, keys.other), (1, None));
}

#[test]
fn detector_and_policies_reach_the_record_of_every_board() {
    let lines = "send = 1\ndetector = \"adaptive\"\nquiet_max_ms = 900\npreempt = false\n\
                 hold_off_ms = 5000\nobservers = [7]\n";
    let flock = Flock::parse("f.toml", &good().replacen("send = 1\n", lines, 1)).unwrap();
    for member in &flock.members {
        let config = flock.provision(member.id).unwrap().config;
        assert_eq!((config.detector, config.preempt), (Detector::Adaptive, false));
        let ms = Duration::from_millis;
        assert_eq!((config.quiet_max, config.hold_off), (ms(900), ms(5000)));
        assert!(config.observers.iter().map(NodeId::get).eq([7]));
    }
}

#[test]
fn the_number_of_a_network_is_never_zero_and_stays_what_it_is() {
    // Boards in the field have it in their flash.
    assert_eq!(number_of("greenhouse"), 1_742);
    assert_ne!(number_of("greenhouse 2"), number_of("greenhouse"));
}

#[test]
fn no_key_is_printed() {
    let flock = Flock::parse("f.toml", &good()).unwrap();
    let printed = format!("{flock:?} {:?}", flock.link_keys());
    assert!(printed.contains("RootKey(..)") && printed.contains("LinkKey(..)"), "{printed}");
    assert!(!printed.contains("0001020304"), "{printed}");
}

/// Line, a part of what is wrong, a part of what is allowed.
fn refused(text: &str, line: usize, wrong: &str, allowed: &str) {
    let error = match Flock::parse("f.toml", text) {
        Err(error) => error,
        Ok(_) => panic!("it was read: {text}"),
    };
    assert!(error.wrong.contains(wrong), "{error}");
    assert!(error.allowed.contains(allowed), "{error}");
    assert_eq!(error.line, line, "{error}");
    assert!(error.to_string().starts_with(&format!("f.toml:{line}: ")), "{error}");
    assert!(!error.to_string().contains("0a0b0c"), "a key is in the message: {error}");
}

#[test]
fn bad_files_are_refused_with_line_fault_and_cure() {
    let change = |from: &str, to: &str| {
        let text = good();
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    refused(&change("tm_ms", "tm"), 4, "unknown key `tm`", "tm_ms");
    refused(&change("tp_ms = 20", "tm_ms = 10"), 5, "duplicate key", "each key once");
    refused(&change("tp_ms = 20", "tp_ms = 5"), 5, "`tp_ms` is 5 ms", "the board's Tp = 18 ms");
    refused(&change("tp_ms = 20", "tp_ms = 20\nts_ms = 3"), 6, "`ts_ms` is 3", "the board's Ts");
    refused(&change("tm_ms = 20", "tm_ms = 0"), 4, "`tm_ms` is 0", "more than 0");
    refused(&change("tp_ms = 20", "tp_ms = 20\nt_ms = 59"), 6, "`t_ms` is 59", "2 Tm + Tp = 60");
    refused(
        &change("tp_ms = 20", "tp_ms = 20\nquiet_ms = 20"),
        6,
        "`quiet_ms` is 20",
        "Tm and 1 ms = 21 ms",
    );
    refused(&change("tp_ms = 20", "tp_ms = 20\ncheck_ms = 9"), 6, "`check_ms` is 9", "at least T");
    refused(&change("\"bully\"", "\"star\""), 2, "`algorithm` is \"star\"", "\"ring\"");
    refused(&change("\"sf2\"", "\"sf3\""), 3, "`board` is \"sf3\"", "\"sf2\", \"nucleo-h563zi\"");
    refused(&change("send = 1", "send = 2"), 6, "`send` is 2", "1, as in `keys`");
    refused(&change("send = 1\n", ""), 1, "`send` is missing", "required");
    let with = |line: &str| change("send = 1", &format!("send = 1\n{line}"));
    refused(&with("preempt = 1"), 7, "`preempt` is 1", "true or false");
    refused(&with("detector = \"dog\""), 7, "`detector` is \"dog\"", "\"indirect\"");
    refused(
        &with("detector = \"reliable\"").replace("\"bully\"", "\"ring\""),
        7,
        "for Bully alone",
        "another one",
    );
    refused(
        &with("detector = \"adaptive\"\nquiet_max_ms = 40"),
        8,
        "a period of Beats and 2 Tm",
        "other times",
    );
    refused(&with("hold_off_ms = 0"), 7, "`hold_off_ms` is 0", "more than 0");
    refused(&with("observers = [2]"), 7, "node 2, which is no member", "ids of members");
    refused(&with("observers = [1, 7]"), 7, "all members are observers", "one member less");
    refused(&change("id = 1, root", "id = 0, root"), 7, "`id` is 0", "1 to 255");
    refused(&change("1e1f", "1e1"), 7, "`root` is no key", "64 hexadecimal digits");
    refused(&change(&format!("\"{ROOT}\""), "12345"), 7, "`root` is no text", "64 hexadecimal");
    let two = format!("}}, {{ id = 1, root = \"{}\" }}]", "a".repeat(64));
    refused(&change("}]", &two), 7, "key 1 stands twice", "each id once");
    let same = format!("}}, {{ id = 2, root = \"{ROOT}\" }}]");
    refused(&change("}]", &same), 7, "both keys are the same", "two different");
    refused(&change("id = 7", "id = 1"), 11, "member 1 stands twice", "each id once");
    refused(&change("id = 7", "id = 65"), 11, "`id` is 65", "from 1 to 64");
    refused(&change("preference = 3", "preference = 256"), 12, "256", "0 to 255");
    refused(&change("incarnation = 4", "incarnation = 1024"), 13, "1024", "0 to 1023");
    refused(&change("id = 7", "id = 7\naddress = \"1.2\""), 12, "`address` is", "IPv4");
    refused(&change("id = 7", "id = 7\naddress = \"10.1.1.1\""), 12, "another network", "agree");
    for address in ["0.1.1.1", "127.0.0.1", "224.0.0.1", "240.1.1.1", "10.1.1.0", "10.1.1.255"] {
        let text = change("id = 7", &format!("id = 7\naddress = {address:?}"));
        refused(&text, 12, "`address` is", "IPv4");
    }
    refused(&change("[[member]]\nid = 1", "[[member]]\nname = 1"), 9, "`name`", "incarnation");
    refused("", 1, "`network` is missing", "required");
    refused("network = ", 1, "", "TOML");
}

#[test]
fn a_flock_of_64_fits() {
    let mut text = good();
    for id in (2..=64).filter(|id| *id != 7) {
        text.push_str(&format!("[[member]]\nid = {id}\n"));
    }
    assert_eq!(Flock::parse("f.toml", &text).unwrap().members.len(), 64);
}
