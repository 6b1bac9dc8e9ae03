//! Frames between the interrupt that takes them in and the stack that reads them, with the time of
//! their arrival. A queue of bytes, because most frames are far shorter than the longest.

const BYTES: usize = 2560;
const HEAD_BYTES: usize = 10;

pub struct Queue {
    bytes: [u8; BYTES],
    start: usize,
    used: usize,
}

impl Queue {
    pub const EMPTY: Self = Self { bytes: [0; BYTES], start: 0, used: 0 };

    pub fn is_almost_empty(&self) -> bool {
        self.used < BYTES / 8
    }

    /// Keeps a frame; `false` if there is no room.
    pub fn push(&mut self, time_us: u64, frame: &[u8]) -> bool {
        if HEAD_BYTES + frame.len() > BYTES - self.used {
            return false;
        }
        self.put(&time_us.to_le_bytes());
        self.put(&(frame.len() as u16).to_le_bytes());
        self.put(frame);
        true
    }

    /// Moves the oldest frame into `room` and says when it arrived and how long it is.
    pub fn pop(&mut self, room: &mut [u8]) -> Option<(u64, usize)> {
        if self.used == 0 {
            return None;
        }
        let (mut time, mut len) = ([0; 8], [0; 2]);
        self.get(&mut time);
        self.get(&mut len);
        let len = usize::from(u16::from_le_bytes(len)).min(room.len());
        self.get(room.get_mut(..len)?);
        Some((u64::from_le_bytes(time), len))
    }

    fn put(&mut self, bytes: &[u8]) {
        let at = (self.start + self.used) % BYTES;
        let first = bytes.len().min(BYTES - at);
        self.bytes[at..at + first].copy_from_slice(&bytes[..first]);
        self.bytes[..bytes.len() - first].copy_from_slice(&bytes[first..]);
        self.used += bytes.len();
    }

    fn get(&mut self, bytes: &mut [u8]) {
        let first = bytes.len().min(BYTES - self.start);
        bytes[..first].copy_from_slice(&self.bytes[self.start..self.start + first]);
        let len = bytes.len();
        bytes[first..].copy_from_slice(&self.bytes[..len - first]);
        self.start = (self.start + len) % BYTES;
        self.used -= len;
    }
}
