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
/// and nothing else happened until the bound was over. `end_us`: when the run was over.
pub fn overdue(
    scenario: &Scenario,
    timing: &Timing,
    events: &[NodeEvent],
    actions: &[(u64, Action)],
    end_us: u64,
) -> Result<Vec<String>, String> {
    let mut settings =
        bellwether_sim::play::settings(scenario).map_err(|error| error.to_string())?;
    settings.timing = Timing { ts: SAVE, ..*timing };
    let bound = bound_us(&settings, Cause::Crash);
    let mut watch = Watch::new(scenario);
    let mut crashed_at = None;
    let mut found = Vec::new();
    let mut is_due = |crashed_at: &mut Option<u64>, watch: &Watch, now: u64| {
        let due = crashed_at.take_if(|at| now > *at + bound);
        // Observers alone stay without a coordinator.
        let mut live = watch.seen().nodes.iter().filter(|view| view.alive);
        if let Some(at) = due.filter(|_| live.any(|view| !scenario.observers.contains(&view.id))) {
            found.push(format!(
                "at {} ms the coordinator died, and {} ms later the flock was not settled again",
                at / 1000,
                bound / 1000
            ));
        }
    };
    for event in events.iter().filter(|event| !matches!(event.what, What::Send { .. })) {
        is_due(&mut crashed_at, &watch, event.at_us);
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
    is_due(&mut crashed_at, &watch, end_us);
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

#[cfg(test)]
mod tests {
    use bellwether_scenario::{Algorithm, Status};

    use super::*;
    use crate::flash;

    const DEATH: u64 = 2_000_000;

    fn event(at_us: u64, node: u8, what: What) -> NodeEvent {
        NodeEvent { at_us, node, uncertainty_us: None, what }
    }

    fn normal(at_us: u64, node: u8, coordinator: u8) -> NodeEvent {
        let (group, definition) = (Some((coordinator, 1)), Some(7));
        let (status, coordinator) = (Status::Normal, Some(coordinator));
        event(at_us, node, What::State { status, coordinator, group, up: vec![], definition })
    }

    /// Three nodes settle under 3, which dies; then this happens, and the run ends. How many crashes were
    /// not mended in time.
    fn overdue_after(more: &[NodeEvent], end_us: u64) -> usize {
        overdue_among(&[], more, end_us)
    }

    fn overdue_among(observers: &[u8], more: &[NodeEvent], end_us: u64) -> usize {
        let mut scenario = Scenario::undisturbed(Algorithm::Bully, 3, 0);
        scenario.observers = observers.to_vec();
        (scenario.tm_us, scenario.tp_us) = (40_000, 40_000);
        let mut events: Vec<NodeEvent> =
            (1..=3).map(|node| event(1000, node, What::Boot)).collect();
        events.extend((1..=3).map(|node| normal(1_000_000, node, 3)));
        events.push(event(DEATH, 3, What::Kill));
        events.extend_from_slice(more);
        let kill = [(DEATH + 1000, Action::Kill { nodes: vec![3] })];
        let timing = flash::timing(&scenario).unwrap();
        overdue(&scenario, &timing, &events, &kill, end_us).unwrap().len()
    }

    #[test]
    fn a_flock_that_mends_in_time_is_in_order() {
        let mended = [1, 2].map(|node| normal(DEATH + 300_000, node, 2));
        assert_eq!(overdue_after(&mended, DEATH + 10_000_000), 0);
        // Nobody knows what would have come next.
        assert_eq!(overdue_after(&[], DEATH + 100_000), 0);
    }

    #[test]
    fn a_flock_that_says_nothing_any_more_is_overdue() {
        assert_eq!(overdue_after(&[], DEATH + 10_000_000), 1);
    }

    #[test]
    fn to_be_settled_under_the_dead_does_not_count() {
        let still = [normal(DEATH + 100_000, 1, 3)];
        assert_eq!(overdue_after(&still, DEATH + 10_000_000), 1);
        let late = [1, 2].map(|node| normal(DEATH + 5_000_000, node, 2));
        assert_eq!(overdue_after(&[&still[..], &late].concat(), DEATH + 10_000_000), 1);
    }

    #[test]
    fn observers_alone_have_nothing_to_settle() {
        assert_eq!(overdue_among(&[1, 2], &[], DEATH + 10_000_000), 0);
        assert_eq!(overdue_among(&[1], &[], DEATH + 10_000_000), 1);
    }
}
