//! later
#[derive(Debug, clap::Args)]
pub struct Options {}
pub fn command(_: &Options) {}
