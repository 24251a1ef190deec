//! The sandbox: the privileges that a process drops before it reads the first byte of a source.
//!
//! | file | dropped privileges |
//! |---|---|
//! | `user` | root's user ID, in exchange for the ID of the user that reads the source; and every capability |
//! | `resources` | memory and threads beyond the needs of reading |
//! | `landlock` | files except the source and files that it may refer to; TCP; other processes |
//! | `seccomp` | every system call that reading does not need |
//!
//! Landlock and seccomp restrict the calling thread and the threads that it starts later. So a
//! process enters its sandbox before it starts any other thread. A sandboxed process can neither
//! leave its sandbox nor unmount. The supervisor unmounts.

mod landlock;
mod network_reach;
mod resources;
mod seccomp;
#[cfg(test)]
pub(super) mod tests;
mod user;

use std::fs::OpenOptions;
use std::os::fd::RawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use h5fs_reader::error::{Error, Result};
use h5fs_tree::{External, Options};
use nix::fcntl::OFlag;
use nix::sys::prctl::set_dumpable;

pub(super) use network_reach::NetworkReach;
use resources::ResourceLimits;
use seccomp::FileAccess;
pub(super) use user::SourceUser;

/// ID of the user as whom a process of root parses a remote object. This user needs access to no
/// file.
pub(super) const NOBODY: u32 = 65_534;

/// The source that a sandboxed process shows, and the user as whom it is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShownSource<'a> {
    /// Path of the source, without symbolic links.
    pub(super) path: &'a Path,
    /// The user as whom the source is read.
    pub(super) reader: SourceUser,
    /// Whether the source is a directory of files.
    pub(super) is_directory: bool,
}

/// Drops every privilege that showing `source` with these `options` does not need. Without
/// `sandbox`, drops only the privileges of root. Logs each restriction that the kernel does not
/// support.
///
/// # Errors
/// `Io` if root cannot become the user that reads the source, or if that user may not read it.
/// `Usage` if only root may choose that user.
pub(super) fn enter(source: ShownSource<'_>, options: &Options, sandbox: bool) -> Result<()> {
    enter_all(&[source], options, sandbox, None)
}

/// Drops every privilege that serving these sources to the clients of the listening socket
/// `clients` does not need. All sources must be read as the same user.
///
/// # Errors
/// Fails as [`enter`] does.
pub(super) fn enter_to_serve(
    sources: &[ShownSource<'_>],
    options: &Options,
    sandbox: bool,
    clients: RawFd,
) -> Result<()> {
    enter_all(sources, options, sandbox, Some(clients))
}

fn enter_all(
    sources: &[ShownSource<'_>],
    options: &Options,
    sandbox: bool,
    clients: Option<RawFd>,
) -> Result<()> {
    let Some(first) = sources.first() else {
        return Ok(());
    };
    user::become_reader(first.reader)?;
    let chosen = |source: &&ShownSource<'_>| matches!(source.reader, SourceUser::Chosen(_));
    for source in sources.iter().filter(chosen) {
        if !source.is_directory {
            refuse_unreadable(source.path)?;
        }
    }
    if sandbox {
        hide_memory();
        if let Err(errno) = ResourceLimits::for_options(options).apply() {
            let error = Error::from_io(&errno.into(), "bounding memory and threads");
            log::warn!("{error}");
        }
        let reaches = sources
            .iter()
            .map(|source| ReachableFiles::for_source(*source, options));
        warn_gaps(
            first.path,
            &restrict_process(&reaches.collect::<Vec<_>>(), clients),
        );
    }
    Ok(())
}

/// Fails if the user of this process may not read the source. The source was opened with the
/// privileges of the caller, who may be root.
fn refuse_unreadable(path: &Path) -> Result<()> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path);
    let failed = |error| Error::from_io(&error, path.display().to_string());
    opened.map(|_| ()).map_err(failed)
}

/// Drops every privilege that opening `path` repeatedly, as the user `reader`, does not need.
///
/// # Errors
/// `Io` if root cannot become that user.
pub(super) fn enter_opener(path: &Path, reader: u32) -> Result<()> {
    user::become_reader(SourceUser::Owner(reader))?;
    // The requesting process has the same gaps in its sandbox, and already reports them.
    let directory: Vec<_> = path.parent().into_iter().collect();
    let _ = landlock::restrict(&directory, false);
    Ok(())
}

/// Drops every privilege that connecting to servers does not need. Without `sandbox`, drops only
/// capabilities.
///
/// # Errors
/// `Usage` if only root may choose the user `run_as`.
pub(super) fn enter_network(
    reach: &NetworkReach,
    run_as: Option<u32>,
    sandbox: bool,
) -> Result<()> {
    let own = SourceUser::Owner(nix::unistd::geteuid().as_raw());
    user::become_reader(run_as.map_or(own, SourceUser::Chosen))?;
    if sandbox {
        hide_memory();
        if let Err(errno) = ResourceLimits::for_fetcher(reach.connections).apply() {
            let error = Error::from_io(&errno.into(), "bounding memory and threads");
            log::warn!("{error}");
        }
        warn_gaps(Path::new("network"), &restrict_network(reach));
    }
    Ok(())
}

/// Restricts this thread, and the threads that it starts, to the files and ports in `reach`.
/// Returns a text for each restriction that the kernel does not support.
pub(super) fn restrict_network(reach: &NetworkReach) -> Vec<String> {
    let landlock = landlock::restrict_network(reach);
    missing_restrictions([landlock, seccomp::restrict(FileAccess::Network, None)])
}

fn missing_restrictions(restricted: [std::result::Result<(), String>; 2]) -> Vec<String> {
    let gaps = restricted.into_iter().filter_map(std::result::Result::err);
    gaps.collect()
}

fn warn_gaps(source: &Path, gaps: &[String]) {
    if !gaps.is_empty() {
        let (path, gaps) = (source.display(), gaps.join("; "));
        log::warn!("{path}: the sandbox has gaps: {gaps}");
    }
}

/// The files that a process can open in its sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReachableFiles<'a> {
    /// No file. The source is already open, and the opener process opens it again on request.
    Nothing,
    /// The files in and below a directory. `None` if the mount hides the directory: a process that
    /// looks for a file there would wait for an answer from itself.
    Beneath(Option<&'a Path>),
    /// The files in and below a directory, as for `Beneath`. The directories can also be listed.
    Listed(Option<&'a Path>),
}

impl<'a> ReachableFiles<'a> {
    fn for_source(source: ShownSource<'a>, options: &Options) -> Self {
        let root = Path::new("/");
        let directory = match options.external {
            External::Any => root,
            _ if source.is_directory => source.path,
            External::None => return ReachableFiles::Nothing,
            External::WithinDirectory => source.path.parent().unwrap_or(root),
        };
        let hides = |point: &Path| directory.starts_with(point);
        let guard = options.guard.as_ref();
        let is_hidden = guard.is_some_and(|guard| hides(&guard.mount_point));
        let directory = (!is_hidden).then_some(directory);
        if source.is_directory {
            ReachableFiles::Listed(directory)
        } else {
            ReachableFiles::Beneath(directory)
        }
    }
}

/// Applies Landlock and seccomp to this process. Each element of `reaches` permits the files of one
/// source. Returns a text for each restriction that the kernel does not support.
fn restrict_process(reaches: &[ReachableFiles<'_>], clients: Option<RawFd>) -> Vec<String> {
    let mut readable = Vec::new();
    let mut files = FileAccess::None;
    for reach in reaches {
        match reach {
            ReachableFiles::Nothing => {}
            ReachableFiles::Beneath(directory) => {
                readable.extend(directory);
                if files == FileAccess::None {
                    files = FileAccess::Landlocked;
                }
            }
            ReachableFiles::Listed(directory) => {
                readable.extend(directory);
                files = FileAccess::Listed;
            }
        }
    }
    let landlock = landlock::restrict(&readable, files == FileAccess::Listed);
    // seccomp must come last, because it forbids the system calls of Landlock.
    missing_restrictions([landlock, seccomp::restrict(files, clients)])
}

/// Disables core files, so that they do not expose bytes of the source.
pub(super) fn hide_memory() {
    let cored = resources::disable_core_files();
    if let Err(errno) = cored.and_then(|()| set_dumpable(false)) {
        let error = Error::from_io(&errno.into(), "disabling core files");
        log::warn!("{error}");
    }
}
