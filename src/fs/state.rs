//! What is kept of a mounted file: numbers and names of inodes, what is open, how far a listing has
//! come, the lengths of texts, texts of the moment, what was found to be damaged or missing,
//! what was asked for, and the memory that this process takes.

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
