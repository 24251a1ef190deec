//! State of a mounted file: inodes, open handles, listings, counted texts, texts about the mount,
//! errors, missing files, request counters, and the memory usage of this process.

pub(super) mod counts;
pub(super) mod errors;
pub(super) mod faults;
pub(super) mod handle;
pub(super) mod inode;
pub(super) mod inodes;
pub(super) mod listing;
pub(super) mod missing_targets;
pub(super) mod pins;
pub(super) mod resident_memory;
pub(super) mod status_texts;
pub(super) mod traffic;
