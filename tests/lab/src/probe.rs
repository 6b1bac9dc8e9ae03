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
use std::time::Duration;

use defmt_decoder::{DecodeError, Table};
use object::{Object, ObjectSymbol};

use crate::boards::Board;
use crate::clock::{Clock, Moment};

/// Between two looks at a node's log.
const PERIOD: Duration = Duration::from_millis(20);
/// The words of the first channel: name, buffer, size, write, read, flags.
const CHANNEL: u64 = 24;

/// What a probe is asked to do beside reading the log.
enum Errand {
    /// Write words at addresses, in this order.
    Write(Vec<(u64, u32)>),
    /// Read so many bytes from an address.
    Read(u64, u64, Sender<Vec<u8>>),
}

/// What is known of the image: how its log is decoded, and where it lies.
pub struct Image {
    table: Table,
    control: u64,
    /// Only in images of nodes.
    mailbox: Option<u64>,
    /// Only in images that fail when they are asked to (boards/common/src/provoke.rs).
    provoke: Option<u64>,
    pub path: PathBuf,
    pub board: &'static Board,
}

impl Image {
    pub fn read(path: &Path, board: &'static Board) -> Result<Self, String> {
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
        let control = address("_SEGGER_RTT")?;
        let (mailbox, provoke) =
            (address("BELLWETHER_MAILBOX").ok(), address("BELLWETHER_PROVOKE").ok());
        Ok(Self { table, control, mailbox, provoke, path: path.to_owned(), board })
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
    /// It was not there when the look before began; `None` where nobody knows when that was.
    pub after: Option<Moment>,
    /// It was there when this look ended.
    pub before: Moment,
    pub text: String,
}

/// A probe at one machine, as long as that has power.
pub struct Probe {
    stop: Arc<AtomicBool>,
    errands: Sender<Errand>,
    /// Hears once that the board was reached.
    reached: Receiver<()>,
    mailbox: Option<u64>,
    provoke: Option<u64>,
    thread: Option<JoinHandle<()>>,
}

impl Probe {
    pub fn start(
        image: Arc<Image>,
        socket: PathBuf,
        node: u8,
        power: u32,
        heard: Sender<Heard>,
        clock: Clock,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (mailbox, provoke) = (image.mailbox, image.provoke);
        let (errands, ordered) = channel();
        let (reaches, reached) = channel();
        let thread = std::thread::spawn(move || {
            let mut session = None;
            let began = clock.now();
            while session.is_none() && !stopped.load(Ordering::Relaxed) {
                session = UnixStream::connect(&socket).ok();
                if session.is_none() {
                    std::thread::sleep(Duration::from_millis(3));
                }
            }
            if let Some(stream) = session {
                let stream = BufReader::new(stream);
                let link = Link { stream, control: image.control, clock };
                let (table, who) = (&image.table, (node, power));
                link.follow(table, who, began, (&heard, &reaches), (&stopped, &ordered));
            }
        });
        Self { stop, errands, reached, mailbox, provoke, thread: Some(thread) }
    }

    /// Whether the board has come up and can be read; waits a moment for it.
    pub fn is_reached(&self) -> bool {
        self.reached.recv_timeout(PERIOD).is_ok()
    }

    /// Asks a board whose image can do so for a failure.
    pub fn provoke(&self, order: u32) {
        if let Some(address) = self.provoke {
            // A probe that has gone has no board.
            let _ = self.errands.send(Errand::Write(vec![(address, order)]));
        }
    }

    /// Puts an order into the mailbox of a board (src/shell/mailbox.rs): the order itself last.
    pub fn order(&self, order: u32, content: &[u32]) {
        let Some(mailbox) = self.mailbox else { return };
        let places = (1..).map(|index| mailbox + 4 * index);
        let mut writes: Vec<_> = places.zip(content.iter().copied()).collect();
        writes.push((mailbox, order));
        let _ = self.errands.send(Errand::Write(writes));
    }

    /// What lies in the memory of the running board.
    pub fn memory(&self, address: u64, len: u64) -> Result<Vec<u8>, String> {
        let (answer, answered) = channel();
        let _ = self.errands.send(Errand::Read(address, len, answer));
        let wait = Duration::from_secs(10);
        answered.recv_timeout(wait).map_err(|_| "the probe does not read memory".into())
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
    clock: Clock,
}

impl Link {
    fn follow(
        mut self,
        table: &Table,
        (node, power): (u8, u32),
        began: Moment,
        (heard, reaches): (&Sender<Heard>, &Sender<()>),
        (stop, errands): (&AtomicBool, &Receiver<Errand>),
    ) {
        let mut decoder = table.new_stream_decoder();
        let mut after = began;
        while !stop.load(Ordering::Relaxed) {
            for errand in errands.try_iter() {
                if self.run(errand).is_none() {
                    return;
                }
            }
            let looked = self.clock.now();
            let Some(bytes) = self.look() else { return };
            // Only the first time matters, and only to who waits.
            let _ = reaches.send(());
            let before = self.clock.now();
            decoder.received(&bytes);
            loop {
                match decoder.decode() {
                    Ok(frame) => {
                        let stamp = frame.display_timestamp().map(|stamp| stamp.to_string());
                        let line = Heard {
                            node,
                            power,
                            node_us: stamp.as_deref().and_then(microseconds).unwrap_or(0),
                            after: Some(after),
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

    fn run(&mut self, errand: Errand) -> Option<()> {
        match errand {
            Errand::Write(words) => {
                for (address, word) in words {
                    self.ask(&format!("writel {address:#x} {word:#x}"))?;
                }
            }
            Errand::Read(address, len, answer) => {
                // Whoever asked may have stopped waiting.
                let _ = answer.send(self.read(address, len)?);
            }
        }
        Some(())
    }

    /// What is new in the log.
    fn look(&mut self) -> Option<Vec<u8>> {
        let before = self.channel()?;
        let Channel { buffer, size, write, read } = before;
        if !before.has_news() {
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
        // In one piece: QEMU carries out no reset between two commands that came together.
        let place = self.control + CHANNEL;
        let look = format!("read {place:#x} 0x18");
        self.say(&format!("{look}\nwritel {:#x} {write:#x}\n", place + 16))?;
        let after = Channel::parse(&bytes_of(&self.answer()?)?)?;
        self.answer()?;
        if !after.began_anew_since(&before) {
            return Some(bytes);
        }
        // The board began its log anew meanwhile, and all of that is still to be read.
        self.ask(&format!("writel {:#x} 0x0", place + 16))?;
        let intact = write > read && after.write <= read;
        Some(if intact { bytes } else { Vec::new() })
    }

    fn channel(&mut self) -> Option<Channel> {
        Channel::parse(&self.read(self.control + CHANNEL, 24)?)
    }

    fn read(&mut self, address: u64, len: u64) -> Option<Vec<u8>> {
        bytes_of(&self.ask(&format!("read {address:#x} {len:#x}"))?)
    }

    fn ask(&mut self, question: &str) -> Option<String> {
        self.say(&format!("{question}\n"))?;
        self.answer()
    }

    fn say(&mut self, questions: &str) -> Option<()> {
        self.stream.get_mut().write_all(questions.as_bytes()).ok()
    }

    fn answer(&mut self) -> Option<String> {
        let mut answer = String::new();
        match self.stream.read_line(&mut answer) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(answer),
        }
    }
}

/// What QEMU answers to `read`.
fn bytes_of(answer: &str) -> Option<Vec<u8>> {
    let digits = answer.strip_prefix("OK 0x")?.trim().as_bytes().as_chunks::<2>().0.iter();
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Where the log lies in the memory of a board, and how far it is written and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Channel {
    buffer: u64,
    size: u64,
    write: u64,
    read: u64,
}

impl Channel {
    fn parse(words: &[u8]) -> Option<Self> {
        let word = |index: usize| -> Option<u64> {
            let bytes = words.get(4 * index..4 * index + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?).into())
        };
        Some(Self { buffer: word(1)?, size: word(2)?, write: word(3)?, read: word(4)? })
    }

    fn has_news(&self) -> bool {
        let Self { size, write, read, .. } = *self;
        // Before its start-up code has run, the memory of a board holds anything.
        size > 0 && size <= 65_536 && write < size && read < size && write != read
    }

    /// Only the probe moves `read`, and only the start of a board sets it to 0.
    fn began_anew_since(&self, before: &Self) -> bool {
        self.read != before.read || (self.read == 0 && self.write < before.write)
    }
}

/// `12.345678` seconds.
pub fn microseconds(stamp: &str) -> Option<u64> {
    let (seconds, micros) = stamp.trim().split_once('.')?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_began_anew_is_told_from_one_that_went_on() {
        let channel = |write, read| Channel { buffer: 0x2000_0000, size: 1024, write, read };
        let before = channel(700, 300);
        for (after, anew) in
            [((700, 300), false), ((900, 300), false), ((20, 300), false), ((20, 0), true)]
        {
            assert_eq!(channel(after.0, after.1).began_anew_since(&before), anew, "{after:?}");
        }
        let first = channel(700, 0);
        assert!(!channel(710, 0).began_anew_since(&first));
        assert!(channel(60, 0).began_anew_since(&first));
    }

    #[test]
    fn the_words_of_a_channel_are_read() {
        let answer = "OK 0x00000000000000200004000005000000010000000000000000\n";
        let channel = Channel::parse(&bytes_of(answer).unwrap()).unwrap();
        let wanted = Channel { buffer: 0x2000_0000, size: 1024, write: 5, read: 1 };
        assert_eq!(channel, wanted);
        assert!(channel.has_news());
        assert_eq!(bytes_of("FAIL"), None);
        assert_eq!(Channel::parse(&[0; 19]), None);
    }
}
