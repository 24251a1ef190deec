//! What the serving process gives up before it reads the first byte of the source.
//!
//! | file | what is given up |
//! |---|---|
//! | `user` | being root: the process becomes the source's owner; and every capability |
//! | `landlock` | all files but those that the source may bring in, which can be read; TCP; other processes |
//! | `seccomp` | every system call that serving does not take |
//!
//! Landlock and seccomp bind the thread that asks for them and those that it starts, so this comes before
//! any other thread does. There is no way back, and none to unmount: the supervisor does that.

mod landlock;
mod seccomp;
mod user;

use std::path::Path;

use nix::sys::prctl::set_dumpable;
use nix::sys::resource::{Resource, setrlimit};

use crate::cli::options::Settings;
use crate::error::{Error, Result};
use crate::fs::{External, Unread};

/// Gives up what serving `source` at `point` does not take. What the kernel cannot take away is said in the log.
///
/// # Errors
/// `Io` where root cannot become the source's owner.
pub(super) fn enter(source: &Unread, point: &Path, settings: &Settings) -> Result<()> {
    user::become_owner(source.owner()?)?;
    if settings.sandbox {
        hide_memory();
        let lacking = shut(readable(source.path(), point, settings.external));
        if !lacking.is_empty() {
            let path = source.path().display();
            let lacking = lacking.join("; ");
            log::warn!("{path}: the sandbox has gaps: {lacking}");
        }
    }
    Ok(())
}

/// The directory beneath which files may be read. With no other files the source's own directory is still
/// among them, so that a source that was replaced can be opened again. One that the mount hides cannot be had:
/// who looks for it waits for an answer from here.
fn readable<'a>(source: &'a Path, point: &Path, external: External) -> Option<&'a Path> {
    let root = Path::new("/");
    let directory = match external {
        External::Any => root,
        External::None | External::Within => source.parent().unwrap_or(root),
    };
    (!directory.starts_with(point)).then_some(directory)
}

/// Applies both restrictions, and says in which way the kernel falls short of them.
fn shut(readable: Option<&Path>) -> Vec<String> {
    let landlock = landlock::restrict(readable);
    // The second takes away the calls for the first.
    let seccomp = seccomp::restrict();
    [landlock, seccomp]
        .into_iter()
        .filter_map(std::result::Result::err)
        .collect()
}

/// What was read must not end up in a core file.
fn hide_memory() {
    let cored = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    if let Err(errno) = cored.and_then(|()| set_dumpable(false)) {
        let error = Error::io(&errno.into(), "turning core files off");
        log::warn!("{error}");
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Error, ErrorKind};
    use std::net::TcpStream;
    use std::os::unix::net::{UnixDatagram, UnixStream};
    use std::process::Command;

    use nix::errno::Errno;

    use super::*;

    #[test]
    fn what_can_be_read_follows_the_policy() {
        let source = Path::new("/data/run/a.h5");
        let seen = |point: &str, policy| readable(source, Path::new(point), policy);
        let (root, own) = (Some(Path::new("/")), Some(Path::new("/data/run")));
        assert_eq!(seen("/mnt", External::None), own);
        assert_eq!(seen("/data/run/mnt", External::Within), own);
        assert_eq!(seen("/data", External::Any), root);
        assert_eq!(seen("/data", External::Within), None);
        assert_eq!(seen("/data/run", External::Within), None);
    }

    fn errno<T>(result: std::result::Result<T, Error>) -> Option<Errno> {
        let error = result.err()?;
        error.raw_os_error().map(Errno::from_raw)
    }

    /// Calls `attempts` from a thread of its own, which is shut in `inside`, of a directory that holds
    /// `inside/file` and `outside`; passed over where the kernel has gaps.
    fn shut_in(attempts: impl FnOnce(&Path) + Send) {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        let inside = top.join("inside");
        fs::create_dir(&inside).unwrap();
        fs::write(inside.join("file"), "content").unwrap();
        fs::write(top.join("outside"), "content").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| match &shut(Some(&inside))[..] {
                [] => attempts(top),
                gaps => eprintln!("passed over: {gaps:?}"),
            });
        });
    }

    #[test]
    fn files_are_read_in_the_directory_alone() {
        shut_in(|top| {
            let inside = top.join("inside");
            assert_eq!(fs::read(inside.join("file")).unwrap(), b"content");
            assert_eq!(errno(fs::read(inside.join("missing"))), Some(Errno::ENOENT));
            for outside in [
                &top.join("outside"),
                Path::new("/etc/hosts"),
                Path::new("/proc/self/mem"),
            ] {
                assert_eq!(errno(fs::read(outside)), Some(Errno::EACCES), "{outside:?}");
            }
            assert!(fs::read_dir(&inside).is_err());
            assert_eq!(
                errno(fs::write(inside.join("file"), "")),
                Some(Errno::EPERM)
            );
            assert_eq!(errno(fs::write(inside.join("new"), "")), Some(Errno::EPERM));
            assert_eq!(
                errno(fs::remove_file(inside.join("file"))),
                Some(Errno::EPERM)
            );
        });
    }

    #[test]
    fn nothing_is_started_and_nobody_is_spoken_to() {
        shut_in(|top| {
            assert!(Command::new("/bin/true").status().is_err());
            assert_eq!(errno(TcpStream::connect("127.0.0.1:1")), Some(Errno::EPERM));
            let stream = UnixStream::connect(top.join("socket"));
            assert_eq!(errno(stream), Some(Errno::EPERM));
            let signalled = nix::sys::signal::kill(nix::unistd::getppid(), None);
            assert_eq!(signalled, Err(Errno::EPERM));
            let flags = nix::mount::MntFlags::MNT_DETACH;
            assert_eq!(nix::mount::umount2(top, flags), Err(Errno::EPERM));
        });
    }

    #[test]
    fn what_serving_takes_is_left() {
        shut_in(|top| {
            // Its listener may come back.
            let socket = UnixDatagram::unbound().unwrap();
            socket.set_nonblocking(true).unwrap();
            let nobody = socket.connect(top.join("inside/log"));
            assert_eq!(nobody.unwrap_err().kind(), ErrorKind::NotFound);
            let sum = std::thread::spawn(|| {
                vec![1_u8; 64 << 20]
                    .iter()
                    .map(|n| u64::from(*n))
                    .sum::<u64>()
            });
            assert_eq!(sum.join().unwrap(), 64 << 20);
            assert_eq!(
                top.join("inside/../outside").canonicalize().unwrap(),
                top.join("outside")
            );
            std::thread::sleep(std::time::Duration::from_millis(1));
            assert!(std::panic::catch_unwind(|| panic!("caught")).is_err());
        });
    }
}
