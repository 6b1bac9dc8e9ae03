//! A node's life with its cells, step by step, and what must be true after any cut in it.

use bellwether::cells::{
    BootEpoch, Cell, Error, HISTORY_RECORDS, Layout, Path, Provisioning, Report, Store, keys,
};

use bellwether::key::{KEY_BYTES, Keys, LinkKey};

use crate::nor::{Ecc, Nor, WordRule};
use crate::ready::until_cut;

/// The store under test.
pub type Cells<'f, const WORD: usize, const SECTOR: usize> =
    Store<&'f mut Nor<WORD, SECTOR>, 8, 704>;

/// Why a step did not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// The power was cut.
    Cut,
    /// The store refused.
    Failed(Error),
}

impl std::fmt::Display for Halt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cut => f.write_str("the power was cut"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

/// Runs something on the flash to its end or to the cut.
pub fn finish<T>(future: impl Future<Output = Result<T, Error>>) -> Result<T, Halt> {
    match until_cut(future) {
        Some(result) => result.map_err(Halt::Failed),
        None => Err(Halt::Cut),
    }
}

/// A flash with two regions, and how its store is opened.
#[derive(Debug, Clone)]
pub struct Bench<const WORD: usize, const SECTOR: usize> {
    /// Sectors of each region.
    pub sectors: usize,
    /// How often a word may be programmed.
    pub rule: WordRule,
    /// Torn bits change between boots.
    pub flicker: bool,
    /// What torn words read as.
    pub ecc: Ecc,
    /// Errors put in on purpose.
    #[cfg(feature = "sabotage")]
    pub sabotage: bellwether::cells::Sabotage,
}

/// One thing that a node does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The host tool provisions the board (again).
    Provision {
        /// The chunks of the configuration.
        chunks: Vec<Vec<u8>>,
        /// Above all that this id can have used.
        first_epoch: u32,
    },
    /// Power-up: open the store, commit an epoch.
    Boot,
    /// An election ends.
    Election(Vec<u8>),
    /// Idle time.
    Prepare,
    /// A committed command changes the configuration.
    Reconfigure(Vec<Vec<u8>>),
    /// The flock moves to another key; its number says which.
    ReplaceKeys(u8),
    /// An older firmware writes its cell.
    WriteOldNote(u32),
    /// This firmware migrates it.
    Migrate,
}

/// What a node's cells hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Model {
    /// The provisioning mark is there.
    pub provisioned: bool,
    /// The largest epoch that was ever used.
    pub epoch: u32,
    /// Newest first, at most as many as are remembered.
    pub elections: Vec<(u32, Vec<u8>)>,
    /// The chunks in force.
    pub configuration: Option<Vec<Vec<u8>>>,
    /// The number of the key in force.
    pub key: Option<u8>,
    /// The cell that is migrated.
    pub note: Option<u32>,
}

/// The bytes of a key, which occur nowhere else.
#[must_use]
pub fn key_bytes(id: u8) -> [u8; KEY_BYTES] {
    let mut random = fastrand::Rng::with_seed(0x5EC2E7 ^ u64::from(id));
    core::array::from_fn(|_| random.u8(..))
}

/// Whether eight bytes of a key in a row are left in a flash.
#[must_use]
pub fn holds_key(flash: &[u8], id: u8) -> bool {
    let key = key_bytes(id);
    let (parts, _) = key.as_chunks::<8>();
    flash.windows(8).any(|here| parts.iter().any(|part| here == part))
}

/// A cell in its first format: the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldNote(pub u32);

impl Cell for OldNote {
    const KEY: u8 = keys::TRANSACTION;
    const FORMAT: u8 = 1;

    fn encode(&self, out: &mut [u8]) -> Option<usize> {
        *out.first_chunk_mut()? = self.0.to_le_bytes();
        Some(4)
    }

    fn decode(_format: u8, bytes: &[u8]) -> Option<Self> {
        Some(Self(u32::from_le_bytes(bytes.try_into().ok()?)))
    }
}

/// The same cell in its second format: the number and its complement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note(pub u32);

impl Cell for Note {
    const KEY: u8 = keys::TRANSACTION;
    const FORMAT: u8 = 2;

    fn encode(&self, out: &mut [u8]) -> Option<usize> {
        *out.first_chunk_mut()? = self.0.to_le_bytes();
        *out.get_mut(4..)?.first_chunk_mut()? = (!self.0).to_le_bytes();
        Some(8)
    }

    fn decode(format: u8, bytes: &[u8]) -> Option<Self> {
        if format == 1 {
            return OldNote::decode(1, bytes).map(|old| Self(old.0));
        }
        let (number, complement) = bytes.split_first_chunk()?;
        let number = u32::from_le_bytes(*number);
        (complement == (!number).to_le_bytes()).then_some(Self(number))
    }
}

impl<const WORD: usize, const SECTOR: usize> Bench<WORD, SECTOR> {
    /// Regions of this many sectors.
    #[must_use]
    pub fn new(sectors: usize) -> Self {
        Self {
            sectors,
            rule: WordRule::Once,
            flicker: true,
            ecc: Ecc::Off,
            #[cfg(feature = "sabotage")]
            sabotage: bellwether::cells::Sabotage::default(),
        }
    }

    /// An erased flash.
    #[must_use]
    pub fn flash(&self, seed: u64) -> Nor<WORD, SECTOR> {
        let mut flash = Nor::new(2 * self.sectors, seed);
        flash.rule = self.rule;
        flash.flicker = self.flicker;
        flash.ecc = self.ecc;
        flash
    }

    /// Where the regions lie.
    #[must_use]
    pub fn layout(&self) -> Layout {
        let middle = (self.sectors * SECTOR) as u32;
        Layout { a: 0..middle, b: middle..2 * middle }
    }

    /// Opens the store.
    pub fn open<'f>(
        &self,
        flash: &'f mut Nor<WORD, SECTOR>,
    ) -> Result<(Cells<'f, WORD, SECTOR>, Report), Halt> {
        #[cfg(feature = "sabotage")]
        return finish(Cells::open_sabotaged(flash, &self.layout(), self.sabotage));
        #[cfg(not(feature = "sabotage"))]
        finish(Cells::open(flash, &self.layout()))
    }

    /// Does one step, and gives the epoch if it committed one.
    pub fn run(&self, store: &mut Cells<'_, WORD, SECTOR>, step: &Step) -> Result<u32, Halt> {
        finish(async {
            match step {
                Step::Provision { chunks, first_epoch } => {
                    stage(store, chunks).await?;
                    store.complete_provisioning(1, BootEpoch(*first_epoch)).await?;
                }
                Step::Boot => return Ok(store.begin_epoch().await?.epoch().0),
                Step::Election(bytes) => {
                    let half = bytes.len() / 2;
                    store
                        .save_election(1, &bytes[..half], &bytes[half..], Path::Idle, true)
                        .await?;
                }
                Step::Prepare => store.prepare().await?,
                Step::Reconfigure(chunks) => stage(store, chunks).await?,
                Step::ReplaceKeys(id) => {
                    let keys = Keys::one(*id, LinkKey::new(key_bytes(*id)));
                    store.replace_keys(&keys).await?;
                }
                Step::WriteOldNote(number) => {
                    store.save_cell(&OldNote(*number), Path::Idle, true).await?;
                }
                Step::Migrate => {
                    store.migrate::<Note>().await?;
                }
            }
            Ok(0)
        })
    }
}

async fn stage<const WORD: usize, const SECTOR: usize>(
    store: &mut Cells<'_, WORD, SECTOR>,
    chunks: &[Vec<u8>],
) -> Result<(), Error> {
    for (number, chunk) in (0..).zip(chunks) {
        store.stage_chunk(number, 1, chunk).await?;
    }
    store.commit_configuration(chunks.len() as u8).await
}

impl Model {
    /// What the cells hold after a step.
    #[must_use]
    pub fn after(&self, step: &Step, epoch: u32) -> Self {
        let mut next = self.clone();
        match step {
            Step::Provision { chunks, first_epoch } => {
                next.configuration = Some(chunks.clone());
                next.provisioned = true;
                next.epoch = next.epoch.max(*first_epoch);
            }
            Step::Boot => next.epoch = next.epoch.max(epoch),
            Step::Election(bytes) => {
                let index = next.elections.first().map_or(0, |(index, _)| index + 1);
                next.elections.insert(0, (index, bytes.clone()));
                next.elections.truncate(HISTORY_RECORDS as usize);
            }
            Step::Prepare | Step::Migrate => {}
            Step::Reconfigure(chunks) => next.configuration = Some(chunks.clone()),
            Step::ReplaceKeys(id) => next.key = Some(*id),
            Step::WriteOldNote(number) => next.note = Some(*number),
        }
        next
    }

    /// Reads everything that the model describes, except the epoch.
    pub fn observe<const WORD: usize, const SECTOR: usize>(
        store: &mut Cells<'_, WORD, SECTOR>,
    ) -> Result<Self, Halt> {
        finish(async {
            let mut seen = Self {
                provisioned: store.provisioning() == Provisioning::Complete,
                ..Self::default()
            };
            for back in 0..HISTORY_RECORDS {
                if let Some(election) = store.election(back)? {
                    let bytes = [election.state, election.history].concat();
                    seen.elections.push((election.index, bytes));
                }
            }
            if let Some(head) = store.configuration() {
                let mut chunks = Vec::new();
                for chunk in 0..head.chunks {
                    if let Some(loaded) = store.configuration_chunk(chunk)? {
                        chunks.push(loaded.value.to_vec());
                    }
                }
                seen.configuration = Some(chunks);
            }
            seen.key = store
                .keys()?
                .filter(|keys| *keys.send.key.bytes() == key_bytes(keys.send.id))
                .map(|keys| keys.send.id);
            seen.note = store.load_cell::<Note>()?.map(|note| note.0);
            Ok(seen)
        })
    }

    /// The numbers of the elections that are remembered.
    #[must_use]
    pub fn indices(&self) -> Vec<u32> {
        self.elections.iter().map(|(index, _)| *index).collect()
    }

    /// Whether the cells hold what this model says, leaving the epoch aside.
    #[must_use]
    pub fn is_seen_in(&self, seen: &Self) -> bool {
        let same = Self { epoch: seen.epoch, ..self.clone() };
        same == *seen
    }
}

/// Provisioning, `elections` elections with idle time between them, reboots, changes of the
/// configuration and of the key, and a format migration.
#[must_use]
pub fn life(elections: usize, seed: u64, largest: usize) -> Vec<Step> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = |length: usize| -> Vec<u8> { (0..length).map(|_| random.u8(..)).collect() };
    let chunks = |bytes: &mut dyn FnMut(usize) -> Vec<u8>| vec![bytes(90), bytes(200)];
    let mut steps = vec![
        Step::Provision { chunks: chunks(&mut bytes), first_epoch: 1000 },
        Step::ReplaceKeys(1),
        Step::Boot,
        Step::WriteOldNote(77),
    ];
    for number in 0..elections {
        let length = match number % 10 {
            9 => largest,
            3 => 0,
            other => 40 + other * 20,
        };
        steps.push(Step::Election(bytes(length)));
        steps.push(Step::Prepare);
        match number % 25 {
            5 => steps.extend([Step::ReplaceKeys(2 + (number / 25) as u8), Step::Prepare]),
            8 => steps.push(Step::Reconfigure(chunks(&mut bytes))),
            12 => steps.push(Step::Migrate),
            18 => steps.push(Step::Boot),
            _ => {}
        }
    }
    steps
}
