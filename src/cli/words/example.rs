//! The file of the examples, which `scripts/example.py` made.

use std::fs::{File, remove_file};
use std::io::Write;
use std::path::Path;

use crate::error::{Error, Result};

const EXAMPLE: &[u8] = include_bytes!("climate.h5");

/// Writes the example to a new file.
///
/// # Errors
/// Fails if there is such a file already, or if it cannot be written.
pub(in crate::cli) fn write(path: &Path) -> Result<()> {
    let failed = |error| Error::io(&error, path.display().to_string());
    let mut file = File::create_new(path).map_err(failed)?;
    file.write_all(EXAMPLE).map_err(|error| {
        // What is cut off would only confuse.
        let _ = remove_file(path);
        failed(error)
    })
}
