//! What a mount serves.

use std::ops::Deref;

use crate::fs::filesystem::Filesystem;
use crate::fs::forest::archive::Archive;
use crate::fs::requests::Requests;

/// What a mount shows.
pub enum Served {
    /// The tree of one file.
    File(Box<Filesystem>),
    /// A directory of files.
    Archive(Box<Archive>),
}

impl Served {
    /// Why only a part of the file can be shown, as its root says.
    pub(crate) fn warning(&self) -> Option<String> {
        match self {
            Served::File(filesystem) => filesystem.fault_of_root().map(|error| error.to_string()),
            Served::Archive(_) => None,
        }
    }

    /// What answers the requests.
    pub(crate) fn requests(&self) -> &(dyn Requests + 'static) {
        match self {
            Served::File(filesystem) => filesystem.deref(),
            Served::Archive(archive) => archive.deref(),
        }
    }
}
