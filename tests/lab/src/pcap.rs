//! A capture file that Wireshark and tshark open.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::clock::Moment;

pub struct Pcap {
    out: BufWriter<File>,
    /// The same moment on the lab's clock, and since 1970.
    began: (Moment, Duration),
}

impl Pcap {
    /// `now`: on the clock of the run, which dates all frames.
    pub fn create(path: &Path, now: Moment) -> Result<Self, String> {
        let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut out = BufWriter::new(file);
        // Magic (microseconds), version 2.4, zone, accuracy, longest packet, Ethernet.
        let head = [0xa1b2_c3d4u32, 4 << 16 | 2, 0, 0, 65_535, 1];
        for word in head {
            out.write_all(&word.to_le_bytes()).map_err(|error| error.to_string())?;
        }
        let date = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(Self { out, began: (now, date) })
    }

    pub fn write(&mut self, now: Moment, frame: &[u8]) {
        let (began, date) = self.began;
        let now = date + now.since(began);
        let len = frame.len() as u32;
        let head = [now.as_secs() as u32, now.subsec_micros(), len, len];
        // A full disk costs the capture, not the run.
        for word in head {
            let _ = self.out.write_all(&word.to_le_bytes());
        }
        let _ = self.out.write_all(frame);
    }

    pub fn flush(&mut self) {
        let _ = self.out.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn what_is_written_opens_in_tshark_and_in_the_flock_tool() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.pcap");
        let mut capture = Pcap::create(&path, Clock::host().now()).expect("a file");
        let frames: Vec<Vec<u8>> = (0..20u8)
            .map(|number| {
                let to = [0xff; 6];
                let from = [2, 0, 0, 0, 0, number];
                // A type that means nothing, and some bytes.
                [&to[..], &from, &[0x88, 0xb5], &[number; 46]].concat()
            })
            .collect();
        for frame in &frames {
            capture.write(Clock::host().now(), frame);
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
