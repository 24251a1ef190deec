//! The user IDs of the worker; see credentials(7) and capabilities(7).
//!
//! A process has a user ID for file access, and other user IDs that decide who may signal or trace
//! it. The worker's user ID for file access is the source's owner, so that the worker can read the
//! owner's files. Its other user IDs are a number that belongs to no user. Otherwise the owner
//! could signal or stop the worker, or change its limits and priority, and so make root's mount
//! hang.

use std::ffi::CString;

use h5fs_reader::error::{Error, Result};
use nix::errno::Errno;
use nix::sys::prctl::set_keepcaps;
use nix::unistd::{
    Gid, Uid, User, geteuid, getpid, initgroups, setfsuid, setgroups, setresgid, setresuid,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Group ID for a user without an entry in the user database: `nogroup`.
const NO_GROUP: u32 = 65_534;

/// Start of the user IDs that belong to no user: systems assign no number of 2^31 or more. Each
/// process has its own such ID, so that no sandboxed process can signal another. Process numbers
/// are less than 2^22.
const UNASSIGNED_USER_IDS: u32 = 0xf000_0000;

/// The user as whom the source is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceUser {
    /// The source's owner, if this process may become that user.
    Owner(u32),
    /// The user chosen by an option of the mount.
    Chosen(u32),
}

/// Becomes the user `reader` for file access, with that user's groups, if this process runs as
/// root. Drops all capabilities, so that permission bits apply to the process. The change applies
/// to the calling thread and the threads that it starts, so this function must be called before any
/// other thread starts.
///
/// Root of a user namespace or of a container may lack the capability to become the owner. Then the
/// process keeps its user, and reads whatever that user may read.
///
/// # Errors
/// `Io` if the system refuses the change. `Usage` if only root may choose a user.
pub(super) fn become_reader(reader: SourceUser) -> Result<()> {
    match reader {
        SourceUser::Chosen(user) if user != geteuid().as_raw() => {
            if !geteuid().is_root() {
                return Err(Error::Usage(
                    "run_as: only root may choose the user".to_owned(),
                ));
            }
            change_user(Uid::from_raw(user)).map_err(|errno| {
                Error::from_io(&errno.into(), format!("run_as: becoming user {user}"))
            })?;
        }
        SourceUser::Owner(owner) if geteuid().is_root() => {
            match change_user(Uid::from_raw(owner)) {
                Err(Errno::EPERM | Errno::EINVAL) => {
                    log::debug!("the worker may not become user {owner} and keeps its own user");
                }
                changed => changed.map_err(|errno| {
                    let what = format!("becoming the source's owner, user {owner}");
                    Error::from_io(&errno.into(), what)
                })?,
            }
        }
        SourceUser::Owner(_) | SourceUser::Chosen(_) => {}
    }
    drop_capabilities()
}

fn drop_capabilities() -> Result<()> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none)
        .map_err(|errno| Error::from_io(&errno.into(), "dropping capabilities"))
}

fn change_user(owner: Uid) -> nix::Result<()> {
    // A user whose entry cannot be read is treated like a user without an entry.
    let entry = User::from_uid(owner).ok().flatten();
    let group = entry
        .as_ref()
        .map_or(Gid::from_raw(NO_GROUP), |user| user.gid);
    let name = entry.and_then(|user| CString::new(user.name).ok());
    let groups = match name {
        Some(name) => initgroups(&name, group),
        None => setgroups(&[]),
    };
    match groups {
        // A user namespace with one user forbids setting groups, but the process already has them.
        Err(Errno::EPERM) if owner == geteuid() => return Ok(()),
        changed => changed?,
    }
    setresgid(group, group, group)?;
    // Keeps `CAP_SETUID` across the change of user IDs, so that the user ID for file access can
    // still be set.
    set_keepcaps(true)?;
    let changed = change_user_ids(owner);
    set_keepcaps(false)?;
    changed
}

fn change_user_ids(owner: Uid) -> nix::Result<()> {
    // Root's processes need no protection from other users. Also, a FUSE filesystem that root
    // mounted serves only processes whose user IDs are all root.
    if owner.is_root() {
        return setresuid(owner, owner, owner);
    }
    let own = Uid::from_raw(UNASSIGNED_USER_IDS | getpid().as_raw().unsigned_abs());
    match setresuid(own, own, own) {
        // A user namespace may lack this number.
        Err(Errno::EINVAL) => return setresuid(owner, owner, owner),
        changed => changed?,
    }
    let raised = capabilities(None).and_then(|mut sets| {
        sets.effective |= CapabilitySet::SETUID;
        set_capabilities(None, sets)
    });
    raised.map_err(|_| Errno::EPERM)?;
    setfsuid(owner);
    // The call reports no failure, but returns the previous user ID. So a second call shows whether
    // the first one succeeded.
    if setfsuid(owner) == owner {
        Ok(())
    } else {
        Err(Errno::EPERM)
    }
}
