//! The command line. It is small enough to be read without a crate, which would have to be built first.

/// How much is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// For every commit.
    Quick,
    /// Every check.
    Usual,
    /// The same checks for hours.
    Deep,
}

impl Depth {
    /// The option that asks for it.
    pub const fn option(self) -> Option<&'static str> {
        match self {
            Self::Quick => Some("--quick"),
            Self::Usual => None,
            Self::Deep => Some("--deep"),
        }
    }

    /// What of these three belongs to it.
    pub const fn pick<T: Copy>(self, quick: T, usual: T, deep: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Usual => usual,
            Self::Deep => deep,
        }
    }
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    All,
    /// The steps whose name contains this.
    Only(String),
    List,
    Help,
    /// Exactly this step, in this process.
    Step(String),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    pub depth: Depth,
    pub asked: Asked,
}

pub const HELP: &str = "Every check of the project

Usage: cargo verify [OPTIONS]

Options:
      --quick      Format, lints, unit tests, scenarios and some random runs: for every commit
      --deep       More of everything: takes hours instead of minutes
      --only NAME  Only the steps whose name contains this, and the build of what they run
      --list       List the steps and stop
  -h, --help       Print help";

impl Options {
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { depth: Depth::Usual, asked: Asked::All };
        while let Some(argument) = arguments.next() {
            let (option, value) = match argument.split_once('=') {
                Some((option, value)) => (option, Some(value.to_owned())),
                None => (&*argument, None),
            };
            let mut name = || {
                let name = value.clone().or_else(|| arguments.next());
                name.ok_or_else(|| format!("{option} needs the name of a step"))
            };
            match option {
                "--quick" | "--deep" if options.depth != Depth::Usual => {
                    return Err("only one of --quick and --deep".into());
                }
                "--quick" => options.depth = Depth::Quick,
                "--deep" => options.depth = Depth::Deep,
                "--list" => options.asked = Asked::List,
                "--help" | "-h" => options.asked = Asked::Help,
                "--only" => options.asked = Asked::Only(name()?),
                "--step" => options.asked = Asked::Step(name()?),
                _ => return Err(format!("there is no option {argument}\n\n{HELP}")),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn what_is_asked_for_is_understood() {
        assert_eq!(parse(""), Ok(Options { depth: Depth::Usual, asked: Asked::All }));
        let deep = Options { depth: Depth::Deep, asked: Asked::Only("fuzz".into()) };
        assert_eq!(parse("--deep --only fuzz"), Ok(deep));
        assert_eq!(parse("--only=fuzz").unwrap().asked, Asked::Only("fuzz".into()));
        assert_eq!(parse("--quick").unwrap().depth, Depth::Quick);
        assert_eq!(parse("--list").unwrap().asked, Asked::List);
        assert_eq!(parse("-h").unwrap().asked, Asked::Help);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        assert!(parse("--fast").unwrap_err().starts_with("there is no option --fast"));
        assert_eq!(parse("--only").unwrap_err(), "--only needs the name of a step");
        assert_eq!(parse("--quick --deep").unwrap_err(), "only one of --quick and --deep");
    }

    #[test]
    fn a_depth_is_handed_on() {
        for depth in [Depth::Quick, Depth::Usual, Depth::Deep] {
            let again = Options::parse(depth.option().into_iter().map(str::to_owned)).unwrap();
            assert_eq!(again.depth, depth);
        }
    }
}
