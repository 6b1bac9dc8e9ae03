//! Gives a flash image its values again, or its first ones.

use bellwether::cells::{BootEpoch, CHUNK_BYTES_MAX, CHUNKS_MAX, Store};
use bellwether::key::Keys;

use crate::nor::Nor;
use crate::scenario::finish;
use crate::show::Image;

/// What the cells shall hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values {
    /// The configuration and the format of its record; `None` keeps what can still be read, keys
    /// included.
    pub configuration: Option<(Vec<u8>, u8)>,
    /// The keys of a configuration that is given.
    pub keys: Option<Keys>,
    /// Above every incarnation that this id has had.
    pub incarnation: u32,
    /// Above every epoch that this id can have used, as far as the caller knows.
    pub first_epoch: u32,
}

type Cells<'f, const WORD: usize, const SECTOR: usize> = Store<&'f mut Nor<WORD, SECTOR>, 8, 704>;

/// Erases both regions and writes the values. Says what was kept.
pub fn provision(image: &mut Image, values: &Values) -> Result<String, String> {
    match (image.word_bytes, image.sector_bytes) {
        (1 | 4, 4_096) => provision_as::<4, 4_096>(image, values),
        (1 | 4, 65_536) => provision_as::<4, 65_536>(image, values),
        (4, 131_072) => provision_as::<4, 131_072>(image, values),
        (16, 8_192) => provision_as::<16, 8_192>(image, values),
        (32, 131_072) => provision_as::<32, 131_072>(image, values),
        (word, sector) => {
            Err(format!("no part here has words of {word} and sectors of {sector} bytes"))
        }
    }
}

fn provision_as<const WORD: usize, const SECTOR: usize>(
    image: &mut Image,
    values: &Values,
) -> Result<String, String> {
    let mut flash = Nor::<WORD, SECTOR>::from_bytes(&image.bytes);
    let opened = finish(Cells::open(&mut flash, &image.layout));
    let (mut store, _) = opened.map_err(|halt| halt.to_string())?;
    // What can still be read of the old epoch must not be used again, whatever the caller believes.
    let old_epoch = store.load_cell::<BootEpoch>().ok().flatten();
    let above_old = old_epoch.map_or(0, |BootEpoch(epoch)| epoch.saturating_add(2));
    let epoch = BootEpoch(values.first_epoch.max(above_old));
    let (configuration, format, keys, origin) = match &values.configuration {
        Some((bytes, format)) => (bytes.clone(), *format, values.keys.clone(), "given"),
        None => {
            let (bytes, format) = salvage(&mut store)?;
            let keys = store.keys().map_err(|halt| format!("the keys: {halt}"))?;
            (bytes, format, keys, "kept")
        }
    };
    let chunks = configuration.chunks(CHUNK_BYTES_MAX);
    if configuration.is_empty() || chunks.len() > usize::from(CHUNKS_MAX) {
        let most = CHUNK_BYTES_MAX * usize::from(CHUNKS_MAX);
        let bytes = configuration.len();
        return Err(format!("a configuration of {bytes} bytes; allowed: 1 to {most}"));
    }
    let written = finish(async {
        store.format().await?;
        let mut count = 0;
        for chunk in chunks {
            store.stage_chunk(count, format, chunk).await?;
            count += 1;
        }
        store.commit_configuration(count).await?;
        if let Some(keys) = &keys {
            store.replace_keys(keys).await?;
        }
        store.complete_provisioning(values.incarnation, epoch).await
    });
    written.map_err(|halt| halt.to_string())?;
    image.bytes = flash.bytes().to_vec();
    Ok(format!(
        "provisioned: incarnation {}, first epoch above {}, configuration of {} bytes {origin}",
        values.incarnation,
        epoch.0,
        configuration.len()
    ))
}

/// The configuration that can still be read.
fn salvage<const WORD: usize, const SECTOR: usize>(
    store: &mut Cells<'_, WORD, SECTOR>,
) -> Result<(Vec<u8>, u8), String> {
    let head = store.configuration().ok_or(
        "no configuration can be read from this image; give one with --configuration FILE",
    )?;
    let (mut bytes, mut format) = (Vec::new(), 0);
    for chunk in 0..head.chunks {
        match store.configuration_chunk(chunk) {
            Ok(Some(loaded)) => {
                bytes.extend_from_slice(loaded.value);
                format = loaded.format;
            }
            _ => return Err(format!("chunk {chunk} of the configuration cannot be read")),
        }
    }
    Ok((bytes, format))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read;
    use crate::show::show;
    use bellwether::cells::Layout;
    use bellwether::key::LinkKey;

    fn blank() -> Image {
        Image {
            bytes: vec![0xFF; 6 * 4096],
            sector_bytes: 4096,
            word_bytes: 4,
            layout: Layout { a: 0..3 * 4096, b: 3 * 4096..6 * 4096 },
        }
    }

    fn values(configuration: Option<&[u8]>, first_epoch: u32) -> Values {
        let configuration = configuration.map(|bytes| (bytes.to_vec(), 1));
        let keys = Some(Keys::one(3, LinkKey::new([7; 32])));
        Values { configuration, keys, incarnation: 1, first_epoch }
    }

    #[test]
    fn a_blank_image_becomes_one_that_boots() {
        let mut image = blank();
        assert!(provision(&mut image, &values(None, 0)).is_err(), "there is nothing to keep");
        let long = vec![7; CHUNK_BYTES_MAX + 5];
        provision(&mut image, &values(Some(&long), 40)).expect("it is provisioned");
        let text = show(&image).expect("it can be shown");
        assert!(text.starts_with("Complete"), "{text}");
    }

    #[test]
    fn a_second_provisioning_keeps_the_configuration_and_goes_above_the_old_epoch() {
        let mut image = blank();
        provision(&mut image, &values(Some(b"five nodes"), 40)).expect("it is provisioned");
        let said = provision(&mut image, &values(None, 3)).expect("it is provisioned again");
        assert!(said.contains("10 bytes kept") && said.contains("above 42"), "{said}");
        let found = read(&image).expect("it can be read");
        assert_eq!(found.keys.map(|keys| keys.send.id), Some(3));
    }
}
