//! How soon the flock was whole again after its coordinator lost its power.

use bellwether::config::Timing;
use bellwether::time::Duration;
use bellwether_scenario::{Action, NodeEvent, Scenario, Watch, What};
use bellwether_sim::liveness::{Cause, bound_us};

use crate::display::settled;

/// A save that finds no erase running: boards erase only after seconds of idleness.
const SAVE: Duration = Duration::from_millis(50);

/// Every crash of a coordinator that took longer to mend than the algorithm may (the simulator's
/// bound, with the times of this run). A crash counts if the flock was settled, the network whole,
/// and nothing else happened until the bound was over.
pub fn overdue(
    scenario: &Scenario,
    timing: &Timing,
    events: &[NodeEvent],
    actions: &[(u64, Action)],
) -> Result<Vec<String>, String> {
    let mut settings =
        bellwether_sim::play::settings(scenario).map_err(|error| error.to_string())?;
    settings.timing = Timing { ts: SAVE, ..*timing };
    let bound = bound_us(&settings, Cause::Crash);
    let mut watch = Watch::new(scenario);
    let mut crashed_at = None;
    let mut found = Vec::new();
    for event in events.iter().filter(|event| !matches!(event.what, What::Send { .. })) {
        if let Some(at) = crashed_at.filter(|at| event.at_us > at + bound) {
            found.push(format!(
                "at {} ms the coordinator died, and {} ms later the flock was not settled again",
                at / 1000,
                bound / 1000
            ));
            crashed_at = None;
        }
        let before = settled(watch.seen());
        let coordinator_dies = event.what == What::Kill && before == Some(event.node);
        watch.note(event);
        if settled(watch.seen()).is_some() {
            crashed_at = None;
        }
        if coordinator_dies && undisturbed(actions, event.at_us, bound) {
            crashed_at = Some(event.at_us);
        }
    }
    Ok(found)
}

/// Nothing but this power cut happens from `at` to the end of the bound, and no earlier action has
/// left its mark on the network.
fn undisturbed(actions: &[(u64, Action)], at: u64, bound: u64) -> bool {
    let network = |action: &Action| {
        matches!(action, Action::Partition { .. } | Action::Link { .. } | Action::Unplug { .. })
    };
    // The moment of a power cut is noted just after it.
    let later = actions.iter().filter(|(when, _)| *when > at && *when <= at + bound);
    let kills = later.clone().filter(|(_, action)| matches!(action, Action::Kill { .. })).count();
    let whole = !actions.iter().any(|(when, action)| *when <= at && network(action));
    whole && later.count() == kills && kills <= 1
}
