//! Flash images: what a board is told, in the cells that it reads.

use bellwether::cells::BootEpoch;
use bellwether::id::NodeId;
use bellwether::key::Keys;
use bellwether::provision::{BYTES_MAX, FORMAT, Provision};
use bellwether_flash::provision::{Values, provision};

use crate::board::Board;
use crate::file::Flock;

/// What one board is told.
#[derive(Debug, Clone)]
pub struct Contents {
    pub provision: Provision<1>,
    pub keys: Option<Keys>,
    pub incarnation: u32,
    /// Above every epoch that the id has used; the first boot takes the next one.
    pub first_epoch: BootEpoch,
}

impl Contents {
    /// The board of a flock with this id, in this incarnation.
    pub fn of(flock: &Flock, id: NodeId, incarnation: u32) -> Result<Self, String> {
        let first_epoch = BootEpoch::first_of(incarnation).ok_or_else(|| {
            format!(
                "node {id} was provisioned {} times, and there are no boot epochs left for it; \
                 give the board another id",
                BootEpoch::INCARNATION_MAX
            )
        })?;
        let provision = flock.provision(id).ok_or_else(|| format!("there is no member {id}"))?;
        Ok(Self { provision, keys: Some(flock.link_keys()?), incarnation, first_epoch })
    }

    /// The record of the configuration.
    pub fn record(&self) -> Result<Vec<u8>, String> {
        let mut room = [0; BYTES_MAX];
        let len = self.provision.encode(&mut room);
        let len = len.ok_or("a span of time does not fit into the record")?;
        Ok(room[..len].to_vec())
    }

    /// The bytes of both regions of the board's flash.
    pub fn image(&self, board: &Board) -> Result<Vec<u8>, String> {
        self.image_of(board, self.record()?, FORMAT)
    }

    /// [`Contents::image`] with a record that need not make sense, for tests of boards.
    pub fn image_of(&self, board: &Board, record: Vec<u8>, format: u8) -> Result<Vec<u8>, String> {
        let mut image = board.image(vec![0xFF; board.image_bytes()])?;
        let values = Values {
            configuration: Some((record, format)),
            keys: self.keys.clone(),
            incarnation: self.incarnation,
            first_epoch: self.first_epoch.0,
        };
        provision(&mut image, &values)?;
        Ok(image.bytes)
    }
}
