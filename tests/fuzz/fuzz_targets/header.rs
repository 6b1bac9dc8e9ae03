//! The view of a header: whatever the bytes, it reads or it says why not, and reads the same twice.
#![no_main]

use bellwether::link::Header;
use bellwether::link::seal::HEADER_BYTES;
use bellwether::wire::Destination;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(header) = Header::new_checked(bytes) {
        assert_eq!(bytes[1], header.kind as u8);
        assert_eq!(bytes[2..4], header.network.to_le_bytes());
        assert_eq!(bytes[4], header.source.get());
        let destination = match header.destination {
            Destination::Node(id) => id.get(),
            Destination::All => 0,
        };
        assert_eq!(bytes[5], destination);
        assert_eq!(bytes[6..10], header.boot.to_le_bytes());
        assert_eq!(bytes[10..14], header.sequence.to_le_bytes());
        assert_eq!(bytes[14], header.key);
        assert!(bytes.len() > HEADER_BYTES);
    }
});
