//! State of a mounted file: inodes, open handles, listings, counted texts, texts about the mount,
//! errors, missing files, request counters, and the memory usage of this process.

pub(super) mod counts;
pub(super) mod errors;
pub(super) mod faults;
pub(super) mod handle;
pub(super) mod inode;
pub(super) mod inodes;
pub(super) mod lacks;
pub(super) mod listing;
pub(super) mod moments;
pub(super) mod pins;
pub(super) mod resident;
pub(super) mod traffic;
