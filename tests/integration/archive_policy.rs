//! Tests which files the mount of a directory opens, for all kinds of references and directory
//! entries.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};

use crate::harness::{LONG, MOUNT_LIMIT, Mount, eventually, h5fs, is_root, run, script, tree};
use crate::policy::{Bound, allowed, can_trace, made, opened, trace};

/// The routes to a regular file of the directory that use only names within the directory.
const INSIDE: [&str; 5] = ["near", "below", "dotted", "link_below", "directory_below"];

/// The routes that lead out of the directory, to a special file, or to a missing file.
const OUTSIDE: [&str; 14] = [
    "link_out",
    "directory_out",
    "magic",
    "up",
    "absolute",
    "absolute_up",
    "fifo",
    "device",
    "directory",
    "zero",
    "tty",
    "memory",
    "descriptor",
    "hosts",
];

/// The routes that ASDF resolves out of the directory, and that HDF5 treats as names of missing
/// files.
const URLS: [&str; 5] = ["up_far", "uri", "uri_outside", "uri_up", "web"];

/// Returns the objects of `all.h5` and `all.asdf` whose elements are reached by this route.
fn objects(way: &str) -> [String; 3] {
    [
        format!("all.h5/virtual_{way}"),
        format!("all.h5/external_{way}"),
        format!("all.asdf/array_{way}"),
    ]
}

#[test]
fn a_directory_opens_nothing_that_the_policy_does_not_allow() {
    if !can_trace() {
        return;
    }
    let (_kept, top) = made();
    let inside = top.join("inside");
    for policy in ["none", "within", "any"] {
        let log = trace(&inside, &["--external", policy], |mount| {
            let urls = URLS.iter().map(|way| format!("all.asdf/array_{way}"));
            let outside = OUTSIDE.iter().flat_map(|way| objects(way)).chain(urls);
            for object in outside.filter(|_| policy != "any") {
                let read = fs::read(mount.at(&object));
                assert!(read.is_err(), "{policy}: {object}: {read:?}");
            }
            for object in INSIDE.iter().flat_map(|way| objects(way)) {
                let read = fs::read(mount.at(&object)).map(|bytes| bytes.len());
                match policy {
                    "none" => assert!(read.is_err(), "{policy}: {object}: {read:?}"),
                    _ => assert_eq!(read.ok(), Some(80), "{policy}: {object}"),
                }
            }
            if policy != "any" {
                expect_inside(mount);
            }
        });
        let opened = opened(&log);
        assert!(
            opened.contains(&inside.join("all.h5")),
            "{policy}: {opened:?}"
        );
        let allowed = allowed(&top, policy);
        let surplus: Vec<_> = opened
            .iter()
            .filter(|path| !path.starts_with(&inside) && !allowed.contains(*path))
            .filter(|path| !(policy == "any" && path.starts_with("/proc")))
            .collect();
        assert!(surplus.is_empty(), "external={policy}: {surplus:?}");
    }
}

/// Checks that links in data files lead to a file in the mount, or are dangling.
#[track_caller]
fn expect_inside(mount: &Mount) {
    let top = mount.path.canonicalize().expect("path");
    let of_data = |path: &PathBuf| {
        let mut parts = path.ancestors();
        path.is_symlink()
            && parts.any(|part| part.ends_with("all.h5") || part.ends_with("all.asdf"))
    };
    for link in tree(&mount.path).into_iter().filter(of_data) {
        if let Ok(target) = link.canonicalize() {
            assert!(
                target.starts_with(&top),
                "{} leads to {}",
                link.display(),
                target.display()
            );
        }
    }
}

/// Symbolic links stay links. The reader follows them with its own rights.
#[test]
fn links_of_the_directory_are_never_followed_by_the_mount() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path().canonicalize().expect("path");
    let inside = top.join("inside");
    fs::create_dir_all(inside.join("sub")).expect("mkdir");
    fs::write(top.join("secret"), "a secret").expect("write");
    fs::write(inside.join("file"), "a file").expect("write");
    for (name, text) in [
        ("first", "second"),
        ("second", "sub/third"),
        ("sub/third", "../file"),
        ("loop-a", "loop-b"),
        ("loop-b", "loop-a"),
        ("self", "self"),
        ("up", "../secret"),
        ("sub/up", "../../secret"),
        ("around", "../inside/file"),
        ("dangling", "no such file"),
    ] {
        symlink(text, inside.join(name)).expect("symlink");
    }
    symlink(&inside, inside.join("whole")).expect("symlink");
    symlink(inside.join("sub/../../secret"), inside.join("out")).expect("symlink");
    let mount = Mount::new(&inside);
    for link in ["first", "second", "sub/third", "whole/first"] {
        assert_eq!(fs::read(mount.at(link)).expect(link), b"a file");
    }
    for (link, code) in [
        ("loop-a", Errno::ELOOP),
        ("self", Errno::ELOOP),
        ("up", Errno::ENOENT),
        ("sub/up", Errno::ENOENT),
        ("around", Errno::ENOENT),
        ("dangling", Errno::ENOENT),
        (".h5fs/original/up", Errno::ENOENT),
    ] {
        let error = fs::read(mount.at(link)).expect_err(link);
        assert_eq!(error.raw_os_error(), Some(code as i32), "{link}");
        let own = fs::read_link(inside.join(link.trim_start_matches(".h5fs/original/")));
        assert_eq!(fs::read_link(mount.at(link)).ok(), own.ok(), "{link}");
    }
    let out = fs::read_link(mount.at("out")).expect("a link");
    assert_eq!(out, inside.join("sub/../../secret"));
}

/// While a file and a link are swapped between check and open, a read returns the file's content or
/// fails.
#[test]
fn a_name_that_changes_between_look_and_open_leads_nowhere_else() {
    const TIME: Duration = Duration::from_secs(3);
    const SWAPS: u32 = 100;
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path().canonicalize().expect("path");
    let inside = top.join("inside");
    fs::create_dir_all(inside.join("real")).expect("mkdir");
    fs::create_dir(top.join("outside")).expect("mkdir");
    fs::write(top.join("outside/file"), "a secret").expect("write");
    fs::write(inside.join("real/file"), "a file").expect("write");
    let mount = Mount::with(&inside, &["--direct-io"]);
    let (over, swaps) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                swap(&inside);
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut read = 0;
        let started = Instant::now();
        let is_enough = |read| read > 0 && swaps.load(Ordering::Relaxed) > SWAPS;
        while started.elapsed() < TIME || !is_enough(read) && started.elapsed() < LONG {
            for name in [
                "file",
                ".h5fs/original/file",
                "sub/file",
                ".h5fs/original/sub/file",
            ] {
                if let Ok(text) = read_no_link(&mount.at(name)) {
                    assert_eq!(text, "a file", "{name}");
                    read += 1;
                }
            }
        }
        over.store(true, Ordering::Relaxed);
        assert!(is_enough(read), "{read} reads, {swaps:?} swaps");
    });
}

/// Replaces `file` by a file and then by a link, and `sub` by a directory and then by a link. The
/// links lead out of the directory, and are dangling in the mount.
fn swap(inside: &Path) {
    let place = |name: &str| inside.join(name);
    fs::write(place("next"), "a file").expect("write");
    fs::rename(place("next"), place("file")).expect("rename");
    let _ = fs::remove_file(place("sub"));
    fs::rename(place("real"), place("sub")).expect("rename");
    symlink("../outside/file", place("next")).expect("symlink");
    fs::rename(place("next"), place("file")).expect("rename");
    fs::rename(place("sub"), place("real")).expect("rename");
    symlink("../outside", place("sub")).expect("symlink");
}

fn read_no_link(path: &Path) -> std::io::Result<String> {
    let mut options = fs::OpenOptions::new();
    options.read(true).custom_flags(OFlag::O_NOFOLLOW.bits());
    let mut text = String::new();
    options.open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// A special file is not shown, and no request waits for it.
#[test]
fn fifos_devices_and_sockets_are_not_there() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path().canonicalize().expect("path");
    nix::unistd::mkfifo(&top.join("fifo.h5"), Mode::S_IRWXU).expect("mkfifo");
    let _listener = UnixListener::bind(top.join("socket.h5")).expect("bind");
    let mut names = vec!["fifo.h5", "socket.h5"];
    if is_root() {
        for (name, kind) in [("zero.h5", SFlag::S_IFCHR), ("disk.h5", SFlag::S_IFBLK)] {
            mknod(&top.join(name), kind, Mode::S_IRWXU, makedev(1, 5)).expect("mknod");
            names.push(name);
        }
    }
    let mount = Mount::new(&top);
    assert_eq!(fs::read_dir(&mount.path).expect("list").count(), 0);
    for name in names {
        for place in ["", ".h5fs/original/"] {
            let error = fs::metadata(mount.at(place).join(name)).expect_err(name);
            assert_eq!(error.raw_os_error(), Some(Errno::ENOENT as i32), "{name}");
        }
    }
}

/// Another disk that is mounted within the directory is shown. A filesystem of another FUSE program
/// may wait for this mount, and this mount, visible there a second time, would wait for itself.
/// Neither can be entered.
#[test]
fn what_is_mounted_within_the_directory() {
    if !is_root() {
        crate::harness::skip("only root can mount within the directory");
        return;
    }
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path().canonicalize().expect("path");
    let mut make = script("four_numbers.py");
    run(make.arg(top.join("a.h5")).arg("1"), LONG).success();
    let _disk = Bound::memory(top.join("disk"));
    fs::copy(top.join("a.h5"), top.join("disk/b.h5")).expect("copy");
    let file = Mount::prepare_in(&top);
    run(h5fs([top.join("a.h5")]).arg(&file.path), MOUNT_LIMIT).success();
    let mount = Mount::new(&top);
    let _bound = Bound::new(&mount.path, top.join("bound"));

    let numbers = fs::read(mount.at("a.h5/x")).expect("numbers");
    assert_eq!(
        fs::read(mount.at("disk/b.h5/x")).expect("another disk's"),
        numbers
    );
    let within = file.path.strip_prefix(&top).expect("within");
    let error = fs::read_dir(mount.path.join(within)).expect_err("another program's");
    assert_eq!(error.raw_os_error(), Some(Errno::EDEADLK as i32));
    eventually(LONG, "the mount's own files are refused", || {
        let error = fs::read(mount.at("bound/a.h5/x")).err();
        error.and_then(|error| error.raw_os_error()) == Some(Errno::EDEADLK as i32)
    });
    assert_eq!(fs::read(mount.at("a.h5/x")).expect("numbers"), numbers);
}
