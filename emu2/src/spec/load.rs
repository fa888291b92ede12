//! Loads a spec from its files.

use super::loaded::Spec;
use super::{resolve, source};
use crate::error::Error;

impl Spec {
    /// Loads a spec: a built-in one by name, a folder of `.toml` files, or one `.toml` file.
    ///
    /// # Errors
    /// A diagnostic with a code S0001 to S0013 that names the file and the entry at fault.
    pub fn load(name: &str) -> Result<Spec, Error> {
        resolve::resolve(source::load(name)?)
    }
}
