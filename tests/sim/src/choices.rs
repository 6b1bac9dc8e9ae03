//! Where a run could have gone another way: every frame, and every act of a node.
//!
//! The points are counted in the order in which they come. A script names some of them and what happens
//! there instead of the usual; with the same script a run is the same run, so that one that is the
//! same up to a point can be told to differ there.

use std::fmt;
use std::str::FromStr;

use crate::clock::Time;

/// What can happen at a point instead of the usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deviation {
    /// The frame takes all of Tm.
    Slow,
    Lost,
    /// The node loses its power right after what it just did, until the end of the window.
    Off,
    /// It has its power back at once.
    Reboot,
}

impl Deviation {
    const ALL: [(Self, char); 4] =
        [(Self::Slow, 's'), (Self::Lost, 'l'), (Self::Off, 'o'), (Self::Reboot, 'r')];

    fn letter(self) -> char {
        Self::ALL.into_iter().find(|(known, _)| *known == self).map_or('?', |(_, letter)| letter)
    }
}

/// What a point is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    Frame,
    Act,
}

impl Point {
    pub const fn deviations(self) -> [Deviation; 2] {
        match self {
            Self::Frame => [Deviation::Slow, Deviation::Lost],
            Self::Act => [Deviation::Off, Deviation::Reboot],
        }
    }
}

/// Deviations with the numbers of their points, in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script(pub Vec<(usize, Deviation)>);

impl Script {
    /// The same run up to that point, and something else there.
    #[must_use]
    pub fn and(&self, point: usize, deviation: Deviation) -> Self {
        let mut script = self.clone();
        script.0.push((point, deviation));
        script
    }

    /// The first point that is behind all deviations.
    pub fn end(&self) -> usize {
        self.0.last().map_or(0, |(point, _)| point + 1)
    }

    fn at(&self, point: usize) -> Option<Deviation> {
        self.0.iter().find(|(known, _)| *known == point).map(|(_, deviation)| *deviation)
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> =
            self.0.iter().map(|(point, what)| format!("{point}{}", what.letter())).collect();
        f.write_str(&words.join(","))
    }
}

impl FromStr for Script {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let word = |word: &str| {
            let mut letters = word.chars();
            let letter = letters.next_back()?;
            let point = letters.as_str().parse().ok()?;
            let known = Deviation::ALL.into_iter().find(|(_, known)| *known == letter)?;
            Some((point, known.0))
        };
        let words = text.split(',').filter(|word| !word.is_empty());
        let script: Option<Vec<(usize, Deviation)>> = words.map(|text| word(text.trim())).collect();
        let script = script.ok_or_else(|| {
            format!(
                "`{text}` is no list of points such as 12s,31r (s slow, l lost, o off, r reboot)"
            )
        })?;
        if !script.is_sorted_by_key(|(point, _)| *point) {
            return Err(format!("the points of `{text}` are not in ascending order"));
        }
        Ok(Self(script))
    }
}

/// The points that a run has come to.
#[derive(Debug)]
pub struct Choices {
    script: Script,
    /// After this there are no more points.
    until: Time,
    pub met: Vec<Point>,
    /// The node that loses its power now, and whether it has it back at once.
    pub struck: Option<(usize, bool)>,
}

impl Choices {
    pub fn new(script: Script, until: Time) -> Self {
        Self { script, until, met: Vec::new(), struck: None }
    }

    fn meet(&mut self, now: Time, point: Point) -> Option<Deviation> {
        if now > self.until {
            return None;
        }
        self.met.push(point);
        self.script.at(self.met.len() - 1)
    }

    /// A frame leaves for one node.
    pub fn frame(&mut self, now: Time) -> Option<Deviation> {
        self.meet(now, Point::Frame)
    }

    /// A node has done something that can be seen from outside.
    pub fn act(&mut self, now: Time, node: usize) {
        match self.meet(now, Point::Act) {
            Some(Deviation::Off) => self.struck = Some((node, false)),
            Some(Deviation::Reboot) => self.struck = Some((node, true)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_as_it_is_written() {
        let script = Script::default().and(3, Deviation::Slow).and(12, Deviation::Reboot);
        assert_eq!(script.to_string(), "3s,12r");
        assert_eq!("3s,12r".parse(), Ok(script));
        assert_eq!("".parse(), Ok(Script::default()));
        for bad in ["x", "12", "s", "12s,3r", "3s;4s", "-1s"] {
            assert!(bad.parse::<Script>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_point_is_counted_only_in_the_window() {
        let mut choices = Choices::new(Script::default().and(1, Deviation::Lost), 10);
        assert_eq!(choices.frame(5), None);
        assert_eq!(choices.frame(5), Some(Deviation::Lost));
        choices.act(10, 2);
        assert_eq!(choices.frame(11), None);
        assert_eq!(choices.met, [Point::Frame, Point::Frame, Point::Act]);
        assert_eq!(choices.struck, None);
    }
}
