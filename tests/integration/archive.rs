//! Mounts of a directory of files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::stat::Mode;

use crate::harness::{LONG, Mount, SOON, eventually, fixture, fixtures, is_root, run, script};

/// Time limit for a stale name to disappear: ten times the promised time, for busy machines.
const STALE: Duration = Duration::from_secs(15);

/// Creates an empty directory.
fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().canonicalize().expect("path");
    (directory, path)
}

/// Writes an HDF5 file with one dataset `x` of four numbers.
fn write_numbers(path: &Path, first: i32) {
    let mut make = script("four_numbers.py");
    run(make.arg(path).arg(first.to_string()), LONG).success();
}

fn numbers(path: &Path) -> std::io::Result<Vec<i32>> {
    let bytes = fs::read(path)?;
    let of = |four: &[u8]| i32::from_le_bytes(four.try_into().expect("four bytes"));
    Ok(bytes.chunks_exact(4).map(of).collect())
}

fn names(path: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(path).expect("a directory");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    entries
        .map(|entry| name(entry).to_string_lossy().into_owned())
        .collect()
}

#[track_caller]
fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> Errno {
    let error = result.expect_err("an error");
    Errno::from_raw(error.raw_os_error().expect("an errno"))
}

/// Compares all fixtures in one mount with h5py. Fewer files may be open at a time than are read.
#[test]
fn every_fixture_in_its_place() {
    let mount = Mount::with(fixtures(), &["-o", "open_files=4"]);
    let mut comparison = script("compare.py");
    comparison.arg("--members");
    for entry in fs::read_dir(fixtures()).expect("fixtures") {
        let file = entry.expect("an entry").path();
        let name = file.file_name().expect("a name");
        let is_large = name.to_string_lossy().contains("-100k");
        if !is_large && mount.path.join(name).is_dir() {
            comparison.arg(mount.path.join(name)).arg(&file);
        }
    }
    let said = run(&mut comparison, LONG);
    assert!(said.status.success(), "{}{}", said.text(), said.stderr);
}

#[test]
fn files_and_directories_are_as_they_are() {
    let (_kept, top) = directory();
    fs::create_dir_all(top.join("2026/empty")).unwrap();
    write_numbers(&top.join("2026/run 1.h5"), 10);
    fs::write(top.join("notes.txt"), "some words\n").unwrap();
    fs::write(top.join("nothing"), "").unwrap();
    fs::write(top.join(OsStr::from_bytes(b"not \xff text")), "bytes").unwrap();
    fs::create_dir(top.join(".h5fs")).unwrap();
    fs::write(top.join(".h5fs/own"), "a file of the user's").unwrap();
    fs::write(top.join("%2Eh5fs"), "another one").unwrap();
    symlink(".h5fs/own", top.join("own")).unwrap();
    nix::unistd::mkfifo(&top.join("fifo"), Mode::S_IRWXU).unwrap();
    symlink("2026/run 1.h5", top.join("latest")).unwrap();
    symlink(top.join("2026"), top.join("absolute")).unwrap();
    symlink("/etc/hostname", top.join("outside")).unwrap();
    fs::set_permissions(top.join("notes.txt"), PermissionsExt::from_mode(0o640)).unwrap();
    let mount = Mount::new(&top);

    let listed = names(&mount.path);
    assert!(listed.contains("%2Eh5fs") && !listed.contains(".h5fs") && !listed.contains("fifo"));
    assert_eq!(listed.len(), 10, "{listed:?}");
    assert_eq!(
        names(&mount.at("2026")),
        ["empty", "run 1.h5"].map(str::to_owned).into()
    );
    assert_eq!(
        numbers(&mount.at("2026/run 1.h5/x")).unwrap(),
        [10, 11, 12, 13]
    );
    assert_eq!(numbers(&mount.at("latest/x")).unwrap(), [10, 11, 12, 13]);
    assert_eq!(
        numbers(&mount.at("absolute/run 1.h5/x")).unwrap(),
        [10, 11, 12, 13]
    );
    assert_eq!(
        fs::read_link(mount.at("absolute")).unwrap(),
        Path::new("2026")
    );
    assert_eq!(
        fs::read_link(mount.at("outside")).unwrap(),
        Path::new("/etc/hostname")
    );
    assert_eq!(fs::read(mount.at("notes.txt")).unwrap(), b"some words\n");
    assert_eq!(fs::read(mount.at("nothing")).unwrap(), b"");
    let strange = mount.path.join(OsStr::from_bytes(b"not \xff text"));
    assert_eq!(fs::read(strange).unwrap(), b"bytes");
    assert_eq!(
        fs::read(mount.at("%2Eh5fs/own")).unwrap(),
        b"a file of the user's"
    );
    assert_eq!(fs::read(mount.at("%252Eh5fs")).unwrap(), b"another one");
    assert_eq!(
        fs::read(mount.at("own")).unwrap(),
        b"a file of the user's",
        "where the link leads"
    );
    assert_eq!(errno(fs::metadata(mount.at("fifo"))), Errno::ENOENT);
    assert_eq!(errno(fs::metadata(mount.at("none"))), Errno::ENOENT);
    assert_eq!(errno(fs::metadata(mount.at("notes.txt/x"))), Errno::ENOTDIR);
    assert_eq!(errno(fs::write(mount.at("notes.txt"), "")), Errno::EROFS);

    let own = fs::metadata(top.join("notes.txt")).unwrap();
    let shown = fs::metadata(mount.at("notes.txt")).unwrap();
    assert_eq!(
        (shown.len(), shown.mode(), shown.uid()),
        (own.len(), own.mode(), own.uid())
    );
    assert_eq!(
        (shown.mtime(), shown.mtime_nsec()),
        (own.mtime(), own.mtime_nsec())
    );
    let shown = fs::metadata(mount.at("2026/run 1.h5")).unwrap();
    assert!(
        shown.is_dir() && shown.mode() & 0o777 == 0o555,
        "{:o}",
        shown.mode()
    );
}

/// The mount also shows the original bytes of every file, and each data file has its own views.
#[test]
fn own_bytes_and_views() {
    let (_kept, top) = directory();
    fs::create_dir(top.join("sub")).unwrap();
    write_numbers(&top.join("sub/a.h5"), 1);
    let mount = Mount::new(&top);
    let original = fs::read(mount.at(".h5fs/original/sub/a.h5")).unwrap();
    assert!(original == fs::read(top.join("sub/a.h5")).unwrap());
    assert_eq!(
        names(&mount.at(".h5fs")),
        [
            "README.txt",
            "errors",
            "joined",
            "joined.zarr",
            "metrics",
            "original",
            "status"
        ]
        .map(str::to_owned)
        .into()
    );
    let status = fs::read_to_string(mount.at(".h5fs/status")).unwrap();
    assert!(status.contains("\nfiles open: 0\n"), "{status}");
    let npy = fs::read(mount.at("sub/a.h5/.h5fs/npy/x.npy")).unwrap();
    assert!(npy.starts_with(b"\x93NUMPY"));
    let shape = xattr(&mount.at("sub/a.h5/x"), "user.h5fs.shape");
    assert_eq!(shape.unwrap(), "[4]");
    let status = fs::read_to_string(mount.at(".h5fs/status")).unwrap();
    assert!(status.contains("\nfiles open: 1\n"), "{status}");
}

pub(crate) fn xattr(path: &Path, name: &str) -> Option<String> {
    let mut command = std::process::Command::new("getfattr");
    command.args(["--only-values", "-n", name]).arg(path);
    let said = run(&mut command, SOON);
    said.status.success().then(|| said.text())
}

#[test]
fn a_damaged_file_hurts_no_neighbour() {
    let (_kept, top) = directory();
    write_numbers(&top.join("good.h5"), 5);
    let mut bytes = fs::read(top.join("good.h5")).unwrap();
    bytes[8] = 99;
    fs::write(top.join("bad.h5"), &bytes).unwrap();
    bytes.truncate(40);
    fs::write(top.join("short.h5"), &bytes).unwrap();
    let mount = Mount::new(&top);
    for name in ["bad.h5", "short.h5"] {
        assert!(names(&mount.at(name)).is_empty(), "{name}");
        let error = xattr(&mount.at(name), "user.h5fs.error").expect("an error");
        assert!(error.contains("superblock"), "{name}: {error}");
        assert_eq!(errno(fs::metadata(mount.at(name).join("x"))), Errno::ENOENT);
        let original = fs::read(mount.at(".h5fs/original").join(name)).unwrap();
        assert!(original == fs::read(top.join(name)).unwrap());
    }
    assert_eq!(numbers(&mount.at("good.h5/x")).unwrap(), [5, 6, 7, 8]);
    let errors = fs::read_to_string(mount.at(".h5fs/errors")).unwrap();
    for name in ["bad.h5", "short.h5"] {
        let of_file = format!(" {name}: superblock");
        assert_eq!(errors.matches(&of_file).count(), 1, "{errors}");
    }
    assert_eq!(mount.status("errors"), 2);
}

/// Inode numbers, handles and content stay right while files are closed and reopened.
#[test]
fn which_files_are_open_is_not_to_be_seen() {
    const FILES: i32 = 12;
    let (_kept, top) = directory();
    for i in 0..FILES {
        write_numbers(&top.join(format!("{i}.h5")), i * 100);
    }
    let mount = Mount::with(&top, &["-o", "open_files=1,direct_io"]);
    let path = |i: i32| mount.at(&format!("{i}.h5/x"));
    let open: Vec<_> = (0..FILES).map(|i| File::open(path(i)).unwrap()).collect();
    let inodes: Vec<_> = open
        .iter()
        .map(|file| file.metadata().unwrap().ino())
        .collect();
    for round in 0..3 {
        for i in 0..FILES {
            let mut four = [0; 4];
            let file = &open[usize::try_from(i).unwrap()];
            file.read_exact_at(&mut four, 4 * round).unwrap();
            let expected = i * 100 + i32::try_from(round).unwrap();
            assert_eq!(i32::from_le_bytes(four), expected);
            let inode = fs::metadata(path(i)).unwrap().ino();
            assert_eq!(inode, inodes[usize::try_from(i).unwrap()]);
        }
    }
    let different: BTreeSet<_> = inodes.iter().collect();
    assert_eq!(different.len(), inodes.len());
    // The descriptors of closed files have been released.
    if is_root() {
        let (worker, _) = mount.worker_and_supervisor(&top);
        let descriptors = fs::read_dir(format!("/proc/{}/fd", worker.pid)).unwrap();
        let sources = descriptors.flatten().filter(|descriptor| {
            fs::read_link(descriptor.path()).is_ok_and(|to| to.extension() == Some("h5".as_ref()))
        });
        assert!(sources.count() <= 2);
    }
}

#[test]
fn files_come_change_and_go() {
    let (_kept, top) = directory();
    write_numbers(&top.join("a.h5"), 1);
    let mount = Mount::new(&top);
    assert_eq!(numbers(&mount.at("a.h5/x")).unwrap(), [1, 2, 3, 4]);
    let before = File::open(mount.at("a.h5/x")).unwrap();

    // Another file replaces the data file. The old handle does not read the new file.
    write_numbers(&top.join("next"), 50);
    fs::rename(top.join("next"), top.join("a.h5")).unwrap();
    eventually(STALE, "the new file is shown", || {
        numbers(&mount.at("a.h5/x")).is_ok_and(|found| found == [50, 51, 52, 53])
    });
    let mut four = [0; 4];
    match before.read_exact_at(&mut four, 0) {
        Ok(()) => assert_eq!(i32::from_le_bytes(four), 1, "what the kernel has kept"),
        Err(error) => assert_eq!(error.raw_os_error(), Some(Errno::ESTALE as i32)),
    }

    write_numbers(&top.join("b.h5"), 7);
    eventually(STALE, "a new file", || mount.at("b.h5/x").exists());
    assert!(names(&mount.path).contains("b.h5"));
    fs::remove_file(top.join("b.h5")).unwrap();
    eventually(STALE, "no file", || !mount.at("b.h5").exists());
    assert!(!names(&mount.path).contains("b.h5"));

    // A data file is overwritten with other content.
    fs::write(top.join("a.h5"), "plain").unwrap();
    eventually(STALE, "a plain file", || {
        fs::read(mount.at("a.h5")).is_ok_and(|found| found == b"plain")
    });
    fs::write(top.join("a.h5"), "plain, and more").unwrap();
    eventually(STALE, "a longer file", || {
        fs::read(mount.at("a.h5")).is_ok_and(|found| found == b"plain, and more")
    });
}

/// If a write changes the timestamp before the bytes, the change is reported when the write ends.
#[test]
fn open_files_are_watched() {
    if !is_root() {
        crate::harness::skip("only root can become somebody else");
        return;
    }
    let (_kept, top) = directory();
    write_numbers(&top.join("a.h5"), 1);
    let mount = Mount::new(&top);
    let (worker, _) = mount.worker_and_supervisor(&top);
    let watched = || {
        let descriptors = fs::read_dir(format!("/proc/{}/fdinfo", worker.pid)).unwrap();
        let facts = descriptors
            .flatten()
            .map(|fd| fs::read_to_string(fd.path()));
        let watches = |facts: String| facts.matches("inotify wd:").count();
        facts.flatten().map(watches).sum::<usize>()
    };
    assert_eq!(watched(), 0);
    assert_eq!(numbers(&mount.at("a.h5/x")).unwrap(), [1, 2, 3, 4]);
    assert_eq!(watched(), 1);
}

/// Links between the files lead to their paths in the mount, and nowhere else.
#[test]
fn links_between_files_stay_inside() {
    let (_kept, top) = directory();
    run(script("neighbours.py").arg(&top), LONG).success();
    let inside = top.join("inside");
    let mount = Mount::new(&inside);
    let values = fs::read(inside.join("values.bytes")).unwrap();
    let read = |path: &str| fs::read(mount.at(path));
    for dataset in [
        "values",
        "virtual_near",
        "virtual_below",
        "virtual_nested",
        "external_near",
    ] {
        assert_eq!(
            read(&format!("main.h5/{dataset}")).unwrap(),
            values,
            "{dataset}"
        );
    }
    for kind in [
        "leads_out",
        "magic",
        "up",
        "absolute",
        "fifo",
        "directory",
        "ring",
    ] {
        let code = errno(read(&format!("main.h5/virtual_{kind}")));
        assert_eq!(code, Errno::EIO, "{kind}");
    }
    assert_eq!(
        fs::read_link(mount.at("main.h5/round")).unwrap(),
        Path::new("../ring-a.h5/round")
    );
    assert_eq!(errno(read("main.h5/round")), Errno::ELOOP);
    // If the parent directory is mounted, the same files may refer to files there.
    let above = Mount::new(&top);
    let read = |path: &str| fs::read(above.at(path));
    for kind in ["near", "below", "nested", "up", "absolute", "leads_out"] {
        assert_eq!(
            read(&format!("inside/main.h5/virtual_{kind}")).unwrap(),
            values,
            "{kind}"
        );
    }
}

#[test]
fn an_external_link_is_a_link_to_the_other_file() {
    let (_kept, top) = directory();
    let mut make = script("linked_runs.py");
    run(make.arg(&top), LONG).success();
    let mount = Mount::new(&top);
    let link = mount.at("master.h5/entry/data/first");
    assert_eq!(
        fs::read_link(&link).unwrap(),
        Path::new("../../../data/run_1.h5/entry/x")
    );
    assert_eq!(numbers(&link).unwrap(), [1, 2, 3, 4]);
    let back = mount.at("data/run_1.h5/master");
    assert_eq!(fs::read_link(&back).unwrap(), Path::new("../../master.h5"));
    assert!(back.join("entry").is_dir());
}

/// The worker runs as the directory's owner, without additional rights.
#[test]
fn files_that_the_owner_cannot_read_stay_closed() {
    if !is_root() {
        crate::harness::skip("only root can become somebody else");
        return;
    }
    let (_kept, top) = directory();
    write_numbers(&top.join("own.h5"), 1);
    write_numbers(&top.join("roots.h5"), 2);
    fs::write(top.join("roots.txt"), "a secret").unwrap();
    for name in ["", "own.h5"] {
        chown(top.join(name), Some(1234), Some(1234)).unwrap();
    }
    for name in ["roots.h5", "roots.txt"] {
        fs::set_permissions(top.join(name), PermissionsExt::from_mode(0o600)).unwrap();
    }
    fs::set_permissions(&top, PermissionsExt::from_mode(0o755)).unwrap();
    let (_log, log) = directory();
    let log = log.join("log");
    let mount = Mount::with(&top, &["--log-file", &log.display().to_string()]);
    assert_eq!(numbers(&mount.at("own.h5/x")).unwrap(), [1, 2, 3, 4]);
    for name in [
        "roots.txt",
        "roots.h5",
        ".h5fs/original/roots.h5",
        "roots.txt",
    ] {
        assert_eq!(errno(fs::read(mount.at(name))), Errno::EACCES, "{name}");
    }
    assert_eq!(fs::metadata(mount.at("own.h5")).unwrap().uid(), 1234);
    // The log names each file once.
    let log = fs::read_to_string(&log).unwrap();
    for name in ["roots.txt", "roots.h5"] {
        let line = format!("warning: {name}: Permission denied\n");
        assert_eq!(log.matches(&line).count(), 1, "{log}");
    }
    assert_eq!(log.lines().count(), 2, "{log}");
}

/// A mount point within the mounted directory cannot be entered through the mount.
#[test]
fn the_mount_may_stand_in_its_own_directory() {
    let (_kept, top) = directory();
    write_numbers(&top.join("a.h5"), 1);
    let mount = Mount::prepare_in(&top);
    let finished = run(
        crate::harness::h5fs::<_, &OsStr>([])
            .arg(&top)
            .arg(&mount.path),
        SOON,
    );
    finished.success();
    assert_eq!(numbers(&mount.at("a.h5/x")).unwrap(), [1, 2, 3, 4]);
    let within = mount.path.strip_prefix(&top).unwrap();
    let inner = mount.path.join(within);
    assert_eq!(errno(fs::read_dir(&inner)), Errno::EDEADLK);
}

/// A fixture in a directory has the same content as when it is mounted alone.
#[test]
fn a_file_is_the_same_alone_and_among_others() {
    let (_kept, top) = directory();
    let groups = fixture("groups.latest.h5");
    fs::copy(&groups, top.join("groups.h5")).unwrap();
    let (alone, among) = (Mount::new(&groups), Mount::new(&top));
    let tree = |mount: &Path| {
        let mut command = std::process::Command::new("find");
        let said = run(
            command
                .arg(".")
                .arg("-printf")
                .arg("%p %y %s %m\n")
                .current_dir(mount),
            LONG,
        );
        let mut lines: Vec<_> = said.success().text().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(tree(&alone.path), tree(&among.at("groups.h5")));
}

/// With `allow_other` the kernel checks permission bits. So a file whose access control list grants
/// less than its bits is shown with the bits that the list grants.
#[test]
fn nobody_is_let_in_by_bits_that_a_list_takes_back() {
    let (_kept, top) = directory();
    fs::set_permissions(&top, PermissionsExt::from_mode(0o755)).unwrap();
    for name in ["open.txt", "denied.txt"] {
        fs::write(top.join(name), "text").unwrap();
        fs::set_permissions(top.join(name), PermissionsExt::from_mode(0o644)).unwrap();
    }
    write_numbers(&top.join("denied.h5"), 1);
    for name in ["denied.txt", "denied.h5"] {
        let mut deny = std::process::Command::new("setfacl");
        run(deny.args(["-m", "u:1234:---"]).arg(top.join(name)), SOON).success();
    }
    let mount = Mount::with(&top, &["-o", "allow_other"]);
    let others = |name: &str| fs::metadata(mount.at(name)).unwrap().mode() & 0o007;
    assert_eq!(others("open.txt"), 0o004);
    assert_eq!((others("denied.txt"), others("denied.h5")), (0, 0));
    assert_eq!(numbers(&mount.at("denied.h5/x")).unwrap(), [1, 2, 3, 4]);
}

#[test]
fn root_reads_as_the_user_that_it_names() {
    if !is_root() {
        crate::harness::skip("only root can become somebody else");
        return;
    }
    let (_kept, top) = directory();
    fs::set_permissions(&top, PermissionsExt::from_mode(0o755)).unwrap();
    write_numbers(&top.join("own.h5"), 1);
    write_numbers(&top.join("roots.h5"), 2);
    chown(top.join("own.h5"), Some(1234), Some(1234)).unwrap();
    for name in ["own.h5", "roots.h5"] {
        fs::set_permissions(top.join(name), PermissionsExt::from_mode(0o600)).unwrap();
    }
    let mount = Mount::with(&top, &["-o", "run_as=1234"]);
    assert_eq!(numbers(&mount.at("own.h5/x")).unwrap(), [1, 2, 3, 4]);
    assert_eq!(errno(fs::read(mount.at("roots.h5"))), Errno::EACCES);
    let alone = Mount::with(&top.join("own.h5"), &["-o", "run_as=1234"]);
    assert_eq!(numbers(&alone.at("x")).unwrap(), [1, 2, 3, 4]);
    let (_, refused) = Mount::attempt(&top.join("roots.h5"), &["-o", "run_as=1234"]);
    assert!(
        refused.one_line().ends_with("roots.h5: Permission denied"),
        "{refused:?}"
    );
    let (_, refused) = Mount::attempt(&top, &["-o", "run_as=no such user"]);
    assert!(
        refused.stderr.contains("no user is named `no such user`"),
        "{refused:?}"
    );
}

/// In a user namespace without the owner, the worker keeps its user.
#[test]
fn a_user_namespace_shows_what_its_user_may_read() {
    if !is_root() {
        crate::harness::skip("only root can become somebody else");
        return;
    }
    let namespace = ["--user", "--map-root-user", "--mount", "sh", "-c"];
    let unshare = || std::process::Command::new("unshare");
    let made = run(unshare().args(namespace).arg("true"), SOON);
    if !made.status.success() {
        // For example in a chroot.
        crate::harness::skip(made.stderr.trim_end());
        return;
    }
    let (_kept, top) = directory();
    fs::set_permissions(&top, PermissionsExt::from_mode(0o755)).unwrap();
    write_numbers(&top.join("a.h5"), 1);
    chown(top.join("a.h5"), Some(1234), Some(1234)).unwrap();
    fs::create_dir(top.join("mnt")).unwrap();
    let mut inside = unshare();
    inside.args(namespace);
    inside.arg("\"$0\" \"$1\" \"$2\" && od -An -td4 \"$2\"/x; umount \"$2\"");
    inside
        .arg(crate::harness::H5FS)
        .arg(top.join("a.h5"))
        .arg(top.join("mnt"));
    let said = run(&mut inside, LONG);
    let words: Vec<_> = said.text().split_whitespace().map(str::to_owned).collect();
    assert_eq!(words, ["1", "2", "3", "4"], "{said:?}");
}

#[test]
fn a_mount_that_would_hide_its_files_is_refused() {
    let (_kept, top) = directory();
    fs::write(top.join("a.txt"), "text").unwrap();
    let mut over = crate::harness::h5fs::<_, &OsStr>([]);
    let refused = run(over.arg(&top).arg(&top), SOON);
    assert!(
        refused
            .one_line()
            .contains("the mount would hide its own source"),
        "{refused:?}"
    );
}
