//! `dovecote check`: loads a bundle as the engine would, and says what is in it or what is wrong with it.

use super::{CommandError, open_bundle};
use crate::config::Config;

/// Arguments of `dovecote check`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Prints the report on standard output.
///
/// # Errors
/// What is wrong with the bundle.
pub fn run(_args: &Args, config: &Config) -> Result<(), CommandError> {
    open_bundle(config)?;
    Ok(())
}
