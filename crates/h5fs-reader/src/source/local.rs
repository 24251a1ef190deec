//! Local files and directories, and the kernel's notifications about them.

pub mod acl;
pub mod audience;
pub mod changes;
pub mod descriptors;
pub mod file;
pub mod local_directory;
pub(crate) mod raw_file;
pub mod rights;
pub mod root;
