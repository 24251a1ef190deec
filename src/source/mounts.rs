//! Mounts and filesystems of this machine: which one stands where, and which may wait for ours.

pub mod device;
pub mod foreign;
pub mod mount_guard;
pub mod mount_id;
pub mod mount_table;
