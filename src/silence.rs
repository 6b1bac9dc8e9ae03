//! Members that a Check has not heard of, and for how many Checks in a row.

use crate::id::{NodeSet, PerNode};

#[derive(Debug)]
pub struct Silence<const W: usize> {
    checks: PerNode<u8, W>,
}

impl<const W: usize> Silence<W> {
    pub fn new() -> Self {
        Self { checks: PerNode::all(0) }
    }

    /// These have been heard.
    pub fn heard(&mut self, members: &NodeSet<W>) {
        for member in members.iter() {
            self.checks[member] = 0;
        }
    }

    /// A Check has ended and these members were silent; who has been so `most` times is gone.
    #[must_use]
    pub fn unheard(&mut self, members: &NodeSet<W>, most: u8) -> NodeSet<W> {
        let mut gone = NodeSet::EMPTY;
        for member in members.iter() {
            let checks = &mut self.checks[member];
            *checks = checks.saturating_add(1);
            if *checks >= most {
                gone.insert(member);
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::NodeId;

    #[test]
    fn only_silence_in_a_row_counts() {
        let members: NodeSet<1> = (1..=2).filter_map(NodeId::new).collect();
        let one: NodeSet<1> = NodeId::new(1).into_iter().collect();
        let mut silence = Silence::new();
        assert!(silence.unheard(&members, 3).is_empty());
        assert!(silence.unheard(&members, 3).is_empty());
        silence.heard(&one);
        assert_eq!(silence.unheard(&members, 3), members.difference(&one));
    }
}
