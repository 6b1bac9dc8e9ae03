//! The lines of a node's log, as `src/shell/log.rs` lists them.

use bellwether_scenario::{NodeId, ResetCause, Status, Target, What};

/// A line: its number, its word and its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub sequence: u32,
    pub word: String,
    text: String,
}

impl Line {
    /// `None` for a text that is no line of the vocabulary: another crate's message.
    pub fn parse(text: &str) -> Option<Self> {
        let (sequence, rest) = text.split_once(' ')?;
        let (word, text) = rest.split_once(' ').unwrap_or((rest, ""));
        Some(Self { sequence: sequence.parse().ok()?, word: word.into(), text: text.into() })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.text.split(' ').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
    }

    pub fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }

    pub fn cause(&self) -> Option<ResetCause> {
        ResetCause::from_name(self.get("cause")?)
    }

    fn id(&self, key: &str) -> Option<NodeId> {
        u8::try_from(self.number(key)?).ok()
    }

    /// The event of a trace that the line stands for.
    pub fn event(&self) -> Option<What> {
        match self.word.as_str() {
            "state" => self.state(),
            "send" => Some(What::Send {
                to: match self.id("to")? {
                    0 => Target::All,
                    id => Target::Node(id),
                },
                message: self.get("message")?.to_owned().into(),
                bytes: self.number("bytes")? as usize,
            }),
            _ => None,
        }
    }

    fn state(&self) -> Option<What> {
        let status = match self.get("status")? {
            "Down" => Status::Down,
            "Election" => Status::Election,
            "Reorganization" => Status::Reorganization,
            "Normal" => Status::Normal,
            _ => return None,
        };
        let owner = self.id("group")?;
        let mask = u64::from_str_radix(self.get("up")?, 16).ok()?;
        let digest = u64::from_str_radix(self.get("definition")?, 16).ok()?;
        let definition = (self.get("defined")? == "true").then_some(digest);
        Some(What::State {
            status,
            coordinator: Some(self.id("coordinator")?).filter(|id| *id != 0),
            group: (owner != 0).then_some((owner, self.number("number")?)),
            up: (1..=64).filter(|id| mask & 1 << (id - 1) != 0).collect(),
            definition,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_line_is_a_state_vector() {
        let text = "17 state status=Normal coordinator=5 group=5 number=8589934593 up=1e \
                    defined=true definition=cbf29ce484222325 halted=0 halted_number=0";
        let line = Line::parse(text).unwrap();
        assert_eq!(line.sequence, 17);
        let what = What::State {
            status: Status::Normal,
            coordinator: Some(5),
            group: Some((5, 8589934593)),
            up: vec![2, 3, 4, 5],
            definition: Some(0xcbf2_9ce4_8422_2325),
        };
        assert_eq!(line.event(), Some(what));
    }

    #[test]
    fn what_is_no_line_is_refused() {
        assert_eq!(Line::parse("link up"), None);
        assert_eq!(Line::parse("3 state status=Odd group=1").unwrap().event(), None);
        assert_eq!(Line::parse("3 send to=300 message=Halt bytes=3").unwrap().event(), None);
    }
}
