//! A TOML document whose every value knows its line.
//!
//! Derived deserializers lose the position of a value inside tagged enums, and their messages say
//! what was found but not what is allowed. Scenarios and flock files are small, so they are walked
//! by hand.

use std::collections::BTreeSet;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::bad::BadFile;
use crate::scenario::NodeId;
use crate::time::{TIME_MS_MAX, us_from_ms};

#[derive(Clone, Copy, Debug)]
pub struct Source<'t> {
    pub file: &'t str,
    pub text: &'t str,
}

impl<'t> Source<'t> {
    /// Reads the text as TOML; [`Table::document`] walks it.
    pub fn parse(&self) -> Result<Spanned<DeTable<'t>>, BadFile> {
        DeTable::parse(self.text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            let message = error.message().replace('\n', ", ");
            self.bad(self.line(offset), message, "allowed: TOML, each key once")
        })
    }

    pub fn line(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().iter().take(offset);
        1 + before.filter(|&&byte| byte == b'\n').count()
    }

    pub fn bad(
        &self,
        line: usize,
        wrong: impl Into<String>,
        allowed: impl Into<String>,
    ) -> BadFile {
        BadFile { file: self.file.to_owned(), line, wrong: wrong.into(), allowed: allowed.into() }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Table<'t> {
    pub source: Source<'t>,
    pub line: usize,
    map: &'t DeTable<'t>,
}

impl<'t> Table<'t> {
    pub fn document(source: Source<'t>, document: &'t Spanned<DeTable<'t>>) -> Table<'t> {
        Table { source, line: 1, map: document.get_ref() }
    }

    pub fn bad(&self, wrong: impl Into<String>, allowed: impl Into<String>) -> BadFile {
        self.source.bad(self.line, wrong, allowed)
    }

    /// The keys with their lines, in file order.
    pub fn keys(&self) -> Vec<(&'t str, usize)> {
        let mut keys: Vec<_> =
            (self.map.iter()).map(|(key, _)| (key.span().start, key.get_ref().as_ref())).collect();
        keys.sort_unstable();
        keys.into_iter().map(|(offset, key)| (key, self.source.line(offset))).collect()
    }

    /// Refuses the first key that is none of these.
    pub fn allow_only(&self, allowed: &[&str]) -> Result<(), BadFile> {
        match (self.keys().into_iter()).find(|(key, _)| !allowed.contains(key)) {
            Some((key, line)) => Err(self.source.bad(
                line,
                format!("unknown key `{key}`"),
                format!("allowed here: {}", allowed.join(", ")),
            )),
            None => Ok(()),
        }
    }

    pub fn get(&self, key: &'t str) -> Option<Field<'t>> {
        let value = self.map.get(key)?;
        Some(Field::new(self.source, key, value))
    }

    /// `meaning` says what the key is for, and is told where the key is missing.
    pub fn need(&self, key: &'t str, meaning: &str) -> Result<Field<'t>, BadFile> {
        self.get(key).ok_or_else(|| {
            self.bad(format!("`{key}` is missing"), format!("required: `{key}`, {meaning}"))
        })
    }
}

/// A value with the key that it belongs to; an element of a list bears the key of the list.
#[derive(Clone, Copy, Debug)]
pub struct Field<'t> {
    source: Source<'t>,
    key: &'t str,
    pub line: usize,
    value: &'t DeValue<'t>,
}

impl<'t> Field<'t> {
    fn new(source: Source<'t>, key: &'t str, value: &'t Spanned<DeValue<'t>>) -> Field<'t> {
        Field { source, key, line: source.line(value.span().start), value: value.get_ref() }
    }

    pub fn bad(&self, wrong: impl Into<String>, allowed: impl Into<String>) -> BadFile {
        self.source.bad(self.line, wrong, allowed)
    }

    fn not_allowed(&self, allowed: &str) -> BadFile {
        let found = match self.value {
            DeValue::String(text) => format!("{text:?}"),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(flag) => flag.to_string(),
            DeValue::Datetime(_) => "a date or time".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        };
        self.bad(format!("`{}` is {found}", self.key), format!("allowed: {allowed}"))
    }

    pub fn text(&self) -> Result<&'t str, BadFile> {
        match self.value {
            DeValue::String(text) if !text.trim().is_empty() => Ok(text),
            _ => Err(self.not_allowed("a text that is not empty")),
        }
    }

    /// A text that no message may repeat.
    pub fn secret(&self, allowed: &str) -> Result<&'t str, BadFile> {
        match self.value {
            DeValue::String(text) => Ok(text),
            _ => Err(self.bad(format!("`{}` is no text", self.key), format!("allowed: {allowed}"))),
        }
    }

    pub fn flag(&self) -> Result<bool, BadFile> {
        match self.value {
            DeValue::Boolean(flag) => Ok(*flag),
            _ => Err(self.not_allowed("true or false")),
        }
    }

    pub fn one_of<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, BadFile> {
        let found = match self.value {
            DeValue::String(text) => choices.iter().find(|(name, _)| name == text),
            _ => None,
        };
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<String> = choices.iter().map(|(name, _)| format!("{name:?}")).collect();
            self.not_allowed(&names.join(", "))
        })
    }

    pub fn whole(&self, min: u64, max: u64) -> Result<u64, BadFile> {
        self.integer()
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| self.not_allowed(&format!("a whole number from {min} to {max}")))
    }

    /// `None` for what is no integer, or is negative, or exceeds 64 bits.
    fn integer(&self) -> Option<u64> {
        match self.value {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        }
    }

    fn float(&self) -> Option<f64> {
        match self.value {
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        }
    }

    /// Milliseconds, whole or with up to three decimals.
    pub fn time_us(&self) -> Result<u64, BadFile> {
        let whole = (self.integer()).filter(|ms| *ms <= TIME_MS_MAX).map(|ms| ms * 1000);
        whole.or_else(|| self.float().and_then(us_from_ms)).ok_or_else(|| {
            self.not_allowed(&format!(
                "0 to {TIME_MS_MAX} milliseconds, with at most three decimals"
            ))
        })
    }

    pub fn time_us_above_zero(&self) -> Result<u64, BadFile> {
        match self.time_us()? {
            0 => Err(self.not_allowed(&format!(
                "more than 0 and up to {TIME_MS_MAX} milliseconds, with at most three decimals"
            ))),
            us => Ok(us),
        }
    }

    pub fn probability(&self) -> Result<f64, BadFile> {
        self.integer()
            .map(|number| number as f64)
            .or_else(|| self.float())
            .filter(|chance| (0.0..=1.0).contains(chance))
            .ok_or_else(|| self.not_allowed("0 to 1"))
    }

    pub fn id(&self, nodes: NodeId) -> Result<NodeId, BadFile> {
        self.integer()
            .and_then(|number| NodeId::try_from(number).ok())
            .filter(|id| (1..=nodes).contains(id))
            .ok_or_else(|| self.not_allowed(&format!("a node id from 1 to {nodes}")))
    }

    /// A list of different ids, as the file orders them.
    pub fn ids(&self, nodes: NodeId) -> Result<Vec<NodeId>, BadFile> {
        let mut seen = BTreeSet::new();
        self.ids_not_in(nodes, &mut seen)
    }

    /// A list of different ids none of which was `seen`; they count as seen afterwards.
    pub fn ids_not_in(
        &self,
        nodes: NodeId,
        seen: &mut BTreeSet<NodeId>,
    ) -> Result<Vec<NodeId>, BadFile> {
        let allowed = format!("a list of at least one node id from 1 to {nodes}, each once");
        let elements = self.elements().ok_or_else(|| self.not_allowed(&allowed))?;
        if elements.is_empty() {
            return Err(
                self.bad(format!("`{}` is an empty list", self.key), format!("allowed: {allowed}"))
            );
        }
        let mut ids = Vec::with_capacity(elements.len());
        for element in elements {
            let id = element.id(nodes)?;
            if !seen.insert(id) {
                return Err(element.bad(
                    format!("node {id} stands twice in `{}`", self.key),
                    "allowed: each node once",
                ));
            }
            ids.push(id);
        }
        Ok(ids)
    }

    /// The elements of a list; `None` if this is no list.
    pub fn elements(&self) -> Option<Vec<Field<'t>>> {
        match self.value {
            DeValue::Array(list) => {
                Some(list.iter().map(|value| Field::new(self.source, self.key, value)).collect())
            }
            _ => None,
        }
    }

    pub fn list(&self, allowed: &str) -> Result<Vec<Field<'t>>, BadFile> {
        self.elements().ok_or_else(|| self.not_allowed(allowed))
    }

    pub fn table(&self, allowed: &str) -> Result<Table<'t>, BadFile> {
        match self.value {
            DeValue::Table(map) => Ok(Table { source: self.source, line: self.line, map }),
            _ => Err(self.not_allowed(allowed)),
        }
    }
}
