//! How the boards behaved, whatever the scenario was about: panics, faults, boot epochs, deadlines.

use bellwether_scenario::{Action, NodeEvent, ResetCause, What};

use crate::chronicle::Said;

/// A board that panics so often will go on to do so: the run is over.
const PANICS_MAX: u32 = 3;
/// A save that found no erased sector and made one first: it takes longer, and nothing is lost.
const HARMLESS: &str = "save-not-prepared";

/// What the logs say of it. None of this is ever a host's fault.
#[derive(Debug)]
pub struct Conduct {
    /// The boot epoch that each node has told last.
    epochs: Vec<Option<u64>>,
    panics: Vec<u32>,
    /// Cables, in the order in which the boards noticed them: who, and whether it was put in.
    pub cables: Vec<(u8, bool)>,
    pub failures: Vec<String>,
}

impl Conduct {
    pub fn new(nodes: u8) -> Self {
        let (epochs, panics) = (vec![None; nodes.into()], vec![0; nodes.into()]);
        Self { epochs, panics, cables: Vec::new(), failures: Vec::new() }
    }

    pub fn hear(&mut self, said: &Said) {
        let index = usize::from(said.node).saturating_sub(1);
        let (Some(epoch), Some(panics)) = (self.epochs.get_mut(index), self.panics.get_mut(index))
        else {
            return;
        };
        let (line, text) = (&said.line, said.line.text());
        let who = format!("at {:.3} s node {}", said.at_us as f64 / 1e6, said.node);
        let panicked = What::Reset { cause: ResetCause::Panic };
        if said.events.iter().any(|event| event.what == panicked) {
            *panics += 1;
            self.failures.push(format!("{who} started again after a panic"));
        }
        match line.word.as_str() {
            "last" => self.failures.push(format!("{who} says of its last end: {text}")),
            "fault" if line.get("what") != Some(HARMLESS) => {
                self.failures.push(format!("{who} says fault {text}"));
            }
            "link" => self.cables.push((said.node, line.get("up") == Some("true"))),
            "boot" => {
                let now = line.number("epoch");
                if let (Some(before), Some(now)) = (*epoch, now)
                    && now <= before
                {
                    self.failures.push(format!("{who} boots with epoch {now} after {before}"));
                }
                *epoch = (*epoch).max(now);
            }
            _ => {}
        }
    }

    /// A board panics again and again: nothing else can come of this run.
    pub fn is_hopeless(&self) -> bool {
        self.panics.iter().any(|panics| *panics >= PANICS_MAX)
    }
}

/// Boards that were reset because they were late, although nobody had paused them: who, when and by what.
/// They are the host's fault only if it was away at that moment.
pub fn unprovoked_resets(
    events: &[NodeEvent],
    actions: &[(u64, Action)],
) -> Vec<(u8, u64, ResetCause)> {
    let paused = |node: u8, at_us: u64| {
        actions.iter().any(|(when, action)| match action {
            // A board finds out at once when it goes on; a second is for the log.
            Action::Pause { nodes } | Action::Resume { nodes } => {
                nodes.contains(&node) && (*when..when + 1_000_000).contains(&at_us)
            }
            _ => false,
        })
    };
    let late = events.iter().filter_map(|event| match event.what {
        What::Reset { cause: cause @ (ResetCause::Deadline | ResetCause::Watchdog) } => {
            Some((event.node, event.at_us, cause))
        }
        _ => None,
    });
    late.filter(|(node, at_us, _)| !paused(*node, *at_us)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Line;

    fn said(node: u8, text: &str, cause: Option<ResetCause>) -> Said {
        let event =
            |cause| NodeEvent { at_us: 0, node, uncertainty_us: None, what: What::Reset { cause } };
        let events = cause.map(event).into_iter().collect();
        Said { node, at_us: 1_500_000, line: Line::parse(text).unwrap(), events }
    }

    fn failures(lines: &[(u8, &str)]) -> Vec<String> {
        let mut conduct = Conduct::new(2);
        lines.iter().for_each(|(node, text)| conduct.hear(&said(*node, text, None)));
        conduct.failures
    }

    #[test]
    fn a_panic_is_told_and_three_end_the_run() {
        let mut conduct = Conduct::new(2);
        for count in 1..=3 {
            assert!(!conduct.is_hopeless());
            conduct.hear(&said(2, "0 start cause=panic", Some(ResetCause::Panic)));
            conduct.hear(&said(2, "1 last place=\"a.rs\" line=7 what=\"no\"", None));
            assert_eq!(conduct.failures.len(), 2 * count);
        }
        assert!(conduct.is_hopeless());
        assert_eq!(conduct.failures[0], "at 1.500 s node 2 started again after a panic");
        assert!(conduct.failures[1].ends_with("last end: place=\"a.rs\" line=7 what=\"no\""));
        // Panics of different boards are no boot loop, and other resets are none either.
        let mut conduct = Conduct::new(2);
        for node in [1, 2, 1, 2] {
            conduct.hear(&said(node, "0 start cause=panic", Some(ResetCause::Panic)));
        }
        conduct.hear(&said(1, "0 start cause=deadline", Some(ResetCause::Deadline)));
        assert!(!conduct.is_hopeless() && conduct.failures.len() == 4);
    }

    #[test]
    fn a_fault_is_told_unless_it_is_harmless() {
        assert_eq!(failures(&[(1, "4 fault what=save-not-prepared")]), [""; 0]);
        let send = failures(&[(1, "4 fault what=send")]);
        assert_eq!(send, ["at 1.500 s node 1 says fault what=send"]);
    }

    #[test]
    fn boot_epochs_only_rise() {
        let rising =
            [(1, "2 boot id=1 epoch=4"), (2, "2 boot id=2 epoch=1"), (1, "2 boot epoch=5")];
        assert_eq!(failures(&rising), [""; 0]);
        let same = failures(&[(1, "2 boot id=1 epoch=4"), (1, "2 boot id=1 epoch=4")]);
        assert_eq!(same, ["at 1.500 s node 1 boots with epoch 4 after 4"]);
        let lower = [(1, "2 boot epoch=4"), (1, "2 boot epoch=3"), (1, "2 boot epoch=4")];
        assert_eq!(failures(&lower).len(), 2);
    }

    #[test]
    fn only_a_pause_excuses_a_deadline() {
        let event = |at_us, cause| NodeEvent {
            at_us,
            node: 2,
            uncertainty_us: None,
            what: What::Reset { cause },
        };
        let events = [
            event(1_000, ResetCause::Deadline),
            event(5_000_000, ResetCause::Watchdog),
            event(5_000_001, ResetCause::Power),
            event(9_100_000, ResetCause::Deadline),
            event(9_100_000, ResetCause::Panic),
        ];
        let pause = |node| [(9_000_000, Action::Resume { nodes: vec![node] })];
        let found = unprovoked_resets(&events, &pause(2));
        let all = [(2, 1_000, ResetCause::Deadline), (2, 5_000_000, ResetCause::Watchdog)];
        assert_eq!(found, all);
        assert_eq!(unprovoked_resets(&events, &pause(1)).len(), 3);
    }
}
