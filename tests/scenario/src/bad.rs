//! Why a scenario was refused.

use std::fmt;

/// A scenario file that cannot be played. Nothing was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadScenario {
    pub file: String,
    /// Counted from 1. A key that is missing is reported at the table that lacks it.
    pub line: usize,
    pub wrong: String,
    pub allowed: String,
}

impl fmt::Display for BadScenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, wrong, allowed } = self;
        write!(f, "{file}:{line}: {wrong}; {allowed}")
    }
}

impl std::error::Error for BadScenario {}
