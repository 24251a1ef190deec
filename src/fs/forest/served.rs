//! The tree that a mount serves.

use std::ops::Deref;

use crate::fs::filesystem::Filesystem;
use crate::fs::forest::archive::Archive;
use crate::fs::requests::Requests;

/// The tree that a mount serves.
pub enum Served {
    /// The tree of one file.
    File(Box<Filesystem>),
    /// A directory of files.
    Archive(Box<Archive>),
}

impl Served {
    /// Returns why only a part of the file can be shown, according to its root.
    pub(crate) fn warning(&self) -> Option<String> {
        match self {
            Served::File(filesystem) => filesystem.fault_of_root().map(|error| error.to_string()),
            Served::Archive(_) => None,
        }
    }

    /// Returns the handler of requests.
    pub(crate) fn requests(&self) -> &(dyn Requests + 'static) {
        match self {
            Served::File(filesystem) => filesystem.deref(),
            Served::Archive(archive) => archive.deref(),
        }
    }
}
