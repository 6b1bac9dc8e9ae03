//! The flash, inside of the regions of the cells.

use bellwether::shell::log;
use defmt::intern;
use embedded_storage_async::nor_flash::{NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash};

use super::case;
use crate::Hardware;

/// Longer than a page, and a multiple of every word.
const BYTES: usize = 768;
/// Not at the beginning of a page, and a multiple of every word.
const OFFSET: u32 = 128;

fn pattern() -> [u8; BYTES] {
    core::array::from_fn(|index| (index % 251) as u8)
}

async fn holds<F: NorFlash>(flash: &mut F, at: u32, wanted: impl Fn(usize) -> u8) -> bool {
    let mut found = [0; BYTES];
    flash.read(at, &mut found).await.is_ok()
        && found.iter().enumerate().all(|(index, byte)| *byte == wanted(index))
}

fn refused<F: NorFlash>(result: Result<(), F::Error>, kind: NorFlashErrorKind) -> bool {
    result.is_err_and(|error| error.kind() == kind)
}

pub async fn run<H: Hardware>(flash: &mut H::Flash) {
    let sector = H::Flash::ERASE_SIZE as u32;
    let word = H::Flash::WRITE_SIZE;
    let (first, second) = (H::LAYOUT.a.start, H::LAYOUT.a.start + sector);
    let last = H::LAYOUT.b.end - sector;
    let pattern = pattern();
    let sizes = word <= 32 && OFFSET.is_multiple_of(word as u32) && BYTES.is_multiple_of(word);
    case(intern!("flash-words-fit-the-cells"), sizes && H::Flash::READ_SIZE <= word);

    let mut good = flash.erase(first, second + sector).await.is_ok();
    good &= flash.erase(last, last + sector).await.is_ok();
    for at in [first, second - BYTES as u32, second, last, last + sector - BYTES as u32] {
        good &= holds(flash, at, |_| 0xff).await;
    }
    case(intern!("flash-erase-sets-all-bits"), good);

    let mut good = flash.write(first + OFFSET, &pattern).await.is_ok();
    good &= holds(flash, first + OFFSET, |index| pattern[index]).await;
    good &= holds(flash, first + OFFSET + BYTES as u32, |_| 0xff).await;
    good &= holds(flash, first, |index| match index.checked_sub(OFFSET as usize) {
        Some(inside) => pattern[inside],
        None => 0xff,
    })
    .await;
    case(intern!("flash-keeps-what-is-written"), good);

    let end = H::LAYOUT.b.end - BYTES as u32;
    let mut good = flash.write(end, &pattern).await.is_ok();
    good &= holds(flash, end, |index| pattern[index]).await;
    case(intern!("flash-reaches-its-last-word"), good);

    // Where words may be written twice: others have checksums that would not fit any more.
    if word <= 4 {
        let again = flash.write(first + OFFSET, &[0xf0; BYTES]).await.is_ok();
        let good = again && holds(flash, first + OFFSET, |index| pattern[index] & 0xf0).await;
        case(intern!("flash-write-only-clears-bits"), good);
    }

    let mut good = flash.write(second, &pattern).await.is_ok();
    good &= flash.erase(first, second).await.is_ok();
    good &= holds(flash, first + OFFSET, |_| 0xff).await;
    good &= holds(flash, second, |index| pattern[index]).await;
    case(intern!("flash-erase-spares-the-next-sector"), good);

    use NorFlashErrorKind::{NotAligned, OutOfBounds};
    let capacity = flash.capacity() as u32;
    let (mut bytes, words) = ([0; 64], [0; 64]);
    let mut good = refused::<H::Flash>(flash.read(capacity - 32, &mut bytes).await, OutOfBounds);
    good &= refused::<H::Flash>(flash.read(u32::MAX, &mut bytes).await, OutOfBounds);
    good &= refused::<H::Flash>(flash.write(capacity - 32, &words).await, OutOfBounds);
    good &= refused::<H::Flash>(flash.erase(capacity, capacity + sector).await, OutOfBounds);
    case(intern!("flash-refuses-what-is-out-of-bounds"), good);

    let mut good = refused::<H::Flash>(flash.write(first + 1, &words).await, NotAligned);
    good &= refused::<H::Flash>(flash.write(first, &words[..word - 1]).await, NotAligned);
    good &= refused::<H::Flash>(flash.erase(first + word as u32, second).await, NotAligned);
    good &= holds(flash, first, |_| 0xff).await;
    case(intern!("flash-refuses-what-is-not-aligned"), good || word == 1);

    if flash.write(first + OFFSET, &pattern).await.is_err() {
        log::fault(intern!("program-failed"));
    }
}

/// What [`run`] wrote last is still there.
pub async fn outlived<H: Hardware>(flash: &mut H::Flash) -> bool {
    let pattern = pattern();
    holds(flash, H::LAYOUT.a.start + OFFSET, |index| pattern[index]).await
}
