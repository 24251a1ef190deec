//! Counters of the kernel's requests and of the bytes read.

use std::sync::atomic::{AtomicU64, Ordering};

/// A type of request that is counted, named as in the FUSE protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestType {
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

impl RequestType {
    const ALL: [RequestType; 12] = [
        RequestType::Lookup,
        RequestType::Getattr,
        RequestType::Readlink,
        RequestType::Open,
        RequestType::Read,
        RequestType::Lseek,
        RequestType::Opendir,
        RequestType::Readdir,
        RequestType::Readdirplus,
        RequestType::Getxattr,
        RequestType::Listxattr,
        RequestType::Access,
    ];

    /// Returns the type's name in lowercase.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RequestType::Lookup => "lookup",
            RequestType::Getattr => "getattr",
            RequestType::Readlink => "readlink",
            RequestType::Open => "open",
            RequestType::Read => "read",
            RequestType::Lseek => "lseek",
            RequestType::Opendir => "opendir",
            RequestType::Readdir => "readdir",
            RequestType::Readdirplus => "readdirplus",
            RequestType::Getxattr => "getxattr",
            RequestType::Listxattr => "listxattr",
            RequestType::Access => "access",
        }
    }
}

/// Counters of the kernel's requests and of the bytes read, since the mount.
#[derive(Debug, Default)]
pub struct RequestCounters {
    /// Number of requests of each type, in the order of [`RequestType`].
    requests: [AtomicU64; RequestType::ALL.len()],
    bytes: AtomicU64,
}

impl RequestCounters {
    /// Counts a request of the type `call`.
    pub(crate) fn count_request(&self, call: RequestType) {
        self.requests[call as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Adds `bytes`, the number of bytes that one read has returned, to the counter of bytes read.
    pub(crate) fn count_bytes_read(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Iterates over the types of requests received so far, with the number of requests of each
    /// type.
    pub(crate) fn requests(&self) -> impl Iterator<Item = (RequestType, u64)> {
        let counts = self
            .requests
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        RequestType::ALL
            .into_iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
    }

    /// Returns the total number of bytes that all reads have returned.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_counted() {
        let traffic = RequestCounters::default();
        RequestType::ALL
            .into_iter()
            .for_each(|call| traffic.count_request(call));
        traffic.count_request(RequestType::Read);
        for (call, count) in traffic.requests() {
            assert_eq!(
                count,
                if call == RequestType::Read { 2 } else { 1 },
                "{call:?}"
            );
            assert_eq!(format!("{call:?}").to_lowercase(), call.name());
        }
        assert_eq!(traffic.requests().count(), RequestType::ALL.len());
    }
}
