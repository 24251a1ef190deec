//! Filesystem operations that programs need: seeking in directories, holes, copies, and errors.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::errno::Errno;

use crate::harness::{LONG, MOUNT_LIMIT, Mount, fixture, run, script, tree};

/// Runs one of the tests in `probe.py`, which calls the kernel in ways that std does not support.
#[track_caller]
fn probe(question: &str, arguments: &[&Path]) {
    let finished = run(script("probe.py").arg(question).args(arguments), LONG);
    assert!(
        finished.status.success(),
        "{question}: {}{}",
        finished.text(),
        finished.stderr
    );
}

fn errno<T>(result: std::io::Result<T>) -> Option<Errno> {
    result
        .err()
        .and_then(|e| e.raw_os_error())
        .map(Errno::from_raw)
}

// ------------------------------------------------------------------ directories

#[test]
fn directories_can_be_sought() {
    for bound in ["earliest", "latest"] {
        let mount = Mount::new(&fixture(&format!("groups.{bound}.h5")));
        for group in [
            "links_0",
            "links_1",
            "links_8",
            "links_9",
            "links_3000",
            "ordered_30",
        ] {
            probe("seekdir", &[&mount.at(group)]);
        }
    }
}

#[test]
fn a_group_of_100_000_links() {
    for bound in ["earliest", "latest"] {
        let mount = Mount::new(&fixture(&format!("links-100k.{bound}.h5")));
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"ls -f "$0" | wc -l"#])
            .arg(mount.at("many"));
        let counted = run(&mut command, LONG).success().text();
        assert_eq!(counted.trim(), "100002", "with . and ..");
        for i in [0, 1, 49_999, 99_999] {
            let target = fs::read_link(mount.at(&format!("many/entry-{i:06}"))).expect("a link");
            assert_eq!(target, Path::new("../target"));
        }
        let beyond = fs::symlink_metadata(mount.at("many/entry-100000"));
        assert_eq!(
            beyond.expect_err("no such link").kind(),
            ErrorKind::NotFound
        );
        probe("seekdir", &[&mount.at("many")]);
    }
}

#[test]
fn dot_and_dot_dot() {
    let mount = Mount::new(&fixture("groups.latest.h5"));
    let inode = |path: &Path| fs::metadata(path).expect("stat").ino();
    assert_eq!(inode(&mount.at("a/b/..")), inode(&mount.at("a")));
    assert_eq!(inode(&mount.at("a/b/.")), inode(&mount.at("a/b")));
}

#[test]
fn too_long_and_missing_names() {
    let mount = Mount::new(&fixture("tiny.latest.h5"));
    assert_eq!(
        errno(fs::metadata(mount.at(&"x".repeat(256)))),
        Some(Errno::ENAMETOOLONG)
    );
    assert_eq!(
        errno(fs::metadata(mount.at("missing"))),
        Some(Errno::ENOENT)
    );
    assert_eq!(
        errno(fs::metadata(mount.at("contiguous/below"))),
        Some(Errno::ENOTDIR)
    );
    assert_eq!(errno(fs::read(mount.at("group"))), Some(Errno::EISDIR));
}

fn inodes(mount: &Mount) -> BTreeMap<PathBuf, u64> {
    let entry = |path: PathBuf| {
        let inode = fs::symlink_metadata(&path).expect("stat").ino();
        (
            path.strip_prefix(&mount.path)
                .expect("below the mount")
                .to_owned(),
            inode,
        )
    };
    tree(&mount.path).into_iter().map(entry).collect()
}

#[test]
fn inode_numbers_are_the_same_in_every_mount() {
    for name in [
        "links.earliest.h5",
        "links.latest.h5",
        "groups.latest.h5",
        "names.earliest.h5",
    ] {
        let source = fixture(name);
        let (first, second) = (Mount::new(&source), Mount::new(&source));
        let first = inodes(&first);
        // in another order, because the order of lookups must not matter
        for path in first.keys().rev() {
            let _ = fs::symlink_metadata(second.path.join(path));
        }
        assert_eq!(first, inodes(&second), "{name}");
    }
}

// ------------------------------------------------------------------ copies and holes

#[test]
fn holes_are_where_zeros_are() {
    for bound in ["earliest", "latest"] {
        let source = fixture(&format!("sparse.{bound}.h5"));
        let mount = Mount::new(&source);
        probe("holes", &[&mount.path, &source]);
    }
}

/// Copies a whole mount in several ways. Every copy must equal the mount, and the mount must equal
/// what h5py reads.
#[test]
fn sparse_copies_are_right() {
    for bound in ["earliest", "latest"] {
        let source = fixture(&format!("sparse.{bound}.h5"));
        let mount = Mount::new(&source);
        let directory = tempfile::tempdir().expect("temporary directory");
        for (name, line) in [
            ("cp", r#"cp -r --sparse=auto "$0/." "$1""#),
            ("cp-always", r#"cp -r --sparse=always "$0/." "$1""#),
            ("tar", r#"tar -C "$0" -S -cf - . | tar -C "$1" -xf -"#),
            ("rsync", r#"rsync -rS "$0/" "$1/""#),
        ] {
            let copy = directory.path().join(name);
            fs::create_dir(&copy).expect("directory");
            let mut command = Command::new("sh");
            run(command.args(["-c", line]).arg(&mount.path).arg(&copy), LONG).success();
            probe("copies", &[&copy, &source]);
            let _ = fs::remove_dir_all(&copy);
        }
    }
}

#[test]
fn walks_of_cyclic_files_end() {
    for bound in ["earliest", "latest"] {
        let mount = Mount::new(&fixture(&format!("links.{bound}.h5")));
        let directory = tempfile::tempdir().expect("temporary directory");
        for line in [
            r#"find "$0" | wc -l"#,
            r#"du -s "$0""#,
            r#"tar -C "$0" -cf "$1/a.tar" ."#,
            r#"rsync -a "$0/" "$1/b/""#,
        ] {
            let mut command = Command::new("sh");
            run(
                command
                    .args(["-c", line])
                    .arg(&mount.path)
                    .arg(directory.path()),
                LONG,
            )
            .success();
        }
    }
}

#[test]
fn status_of_the_filesystem() {
    let mount = Mount::new(&fixture("tiny.latest.h5"));
    let mut command = Command::new("stat");
    let said = run(
        command.args(["-f", "-c", "%l"]).arg(&mount.path),
        MOUNT_LIMIT,
    )
    .success();
    assert_eq!(said.text().trim(), "255");
    assert_eq!(
        fs::metadata(mount.at("contiguous"))
            .expect("stat")
            .blksize(),
        1 << 20
    );
    run(Command::new("df").arg(&mount.path), MOUNT_LIMIT).success();
}

#[test]
fn numpy_maps_a_dataset() {
    let mount = Mount::new(&fixture("tiny.latest.h5"));
    probe("memmap", &[&mount.at("contiguous")]);
    let mount = Mount::with(&fixture("tiny.latest.h5"), &["-o", "direct_io"]);
    probe("memmap", &[&mount.at("contiguous")]);
}

#[test]
fn many_readers_at_once() {
    let source = fixture("layouts.latest.h5");
    let mount = Mount::with(&source, &["-o", "cache_size=1M,threads=4"]);
    let path = mount.at("contiguous_large");
    let whole = fs::read(&path).expect("read");
    std::thread::scope(|scope| {
        for thread in 0..8_usize {
            let (path, whole) = (&path, &whole);
            scope.spawn(move || {
                let file = fs::File::open(path).expect("open");
                let mut place = vec![0; 10_007];
                for round in 0..40 {
                    let at = (thread * 7_919 + round * 104_729) % (whole.len() - place.len());
                    file.read_exact_at(&mut place, at as u64).expect("read");
                    assert_eq!(place, whole[at..at + place.len()], "at {at}");
                }
            });
        }
    });
}

// ------------------------------------------------------------------ refusals

#[test]
fn every_change_is_refused() {
    let mount = Mount::new(&fixture("tiny.latest.h5"));
    let (file, group) = (mount.at("contiguous"), mount.at("group"));
    let rofs = Some(Errno::EROFS);
    assert_eq!(errno(fs::write(&file, b"x")), rofs, "write");
    assert_eq!(
        errno(fs::OpenOptions::new().append(true).open(&file)),
        rofs,
        "append"
    );
    assert_eq!(
        errno(fs::OpenOptions::new().read(true).write(true).open(&file)),
        rofs,
        "open"
    );
    assert_eq!(errno(fs::write(mount.at("new"), b"x")), rofs, "create");
    assert_eq!(errno(fs::create_dir(mount.at("new"))), rofs, "mkdir");
    assert_eq!(errno(fs::remove_file(&file)), rofs, "unlink");
    assert_eq!(errno(fs::remove_dir(&group)), rofs, "rmdir");
    assert_eq!(errno(fs::rename(&file, mount.at("new"))), rofs, "rename");
    assert_eq!(errno(fs::hard_link(&file, mount.at("new"))), rofs, "link");
    assert_eq!(errno(symlink("x", mount.at("new"))), rofs, "symlink");
    let mode = fs::Permissions::from_mode(0o600);
    assert_eq!(errno(fs::set_permissions(&file, mode)), rofs, "chmod");
    assert_eq!(
        errno(std::os::unix::fs::chown(&file, Some(1), Some(1))),
        rofs,
        "chown"
    );
    probe("refusals", &[&mount.path]);
}

#[test]
fn extended_attributes() {
    for bound in ["earliest", "latest"] {
        let mount = Mount::new(&fixture(&format!("attribute-sizes.{bound}.h5")));
        probe("xattrs", &[&mount.path]);
        let mount = Mount::new(&fixture(&format!("attribute-counts.{bound}.h5")));
        probe("xattrs", &[&mount.path]);
        let mount = Mount::new(&fixture(&format!("links.{bound}.h5")));
        probe("xattrs", &[&mount.path]);
    }
}

// ------------------------------------------------------------------ damage

/// Mounts a copy of `corruptible.h5` with one byte changed, at `offset` from the `nth` match of
/// `pattern`.
fn damaged(pattern: &[u8], nth: usize, offset: usize) -> (Mount, PathBuf, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("damaged.h5");
    let mut content = fs::read(fixture("corruptible.h5")).expect("fixture");
    let places = content
        .windows(pattern.len())
        .enumerate()
        .filter(|(_, w)| *w == pattern);
    let place = places.map(|(at, _)| at).nth(nth).expect("the pattern") + offset;
    content[place] ^= 0x55;
    fs::write(&path, content).expect("write");
    let mount = Mount::new(&path);
    (mount, path, directory)
}

/// Size in bytes of a chunk of each of the three datasets. The kernel reads ahead in aligned pieces
/// up to this size, and a piece with damage fails as a whole.
const CHUNK: usize = 1 << 20;

/// Values 262144 to 262147, the start of the second chunk.
const SECOND_CHUNK: [u8; 16] = [0, 0, 4, 0, 1, 0, 4, 0, 2, 0, 4, 0, 3, 0, 4, 0];

#[test]
fn a_damaged_chunk_is_eio_and_the_others_are_read() {
    let (mount, _, _directory) = damaged(&SECOND_CHUNK, 1, 4);
    let clean = fs::read(mount.at("first")).expect("its neighbour");
    assert!(clean == fs::read(mount.at("third")).expect("its neighbour"));
    assert_eq!(clean.len(), 4 * CHUNK);
    let file = fs::File::open(mount.at("second")).expect("open");
    assert_eq!(errno(fs::read(mount.at("second"))), Some(Errno::EIO));
    let mut chunk = vec![0; CHUNK];
    file.read_exact_at(&mut chunk, 0)
        .expect("the chunk before it");
    assert!(chunk == clean[..CHUNK]);
    file.read_exact_at(&mut chunk, 3 * CHUNK as u64)
        .expect("the last chunk");
    assert!(chunk == clean[3 * CHUNK..]);
    for _ in 0..2 {
        assert_eq!(
            errno(file.read_at(&mut chunk, CHUNK as u64)),
            Some(Errno::EIO)
        );
    }
}

#[test]
fn a_damaged_object_header_is_eio_and_the_others_are_read() {
    // the root's header is the first; the others belong to the datasets and to the group
    let header = b"OHDR";
    let mut unreadable = 0;
    for nth in 1..5 {
        let (mount, _, _directory) = damaged(header, nth, 30);
        let names = fs::read_dir(&mount.path).expect("the root lists");
        assert_eq!(names.count(), 4);
        for name in ["first", "second", "third", "group/inside"] {
            match fs::read(mount.at(name)) {
                Ok(bytes) => assert!([4 * CHUNK, 80].contains(&bytes.len()), "{name}"),
                Err(error) => {
                    assert_eq!(
                        error.raw_os_error(),
                        Some(Errno::EIO as i32),
                        "{name}: {error}"
                    );
                    unreadable += 1;
                }
            }
        }
    }
    assert_eq!(unreadable, 4, "one dataset for each damaged header");
}

#[test]
fn a_damaged_chunk_index_is_eio() {
    let (mount, _, _directory) = damaged(b"FADB", 0, 16);
    let failed = ["first", "second", "third"]
        .iter()
        .filter(|name| errno(fs::read(mount.at(name))) == Some(Errno::EIO))
        .count();
    assert_eq!(failed, 1);
    assert_eq!(
        fs::read(mount.at("group/inside")).expect("untouched").len(),
        80
    );
}
