//! The attributes that a mount copies from its source.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// The attributes that a mount copies from its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileAttributes {
    /// Size in bytes.
    pub size: u64,
    /// User ID of the owner.
    pub uid: u32,
    /// Group ID.
    pub gid: u32,
    /// Permission bits and file type, as in `st_mode`.
    pub mode: u32,
    /// Modification time: seconds since 1970 UTC, and nanoseconds.
    pub modified: (i64, u32),
}

impl From<&Metadata> for FileAttributes {
    fn from(metadata: &Metadata) -> Self {
        FileAttributes {
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
