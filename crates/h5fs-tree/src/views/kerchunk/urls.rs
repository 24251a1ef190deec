//! The URLs of the files that `kerchunk.json` refers to.

use std::ffi::OsString;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::location::Location;

use crate::data_files::file_state::FileState;

/// Returns the URL of the source without secrets, or the name of a local source, which readers find
/// in their working directory.
pub(super) fn source_url(file: &FileState) -> Result<String> {
    let path = &file.origin.path;
    let unnamed = || Error::unsupported("references to a source without a name in UTF-8", None);
    let location = Location::parse(OsString::from(path))?;
    let url = match location.path() {
        Some(path) => path.file_name().and_then(|name| name.to_str()),
        None => path.to_str(),
    };
    url.map(str::to_owned).ok_or_else(unnamed)
}

/// Returns the URL of the member at `path` of the joined file `file`, or the path of a local member,
/// which readers find from the directory. Returns `None` for a path that is not UTF-8.
pub(super) fn member_url(file: &FileState, path: &[u8]) -> Result<Option<String>> {
    let location = Location::parse(OsString::from(&file.origin.path))?;
    let Ok(path) = str::from_utf8(path) else {
        return Ok(None);
    };
    Ok(Some(match location.url() {
        None => path.to_owned(),
        Some(directory) => directory.file_beneath(path).to_string(),
    }))
}
