//! The detection of a file's format from its content. Only this module names both HDF5 and ASDF.

mod foreign_formats;

use std::sync::Arc;

use crate::asdf;
use crate::error::{Error, Result};
use crate::hdf5;
use crate::hdf5::file::file_locking;
use crate::hdf5::file::superblock::find_signature;
use crate::limits;
use crate::model::Container;
use crate::source::memory::MemorySource;
use crate::source::neighbours::Neighbours;
use crate::source::open::OpenSource;
use crate::source::{SharedSource, Source, read_block};
use crate::wire::Count;

/// The caches that the files of one mount share.
#[derive(Debug, Clone, Default)]
pub struct Caches {
    hdf5: hdf5::file::caches::Caches,
    asdf: asdf::Caches,
}

/// Opens the file in `source`, whatever its name. The files that it refers to are searched among
/// the `neighbours`. Cached data are in the `caches` of the mount. With `force`, a file that is
/// marked as being written is also opened.
///
/// # Errors
/// `Usage` if the file is neither an HDF5 nor an ASDF file. Otherwise fails if the file cannot be
/// opened in its format.
pub fn open(
    source: SharedSource,
    neighbours: Arc<Neighbours>,
    caches: &Caches,
    force: bool,
) -> Result<Arc<dyn Container>> {
    if source.length() == 0 {
        return Err(Error::corrupt("the file is empty", None));
    }
    // ASDF is checked first, because its signature is only at the start. The signature of HDF5 may
    // also be at later offsets.
    if asdf::is_asdf(&*source)? {
        return Ok(Arc::new(asdf::File::open(
            source,
            neighbours,
            &caches.asdf,
        )?));
    }
    if find_signature(&*source).is_some() {
        return Ok(hdf5::File::open(source, neighbours, &caches.hdf5, force)?);
    }
    let neither = "neither an HDF5 nor an ASDF file".to_owned();
    Err(Error::Usage(match foreign_formats::describe(&*source) {
        Some(other) => format!("{neither}, but {other}"),
        None => neither,
    }))
}

/// Returns whether `source` is an HTML page that a server sends instead of a file, such as a login
/// page.
pub fn is_html_page(source: &dyn Source) -> bool {
    foreign_formats::is_html_page(source)
}

/// Returns whether `source` has the signature of HDF5 or ASDF. Returns false if `source` cannot be
/// read.
pub fn has_known_signature(source: &dyn Source) -> bool {
    source.length() > 0
        && (asdf::is_asdf(source).unwrap_or(false) || find_signature(source).is_some())
}

/// Returns whether the first [`limits::OBJECT_BEGINNING`] bytes of an object have the signature of
/// HDF5 or ASDF. These bytes are read at once. A search for the signature of HDF5 at later offsets
/// would need one request for each offset.
pub fn object_has_known_signature(object: &dyn Source) -> bool {
    let length = object.length().min(limits::OBJECT_BEGINNING);
    let beginning = read_block(object, 0, length, "beginning of an object");
    beginning.is_ok_and(|bytes| has_known_signature(&MemorySource::new(bytes)))
}

/// Returns whether `name` has an extension that is usual for HDF5 or ASDF files.
pub fn has_data_file_extension(name: &[u8]) -> bool {
    const ENDINGS: [&str; 14] = [
        "asdf", "cxi", "h5", "h5ad", "hdf5", "he5", "fast5", "loom", "nc", "nc4", "nexus", "nx",
        "nxs", "nwb",
    ];
    has_ending(name, &ENDINGS)
}

/// Returns whether `name` has an extension that is usual for texts, pictures, archives or tables
/// that are neither HDF5 nor ASDF.
pub fn has_foreign_extension(name: &[u8]) -> bool {
    const ENDINGS: [&str; 48] = [
        "7z", "arrow", "bib", "bmp", "bz2", "c", "cfg", "css", "csv", "doc", "docx", "feather",
        "gif", "gz", "htm", "html", "ini", "ipynb", "jpeg", "jpg", "js", "json", "log", "md",
        "md5", "mp4", "npy", "npz", "parquet", "pdf", "png", "pptx", "py", "rst", "sh", "sha256",
        "svg", "tar", "tex", "tgz", "toml", "tsv", "txt", "xlsx", "xml", "yaml", "yml", "zip",
    ];
    has_ending(name, &ENDINGS)
}

fn has_ending(name: &[u8], endings: &[&str]) -> bool {
    let dot = name.iter().rposition(|byte| *byte == b'.');
    let ending = dot.and_then(|dot| name.get(dot.plus_one()..));
    ending.is_some_and(|own| {
        let mut known = endings.iter();
        known.any(|known| own.eq_ignore_ascii_case(known.as_bytes()))
    })
}

/// Rejects an HDF5 file that a writer has locked. Accepts any other file, because other writers do
/// not lock files in this way.
///
/// # Errors
/// `Usage` if the file is locked.
pub fn refuse_locked(file: &dyn OpenSource) -> Result<()> {
    match file_locking::check(file) {
        Err(_) if find_signature(file).is_none() => Ok(()),
        checked => checked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_files_are_recognized_by_extension() {
        for data in ["run.h5", "RUN.NXS", "a.b.asdf", "sub.d/t2m.nc"] {
            assert!(has_data_file_extension(data.as_bytes()), "{data}");
        }
        for other in ["h5", "run.h5.txt", "run", "run.", "a.h5/readme", ""] {
            assert!(!has_data_file_extension(other.as_bytes()), "{other}");
        }
    }
}
