//! The user that the worker is; credentials(7), capabilities(7).
//!
//! A process has a user for files, and others for what is done to it. The worker's for files is the
//! source's owner, so that it can read what that user can. The others are a number that nobody has:
//! a user that may signal the worker, stop it, or change its limits and its priority could make
//! root's mount hang.

use std::ffi::CString;

use nix::errno::Errno;
use nix::sys::prctl::set_keepcaps;
use nix::unistd::{
    Gid, Uid, User, geteuid, getpid, initgroups, setfsuid, setgroups, setresgid, setresuid,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use crate::error::{Error, Result};

/// The group of a user without one: `nogroup`.
const NO_GROUP: u32 = 65_534;

/// Users from here on are nobody's: systems give no user a number of 2^31 or more. One is for each
/// process, so that none of them is another's to signal; the numbers of processes are less than
/// 2^22.
const NOBODYS: u32 = 0xf000_0000;

/// The user that reads the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// The source's owner, where this process may become it.
    Owner(u32),
    /// A user that the mount was asked to become.
    Chosen(u32),
}

/// Becomes the user `reader` for all that concerns files, with that user's groups, where this
/// process is root's. The process has no capability afterwards, so that permission bits count for
/// it. This is for the calling thread and those that it starts, so it comes before any other thread
/// does.
///
/// Root of a user namespace or of a container may lack the right to become the owner. Then the
/// process keeps its user, and reads what that user may read.
///
/// # Errors
/// `Io` if the system refuses it; `Usage` where only root may choose a user.
pub(super) fn become_reader(reader: Reader) -> Result<()> {
    match reader {
        Reader::Chosen(user) if user != geteuid().as_raw() => {
            if !geteuid().is_root() {
                return Err(Error::Usage(
                    "run_as: only root may choose a user".to_owned(),
                ));
            }
            change_user(Uid::from_raw(user)).map_err(|errno| {
                Error::io(&errno.into(), format!("run_as: becoming user {user}"))
            })?;
        }
        Reader::Owner(owner) if geteuid().is_root() => match change_user(Uid::from_raw(owner)) {
            Err(Errno::EPERM | Errno::EINVAL) => {
                log::debug!("the worker may not become user {owner}, and keeps its own user");
            }
            changed => changed.map_err(|errno| {
                let what = format!("becoming the source's owner, user {owner}");
                Error::io(&errno.into(), what)
            })?,
        },
        Reader::Owner(_) | Reader::Chosen(_) => {}
    }
    give_up_capabilities()
}

fn give_up_capabilities() -> Result<()> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(|errno| Error::io(&errno.into(), "giving up capabilities"))
}

fn change_user(owner: Uid) -> nix::Result<()> {
    // A user whose entry cannot be read passes for one without an entry.
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
        // In a user namespace of one user, which has the groups already.
        Err(Errno::EPERM) if owner == geteuid() => return Ok(()),
        changed => changed?,
    }
    setresgid(group, group, group)?;
    // Only so does the right to change the user for files outlive the change of the others.
    set_keepcaps(true)?;
    let changed = change_numbers(owner);
    set_keepcaps(false)?;
    changed
}

fn change_numbers(owner: Uid) -> nix::Result<()> {
    // Nobody is kept from root's processes, and a FUSE filesystem that is root's asks for all
    // numbers.
    if owner.is_root() {
        return setresuid(owner, owner, owner);
    }
    let own = Uid::from_raw(NOBODYS | getpid().as_raw().unsigned_abs());
    match setresuid(own, own, own) {
        // In a user namespace that has no such user.
        Err(Errno::EINVAL) => return setresuid(owner, owner, owner),
        changed => changed?,
    }
    let raised = capabilities(None).and_then(|mut sets| {
        sets.effective |= CapabilitySet::SETUID;
        set_capabilities(None, sets)
    });
    raised.map_err(|_| Errno::EPERM)?;
    setfsuid(owner);
    // The call tells of no failure; what it gives back is the user before it.
    if setfsuid(owner) == owner {
        Ok(())
    } else {
        Err(Errno::EPERM)
    }
}
