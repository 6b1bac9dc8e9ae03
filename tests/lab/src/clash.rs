//! Two boards with one id: the later one falls silent, and everybody says so.

use std::collections::BTreeSet;
use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

use bellwether_scenario::{Algorithm, Scenario};

use crate::display::settled;
use crate::flash;
use crate::flock::Flock;
use crate::probe::Image;

/// The id that there is twice, and the place of the second board with it.
const ID: u8 = 2;
const TWIN: u8 = 4;

pub fn run(image: &Arc<Image>) -> Result<String, String> {
    let mut scenario = Scenario::undisturbed(Algorithm::Invitation, TWIN, 0);
    (scenario.tm_us, scenario.tp_us) = (40_000, 100_000);
    scenario.boot = (1..TWIN).collect();
    let mut flock = Flock::prepare(&scenario, from_ref(image), None)?;
    flash::prepare(&flock.flash_of(TWIN), &scenario, ID)?;
    flock.switch.set_host(TWIN, ID);
    flock.begin();
    flock.boot(1..TWIN)?;
    let end = flock.now() + Duration::from_secs(20);
    while settled(flock.watch.seen()) != Some(TWIN - 1) {
        flock.look_after()?;
        if flock.now() > end {
            return Err("the flock did not settle".into());
        }
        flock.listen_for(Duration::from_millis(20));
    }
    flock.boot([TWIN])?;
    let mut silent = false;
    let mut noted = BTreeSet::new();
    let end = flock.now() + Duration::from_secs(15);
    while let Some(said) = flock.listen(end) {
        flock.look_after()?;
        let clash = said.line.text().contains("id-clash");
        match said.line.word.as_str() {
            "mute" if said.node != TWIN => return Err(format!("node {} falls silent", said.node)),
            "mute" if clash => silent = true,
            "note" if clash => drop(noted.insert(said.node)),
            "start" if said.node != TWIN => return Err(format!("node {} was reset", said.node)),
            _ => {}
        }
        if silent && (1..TWIN).all(|id| noted.contains(&id)) {
            return Ok("the second one is silent, all others say so".into());
        }
    }
    Err(format!("silent: {silent}, noted by {noted:?}"))
}
