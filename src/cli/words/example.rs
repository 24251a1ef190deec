//! The files of the examples, which `scripts/example.py` made.

use std::fs::{File, create_dir, remove_file};
use std::io::Write;
use std::path::Path;

use crate::error::{Error, Result};

const EXAMPLE: &[u8] = include_bytes!("climate.h5");

/// A year, a file for each month.
const MONTHS: [&[u8]; 12] = [
    include_bytes!("months/2025-01.nc"),
    include_bytes!("months/2025-02.nc"),
    include_bytes!("months/2025-03.nc"),
    include_bytes!("months/2025-04.nc"),
    include_bytes!("months/2025-05.nc"),
    include_bytes!("months/2025-06.nc"),
    include_bytes!("months/2025-07.nc"),
    include_bytes!("months/2025-08.nc"),
    include_bytes!("months/2025-09.nc"),
    include_bytes!("months/2025-10.nc"),
    include_bytes!("months/2025-11.nc"),
    include_bytes!("months/2025-12.nc"),
];

/// Writes the example to a new file; to a new directory, where the path ends with a slash, the files
/// of a year.
///
/// # Errors
/// Fails if there is such a file or directory already, or if it cannot be written.
pub(in crate::cli) fn write(path: &Path) -> Result<()> {
    if !path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return write_file(path, EXAMPLE);
    }
    create_dir(path).map_err(|error| Error::io(&error, path.display().to_string()))?;
    for (month, content) in (1..).zip(MONTHS) {
        write_file(&path.join(format!("2025-{month:02}.nc")), content)?;
    }
    Ok(())
}

fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    let failed = |error| Error::io(&error, path.display().to_string());
    let mut file = File::create_new(path).map_err(failed)?;
    file.write_all(content).map_err(|error| {
        // What is cut off would only confuse.
        let _ = remove_file(path);
        failed(error)
    })
}
