//! With `allow_other`, a mount shows no user a file that the source's directory denies to that
//! user.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Finished, MOUNT_LIMIT, Mount, SOON, eventually, h5fs, is_root, run};
use crate::hostile::hdf5::*;

/// A user without rights of its own to any file in these tests.
const STRANGER: u32 = 65_534;
/// A user named by access control lists.
const NAMED: u32 = 1234;

/// Returns a file with the object `good`, the dataset `x` in the raw file `raw`, and external
/// links. Each link has the name of the file that it leads to.
fn linked(links: &[&str]) -> Vec<u8> {
    let mut file = Hdf5::new();
    let good = file.put_bytes(b"goodness");
    let raw = file.put_in_raw_file("raw", 8);
    let mut all: Vec<Message> = links
        .iter()
        .map(|link| external_link(link.replace('/', "_").as_bytes(), link.as_bytes(), b"/"))
        .collect();
    all.extend([hard_link(b"good", good), hard_link(b"x", raw)]);
    let root = file.put(&group(&all));
    file.rooted(root)
}

/// Creates a directory that every user may enter, with these files of mode 0644.
fn made(files: &[(&str, &[&str])]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path().to_owned();
    permit(&top, 0o755);
    for (name, links) in files {
        let path = top.join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("directory");
        fs::write(&path, linked(links)).expect("a file");
        permit(&path, 0o644);
    }
    fs::write(top.join("raw"), "elements").expect("raw file");
    permit(&top.join("raw"), 0o644);
    (directory, top)
}

fn permit(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}

fn set_acl(path: &Path, entry: &str) {
    run(Command::new("setfacl").args(["-m", entry]).arg(path), SOON).success();
}

/// Mounts for all users, in a directory that every user may enter.
fn open_to_all(source: &Path, options: &[&str]) -> Mount {
    let options = [&["--allow-other"], options].concat();
    let mount = Mount::with(source, &options);
    permit(mount.path.parent().expect("parent"), 0o755);
    mount
}

fn cat_as(user: u32, path: &Path) -> Finished {
    run(Command::new("cat").arg(path).uid(user).gid(user), SOON)
}

#[track_caller]
fn denied(done: &Finished) {
    assert_eq!(done.stdout, b"", "bytes that are not his");
    assert!(!done.status.success(), "neither bytes nor an error");
}

fn may_not_test() -> bool {
    let cannot = !is_root();
    if cannot {
        crate::harness::skip("only root can become somebody else");
    }
    cannot
}

#[test]
fn what_no_link_names_is_not_there() {
    if may_not_test() {
        return;
    }
    let (_directory, top) = made(&[("src.h5", &[]), ("private.h5", &[]), ("sub/deep.h5", &[])]);
    permit(&top, 0o700);
    let mount = open_to_all(&top.join("src.h5"), &[]);
    assert_eq!(
        cat_as(STRANGER, &mount.at("good")).success().stdout,
        b"goodness"
    );
    for name in [
        "private.h5",
        "sub%2Fdeep.h5",
        "raw",
        ".%2Fprivate.h5",
        "sub%2F..%2Fprivate.h5",
    ] {
        for user in [0, STRANGER] {
            let done = cat_as(user, &mount.at(&format!(".h5fs/external/{name}/good")));
            denied(&done);
            assert!(
                done.stderr.contains("No such file"),
                "{name}: {}",
                done.stderr
            );
        }
    }
    let listed = fs::read_dir(mount.at(".h5fs/external"))
        .expect("list")
        .count();
    assert_eq!(listed, 0);
}

#[test]
fn a_link_shows_no_more_than_its_files_directory_does() {
    if may_not_test() {
        return;
    }
    let files: &[(&str, &[&str])] = &[
        ("src.h5", &["other.h5", "closed/in.h5", "own.h5"]),
        ("other.h5", &["closed/nested.h5"]),
        ("closed/in.h5", &[]),
        ("closed/nested.h5", &[]),
        ("own.h5", &[]),
    ];
    // The modes of the two directories, and the files that the stranger can then read.
    for (top_mode, sub_mode, read) in [
        (
            0o755,
            0o755,
            &["other.h5", "closed_in.h5", "other.h5/closed_nested.h5"][..],
        ),
        (0o755, 0o700, &["other.h5"]),
        (0o755, 0o744, &["other.h5"]),
        (0o700, 0o755, &[]),
    ] {
        let (_directory, top) = made(files);
        permit(&top.join("closed"), sub_mode);
        permit(&top.join("own.h5"), 0o600);
        permit(&top, top_mode);
        let mount = open_to_all(&top.join("src.h5"), &[]);
        for name in [
            "other.h5",
            "closed_in.h5",
            "other.h5/closed_nested.h5",
            "own.h5",
        ] {
            let path = mount.at(name).join("good");
            let done = cat_as(STRANGER, &path);
            if read.contains(&name) {
                assert_eq!(done.success().stdout, b"goodness", "{name}");
            } else {
                denied(&done);
            }
            // The owner can still read the file.
            assert_eq!(
                fs::read(&path).expect(name),
                b"goodness",
                "{top_mode:o} {sub_mode:o} {name}"
            );
        }
        let raw = cat_as(STRANGER, &mount.at("x"));
        match top_mode {
            0o755 => assert_eq!(raw.success().stdout, b"elements"),
            _ => denied(&raw),
        }
    }
}

/// With this umask only the owner may use the mount, so private neighbours are readable.
#[test]
fn who_is_kept_out_by_the_umask_need_not_read_the_neighbours() {
    if may_not_test() {
        return;
    }
    let (_directory, top) = made(&[("src.h5", &["other.h5"])]);
    permit(&top, 0o700);
    let mount = open_to_all(&top.join("src.h5"), &["-o", "umask=077"]);
    assert_eq!(fs::read(mount.at("x")).expect("its owner's"), b"elements");
    denied(&cat_as(STRANGER, &mount.at("x")));
}

/// A path from an earlier mount still works, although no request has resolved the link in this
/// mount.
#[test]
fn a_path_through_a_link_is_found_again() {
    let files: &[(&str, &[&str])] = &[
        ("src.h5", &["other.h5", "absent.h5"]),
        ("other.h5", &["sub/nested.h5"]),
        ("sub/nested.h5", &[]),
        ("unnamed.h5", &[]),
    ];
    let (_directory, top) = made(files);
    let source = top.join("src.h5");
    let cat = |path: &str| run(h5fs(["cat"]).arg(&source).arg(path), MOUNT_LIMIT);
    for name in ["other.h5", "sub%2Fnested.h5", ".%2Fother.h5"] {
        let path = format!(".h5fs/external/{name}/good");
        assert_eq!(cat(&path).success().stdout, b"goodness", "{name}");
    }
    assert!(!cat(".h5fs/external/unnamed.h5/good").status.success());
    let mount = Mount::new(&source);
    let good = |name: &str| fs::read(mount.at(&format!(".h5fs/external/{name}/good")));
    assert_eq!(good("sub%2Fnested.h5").expect("nested"), b"goodness");
    good("unnamed.h5").expect_err("no link names it");
    good("absent.h5").expect_err("it is not there");
    fs::write(top.join("absent.h5"), linked(&[])).expect("a file");
    eventually(SOON, "it came", || good("absent.h5").is_ok());
    // The replaced source has other links.
    fs::write(top.join("next"), linked(&["unnamed.h5"])).expect("a file");
    fs::rename(top.join("next"), &source).expect("rename");
    eventually(SOON, "the new links", || good("unnamed.h5").is_ok());
    good("other.h5").expect_err("no link names it any more");
}

// ------------------------------------------------------------------ access control lists

/// A source is not shown to all users if the permission bits cannot represent its access control
/// list.
#[test]
fn a_source_whose_list_is_finer_than_its_bits_is_not_shown_to_all() {
    if may_not_test() {
        return;
    }
    for (mode, entry, mounts) in [
        (0o644, "u:1234:---", false),
        (0o640, "u:1234:r--", false),
        (0o640, "g:1234:r--", false),
        (0o644, "u:1234:r--,g::---", false),
        (0o644, "u:1234:r--", true),
        (0o600, "u:1234:---", true),
    ] {
        let (_directory, top) = made(&[("src.h5", &[])]);
        let source = top.join("src.h5");
        permit(&source, mode);
        set_acl(&source, entry);
        let (mount, done) = Mount::attempt(&source, &["--allow-other"]);
        assert_eq!(
            done.status.success(),
            mounts,
            "{mode:o} {entry}: {}",
            done.stderr
        );
        if !mounts {
            let line = done.one_line();
            assert!(
                line.contains("setfacl -b") && line.contains("src.h5"),
                "{line}"
            );
            // Only the owner has access, so the list does not matter.
            Mount::with(&source, &["-o", "allow_other,umask=077"]);
            Mount::new(&source);
            continue;
        }
        permit(mount.path.parent().expect("parent"), 0o755);
        for user in [STRANGER, NAMED] {
            let own = cat_as(user, &source);
            let shown = cat_as(user, &mount.at("good"));
            assert_eq!(
                own.status.success(),
                shown.status.success(),
                "{user} {entry}"
            );
        }
    }
}

/// A list that is set after mounting applies within the second in which every change is noticed.
#[test]
fn a_list_that_is_set_while_the_source_is_mounted() {
    if may_not_test() {
        return;
    }
    let (_directory, top) = made(&[("src.h5", &[])]);
    let source = top.join("src.h5");
    let mount = open_to_all(&source, &[]);
    assert_eq!(
        cat_as(NAMED, &mount.at("good")).success().stdout,
        b"goodness"
    );
    set_acl(&source, "u:1234:---");
    eventually(MOUNT_LIMIT, "denied", || {
        !cat_as(NAMED, &mount.at("good")).status.success()
    });
    assert_eq!(
        fs::read(mount.at("good")).expect("its owner's"),
        b"goodness"
    );
}

/// For a file with a list, `ls -l` shows the list's mask in place of the group's bits.
#[test]
fn lists_of_neighbours_and_their_directories_count() {
    if may_not_test() {
        return;
    }
    let files: &[(&str, &[&str])] = &[
        ("src.h5", &["other.h5", "sub/in.h5"]),
        ("other.h5", &[]),
        ("sub/in.h5", &[]),
    ];
    for entry in ["u:65534:---", "u:1234:r-x,g::---"] {
        for (place, names) in [
            ("raw", &["x"][..]),
            ("other.h5", &["other.h5/good"]),
            ("sub", &["sub_in.h5/good"]),
        ] {
            let (_directory, top) = made(files);
            chown(top.join(place), None, Some(STRANGER)).expect("chown");
            set_acl(&top.join(place), entry);
            let mount = open_to_all(&top.join("src.h5"), &[]);
            for name in names {
                denied(&cat_as(STRANGER, &mount.at(name)));
            }
            assert_eq!(
                cat_as(STRANGER, &mount.at("good")).success().stdout,
                b"goodness"
            );
        }
    }
    // Every user named by this list may read.
    let (_directory, top) = made(files);
    for place in ["raw", "other.h5"] {
        set_acl(&top.join(place), "u:65534:r");
    }
    let mount = open_to_all(&top.join("src.h5"), &[]);
    assert_eq!(
        cat_as(STRANGER, &mount.at("x")).success().stdout,
        b"elements"
    );
    assert_eq!(
        cat_as(STRANGER, &mount.at("other.h5/good"))
            .success()
            .stdout,
        b"goodness"
    );
}

// ------------------------------------------------------------------ files that cannot be opened

/// A link to an existing file leads to the file, which reports why it cannot be opened. Only a link
/// to a missing file dangles.
#[test]
fn a_link_to_what_cannot_be_opened_does_not_dangle() {
    if may_not_test() {
        return;
    }
    let (_directory, top) = made(&[
        ("src.h5", &["closed.h5", "absent.h5", "no/in.h5"]),
        ("closed.h5", &[]),
        ("no/in.h5", &[]),
    ]);
    chown(top.join("src.h5"), Some(STRANGER), Some(STRANGER)).expect("chown");
    for path in ["closed.h5", "no"] {
        permit(&top.join(path), 0);
    }
    let mount = Mount::new(&top.join("src.h5"));
    let text = |name: &str| fs::read_link(mount.at(name)).expect(name);
    assert_eq!(text("closed.h5"), Path::new(".h5fs/external/closed.h5"));
    assert_eq!(text("no_in.h5"), Path::new(".h5fs/external/no%2Fin.h5"));
    assert_eq!(text("absent.h5"), Path::new("absent.h5:/"));
    for name in ["closed.h5", "no_in.h5"] {
        let error = fs::metadata(mount.at(name)).expect_err(name);
        assert_eq!(
            error.raw_os_error(),
            Some(nix::errno::Errno::EIO as i32),
            "{name}: {error}"
        );
    }
    permit(&top.join("closed.h5"), 0o644);
    assert_eq!(
        fs::read(mount.at("closed.h5/good")).expect("opened"),
        b"goodness"
    );
}
