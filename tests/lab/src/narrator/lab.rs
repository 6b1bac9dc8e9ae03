//! What the lab does to the flock, in words.

use bellwether_scenario::{Action, LinkQuality, NodeId};

use super::words::{Ids, clause, list};

/// The sentence, and how it is told what happened so long after.
pub fn told(action: &Action, coordinators: &Ids) -> (String, String) {
    match action {
        Action::Kill { nodes } => {
            let ids = ids(nodes);
            let sentence = match nodes.as_slice() {
                [one] if coordinators.contains(one) => {
                    format!("node {one}, the coordinator, loses power")
                }
                _ => clause(&ids, "loses power", "lose power"),
            };
            (sentence, format!("the crash of {}", list(&ids)))
        }
        Action::Boot { nodes } => {
            let ids = ids(nodes);
            (clause(&ids, "gets power", "get power"), format!("{} got power", list(&ids)))
        }
        Action::Pause { nodes } => {
            let ids = ids(nodes);
            (clause(&ids, "stands still", "stand still"), format!("{} stood still", list(&ids)))
        }
        Action::Resume { nodes } => {
            let ids = ids(nodes);
            (clause(&ids, "goes on", "go on"), format!("{} went on", list(&ids)))
        }
        Action::Leave { nodes } => {
            let ids = ids(nodes);
            let sentence = clause(&ids, "is asked to leave", "are asked to leave");
            (sentence, format!("{} left", list(&ids)))
        }
        Action::Reset { nodes } => {
            let ids = ids(nodes);
            (clause(&ids, "is reset", "are reset"), format!("the reset of {}", list(&ids)))
        }
        Action::Unplug { nodes } => {
            let ids = ids(nodes);
            let sentence = clause(&ids, "has its cable pulled", "have their cables pulled");
            (sentence, format!("{} lost the cable", list(&ids)))
        }
        Action::Plug { nodes } => {
            let ids = ids(nodes);
            let sentence = clause(&ids, "gets its cable back", "get their cables back");
            (sentence, format!("{} got the cable back", list(&ids)))
        }
        Action::Partition { sets } => {
            let sets: Vec<String> = sets.iter().map(|set| list(&ids(set))).collect();
            (format!("the lab cuts the network: {}", sets.join(" | ")), "the cut".into())
        }
        Action::Heal => ("the network is whole again".into(), "the heal".into()),
        Action::Link { from, to, quality } => {
            let link = format!("from {} to {}", list(&ids(from)), list(&ids(to)));
            (format!("the network {link} now {}", does(quality)), "the change of links".into())
        }
    }
}

fn ids(nodes: &[NodeId]) -> Ids {
    nodes.iter().copied().collect()
}

/// What a link does to frames.
fn does(quality: &LinkQuality) -> String {
    let percent = |share: f64| (share * 100.0).round();
    let mut words = Vec::new();
    if quality.loss > 0.0 {
        words.push(format!("loses {} %", percent(quality.loss)));
    }
    match (quality.delay_us / 1000, (quality.delay_us + quality.jitter_us) / 1000) {
        (0, 0) => {}
        (least, most) if least == most => words.push(format!("is {least} ms slower")),
        (least, most) => words.push(format!("is {least} to {most} ms slower")),
    }
    if quality.duplicate > 0.0 {
        words.push(format!("doubles {} %", percent(quality.duplicate)));
    }
    if quality.reorder > 0.0 {
        words.push(format!("reorders {} %", percent(quality.reorder)));
    }
    if words.is_empty() { "is in order".into() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_sentences() {
        let say = |action| told(&action, &[5].into()).0;
        assert_eq!(say(Action::Kill { nodes: vec![5] }), "node 5, the coordinator, loses power");
        assert_eq!(say(Action::Kill { nodes: vec![4, 5] }), "nodes 4 5 lose power");
        assert_eq!(say(Action::Boot { nodes: vec![2] }), "node 2 gets power");
        let sets = vec![vec![1, 2], vec![3, 4, 5]];
        assert_eq!(say(Action::Partition { sets }), "the lab cuts the network: 1 2 | 3 4 5");
        assert_eq!(say(Action::Heal), "the network is whole again");
        assert_eq!(say(Action::Unplug { nodes: vec![3] }), "node 3 has its cable pulled");
    }

    #[test]
    fn a_link_says_what_it_does() {
        let say =
            |quality| told(&Action::Link { from: vec![1], to: vec![2, 3], quality }, &Ids::new()).0;
        let bad = LinkQuality { loss: 0.2, delay_us: 5000, jitter_us: 3000, ..Default::default() };
        assert_eq!(say(bad), "the network from 1 to 2 3 now loses 20 %, is 5 to 8 ms slower");
        assert_eq!(say(LinkQuality::default()), "the network from 1 to 2 3 now is in order");
    }
}
