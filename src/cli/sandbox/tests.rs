//! Tests the sandbox from inside, with the attempts of an intruder.

use std::fs::{self, OpenOptions};
use std::io::{Error, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Command;

use h5fs_reader::source::local::rights;
use h5fs_reader::source::packets;
use h5fs_reader::testing::skip;
use h5fs_tree::MountGuard;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, Flock, FlockArg, OFlag, fcntl};
use nix::libc;

use super::*;

/// Returns the file at `path` as a source that is read as an arbitrary user.
fn file_at(path: &Path) -> ShownSource<'_> {
    ShownSource {
        path,
        reader: SourceUser::Owner(0),
        is_directory: false,
    }
}

#[test]
fn readable_files_follow_the_policy() {
    let source = Path::new("/data/run/a.h5");
    let seen = |point: &str, external| {
        let point = Path::new(point).to_path_buf();
        let guard = MountGuard {
            mount_point: point,
            device: None,
            foreign: None,
        };
        let options = Options {
            external,
            guard: Some(guard),
            ..Options::default()
        };
        ReachableFiles::for_source(file_at(source), &options)
    };
    let beneath = |directory: &'static str| ReachableFiles::Beneath(Some(Path::new(directory)));
    assert_eq!(seen("/mnt", External::None), ReachableFiles::Nothing);
    assert_eq!(
        seen("/data/run/mnt", External::WithinDirectory),
        beneath("/data/run")
    );
    assert_eq!(seen("/data", External::Any), beneath("/"));
    assert_eq!(
        seen("/data", External::WithinDirectory),
        ReachableFiles::Beneath(None)
    );
    assert_eq!(
        seen("/data/run", External::WithinDirectory),
        ReachableFiles::Beneath(None)
    );
    let without_a_mount = ReachableFiles::for_source(file_at(source), &Options::default());
    assert_eq!(without_a_mount, beneath("/data/run"));
}

fn errno<T>(result: std::result::Result<T, Error>) -> Option<Errno> {
    let error = result.err()?;
    error.raw_os_error().map(Errno::from_raw)
}

/// Creates a directory that contains `inside/file` and `outside`.
fn files() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path();
    fs::create_dir(top.join("inside")).unwrap();
    fs::write(top.join("inside/file"), "content").unwrap();
    fs::write(top.join("outside"), "content").unwrap();
    directory
}

/// Calls `attempts` in a new thread, sandboxed with this `reach`. Skips the test if the kernel
/// leaves gaps.
#[track_caller]
fn shut_in(reach: &ReachableFiles<'_>, attempts: impl FnOnce() + Send) {
    shut_in_by(|| restrict_process(&[*reach], None), attempts);
}

/// Calls `attempts` in a new thread that `shut` has sandboxed. Skips the test if `shut` reports
/// gaps.
#[track_caller]
pub(in crate::cli) fn shut_in_by(
    shut: impl FnOnce() -> Vec<String> + Send,
    attempts: impl FnOnce() + Send,
) {
    let gaps = std::thread::scope(|scope| {
        let shut_in = scope.spawn(|| {
            let gaps = shut();
            if gaps.is_empty() {
                attempts();
            }
            gaps
        });
        shut_in.join().unwrap()
    });
    if !gaps.is_empty() {
        skip(&gaps.join(", "));
    }
}

#[test]
fn only_files_in_the_directory_are_readable() {
    let directory = files();
    let (inside, outside) = (
        directory.path().join("inside"),
        directory.path().join("outside"),
    );
    shut_in(&ReachableFiles::Beneath(Some(&inside)), || {
        assert_eq!(fs::read(inside.join("file")).unwrap(), b"content");
        assert_eq!(errno(fs::read(inside.join("missing"))), Some(Errno::ENOENT));
        for outside in [
            &outside,
            Path::new("/etc/hosts"),
            Path::new("/proc/self/mem"),
        ] {
            assert_eq!(errno(fs::read(outside)), Some(Errno::EACCES), "{outside:?}");
        }
        assert!(fs::read_dir(&inside).is_err());
        let not_permitted = Some(Errno::EPERM);
        assert_eq!(errno(fs::write(inside.join("file"), "")), not_permitted);
        assert_eq!(errno(fs::write(inside.join("new"), "")), not_permitted);
        assert_eq!(errno(fs::remove_file(inside.join("file"))), not_permitted);
    });
}

/// The directory of an archive can be listed, and no other directory.
#[test]
fn the_directories_of_an_archive_are_listed() {
    let directory = files();
    let inside = directory.path().join("inside");
    shut_in(&ReachableFiles::Listed(Some(&inside)), || {
        assert_eq!(fs::read_dir(&inside).unwrap().count(), 1);
        assert_eq!(fs::read(inside.join("file")).unwrap(), b"content");
        let outside = fs::read_dir(directory.path());
        assert_eq!(errno(outside), Some(Errno::EACCES));
    });
}

/// Neither a neighbour of the source nor an `O_PATH` descriptor can be opened.
#[test]
fn no_file_is_opened_where_the_source_needs_none() {
    let directory = files();
    let file = directory.path().join("inside/file");
    let open = fs::File::open(&file).unwrap();
    shut_in(&ReachableFiles::Nothing, || {
        assert_eq!(errno(fs::read(&file)), Some(Errno::EPERM));
        let mut only_named = OpenOptions::new();
        only_named.read(true).custom_flags(OFlag::O_PATH.bits());
        assert_eq!(errno(only_named.open(&file)), Some(Errno::EPERM));
        let how = nix::fcntl::OpenHow::new();
        let opened = nix::fcntl::openat2(nix::fcntl::AT_FDCWD, &file, how);
        assert_eq!(opened.err(), Some(Errno::EPERM));
        let mut content = [0; 7];
        open.read_exact_at(&mut content, 0).unwrap();
        assert_eq!(&content, b"content");
    });
}

/// The parsing process receives a file of the disk cache this way.
#[test]
fn a_file_that_is_handed_over_is_read_and_never_written() {
    let directory = files();
    let path = directory.path().join("inside/file");
    let (own, other) = packets::socket_pair().unwrap();
    let open = fs::File::open(&path).unwrap();
    rights::send_with_files(other.as_fd(), b"f", &[open.as_fd()]).unwrap();
    shut_in(&ReachableFiles::Nothing, || {
        let (_, mut files) = rights::receive_with_files(own.as_fd(), &mut [0]).unwrap();
        let file = fs::File::from(files.pop().unwrap());
        assert!(file.metadata().unwrap().is_file());
        let mut content = [0; 7];
        file.read_exact_at(&mut content, 0).unwrap();
        assert_eq!(&content, b"content");
        let not_permitted = Some(Errno::EPERM);
        assert_eq!(errno(file.write_all_at(b"x", 0)), not_permitted);
        assert_eq!(errno(file.set_len(0)), not_permitted);
        assert_eq!(errno((&file).write(b"x")), Some(Errno::EBADF));
        let again = format!("/proc/self/fd/{}", file.as_raw_fd());
        assert_eq!(
            errno(OpenOptions::new().write(true).open(again)),
            not_permitted
        );
    });
    assert_eq!(fs::read(&path).unwrap(), b"content");
}

#[test]
fn no_process_is_started_and_no_socket_is_reached() {
    let directory = files();
    let top = directory.path();
    let listener = UnixDatagram::bind(top.join("inside/log")).unwrap();
    let other = UnixDatagram::bind(top.join("inside/other")).unwrap();
    let log = UnixDatagram::unbound().unwrap();
    log.connect(top.join("inside/log")).unwrap();
    shut_in(&ReachableFiles::Beneath(Some(&top.join("inside"))), || {
        assert!(Command::new("/bin/true").status().is_err());
        let not_permitted = Some(Errno::EPERM);
        assert_eq!(errno(TcpStream::connect("127.0.0.1:1")), not_permitted);
        let stream = UnixStream::connect(top.join("inside/log"));
        assert_eq!(errno(stream), not_permitted);
        assert_eq!(errno(UnixDatagram::unbound()), not_permitted);
        let elsewhere = top.join("inside/other");
        assert_eq!(errno(log.connect(&elsewhere)), not_permitted);
        assert_eq!(errno(log.send_to(b"forged", &elsewhere)), not_permitted);
        log.send(b"a line").unwrap();
        let signalled = nix::sys::signal::kill(nix::unistd::getppid(), None);
        assert_eq!(signalled, Err(Errno::EPERM));
        let flags = nix::mount::MntFlags::MNT_DETACH;
        assert_eq!(nix::mount::umount2(top, flags), Err(Errno::EPERM));
    });
    let mut line = [0; 16];
    assert_eq!(listener.recv(&mut line).unwrap(), 6);
    other.set_nonblocking(true).unwrap();
    assert!(other.recv(&mut line).is_err());
}

/// Locks that would block other processes are refused.
#[test]
fn only_shared_locks_are_permitted() {
    let directory = files();
    let file = directory.path().join("inside/file");
    let open = || {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(&file)
            .unwrap()
    };
    let (first, second) = (open(), open());
    shut_in(&ReachableFiles::Nothing, || {
        let whole = libc::flock {
            l_type: libc::F_RDLCK as i16,
            l_whence: libc::SEEK_SET as i16,
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        };
        for refused in [
            FcntlArg::F_SETLK(&whole),
            FcntlArg::F_SETLKW(&whole),
            FcntlArg::F_OFD_SETLK(&whole),
            FcntlArg::F_SETFL(OFlag::empty()),
        ] {
            let done = fcntl(first.as_fd(), refused);
            assert_eq!(done, Err(Errno::EPERM));
        }
        assert!(first.try_clone().is_ok());
        let locked = |file, how| Flock::lock(file, how).err().map(|(_, errno)| errno);
        let exclusive = FlockArg::LockExclusiveNonblock;
        assert_eq!(locked(first, exclusive), Some(Errno::EPERM));
        assert_eq!(locked(second, FlockArg::LockSharedNonblock), None);
    });
}

#[test]
fn calls_needed_for_reading_are_permitted() {
    let directory = files();
    let top = directory.path();
    shut_in(&ReachableFiles::Beneath(Some(&top.join("inside"))), || {
        let sum = std::thread::spawn(|| {
            vec![1_u8; 64 << 20]
                .iter()
                .map(|n| u64::from(*n))
                .sum::<u64>()
        });
        assert_eq!(sum.join().unwrap(), 64 << 20);
        assert_eq!(
            top.join("inside/../outside").canonicalize().unwrap(),
            top.join("outside").canonicalize().unwrap()
        );
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(std::panic::catch_unwind(|| panic!("caught")).is_err());
    });
}

/// Resource limits apply to a whole process, so this test runs itself in a child process.
#[test]
fn memory_and_threads_are_bounded() {
    const BOUND: &str = "H5FS_TEST_BOUND";
    const DATA: u64 = 256 << 20;
    let Some(threads) = std::env::var_os(BOUND) else {
        let there = resources::threads_of_the_system().unwrap();
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "--nocapture"]);
        again.arg("cli::sandbox::tests::memory_and_threads_are_bounded");
        again.env(BOUND, (there + 64).to_string());
        let finished = again.output().unwrap();
        let said = String::from_utf8_lossy(&finished.stdout);
        assert!(finished.status.success(), "{said}");
        assert!(said.contains("1 passed"), "{said}");
        return;
    };
    let threads: u64 = threads.to_str().unwrap().parse().unwrap();
    user::become_reader(SourceUser::Owner(65_534)).unwrap();
    let bounds = ResourceLimits {
        data_bytes: DATA,
        addresses: 4 * DATA,
        threads: Some(threads),
    };
    bounds.apply().unwrap();
    assert!(Vec::<u8>::new().try_reserve_exact(DATA as usize).is_err());
    let mut taken = Vec::new();
    while taken.len() < 1000 {
        let mut piece = Vec::<u8>::new();
        if piece.try_reserve_exact(8 << 20).is_err() {
            break;
        }
        taken.push(piece);
    }
    assert!((8..=32).contains(&taken.len()), "{}", taken.len());
    drop(taken);
    let (sender, ended) = std::sync::mpsc::channel::<()>();
    let ended = std::sync::Arc::new(std::sync::Mutex::new(ended));
    let mut started = 0;
    let refused = loop {
        let ended = std::sync::Arc::clone(&ended);
        let wait = move || ended.lock().unwrap().recv();
        match std::thread::Builder::new().stack_size(16 << 10).spawn(wait) {
            Ok(_) => started += 1,
            Err(error) => break error,
        }
        assert!(started <= threads, "as many as it likes");
    };
    drop(sender);
    assert_eq!(refused.raw_os_error(), Some(Errno::EAGAIN as i32));
}

/// The fetcher reaches its ports, its files and its cache only.
#[test]
fn only_named_ports_are_reachable() {
    let directory = files();
    let top = directory.path();
    fs::create_dir(top.join("cache")).unwrap();
    let listeners = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let [named, other] = [0, 1].map(|n: usize| listeners[n].local_addr().unwrap());
    let reach = NetworkReach {
        readable: vec![top.join("inside"), "/etc".into()],
        writable: Some(top.join("cache")),
        ports: vec![named.port()],
        connections: 1,
    };
    shut_in_by(
        || restrict_network(&reach),
        || {
            let denied = Some(Errno::EACCES);
            assert!(TcpStream::connect(named).is_ok());
            assert_eq!(errno(TcpStream::connect(other)), denied);
            assert!(std::net::UdpSocket::bind("127.0.0.1:0").is_ok());
            use std::net::ToSocketAddrs;
            assert!("localhost:80".to_socket_addrs().is_ok());
            assert_eq!(fs::read(top.join("inside/file")).unwrap(), b"content");
            assert_eq!(errno(fs::read(top.join("outside"))), denied);
            assert_eq!(errno(fs::write(top.join("inside/file"), "")), denied);
            let page = top.join("cache/page");
            fs::write(&page, "page").unwrap();
            assert_eq!(fs::read(&page).unwrap(), b"page");
            fs::remove_file(&page).unwrap();
            assert!(Command::new("/bin/true").status().is_err());
            let signalled = nix::sys::signal::kill(nix::unistd::getppid(), None);
            assert_eq!(signalled, Err(Errno::EPERM));
        },
    );
}
