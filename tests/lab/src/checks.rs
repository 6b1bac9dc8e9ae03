//! The paper's assertions, by the same checker as in the simulator, on what the lab saw.
//!
//! Times of different boards are known within an uncertainty. A node counts for the assertions only
//! while it was certainly in the state that it reported, so that a violation counts only beyond the
//! uncertainty.

use bellwether::config::Timing;
use bellwether::id::{GroupId, NodeId};
use bellwether::state::Status;
use bellwether_scenario::{Action, NodeEvent, Scenario, Status as TraceStatus, What};
use bellwether_sim::checker::{Checker, View, Violation};

enum Change {
    /// Whatever comes next, the old state is no longer certain.
    Hide,
    Show(View),
    Power(bool),
    Paused(bool),
    Broken,
}

#[derive(Clone, Copy)]
struct Seen {
    view: View,
    hidden: bool,
    powered: bool,
    paused: bool,
}

impl Seen {
    fn view(&self) -> View {
        let live = self.powered && !self.paused && !self.hidden;
        View { live, paused: self.paused, ..self.view }
    }
}

fn view_of(what: &What) -> Option<View> {
    let What::State { status, coordinator, group, definition, .. } = what else { return None };
    let status = match status {
        TraceStatus::Down => Status::Down,
        TraceStatus::Election => Status::Election,
        TraceStatus::Reorganization => Status::Reorganization,
        TraceStatus::Normal => Status::Normal,
    };
    let group = group
        .and_then(|(owner, number)| Some(GroupId { coordinator: NodeId::new(owner)?, number }));
    let (coordinator, definition) = (*coordinator, *definition);
    Some(View { live: true, paused: false, status, coordinator, group, definition })
}

/// Every assertion that did not hold. `actions`: what was done when; `broken`: when frames were lost
/// or late, so that Bully promises nothing.
pub fn violations(
    scenario: &Scenario,
    timing: &Timing,
    events: &[NodeEvent],
    actions: &[(u64, Action)],
    broken: &[u64],
) -> Result<Vec<String>, String> {
    let mut settings =
        bellwether_sim::play::settings(scenario).map_err(|error| error.to_string())?;
    let nodes = usize::from(scenario.nodes);
    let mut changes: Vec<(u64, usize, Change)> = Vec::new();
    let mut certain_from = vec![0; nodes];
    for event in events {
        let node = usize::from(event.node) - 1;
        let (at, about) = (event.at_us, event.uncertainty_us.unwrap_or(0));
        match &event.what {
            What::Boot => changes.push((at, node, Change::Power(true))),
            What::Kill => changes.push((at, node, Change::Power(false))),
            What::Reset { .. } => {
                changes.push((at.saturating_sub(about), node, Change::Power(false)))
            }
            What::State { .. } => {
                let from = at.saturating_sub(about).max(certain_from[node]);
                changes.push((from, node, Change::Hide));
                certain_from[node] = at + about;
                if let Some(view) = view_of(&event.what) {
                    changes.push((at + about, node, Change::Show(view)));
                }
            }
            What::Send { .. } => {}
        }
    }
    for (at, action) in actions {
        let (ids, paused) = match action {
            Action::Pause { nodes } => (nodes, true),
            Action::Resume { nodes } => (nodes, false),
            _ => continue,
        };
        for id in ids {
            changes.push((*at, usize::from(*id) - 1, Change::Paused(paused)));
        }
    }
    changes.extend(broken.iter().map(|at| (*at, 0, Change::Broken)));
    changes.sort_by_key(|(at, ..)| *at);
    settings.timing = *timing;
    let (promised, grace) = (settings.promises_assertion_1(), settings.grace_us());
    let mut checker = Checker::new(nodes, promised, grace).with_observers(&settings.observers);
    let nothing = Seen { view: View::DOWN, hidden: false, powered: false, paused: false };
    let mut seen = vec![nothing; nodes];
    for (at, node, change) in changes {
        let one = &mut seen[node];
        match change {
            Change::Broken => {
                checker.assumption_broken(at);
                continue;
            }
            Change::Hide => one.hidden = true,
            Change::Show(view) => {
                one.view = view;
                one.hidden = false;
            }
            Change::Power(powered) => *one = Seen { powered, paused: one.paused, ..nothing },
            Change::Paused(paused) => {
                one.paused = paused;
                // What a board that goes on still believes counts only once it has said it again: if
                // it was away for too long, it finds out before it acts.
                one.hidden |= !paused;
            }
        }
        checker.update(at, node, one.view());
    }
    let violations = checker.violations.iter();
    let told = |v: &Violation| format!("at {} ms: {}: {}", v.at / 1000, v.rule, v.what);
    Ok(violations.map(told).collect())
}
