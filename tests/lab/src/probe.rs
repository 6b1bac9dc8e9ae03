//! The debug probe: reads a node's log out of its memory while it runs.
//!
//! The log is RTT, as on a real board; QEMU's qtest socket stands in for the probe.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use defmt_decoder::{DecodeError, Table};
use object::{Object, ObjectSymbol};

/// Between two looks at a node's log.
const PERIOD: Duration = Duration::from_millis(20);
/// The words of the first channel: name, buffer, size, write, read, flags.
const CHANNEL: u64 = 24;
/// See boards/sf2/src/provoke.rs.
const PROVOKE: u64 = 0xa000_0000;

/// What is to be written into the memory of a board: addresses and words, in this order.
type Writes = Vec<(u64, u32)>;

/// What is known of the image: how its log is decoded, and where it lies.
pub struct Image {
    table: Table,
    control: u64,
    mailbox: u64,
    pub path: PathBuf,
}

impl Image {
    pub fn read(path: &Path) -> Result<Self, String> {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let bad = |what: String| format!("{}: {what}", path.display());
        let table = Table::parse(&bytes)
            .map_err(|error| bad(error.to_string()))?
            .ok_or_else(|| bad("the image has no log".into()))?;
        let file = object::File::parse(&*bytes).map_err(|error| bad(error.to_string()))?;
        let address = |name: &str| {
            let found = file.symbols().find(|symbol| symbol.name() == Ok(name));
            found.map(|symbol| symbol.address()).ok_or_else(|| bad(format!("it has no {name}")))
        };
        let (control, mailbox) = (address("_SEGGER_RTT")?, address("BELLWETHER_MAILBOX")?);
        Ok(Self { table, control, mailbox, path: path.to_owned() })
    }
}

/// A line of a node, with what is known about when it was written.
#[derive(Debug, Clone)]
pub struct Heard {
    pub node: u8,
    /// Which life of the machine: counts how often it was given power.
    pub power: u32,
    /// By the node's own clock.
    pub node_us: u64,
    /// It was not there when the look before began.
    pub after: Instant,
    /// It was there when this look ended.
    pub before: Instant,
    pub text: String,
}

/// A probe at one machine, as long as that has power.
pub struct Probe {
    stop: Arc<AtomicBool>,
    writes: Sender<Writes>,
    mailbox: u64,
    thread: Option<JoinHandle<()>>,
}

impl Probe {
    pub fn start(
        image: Arc<Image>,
        socket: PathBuf,
        node: u8,
        power: u32,
        heard: Sender<Heard>,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, mailbox) = (Arc::clone(&stop), image.mailbox);
        let (writes, ordered) = channel();
        let thread = std::thread::spawn(move || {
            let mut session = None;
            let began = Instant::now();
            while session.is_none() && !stopped.load(Ordering::Relaxed) {
                session = UnixStream::connect(&socket).ok();
                if session.is_none() {
                    std::thread::sleep(Duration::from_millis(3));
                }
            }
            if let Some(stream) = session {
                let link = Link { stream: BufReader::new(stream), control: image.control };
                link.follow(&image.table, (node, power), began, &heard, (&stopped, &ordered));
            }
        });
        Self { stop, writes, mailbox, thread: Some(thread) }
    }

    /// Asks a board whose image can do so for a failure.
    pub fn provoke(&self, order: u32) {
        // A probe that has gone has no board.
        let _ = self.writes.send(vec![(PROVOKE, order)]);
    }

    /// Puts an order into the mailbox of a board (src/shell/mailbox.rs): the order itself last.
    pub fn order(&self, order: u32, content: &[u32]) {
        let places = (1..).map(|index| self.mailbox + 4 * index);
        let mut writes: Writes = places.zip(content.iter().copied()).collect();
        writes.push((self.mailbox, order));
        let _ = self.writes.send(writes);
    }
}

impl Drop for Probe {
    /// Ends the probe; drop the machine first, or a paused one holds it up.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Link {
    stream: BufReader<UnixStream>,
    control: u64,
}

impl Link {
    fn follow(
        mut self,
        table: &Table,
        (node, power): (u8, u32),
        began: Instant,
        heard: &Sender<Heard>,
        (stop, orders): (&AtomicBool, &Receiver<Writes>),
    ) {
        let mut decoder = table.new_stream_decoder();
        let mut after = began;
        while !stop.load(Ordering::Relaxed) {
            for (address, word) in orders.try_iter().flatten() {
                if self.ask(&format!("writel {address:#x} {word:#x}")).is_none() {
                    return;
                }
            }
            let looked = Instant::now();
            let Some(bytes) = self.look() else { return };
            let before = Instant::now();
            decoder.received(&bytes);
            loop {
                match decoder.decode() {
                    Ok(frame) => {
                        let stamp = frame.display_timestamp().map(|stamp| stamp.to_string());
                        let line = Heard {
                            node,
                            power,
                            node_us: stamp.as_deref().and_then(microseconds).unwrap_or(0),
                            after,
                            before,
                            text: frame.display_message().to_string(),
                        };
                        if heard.send(line).is_err() {
                            return;
                        }
                    }
                    // Lost bytes; the sequence numbers of the lines show it, and the next frame is
                    // found by its own beginning.
                    Err(DecodeError::Malformed) => {}
                    Err(DecodeError::UnexpectedEof) => break,
                }
            }
            after = looked;
            std::thread::sleep(PERIOD);
        }
    }

    /// What is new in the log.
    fn look(&mut self) -> Option<Vec<u8>> {
        let words = self.read(self.control + CHANNEL, 24)?;
        let word = |index: usize| -> Option<u64> {
            let bytes = words.get(4 * index..4 * index + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?).into())
        };
        let (buffer, size, write, read) = (word(1)?, word(2)?, word(3)?, word(4)?);
        // Before its start-up code has run, the memory of a board holds anything.
        if size == 0 || size > 65_536 || write >= size || read >= size || write == read {
            return Some(Vec::new());
        }
        let mut bytes = Vec::new();
        if write > read {
            bytes.extend(self.read(buffer + read, write - read)?);
        } else {
            bytes.extend(self.read(buffer + read, size - read)?);
            if write > 0 {
                bytes.extend(self.read(buffer, write)?);
            }
        }
        self.ask(&format!("writel {:#x} {write:#x}", self.control + CHANNEL + 16))?;
        Some(bytes)
    }

    fn read(&mut self, address: u64, len: u64) -> Option<Vec<u8>> {
        let answer = self.ask(&format!("read {address:#x} {len:#x}"))?;
        let hex = answer.strip_prefix("OK 0x")?.trim();
        let digits = hex.as_bytes().as_chunks::<2>().0.iter();
        digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
    }

    fn ask(&mut self, question: &str) -> Option<String> {
        self.stream.get_mut().write_all(format!("{question}\n").as_bytes()).ok()?;
        let mut answer = String::new();
        match self.stream.read_line(&mut answer) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(answer),
        }
    }
}

/// `12.345678` seconds.
fn microseconds(stamp: &str) -> Option<u64> {
    let (seconds, micros) = stamp.trim().split_once('.')?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?)
}
