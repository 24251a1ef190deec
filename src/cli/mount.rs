//! The commands that mount, and the processes of a mount.

pub(in crate::cli) mod callers;
pub(in crate::cli) mod children;
pub(in crate::cli) mod events;
pub(in crate::cli) mod handover;
pub(in crate::cli) mod heartbeat;
pub(in crate::cli) mod launcher;
pub(in crate::cli) mod mount_point;
pub(in crate::cli) mod mounts;
pub(in crate::cli) mod notify;
pub(in crate::cli) mod opener;
pub(in crate::cli) mod remote_source;
pub(in crate::cli) mod report;
pub(in crate::cli) mod rotation;
pub(in crate::cli) mod source;
pub(in crate::cli) mod supervisor;
pub(in crate::cli) mod worker;
