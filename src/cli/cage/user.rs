//! The user that the worker is; credentials(7), capabilities(7). The only file that knows the crate `caps`.

use std::ffi::CString;

use caps::CapSet;
use nix::errno::Errno;
use nix::unistd::{Gid, Uid, User, geteuid, initgroups, setgroups, setresgid, setresuid};

use crate::error::{Error, Result};

/// The group of somebody who has none: `nogroup`.
const NO_GROUP: u32 = 65_534;

/// Becomes the user `owner`, with that user's groups, where this process is root's. Whoever it is then has no
/// capability, so that permission bits count for it.
///
/// # Errors
/// `Io` as the system refuses it.
pub(super) fn become_owner(owner: u32) -> Result<()> {
    if geteuid().is_root() {
        change_user(Uid::from_raw(owner)).map_err(|errno| {
            let what = format!("becoming the source's owner, user {owner}");
            Error::io(&errno.into(), what)
        })?;
    }
    for set in [CapSet::Effective, CapSet::Inheritable, CapSet::Permitted] {
        caps::clear(None, set)
            .map_err(|error| Error::Usage(format!("giving up capabilities: {error}")))?;
    }
    Ok(())
}

fn change_user(owner: Uid) -> nix::Result<()> {
    // Somebody whose entry cannot be had is somebody without one.
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
        // In a user namespace of one user, who has the groups already.
        Err(Errno::EPERM) if owner == geteuid() => return Ok(()),
        changed => changed?,
    }
    setresgid(group, group, group)?;
    setresuid(owner, owner, owner)
}
