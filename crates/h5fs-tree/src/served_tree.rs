//! The tree that a mount serves.

use std::ops::Deref;

use crate::archive::Archive;
use crate::filesystem::Filesystem;
use crate::requests::Requests;

/// The tree that a mount serves.
pub enum ServedTree {
    /// The tree of one file.
    File(Box<Filesystem>),
    /// A directory of files.
    Archive(Box<Archive>),
}

impl ServedTree {
    /// Returns a warning with the reason why only a part of the file can be shown, according to its
    /// root object.
    pub fn partial_file_warning(&self) -> Option<String> {
        match self {
            ServedTree::File(filesystem) => filesystem.root_error().map(|error| error.to_string()),
            ServedTree::Archive(_) => None,
        }
    }

    /// Returns the implementation of the kernel's requests for this tree.
    pub fn requests(&self) -> &(dyn Requests + 'static) {
        match self {
            ServedTree::File(filesystem) => filesystem.deref(),
            ServedTree::Archive(archive) => archive.deref(),
        }
    }
}
