//! Why a file was refused.

use std::fmt;

/// A file that cannot be used. Nothing was started or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFile {
    pub file: String,
    /// Counted from 1. A key that is missing is reported at the table that lacks it.
    pub line: usize,
    pub wrong: String,
    pub allowed: String,
}

impl fmt::Display for BadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, wrong, allowed } = self;
        write!(f, "{file}:{line}: {wrong}; {allowed}")
    }
}

impl std::error::Error for BadFile {}
