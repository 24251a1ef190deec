//! What the kernel has asked for, and what it was given.

use std::sync::atomic::{AtomicU64, Ordering};

/// A kind of request that is counted, named as in the protocol of FUSE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A name in a directory.
    Lookup,
    /// Attributes.
    Getattr,
    /// The text of a symbolic link.
    Readlink,
    /// Opening a file.
    Open,
    /// Bytes of a file.
    Read,
    /// Looking for data or a hole.
    Lseek,
    /// Opening a directory.
    Opendir,
    /// Names in a directory.
    Readdir,
    /// The same with attributes.
    Readdirplus,
    /// An extended attribute.
    Getxattr,
    /// The names of extended attributes.
    Listxattr,
    /// The right to use a file.
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

    /// The name in small letters.
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

/// How much was asked for and given.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Requests of each kind, in the order of [`Call`].
    requests: [AtomicU64; Call::ALL.len()],
    bytes: AtomicU64,
}

impl Traffic {
    /// Counts a request.
    pub fn asked(&self, call: Call) {
        self.requests[call as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the bytes that a read was answered with.
    pub fn read(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The kinds of requests that there were, and how many of each.
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

    /// The bytes of all reads.
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
