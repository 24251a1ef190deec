//! What a mount serves.

use std::ops::Deref;

use crate::fs::archive::Archive;
use crate::fs::filesystem::Filesystem;
use crate::fs::requests::Requests;

/// What a mount shows.
pub enum Served {
    /// The tree of one file.
    File(Box<Filesystem>),
    /// A directory of files.
    Archive(Box<Archive>),
}

impl Served {
    /// What answers the requests.
    pub(crate) fn requests(&self) -> &(dyn Requests + 'static) {
        match self {
            Served::File(filesystem) => filesystem.deref(),
            Served::Archive(archive) => archive.deref(),
        }
    }
}
