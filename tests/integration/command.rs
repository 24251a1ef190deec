//! Tests the command line as a user sees it: when it returns, what it prints, and the commands
//! without a mount.

use std::fs;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc::O_NONBLOCK;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use crate::harness::{
    MOUNT_LIMIT, Mount, SOON, eventually, fixture, h5fs, is_mounted, is_root, mount_line, python,
    run, wait,
};

/// Checks that a mount fails with one line that names the file.
#[track_caller]
fn refused(source: &Path) -> String {
    let (mount, finished) = Mount::attempt(source, &[]);
    let line = finished.one_line().to_owned();
    let name = source.file_name().expect("a name").to_str().expect("text");
    assert!(line.contains(name), "{line:?} does not name {name}");
    assert!(!mount.is_up(), "refused, but mounted");
    mount.must_be_gone(SOON);
    line
}

#[test]
fn returns_when_the_mount_answers_and_ends_with_it() {
    let mount = Mount::new(&fixture("tiny.latest.h5"));
    assert_eq!(
        fs::read(mount.at("contiguous")).expect("a dataset").len(),
        400
    );
    assert_eq!(mount.processes().len(), 2, "{:?}", mount.processes());
    mount.unmount();
    mount.must_be_gone(SOON);
}

#[test]
fn is_always_read_only_without_devices_and_set_uid() {
    for options in [&[][..], &["-o", "rw,dev,suid,exec,atime"]] {
        let mount = Mount::with(&fixture("tiny.latest.h5"), options);
        let line = mount_line(&mount.path);
        let flags = line.split(' ').nth(5).expect("mount options");
        for flag in ["ro", "nosuid", "nodev"] {
            assert!(flags.split(',').any(|f| f == flag), "{line}");
        }
        assert!(line.contains("h5fs"), "{line}");
    }
}

#[test]
fn not_hdf5() {
    let directory = tempfile::tempdir().expect("temporary directory");
    for (name, content) in [
        ("text.h5", &b"this is no array file\n"[..]),
        ("zeros.h5", &[0; 100_000]),
        ("short.h5", b"\x89HDF"),
    ] {
        let path = directory.path().join(name);
        fs::write(&path, content).expect("write");
        refused(&path);
    }
}

#[test]
fn empty_and_missing() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let empty = directory.path().join("empty.h5");
    fs::write(&empty, b"").expect("write");
    refused(&empty);
    let folder = directory.path().join("folder.h5");
    fs::create_dir(&folder).expect("directory");
    let mount = Mount::new(&folder);
    assert_eq!(fs::read_dir(&mount.path).expect("listing").count(), 0);
    let line = refused(&directory.path().join("missing.h5"));
    assert!(line.to_lowercase().contains("no such file"), "{line}");
}

#[test]
fn special_files_do_not_hang_it() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let pipe = directory.path().join("pipe.h5");
    mkfifo(&pipe, Mode::S_IRWXU).expect("mkfifo");
    refused(&pipe);
    let (_, finished) = Mount::attempt(Path::new("/dev/zero"), &[]);
    finished.one_line();
}

#[test]
fn truncated_superblock() {
    let directory = tempfile::tempdir().expect("temporary directory");
    for name in ["tiny.earliest.h5", "tiny.latest.h5"] {
        let path = directory.path().join(format!("cut-{name}"));
        fs::write(&path, &fs::read(fixture(name)).expect("fixture")[..20]).expect("write");
        refused(&path);
    }
}

#[test]
fn names_on_the_terminal_are_harmless() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("red\x1b[31m\nline.h5");
    fs::write(&path, b"nothing").expect("write");
    let (_, finished) = Mount::attempt(&path, &[]);
    assert!(!finished.one_line().contains('\x1b'));
}

#[test]
fn unreadable_for_the_caller() {
    if !is_root() {
        crate::harness::skip("only root can become somebody else");
        return;
    }
    let directory = tempfile::tempdir().expect("temporary directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
    let secret = directory.path().join("secret.h5");
    fs::copy(fixture("tiny.latest.h5"), &secret).expect("copy");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("chmod");
    let point = directory.path().join("mnt");
    fs::create_dir(&point).expect("mount point");
    fs::set_permissions(&point, fs::Permissions::from_mode(0o777)).expect("chmod");
    // the build directory may not be accessible to others, so they use a copy of the program
    let program = directory.path().join("h5fs");
    fs::copy(crate::harness::H5FS, &program).expect("copy");
    let mut command = Command::new(program);
    command.arg(&secret).arg(&point).uid(65534).gid(65534);
    let finished = run(&mut command, MOUNT_LIMIT);
    let line = finished.one_line().to_lowercase();
    assert!(
        line.contains("permission denied") && line.contains("secret.h5"),
        "{line}"
    );
    assert!(!is_mounted(&point));
}

#[test]
fn busy_and_impossible_mount_points() {
    let source = fixture("tiny.latest.h5");
    let mount = Mount::new(&source);
    let again = run(h5fs([&source, &mount.path]).current_dir("/"), MOUNT_LIMIT);
    let line = again.one_line();
    assert!(line.contains(mount.path.to_str().expect("text")), "{line}");
    assert!(
        fs::metadata(mount.at("contiguous")).is_ok(),
        "the first mount lives"
    );
    assert_eq!(mount.processes().len(), 2);
    let missing = mount.path.with_file_name("missing");
    run(&mut h5fs([&source, &missing]), MOUNT_LIMIT).one_line();
    let file = mount.path.with_file_name("file");
    fs::write(&file, b"").expect("write");
    run(&mut h5fs([&source, &file]), MOUNT_LIMIT).one_line();
}

#[test]
fn relative_paths() {
    let directory = tempfile::tempdir().expect("temporary directory");
    fs::copy(fixture("tiny.latest.h5"), directory.path().join("a.h5")).expect("copy");
    let mount = Mount::prepare();
    let mut command = h5fs(["./a.h5".as_ref(), mount.path.as_os_str()]);
    run(command.current_dir(directory.path()), MOUNT_LIMIT).success();
    assert!(mount.at("chunked").is_file());
}

#[test]
fn a_pipe_to_the_caller_is_not_held_open() {
    let mount = Mount::prepare();
    let mut command = Command::new("sh");
    command.args(["-c", r#"out=$("$0" "$1" "$2" 2>&1); echo "said [$out]""#]);
    command
        .arg(crate::harness::H5FS)
        .arg(fixture("tiny.latest.h5"))
        .arg(&mount.path);
    assert_eq!(run(&mut command, MOUNT_LIMIT).success().text(), "said []\n");
    assert!(mount.is_up());
}

#[test]
fn foreground_stays_until_unmounted() {
    let mount = Mount::prepare();
    let mut command = h5fs(["-f"]);
    command.arg(fixture("tiny.latest.h5")).arg(&mount.path);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("start");
    eventually(MOUNT_LIMIT, "mounted", || mount.is_up());
    eventually(MOUNT_LIMIT, "served", || mount.at("contiguous").is_file());
    assert!(
        child.try_wait().expect("wait").is_none(),
        "still in the foreground"
    );
    mount.unmount_when_free();
    let status = wait(&mut child, SOON).expect("ends when unmounted");
    assert!(status.success(), "{status}");
    mount.must_be_gone(SOON);
}

/// The supervisor may learn of the mount only after the user has unmounted it.
#[test]
fn a_foreground_mount_that_is_taken_away_at_once_ends_well() {
    let mount = Mount::prepare();
    let mut command = h5fs(["-f"]);
    command.arg(fixture("tiny.latest.h5")).arg(&mount.path);
    let mut child = command.stdin(Stdio::null()).spawn().expect("start");
    let supervisor = Pid::from_raw(child.id().try_into().expect("a process"));
    let children = format!("/proc/{supervisor}/task/{supervisor}/children");
    eventually(MOUNT_LIMIT, "a worker", || {
        fs::read_to_string(&children).is_ok_and(|worker| !worker.trim().is_empty())
    });
    kill(supervisor, Signal::SIGSTOP).expect("stop");
    eventually(MOUNT_LIMIT, "served", || mount.at("contiguous").is_file());
    mount.unmount_when_free();
    kill(supervisor, Signal::SIGCONT).expect("go on");
    let status = wait(&mut child, SOON).expect("ends when unmounted");
    assert!(status.success(), "{status}");
    mount.must_be_gone(SOON);
}

#[test]
fn words_of_mount_are_accepted_and_ignored() {
    let words = "rw,ro,dev,nodev,suid,nosuid,exec,noexec,atime,noatime,relatime,auto,noauto,user,users,\
                 owner,group,nofail,_netdev,defaults,auto_unmount,comment=hello,x-systemd.automount,x-gvfs-show";
    let mount = Mount::with(&fixture("tiny.latest.h5"), &["-o", words]);
    assert!(mount.at("contiguous").is_file());
}

#[test]
fn unknown_words_and_flags_are_errors() {
    for options in [
        &["-o", "ro,colour=red"][..],
        &["-o", "cache_size=many"],
        &["-o", "external=maybe"],
    ] {
        let (mount, finished) = Mount::attempt(&fixture("tiny.latest.h5"), options);
        finished.one_line();
        assert!(!mount.is_up());
    }
    let (_, finished) = Mount::attempt(&fixture("tiny.latest.h5"), &["--colour=red"]);
    assert!(!finished.status.success() && !finished.stderr.is_empty());
}

#[test]
fn options_of_its_own() {
    use std::os::unix::fs::MetadataExt;
    let log = tempfile::NamedTempFile::new().expect("temporary file");
    let log_file = format!("log_file={}", log.path().display());
    let words = format!("cache_size=32M,threads=3,uid=123,gid=456,umask=077,{log_file}");
    let mount = Mount::with(&fixture("tiny.latest.h5"), &["-o", &words]);
    let file = fs::metadata(mount.at("contiguous")).expect("stat");
    assert_eq!((file.uid(), file.gid(), file.mode() & 0o077), (123, 456, 0));
    let mount = Mount::with(
        &fixture("tiny.latest.h5"),
        &[
            "--cache-size=1G",
            "--threads",
            "1",
            "--uid=7",
            "--allow-other",
            "--direct-io",
        ],
    );
    assert_eq!(fs::metadata(mount.at("group")).expect("stat").uid(), 7);
    assert!(
        mount_line(&mount.path).contains("allow_other"),
        "{}",
        mount_line(&mount.path)
    );
    assert_eq!(fs::read(mount.at("contiguous")).expect("read").len(), 400);
}

/// The log is a named pipe. Without a reader the mount is refused. A reader that does not read
/// blocks no request.
#[test]
fn a_log_that_is_a_named_pipe() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let pipe = directory.path().join("log");
    mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR).expect("mkfifo");
    let option = format!("--log-file={}", pipe.display());
    let (mount, refused) = Mount::attempt(&fixture("tiny.latest.h5"), &[&option]);
    assert!(refused.one_line().contains("no program reads this pipe"));
    assert!(!mount.is_up());

    let mut options = fs::OpenOptions::new();
    let _reader = options.read(true).custom_flags(O_NONBLOCK).open(&pipe);
    let mount = Mount::with(&fixture("tiny.latest.h5"), &[&option]);
    assert_eq!(fs::read(mount.at("contiguous")).expect("read").len(), 400);
}

#[test]
fn a_file_marked_as_open_for_writing_is_forced() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("open.h5");
    // The writer exits without closing the file.
    let writer = "import h5py, os, sys; f = h5py.File(sys.argv[1], 'w', libver='latest'); \
                  f['x'] = list(b'abc'); f.flush(); os._exit(0)";
    let mut command = Command::new(python());
    command.args(["-c", writer]).arg(&source);
    run(&mut command, MOUNT_LIMIT).success();
    assert!(refused(&source).contains("h5clear"));
    let mount = Mount::with(&source, &["-o", "force"]);
    assert_eq!(fs::read(mount.at("x")).expect("read").len(), 3 * 8);
}

/// The mount table may be inconsistent while it is read.
#[test]
fn mounts_while_others_mount_and_unmount() {
    if !is_root() {
        crate::harness::skip("only root may mount a tmpfs");
        return;
    }
    let other = tempfile::tempdir().expect("temporary directory");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let mut mount = Command::new("mount");
                mount.args(["-t", "tmpfs", "none"]).arg(other.path());
                run(&mut mount, MOUNT_LIMIT).success();
                run(Command::new("umount").arg(other.path()), MOUNT_LIMIT).success();
            }
        });
        let mounted = std::panic::catch_unwind(|| {
            for _ in 0..20 {
                let mount = Mount::new(&fixture("tiny.latest.h5"));
                assert!(mount.at("group").is_dir());
            }
        });
        done.store(true, Ordering::Relaxed);
        mounted.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn others_are_let_in_with_allow_other_alone() {
    if !is_root() {
        crate::harness::skip("only root can become somebody else");
        return;
    }
    for (options, allowed) in [(&["--allow-other"][..], true), (&[], false)] {
        let mount = Mount::with(&fixture("tiny.latest.h5"), options);
        let directory = mount.path.parent().expect("parent");
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).expect("chmod");
        let mut command = Command::new("cat");
        let done = run(
            command.arg(mount.at("contiguous")).uid(65534).gid(65534),
            MOUNT_LIMIT,
        );
        assert_eq!(done.status.success(), allowed, "{}", done.stderr);
    }
}

/// A raw file is shown only to users that may read it.
#[test]
fn others_see_no_neighbour_that_is_private() {
    if !is_root() {
        crate::harness::skip("only root can become somebody else");
        return;
    }
    let mode = fs::Permissions::from_mode;
    for (options, directory_mode, raw_mode, allowed) in [
        (&["--allow-other"][..], 0o755, 0o644, true),
        (&["--allow-other"], 0o755, 0o600, false),
        (&["--allow-other"], 0o755, 0o640, false),
        (&["--allow-other"], 0o700, 0o644, false),
        (&[], 0o700, 0o600, true),
    ] {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (source, sub) = (directory.path().join("a.h5"), directory.path().join("sub"));
        let raw = sub.join("raw");
        fs::create_dir(&sub).expect("directory");
        fs::write(&source, crate::circles::in_raw_file("sub/raw")).expect("source");
        fs::write(&raw, [7; 64]).expect("raw file");
        for (path, bits) in [
            (directory.path(), 0o755),
            (&source, 0o644),
            (&sub, directory_mode),
            (&raw, raw_mode),
        ] {
            fs::set_permissions(path, mode(bits)).expect("chmod");
            std::os::unix::fs::chown(path, Some(65534), Some(65534)).expect("chown");
        }
        let mount = Mount::with(&source, options);
        let parent = mount.path.parent().expect("parent");
        fs::set_permissions(parent, mode(0o755)).expect("chmod");
        let user = if options.is_empty() { 0 } else { 1000 };
        let read = |name: &str| {
            let mut command = Command::new("cat");
            run(command.arg(mount.at(name)).uid(user).gid(user), MOUNT_LIMIT)
        };
        assert_eq!(read("good").success().stdout, b"goodness");
        let done = read("x");
        assert_eq!(
            done.status.success(),
            allowed,
            "{raw_mode:o}: {}",
            done.stderr
        );
    }
}

#[test]
fn inspection_without_a_mount() {
    let source = fixture("tiny.latest.h5");
    let mount = Mount::new(&source);
    let listed = run(h5fs(["ls"]).arg(&source), MOUNT_LIMIT).success().text();
    let mut names: Vec<&str> = listed.lines().collect();
    names.sort_unstable();
    let mut wanted: Vec<String> = fs::read_dir(&mount.path)
        .expect("list")
        .map(|e| e.expect("entry").file_name().into_string().expect("text"))
        .collect();
    wanted.sort();
    assert_eq!(names, wanted);
    let deep = run(h5fs(["ls", "-lR"]).arg(&source), MOUNT_LIMIT)
        .success()
        .text();
    assert!(deep.contains("n19") && deep.contains("400"), "{deep}");
    let inside = run(h5fs(["ls"]).arg(&source).arg("group"), MOUNT_LIMIT)
        .success()
        .text();
    assert_eq!(inside.lines().count(), 21, "{inside}");
    for path in [
        "contiguous",
        "/chunked",
        "group/n7",
        "group/soft",
        "second_name/n3",
        "text",
    ] {
        let cat = run(h5fs(["cat"]).arg(&source).arg(path), MOUNT_LIMIT)
            .success()
            .stdout;
        let inside = mount.at(path.trim_start_matches('/'));
        assert_eq!(cat, fs::read(inside).expect("read"), "{path}");
    }
}

#[test]
fn inspection_says_what_is_wrong() {
    let source = fixture("tiny.latest.h5");
    for arguments in [
        &["cat", "missing"][..],
        &["cat", "group"],
        &["ls", "missing"],
    ] {
        let mut command = h5fs([
            arguments[0].as_ref(),
            source.as_os_str(),
            arguments[1].as_ref(),
        ]);
        let finished = run(&mut command, MOUNT_LIMIT);
        let line = finished.one_line();
        assert!(line.contains(arguments[1]), "{line}");
    }
    run(&mut h5fs(["ls", "/nowhere.h5"]), MOUNT_LIMIT).one_line();
    // a closed output pipe is not an error
    let mut command = Command::new("sh");
    command.args([
        "-c",
        r#""$0" cat "$1" contiguous_large | head -c 1 | od -c"#,
    ]);
    command
        .arg(crate::harness::H5FS)
        .arg(fixture("layouts.latest.h5"));
    let finished = run(&mut command, MOUNT_LIMIT).success();
    assert_eq!(finished.stderr, "");
}

#[test]
fn help_version_manual_and_completions() {
    let said = |arguments: &[&str]| run(&mut h5fs(arguments), MOUNT_LIMIT).success().text();
    let version = said(&["--version"]);
    assert_eq!(version, format!("h5fs {}\n", env!("CARGO_PKG_VERSION")));
    let help = said(&["--help"]);
    for word in [
        "MOUNTPOINT",
        "--foreground",
        "--allow-other",
        "--cache-size",
        "ls",
        "cat",
    ] {
        assert!(help.contains(word), "{word} is not in {help}");
    }
    let manual = said(&["--man"]);
    assert!(
        manual.contains(".TH") && manual.contains("SYNOPSIS"),
        "{manual}"
    );
    for shell in ["bash", "zsh", "fish"] {
        assert!(said(&["--completions", shell]).contains("h5fs"), "{shell}");
    }
    for width in [50, 72] {
        let help = run(
            h5fs(["--help"]).env("COLUMNS", width.to_string()),
            MOUNT_LIMIT,
        );
        let help = help.success().text();
        let prose = help
            .lines()
            .take_while(|line| !line.starts_with("Examples:"));
        let widest = prose.map(|line| line.chars().count()).max();
        assert!(
            widest.is_some_and(|widest| widest <= width && widest > width - 8),
            "{help}"
        );
    }
    let nothing = run(&mut h5fs::<_, &str>([]), MOUNT_LIMIT);
    assert!(!nothing.status.success() && !nothing.stderr.is_empty());
}
