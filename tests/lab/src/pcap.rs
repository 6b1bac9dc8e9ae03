//! A capture file that Wireshark and tshark open.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::SystemTime;

pub struct Pcap(BufWriter<File>);

impl Pcap {
    pub fn create(path: &Path) -> Result<Self, String> {
        let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut out = BufWriter::new(file);
        // Magic (microseconds), version 2.4, zone, accuracy, longest packet, Ethernet.
        let head = [0xa1b2_c3d4u32, 4 << 16 | 2, 0, 0, 65_535, 1];
        for word in head {
            out.write_all(&word.to_le_bytes()).map_err(|error| error.to_string())?;
        }
        Ok(Self(out))
    }

    pub fn write(&mut self, frame: &[u8]) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let len = frame.len() as u32;
        let head = [now.as_secs() as u32, now.subsec_micros(), len, len];
        // A full disk costs the capture, not the run.
        for word in head {
            let _ = self.0.write_all(&word.to_le_bytes());
        }
        let _ = self.0.write_all(frame);
    }

    pub fn flush(&mut self) {
        let _ = self.0.flush();
    }
}
