//! Landlock: which files can be opened, and how; landlock(7). The only file that knows the crate.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use crate::cli::cage::reach::NetworkReach;

/// The last version that has something to take away. Later ones add records for the audit, and a
/// right to connect to named sockets, for which seccomp leaves no call.
const VERSION: ABI = ABI::V6;

/// Leaves this thread, and those that it starts, nothing of the file system but to read regular
/// files beneath each of `readable`, and to list directories there where they are `listed`; no TCP
/// but by what is open; no signals and no abstract sockets to other processes.
///
/// # Errors
/// The text names the step that the kernel cannot do.
pub(super) fn restrict(readable: &[&Path], listed: bool) -> Result<(), String> {
    said(rules(readable, listed))
}

/// What is said of a step that the kernel cannot do.
fn said(done: Result<RulesetStatus, RulesetError>) -> Result<(), String> {
    match done {
        Ok(RulesetStatus::FullyEnforced) => Ok(()),
        Ok(RulesetStatus::PartiallyEnforced) => {
            Err("this kernel has an early version of Landlock".to_owned())
        }
        Ok(RulesetStatus::NotEnforced) => Err("this kernel has no Landlock".to_owned()),
        Err(error) => Err(format!("Landlock: {error}")),
    }
}

/// Leaves this thread, and those that it starts, the files and the ports of `reach`; no signals and
/// no abstract sockets to other processes.
///
/// # Errors
/// The text names the step that the kernel cannot do.
pub(super) fn restrict_network(reach: &NetworkReach) -> Result<(), String> {
    said(network_rules(reach))
}

fn network_rules(reach: &NetworkReach) -> Result<RulesetStatus, RulesetError> {
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(VERSION))?
        .handle_access(AccessNet::from_all(VERSION))?
        .scope(Scope::from_all(VERSION))?
        .create()?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write =
        read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    let readable = reach.readable.iter().map(|path| (path, read));
    let writable = reach.writable.iter().map(|path| (path, write));
    for (path, access) in readable.chain(writable) {
        // Few systems have all of them.
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

fn rules(readable: &[&Path], listed: bool) -> Result<RulesetStatus, RulesetError> {
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(VERSION))?
        .handle_access(AccessNet::from_all(VERSION))?
        .scope(Scope::from_all(VERSION))?
        .create()?;
    // A directory that its user cannot enter holds nothing to be read.
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
