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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_opens_in_tshark_and_in_the_flock_tool() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.pcap");
        let mut capture = Pcap::create(&path).expect("a file");
        let frames: Vec<Vec<u8>> = (0..20u8)
            .map(|number| {
                let to = [0xff; 6];
                let from = [2, 0, 0, 0, 0, number];
                // A type that means nothing, and some bytes.
                [&to[..], &from, &[0x88, 0xb5], &[number; 46]].concat()
            })
            .collect();
        for frame in &frames {
            capture.write(frame);
        }
        capture.flush();

        let bytes = std::fs::read(&path).expect("the file");
        let read = bellwether_flock::pcap::read(&bytes).expect("a capture");
        assert!(read.iter().map(|frame| &frame.bytes).eq(&frames));

        bellwether_flock::install::find("tshark").expect("tshark");
        let output = std::process::Command::new("tshark")
            .args(["-n", "-T", "fields", "-e", "eth.src", "-r"])
            .arg(&path)
            .output()
            .expect("tshark runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text.lines().count(), frames.len(), "{text}");
        assert_eq!(text.lines().last(), Some("02:00:00:00:00:13"), "{text}");
    }
}
