//! A node that is fed any bytes, sealed by nobody: it accepts none of them and changes nothing. It is
//! one node for the whole run: what it has heard before must not make the difference either, and to
//! set one up takes longer than to refuse a datagram.
#![no_main]

use std::cell::RefCell;

use bellwether::config::{Algorithm, Config, Durability, Timing};
use bellwether::effects::{Effect, Note};
use bellwether::id::NodeId;
use bellwether::key::{KEY_BYTES, Keys, LinkKey};
use bellwether::node::{Event, Node};
use bellwether::time::{Duration, Instant};
use libfuzzer_sys::fuzz_target;

fn awake() -> Node<1> {
    let ms = Duration::from_millis;
    let timing = Timing::derive(ms(20), ms(10), ms(5));
    let me = NodeId::new(3).expect("an id");
    let mut config = Config::new(me, Algorithm::Bully, Durability::Group, timing);
    for id in 1..=5 {
        config.add_member(id, 0).expect("a member");
    }
    let keys = Keys::one(1, LinkKey::new([0x5a; KEY_BYTES]));
    let mut node = Node::new(config, keys, 1).expect("a configuration");
    for event in [Event::Boot { stored_epoch: Some(40) }, Event::EpochSaved { read_back: Some(42) }]
    {
        assert!(!node.step(Instant(0), event).is_empty());
    }
    node
}

thread_local! {
    static NODE: RefCell<Node<1>> = RefCell::new(awake());
}

fuzz_target!(|bytes: &[u8]| {
    // Once as it is, once with a head that passes the cheap checks.
    let mut nearly = vec![2, 3, 1, 0, 5, 0, 7, 0, 0, 0, 1, 0, 0, 0, 1];
    nearly.extend(bytes);
    NODE.with_borrow_mut(|node| {
        let state = node.state_vector().clone();
        for datagram in [&mut bytes.to_vec(), &mut nearly] {
            let event = Event::Datagram { received: Instant(0), bytes: datagram };
            for effect in node.step(Instant(0), event).iter() {
                assert!(matches!(effect, Effect::Note(Note::NotAuthentic(_))), "{effect:?}");
            }
            assert_eq!(node.counters().datagrams_accepted, 0);
            assert_eq!(node.state_vector(), &state);
        }
    });
});
