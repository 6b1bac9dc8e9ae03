//! What a board's one lamp says about its node, and when its one button counts as pressed.
//!
//! ```text
//! a square is 125 ms, the row repeats        read as
//! █ · · · · · · · · · · · · · · ·   Down             a wink every two seconds: there is power
//! █ · █ · █ · █ · █ · █ · █ · █ ·   Election         flickers
//! █ · █ · · · · · █ · █ · · · · ·   Reorganization   winks twice, and again
//! █ █ █ █ █ █ █ █ · · · · · · · ·   Normal           slow and even
//! █ █ █ █ █ █ █ █ █ █ █ █ █ █ █ ·   Normal, coordinator: lit, with a blink
//! ```

use crate::state::Status;

/// One row of the picture above, and how long it lasts.
const SQUARES: u32 = 16;
const SQUARE_MS: u32 = 125;

/// What the lamp says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Down,
    Election,
    Reorganization,
    Normal,
    Coordinator,
}

impl Sign {
    pub const ALL: [Self; 5] =
        [Self::Down, Self::Election, Self::Reorganization, Self::Normal, Self::Coordinator];

    /// The sign of a node with this status; `coordinates`: it is its own coordinator.
    #[must_use]
    pub const fn of(status: Status, coordinates: bool) -> Self {
        match status {
            Status::Down => Self::Down,
            Status::Election => Self::Election,
            Status::Reorganization => Self::Reorganization,
            Status::Normal if coordinates => Self::Coordinator,
            Status::Normal => Self::Normal,
        }
    }

    /// Bit 0 is the first square.
    const fn row(self) -> u16 {
        match self {
            Self::Down => 0x0001,
            Self::Election => 0x5555,
            Self::Reorganization => 0x0505,
            Self::Normal => 0x00ff,
            Self::Coordinator => 0x7fff,
        }
    }

    /// Whether the lamp is lit at this time of any clock that counts on.
    #[must_use]
    pub const fn is_lit(self, ms: u32) -> bool {
        self.row() >> (ms / SQUARE_MS % SQUARES) & 1 == 1
    }
}

/// A button whose contact bounces, for less than the time between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Button {
    down: bool,
    /// The last look found it otherwise.
    doubt: bool,
}

impl Button {
    /// Between two looks.
    pub const LOOK_MS: u64 = 25;

    /// Takes a look; whether the button was pressed just now. It is down, or up again, when two looks
    /// in a row have found it so: however long it is held, it is pressed once.
    pub fn look(&mut self, down: bool) -> bool {
        let differs = down != self.down;
        let changed = differs && self.doubt;
        self.doubt = differs && !changed;
        self.down ^= changed;
        changed && down
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::String;
    use std::vec::Vec;

    use super::*;

    fn row(sign: Sign, from_ms: u32) -> String {
        let squares = (0..SQUARES).map(|square| from_ms + square * SQUARE_MS);
        squares.map(|ms| if sign.is_lit(ms) { '#' } else { '.' }).collect()
    }

    #[test]
    fn the_rows_are_those_of_the_picture() {
        let rows = Sign::ALL.map(|sign| row(sign, 0));
        assert_eq!(rows[0], "#...............");
        assert_eq!(rows[1], "#.#.#.#.#.#.#.#.");
        assert_eq!(rows[2], "#.#.....#.#.....");
        assert_eq!(rows[3], "########........");
        assert_eq!(rows[4], "###############.");
    }

    #[test]
    fn a_row_repeats_and_no_two_look_alike_wherever_one_begins_to_look() {
        let period = SQUARES * SQUARE_MS;
        for sign in Sign::ALL {
            assert_eq!(row(sign, 0), row(sign, 7 * period));
            let others = Sign::ALL.into_iter().filter(|other| *other != sign);
            for other in others {
                let turned: Vec<String> =
                    (0..SQUARES).map(|square| row(other, square * SQUARE_MS)).collect();
                assert!(!turned.contains(&row(sign, 0)), "{sign:?} looks like {other:?}");
            }
        }
    }

    /// How often a button was pressed that was found up (`.`) and down (`#`) like this.
    fn presses(looks: &str) -> usize {
        let mut button = Button::default();
        looks.chars().filter(|look| button.look(*look == '#')).count()
    }

    #[test]
    fn a_button_counts_once_however_long_it_is_held() {
        assert_eq!(presses("....####################...."), 1);
        assert_eq!(presses(".##..##...##."), 3);
        assert_eq!(presses("................"), 0);
    }

    #[test]
    fn a_bounce_is_no_press() {
        assert_eq!(presses("..#..#..#.#.#.."), 0);
        // Neither while it is held nor when it is let go.
        assert_eq!(presses("..####.####.#.#..."), 1);
    }

    #[test]
    fn only_a_normal_coordinator_shines() {
        assert_eq!(Sign::of(Status::Down, false), Sign::Down);
        assert_eq!(Sign::of(Status::Election, true), Sign::Election);
        assert_eq!(Sign::of(Status::Reorganization, true), Sign::Reorganization);
        assert_eq!(Sign::of(Status::Normal, true), Sign::Coordinator);
        assert_eq!(Sign::of(Status::Normal, false), Sign::Normal);
    }
}
