//! Reading the one line of JSON that the simulator ends with: an object of numbers, without another in it.

/// The numbers of the object, with their names. What is no number is left out.
fn numbers(line: &str) -> Option<impl Iterator<Item = (&str, f64)>> {
    let inside = line.trim().strip_prefix('{')?.strip_suffix('}')?;
    Some(inside.split(',').filter_map(|field| {
        let (name, value) = field.split_once(':')?;
        let name = name.trim().strip_prefix('"')?.strip_suffix('"')?;
        Some((name, value.trim().parse().ok()?))
    }))
}

/// What the simulator said with `--json`.
#[derive(Debug)]
pub struct Flat<'a>(Vec<(&'a str, f64)>);

impl<'a> Flat<'a> {
    /// The last line of an output, if it is such an object.
    pub fn last_of(output: &'a str) -> Option<Self> {
        let all: Vec<_> = numbers(output.lines().last()?)?.collect();
        (!all.is_empty()).then_some(Self(all))
    }

    /// A number; what is missing is no number, and fails every comparison.
    pub fn number(&self, name: &str) -> f64 {
        self.0.iter().find(|(known, _)| *known == name).map_or(f64::NAN, |(_, number)| *number)
    }

    /// The numbers whose names end so, with the rest of their names.
    pub fn ending(&self, end: &str) -> impl Iterator<Item = (&'a str, f64)> {
        self.0.iter().filter_map(move |(name, number)| Some((name.strip_suffix(end)?, *number)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn numbers_are_found_by_their_names() {
        let said =
            "1 run\n{\"runs\":3000,\"violations\":0,\"x_worst_of_bound\":0.75,\"who\":\"me\"}\n";
        let flat = Flat::last_of(said).unwrap();
        assert_eq!((flat.number("runs"), flat.number("violations")), (3000.0, 0.0));
        assert!(flat.number("who").is_nan() && flat.number("no").is_nan());
        assert_eq!(flat.ending("_worst_of_bound").collect::<Vec<_>>(), [("x", 0.75)]);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for said in ["", "{}", "error: seed 7", "{\"runs\":1}\nseed 7"] {
            assert!(Flat::last_of(said).is_none(), "{said}");
        }
    }
}
