//! Counters of the kernel's requests and of the bytes read.

use std::sync::atomic::{AtomicU64, Ordering};

/// A type of request that is counted, named as in the FUSE protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Looks up a name in a directory.
    Lookup,
    /// Reads attributes.
    Getattr,
    /// Reads the text of a symbolic link.
    Readlink,
    /// Opens a file.
    Open,
    /// Reads bytes of a file.
    Read,
    /// Searches for data or a hole.
    Lseek,
    /// Opens a directory.
    Opendir,
    /// Lists names in a directory.
    Readdir,
    /// Lists names with attributes.
    Readdirplus,
    /// Reads an extended attribute.
    Getxattr,
    /// Lists the names of extended attributes.
    Listxattr,
    /// Checks access to a file.
    Access,
}

impl Call {
    const ALL: [Call; 12] = [
        Call::Lookup,
        Call::Getattr,
        Call::Readlink,
        Call::Open,
        Call::Read,
        Call::Lseek,
        Call::Opendir,
        Call::Readdir,
        Call::Readdirplus,
        Call::Getxattr,
        Call::Listxattr,
        Call::Access,
    ];

    /// Returns the name in small letters.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Call::Lookup => "lookup",
            Call::Getattr => "getattr",
            Call::Readlink => "readlink",
            Call::Open => "open",
            Call::Read => "read",
            Call::Lseek => "lseek",
            Call::Opendir => "opendir",
            Call::Readdir => "readdir",
            Call::Readdirplus => "readdirplus",
            Call::Getxattr => "getxattr",
            Call::Listxattr => "listxattr",
            Call::Access => "access",
        }
    }
}

/// Counters of requests and bytes.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Number of requests of each type, in the order of [`Call`].
    requests: [AtomicU64; Call::ALL.len()],
    bytes: AtomicU64,
}

impl Traffic {
    /// Counts a request.
    pub fn asked(&self, call: Call) {
        self.requests[call as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Adds the bytes returned by a read.
    pub fn read(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the types of requests that occurred, with the number of each.
    pub(in crate::fs) fn requests(&self) -> impl Iterator<Item = (Call, u64)> {
        let counts = self
            .requests
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        Call::ALL
            .into_iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
    }

    /// Returns the total bytes of all reads.
    pub(in crate::fs) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_counted() {
        let traffic = Traffic::default();
        Call::ALL.into_iter().for_each(|call| traffic.asked(call));
        traffic.asked(Call::Read);
        for (call, count) in traffic.requests() {
            assert_eq!(count, if call == Call::Read { 2 } else { 1 }, "{call:?}");
            assert_eq!(format!("{call:?}").to_lowercase(), call.name());
        }
        assert_eq!(traffic.requests().count(), Call::ALL.len());
    }
}
