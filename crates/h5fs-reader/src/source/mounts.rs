//! Mounts and filesystems of this machine: their mount points, and which of them may block on our
//! mount.

pub mod device;
pub mod foreign;
pub mod mount_guard;
pub mod mount_id;
pub mod mount_table;
