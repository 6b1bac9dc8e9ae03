//! Classic capture files with Ethernet frames, as the lab writes them.

/// Microseconds, little endian.
const MAGIC: u32 = 0xa1b2_c3d4;
const ETHERNET: u32 = 1;
const FILE_HEADER_BYTES: usize = 24;
const FRAME_HEADER_BYTES: usize = 16;

/// One frame, with its time as the file gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub seconds: u32,
    pub microseconds: u32,
    pub bytes: Vec<u8>,
    /// The capture holds only a part of it.
    pub cut: bool,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

/// All frames of a capture.
pub fn read(bytes: &[u8]) -> Result<Vec<Frame>, String> {
    if u32_at(bytes, 0) != Some(MAGIC) || bytes.len() < FILE_HEADER_BYTES {
        return Err("no classic capture with microseconds (`tshark -F pcap` writes one)".into());
    }
    if u32_at(bytes, 20) != Some(ETHERNET) {
        return Err("the frames of this capture are not Ethernet".into());
    }
    let mut frames = Vec::new();
    let mut at = FILE_HEADER_BYTES;
    while at < bytes.len() {
        let field = |index: usize| u32_at(bytes, at + 4 * index);
        let frame = || {
            let (seconds, microseconds) = (field(0)?, field(1)?);
            let (kept, whole) = (field(2)?, field(3)?);
            let from = at + FRAME_HEADER_BYTES;
            let bytes = bytes.get(from..from.checked_add(kept as usize)?)?.to_vec();
            Some(Frame { seconds, microseconds, bytes, cut: kept < whole })
        };
        let frame = frame().ok_or_else(|| format!("frame {} is cut off", frames.len() + 1))?;
        at += FRAME_HEADER_BYTES + frame.bytes.len();
        frames.push(frame);
    }
    Ok(frames)
}

/// A capture with these frames.
#[must_use]
pub fn write(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Magic, version 2.4, zone, accuracy, longest packet, link type.
    let words = [MAGIC, 4 << 16 | 2, 0, 0, 65_535, ETHERNET];
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    for frame in frames {
        let len = frame.bytes.len() as u32;
        let words = [frame.seconds, frame.microseconds, len, len + u32::from(frame.cut)];
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend_from_slice(&frame.bytes);
    }
    bytes
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_reads_back_and_a_damaged_one_is_refused() {
        let frame = |byte| Frame {
            seconds: 7,
            microseconds: 8,
            bytes: vec![byte; usize::from(byte)],
            cut: false,
        };
        let frames = [frame(60), frame(0), frame(99)];
        let bytes = write(&frames);
        assert_eq!(read(&bytes).unwrap(), frames);
        for short in 0..bytes.len() {
            let whole = read(&bytes[..short]);
            assert!(whole.is_err() || whole.unwrap().len() < frames.len(), "{short}");
        }
        let mut other = bytes.clone();
        other[20] = 101;
        assert!(read(&other).unwrap_err().contains("Ethernet"));
        other[0] = 0x0a;
        assert!(read(&other).is_err());
    }
}
