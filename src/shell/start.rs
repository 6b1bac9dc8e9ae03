//! The first moments of a board: cells, configuration, boot epoch.

use defmt::{Str, intern};
use embassy_sync::blocking_mutex::raw::RawMutex;

use super::{WORDS, log};
use crate::cells::{Flash, Provisioning, Store, Verdict, Which};
use crate::key::KeyBox;
use crate::provision::{self, BadProvision, Provision};

/// What a node needs to begin.
#[derive(Debug)]
pub struct Started {
    pub provision: Provision<WORDS>,
    /// The epoch of this boot: durable, read back, used by no boot before.
    pub epoch: u32,
}

/// Opens the cells, which are new, logs what had to be repaired, reads who this board is, and makes the
/// epoch of this boot durable. The keys of the flock are in `keys` then. `Err` says why the node must
/// stay mute.
/// An image that was built for one network (`network`) refuses the flash of another: somebody has
/// swapped parts.
///
/// Cancel safety: not cancel safe; it saves.
pub async fn open<F: Flash, M: RawMutex, const PAGES: usize, const BUFFER: usize>(
    store: &mut Store<F, PAGES, BUFFER>,
    network: Option<u16>,
    keys: &KeyBox<M>,
) -> Result<Started, Str> {
    let report = store.boot().await;
    for (index, which) in (0..).zip(Which::BOTH) {
        let region = report.region(which);
        if region.verdict() != Verdict::Good {
            log::repair(index, region);
        }
    }
    match report.provisioning {
        Provisioning::Complete => {}
        Provisioning::Blank => return Err(intern!("blank")),
        Provisioning::Debris => return Err(intern!("debris")),
        Provisioning::Partial => return Err(intern!("provisioning-cut-short")),
        Provisioning::Unreadable { .. } => return Err(intern!("unreadable")),
    }
    let provision: Provision<WORDS> = match store.configuration_chunk(0) {
        Ok(Some(chunk)) if chunk.format > provision::FORMAT => return Err(intern!("newer-format")),
        Ok(Some(chunk)) => Provision::decode(chunk.value).map_err(|bad| match bad {
            BadProvision::Length => intern!("configuration-length"),
            BadProvision::Field => intern!("configuration-field"),
            BadProvision::Config(_) => intern!("configuration-refused"),
        })?,
        Ok(None) => return Err(intern!("unprovisioned")),
        Err(error) => return Err(log::reason_name(error.reason)),
    };
    if network.is_some_and(|network| network != provision.config.network) {
        return Err(intern!("other-network"));
    }
    let found = store.keys().map_err(|error| log::reason_name(error.reason))?;
    keys.put(&found.ok_or(intern!("keys-missing"))?);
    let lease = store.begin_epoch().await.map_err(|error| log::reason_name(error.reason))?;
    Ok(Started { provision, epoch: lease.epoch().0 })
}
