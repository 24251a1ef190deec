//! Files and directories of this machine, and what the kernel tells of them.

pub mod acl;
pub mod audience;
pub mod beneath;
pub mod changes;
pub mod descriptors;
pub mod file;
pub mod raw_file;
pub mod rights;
pub mod root;
