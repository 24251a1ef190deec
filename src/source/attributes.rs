//! The attributes of a source that its mount takes over.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// The attributes of a source that its mount takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Bytes.
    pub size: u64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Permission bits, and the kind of file.
    pub mode: u32,
    /// Modification time, seconds since 1970 UTC and nanoseconds.
    pub modified: (i64, u32),
}

impl From<&Metadata> for Attributes {
    fn from(metadata: &Metadata) -> Self {
        Attributes {
            size: metadata.size(),
            uid: metadata.uid(),
            gid: metadata.gid(),
            mode: metadata.mode(),
            modified: (
                metadata.mtime(),
                u32::try_from(metadata.mtime_nsec()).unwrap_or(0),
            ),
        }
    }
}
