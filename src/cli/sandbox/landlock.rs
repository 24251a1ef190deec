//! Landlock: restricts which files can be opened, and how; see landlock(7). Only this file uses the
//! crate landlock.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use crate::cli::sandbox::network_reach::NetworkReach;

/// Last Landlock version that adds an access right which this program restricts. Later versions add
/// audit records, and a right to connect to named Unix sockets, which seccomp already forbids.
const LANDLOCK_ABI: ABI = ABI::V6;

/// Restricts this thread, and the threads that it starts, to reading regular files below the
/// directories in `readable`. With `listed`, these directories can also be listed. New TCP
/// connections, signals and abstract sockets to other processes are forbidden.
///
/// # Errors
/// The text names the restriction that the kernel does not support.
pub(super) fn restrict(readable: &[&Path], listed: bool) -> Result<(), String> {
    support_error(read_rules(readable, listed))
}

/// Returns an error text if the kernel does not support every rule of the ruleset.
fn support_error(done: Result<RulesetStatus, RulesetError>) -> Result<(), String> {
    match done {
        Ok(RulesetStatus::FullyEnforced) => Ok(()),
        Ok(RulesetStatus::PartiallyEnforced) => {
            Err("this kernel has an early version of Landlock".to_owned())
        }
        Ok(RulesetStatus::NotEnforced) => Err("this kernel has no Landlock".to_owned()),
        Err(error) => Err(format!("Landlock: {error}")),
    }
}

/// Restricts this thread, and the threads that it starts, to the files and ports in `reach`.
/// Signals and abstract sockets to other processes are forbidden.
///
/// # Errors
/// The text names the restriction that the kernel does not support.
pub(super) fn restrict_network(reach: &NetworkReach) -> Result<(), String> {
    support_error(network_rules(reach))
}

fn network_rules(reach: &NetworkReach) -> Result<RulesetStatus, RulesetError> {
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK_ABI))?
        .handle_access(AccessNet::from_all(LANDLOCK_ABI))?
        .scope(Scope::from_all(LANDLOCK_ABI))?
        .create()?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write =
        read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    let readable = reach.readable.iter().map(|path| (path, read));
    let writable = reach.writable.iter().map(|path| (path, write));
    for (path, access) in readable.chain(writable) {
        // Most systems lack some of these paths.
        if let Ok(there) = PathFd::new(path) {
            let access = if path.is_dir() {
                access
            } else {
                AccessFs::ReadFile.into()
            };
            rules = rules.add_rule(PathBeneath::new(there, access))?;
        }
    }
    for port in &reach.ports {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    Ok(rules.restrict_self()?.ruleset)
}

fn read_rules(readable: &[&Path], listed: bool) -> Result<RulesetStatus, RulesetError> {
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK_ABI))?
        .handle_access(AccessNet::from_all(LANDLOCK_ABI))?
        .scope(Scope::from_all(LANDLOCK_ABI))?
        .create()?;
    // A directory that the process cannot open contains no file that it may read.
    for directory in readable.iter().flat_map(PathFd::new) {
        let read = if listed {
            AccessFs::ReadFile | AccessFs::ReadDir
        } else {
            AccessFs::ReadFile.into()
        };
        rules = rules.add_rule(PathBeneath::new(directory, read))?;
    }
    Ok(rules.restrict_self()?.ruleset)
}
