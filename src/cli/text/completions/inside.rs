//! Completes paths inside a source.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use h5fs_reader::source::location::Location;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Maximum time for which a completion waits for the names in a source.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum length of the list of names, in bytes.
const MAX_LIST_BYTES: usize = 1 << 20;

/// Returns the paths in `source` that start with `typed`. Directories end with a slash. Returns an
/// empty vector if the source is remote, cannot be listed, or cannot be listed in time.
pub(super) fn complete_path(source: &OsStr, typed: &[u8]) -> Vec<Vec<u8>> {
    let Some(source) = local_source(source) else {
        return Vec::new();
    };
    let end = typed
        .iter()
        .rposition(|&byte| byte == b'/')
        .map_or(0, |slash| slash + 1);
    let (directory, name) = typed.split_at(end);
    let listed = list_names(&source, directory, name.starts_with(b".")).unwrap_or_default();
    let names = listed
        .split(|&byte| byte == b'\n')
        .filter(|found| !found.is_empty() && found.starts_with(name));
    names.map(|name| [directory, name].concat()).collect()
}

/// Returns the path of a source that is a file or directory on this machine, or `None` for any
/// other source.
fn local_source(source: &OsStr) -> Option<PathBuf> {
    let Ok(Location::Path(path)) = Location::parse(source.to_owned()) else {
        return None;
    };
    let path = match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path,
    };
    let kind = std::fs::metadata(&path).ok()?.file_type();
    (kind.is_file() || kind.is_dir()).then_some(path)
}

/// Returns the output of `h5fs ls` for a directory in `source`, or `None` if the output does not
/// arrive in time or is too long.
fn list_names(source: &Path, directory: &[u8], with_hidden: bool) -> Option<Vec<u8>> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.args(["ls", "--quiet", "--slash", "--one"]);
    command.args(with_hidden.then_some("--all"));
    command.arg("--").arg(source);
    if !directory.is_empty() {
        command.arg(OsString::from_vec(directory.to_vec()));
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let output = child.stdout.take();
    let text = output.and_then(|output| read_before(output, Instant::now() + LIST_TIMEOUT));
    kill(&mut child);
    text
}

fn kill(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Reads the output of a process to its end. Returns `None` if the deadline passes before.
fn read_before(mut output: ChildStdout, deadline: Instant) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut piece = [0; 1 << 14];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let patience = PollTimeout::try_from(left).ok()?;
        let mut readable = [PollFd::new(output.as_fd(), PollFlags::POLLIN)];
        if poll(&mut readable, patience).ok()? == 0 {
            return None;
        }
        match output.read(&mut piece).ok()? {
            0 => return Some(text),
            length if text.len() + length <= MAX_LIST_BYTES => text.extend(&piece[..length]),
            _ => return None,
        }
    }
}
