//! A scenario judged from the trace of a run that is over.

use crate::judge::{Unmet, judge};
use crate::scenario::{Scenario, Step};
use crate::trace::{NodeEvent, Run, What};
use crate::watch::Watch;

/// All expectations that the run did not meet; none means that it passed. The scenario is given
/// as its file has it: the factor of the run is applied here.
pub fn judge_trace(scenario: &Scenario, run: &Run, events: &[NodeEvent]) -> Vec<Unmet> {
    let scenario = scenario.stretched(run.factor);
    let mut watch = Watch::new(&scenario);
    let mut rest = events;
    let mut unmet = Vec::new();
    for step in scenario.timeline() {
        // What a node does at the very instant of an action is a consequence of the action, and
        // what it does at the very instant of a judgement is part of what is judged.
        let due = match step {
            Step::Act(timed) => rest.partition_point(|event| event.at_us < timed.at_us),
            Step::Judge(wanted) => rest.partition_point(|event| event.at_us <= wanted.at_us),
        };
        let (now, later) = rest.split_at(due);
        rest = later;
        // The timeline says when a node is killed. The trace's own word of it would come too
        // early for an expectation of the same instant that stands before the kill.
        for event in now.iter().filter(|event| event.what != What::Kill) {
            watch.note(event);
        }
        match step {
            Step::Act(timed) => watch.act(&timed.action),
            Step::Judge(expectation) => unmet.extend(judge(expectation, watch.seen()).err()),
        }
    }
    unmet
}
