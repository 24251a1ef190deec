//! Messages for users about unexpected situations.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{
    Finished, MOUNT_LIMIT, Mount, SOON, eventually, fixture, h5fs, is_root, python, run, tree, wait,
};
use crate::inspect::damaged;

/// Mounts with these options and this environment variable. Returns the mount and the text on
/// standard error.
fn mounted(options: &[&str], variable: Option<(&str, &str)>) -> (Mount, String) {
    let mount = Mount::prepare();
    let mut command = h5fs(options);
    command.envs(variable);
    command.arg(fixture("tiny.latest.h5")).arg(&mount.path);
    let finished = run(&mut command, MOUNT_LIMIT).success();
    (mount, finished.stderr)
}

fn mount_tiny(mount: &Mount) -> Finished {
    let mut command = h5fs([&fixture("tiny.latest.h5"), &mount.path]);
    run(&mut command, MOUNT_LIMIT)
}

fn refused(source: &Path) -> Finished {
    Mount::attempt(source, &[]).1
}

/// Kills the processes of a mount, so that it stays mounted without a server.
pub(crate) fn kill_both(mount: &Mount) {
    let processes = mount.processes();
    for name in ["supervisor", "worker"] {
        let process = processes.iter().find(|process| process.is_called(name));
        let pid = process.expect("a process").pid;
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("kill");
    }
    eventually(SOON, "the mount is dead", || {
        let error = fs::metadata(&mount.path).err();
        error.is_some_and(|error| error.raw_os_error() == Some(nix::libc::ENOTCONN))
    });
}

#[test]
fn a_dead_mount_of_the_same_user_is_cleared() {
    let mount = Mount::new(&fixture("tiny.latest.h5"));
    kill_both(&mount);
    let again = mount_tiny(&mount).success();
    assert_eq!(again.stderr, "");
    assert!(mount.at("contiguous").is_file());
    let table = fs::read_to_string("/proc/self/mountinfo").expect("the mount table");
    let point = format!(" {} ", mount.path.display());
    assert_eq!(table.matches(&point).count(), 1);
}

#[test]
fn a_source_in_a_dead_mount_is_told_from_a_missing_one() {
    if !is_root() {
        crate::harness::skip("only root can try it");
        return;
    }
    let mount = Mount::new(&fixture("tiny.latest.h5"));
    kill_both(&mount);
    let point = mount.path.display().to_string();
    let within = refused(&mount.at("group"));
    let line = within.one_line().to_owned();
    assert!(
        line.contains("it is in a mount whose program has ended")
            && line.contains(&format!("`umount {point}`")),
        "{line}"
    );
    // The suggested command works.
    run(Command::new("umount").arg(&mount.path), SOON).success();
    mount_tiny(&mount).success();
}

#[test]
fn warnings_come_with_a_mount_that_works() {
    let level = "h5fs: warning: H5FS_LOG: `bogus` is not a level; the levels are off, error, warn, \
                 info, debug, trace\n";
    assert_eq!(mounted(&[], Some(("H5FS_LOG", "bogus"))).1, level);
    assert_eq!(mounted(&[], Some(("H5FS_LOG", "error"))).1, "");
    let write = "h5fs: warning: -o rw: the mount is always read-only\n";
    assert_eq!(mounted(&["-o", "rw"], None).1, write);
    // mount(8) calls the helper this way for a line of fstab.
    assert_eq!(mounted(&["-o", "rw,nosuid,nodev,noexec"], None).1, "");

    let mount = Mount::prepare();
    fs::write(mount.at("hidden"), "").expect("write");
    let finished = mount_tiny(&mount).success();
    let point = mount.path.display();
    let full = format!("h5fs: warning: {point}: is not empty; the mount hides its content\n");
    assert_eq!(finished.stderr, full);
}

/// `Mounting` is a line that fuser logs when it mounts.
#[test]
fn without_a_syslog_early_lines_go_to_standard_error() {
    if !is_root() {
        crate::harness::skip("only root can try it");
        return;
    }
    let mount = Mount::prepare();
    let mut inside = Command::new("unshare");
    inside.args(["--mount", "--propagation", "unchanged", "sh", "-c"]);
    inside.arg(
        "if [ -e /dev/log ]; then mount --make-rprivate / && mount --bind /dev/null /dev/log; fi
        \"$0\" \"$1\" \"$2\" && cat \"$2\"/.h5fs/errors && umount \"$2\"",
    );
    inside.env("H5FS_LOG", "info");
    inside.arg(crate::harness::H5FS);
    inside.arg(fixture("tiny.latest.h5")).arg(&mount.path);
    let finished = run(&mut inside, MOUNT_LIMIT).success();
    let wanted = format!("h5fs: info: Mounting {}\n", mount.path.display());
    assert_eq!(finished.stderr, wanted);
}

#[test]
fn words_of_other_fuse_filesystems_change_nothing() {
    let words = "default_permissions,kernel_cache,big_writes,auto_cache,max_read=131072,\
                 attr_timeout=1,nonempty,use_ino";
    let (mount, said) = mounted(&["-o", words], None);
    assert_eq!(said, "");
    assert!(mount.at("group").is_dir());
    let (_mount, said) = mounted(&["-o", "uid=root,gid=root"], None);
    assert_eq!(said, "");
}

#[test]
fn a_word_that_is_no_command_and_no_file() {
    let told = run(&mut h5fs(["info", "a.nc"]), MOUNT_LIMIT);
    assert_eq!(
        told.one_line(),
        "h5fs: info: no such command or file (see `h5fs --help`)"
    );
    assert_eq!(told.status.code(), Some(2));
    let missing = run(&mut h5fs(["./info", "a.nc"]), MOUNT_LIMIT);
    assert!(!missing.one_line().contains("command"), "{missing:?}");
}

/// Each file is written by a program for its format, or starts as its specification requires.
#[test]
fn files_of_other_formats_are_named() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path();
    let write = "import gzip, sqlite3, tarfile, zipfile, numpy\n\
                 sqlite3.connect('a.db').execute('CREATE TABLE t (c)')\n\
                 with gzip.open('a.gz', 'w') as f: f.write(b'text')\n\
                 with zipfile.ZipFile('a.zip', 'w') as f: f.writestr('name', 'text')\n\
                 with tarfile.open('a.tar', 'w') as f: f.add('a.gz')\n\
                 numpy.save('a.npy', numpy.arange(3))";
    let mut program = Command::new(python());
    run(program.args(["-c", write]).current_dir(top), SOON).success();
    let begins: [(&str, &[u8]); 11] = [
        (
            "a.h5",
            b"\n<!DOCTYPE html>\n<html><body>404</body></html>\n",
        ),
        (
            "lfs.h5",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2\nsize 12345\n",
        ),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"),
        ("a.tif", b"II*\0\x08\0\0\0"),
        ("a.json", b"{\n  \"a\": 1\n}\n"),
        (
            "error.nc",
            b"<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code></Error>",
        ),
        ("a.nc", b"CDF\x01\0\0\0\0\0\0\0\x0a"),
        ("a.mat", b"MATLAB 5.0 MAT-file, Platform: GLNXA64"),
        ("a.fits", b"SIMPLE  =                    T"),
        ("a.parquet", b"PAR1\x15\x04"),
        ("a.grib", b"GRIB\0\0\0\x02"),
    ];
    for (name, bytes) in begins {
        fs::write(top.join(name), bytes).expect("write");
    }
    for (name, wanted) in [
        ("a.h5", "an HTML page"),
        ("lfs.h5", "a pointer of Git LFS: git lfs pull"),
        ("a.json", "a JSON document: jq"),
        ("error.nc", "an XML document"),
        ("a.png", "a PNG picture"),
        ("a.tif", "a TIFF picture: tifffile"),
        ("a.db", "an SQLite database: sqlite3"),
        ("a.gz", "a gzip file: gunzip reads it"),
        ("a.zip", "a zip archive: unzip"),
        ("a.npy", "a NumPy file: numpy.load reads it"),
        ("a.tar", "a tar archive: tar"),
        ("a.nc", "a netCDF-3 file: ncdump"),
        ("a.mat", "a MATLAB 5 file: scipy.io.loadmat"),
        ("a.fits", "a FITS file: astropy.io.fits"),
        ("a.parquet", "a Parquet file: pyarrow"),
        ("a.grib", "a GRIB file: wgrib2"),
    ] {
        let wanted = format!("neither an HDF5 nor an ASDF file, but {wanted}");
        for told in [
            refused(&top.join(name)),
            run(h5fs(["ls"]).arg(top.join(name)), SOON),
        ] {
            assert!(told.one_line().contains(&wanted), "{told:?}");
        }
    }
    let store = top.join("store");
    fs::create_dir(&store).expect("a directory");
    fs::write(store.join("zarr.json"), "{}").expect("write");
    let (_mount, finished) = Mount::attempt(&store, &[]);
    assert!(finished.success().stderr.contains("is a Zarr store"));
    for command in ["ls", "ndl", "check"] {
        let told = run(h5fs([command]).arg(&store), SOON).success();
        assert!(told.stderr.contains("is a Zarr store"), "{told:?}");
        let quiet = run(h5fs([command, "-q"]).arg(&store), SOON).success();
        assert!(!quiet.stderr.contains("Zarr"), "{quiet:?}");
    }
}

/// Each failed read is listed with its time and reason, and counted.
#[test]
fn errors_are_listed_and_counted() {
    let (_kept, source) = damaged(b"OHDR", 1, 30);
    let mount = Mount::new(&source);
    assert_eq!(mount.status("errors"), 0);
    assert_eq!(fs::read(mount.at(".h5fs/errors")).expect("none"), b"");
    let faulty: Vec<_> = tree(&mount.path)
        .into_iter()
        .filter(|path| fs::File::open(path).is_err())
        .collect();
    let [faulty] = &faulty[..] else {
        panic!("not one: {faulty:?}");
    };
    let errors = fs::read_to_string(mount.at(".h5fs/errors")).expect("errors");
    let lines: Vec<_> = errors.lines().collect();
    let object = faulty.strip_prefix(&mount.path).expect("within").display();
    assert_eq!(lines.len(), 1, "{errors}");
    assert!(lines[0].contains(&format!("Z /{object}: ")), "{errors}");
    assert!(lines[0].contains("(corrupt, at byte "), "{errors}");
    assert_eq!(mount.status("errors"), 1);
}

/// All mounts are listed with their state, including dead ones.
#[test]
fn mounts_are_listed() {
    if !is_root() {
        crate::harness::skip("only root can try it");
        return;
    }
    let (good, dead) = (
        Mount::new(&fixture("tiny.latest.h5")),
        Mount::new(&fixture("tiny.latest.h5")),
    );
    let status = |point: &Path, option: &str| {
        let mut command = h5fs(["status", option]);
        run(command.arg(point), SOON)
    };
    let json = status(&good.path, "--json").success().text();
    let point = good.path.display().to_string();
    assert!(
        json.starts_with(&format!("{{\"mount_point\": \"{point}\", ")),
        "{json}"
    );
    assert!(
        json.contains("\"state\": \"serving\"") && json.contains("\"errors\": 0"),
        "{json}"
    );
    assert!(json.contains("\"memory_bytes\": "), "{json}");
    let pid = good.worker_and_supervisor(&fixture("tiny.latest.h5")).0.pid;
    assert!(json.contains(&format!("\"pid\": {pid}")), "{json}");

    kill_both(&dead);
    let told = status(&dead.path, "--json");
    assert!(
        !told.status.success() && told.text().contains("\"state\": \"dead\""),
        "{told:?}"
    );
    let listed = run(&mut h5fs(["list"]), SOON);
    assert_eq!(listed.status.code(), Some(1));
    let text = listed.text();
    for (mount, state) in [(&good, "serving"), (&dead, "dead")] {
        let point = mount.path.display().to_string();
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{point} ")));
        let line = line.unwrap_or_else(|| panic!("{point} is not in {text}"));
        assert!(
            line.contains("tiny.latest.h5") && line.contains(state),
            "{line}"
        );
    }
    run(Command::new("umount").arg(&dead.path), SOON).success();
    let none = status(&dead.path, "--json");
    assert!(
        none.one_line().ends_with(": not a mount of h5fs"),
        "{none:?}"
    );
}

/// If the source disappears, the mount reports this, and its own text files stay readable.
#[test]
fn a_mount_whose_source_is_gone_says_so() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (file, many) = (
        directory.path().join("a b.h5"),
        directory.path().join("many"),
    );
    fs::copy(fixture("tiny.latest.h5"), &file).expect("copy");
    fs::create_dir(&many).expect("directory");
    let mounts = [Mount::new(&file), Mount::new(&many)];
    let plain = Mount::with(&file, &["-o", "noviews"]);
    let state = |mount: &Mount| {
        let told = run(h5fs(["status"]).arg(&mount.path), SOON);
        let text = told.text();
        let state = text.lines().find_map(|line| line.strip_prefix("state: "));
        (told.status.code(), state.expect("a state").to_owned())
    };
    for mount in &mounts {
        assert_eq!(state(mount), (Some(0), "serving".to_owned()));
    }
    fs::rename(&file, directory.path().join("kept")).expect("rename");
    fs::remove_dir(&many).expect("removal");
    for mount in &mounts {
        let is_stale = || {
            let (code, state) = state(mount);
            code == Some(1) && state.starts_with("stale: the source is gone (ENOENT since 20")
        };
        eventually(SOON, "it is stale", is_stale);
        for name in ["status", "errors", "metrics"] {
            fs::read(mount.at(".h5fs").join(name)).expect("a text of the mount");
        }
        let listed = run(&mut h5fs(["list"]), SOON);
        assert_eq!(listed.status.code(), Some(1));
        let point = format!("{} ", mount.path.display());
        let text = listed.text();
        let line = text.lines().find(|line| line.starts_with(&point));
        assert!(line.is_some_and(|line| line.contains(" stale ")), "{text}");
    }
    eventually(SOON, "a mount without views is stale", || {
        state(&plain) == (Some(1), "stale".to_owned())
    });
    let metrics = run(h5fs(["metrics"]).arg(&plain.path), SOON).success();
    assert!(
        metrics
            .text()
            .lines()
            .any(|line| line.starts_with("h5fs_up{") && line.ends_with("} 0"))
    );
    // Requests for the source fail.
    let gone = |result: std::io::Result<()>| {
        result.is_err_and(|error| error.raw_os_error() == Some(Errno::ESTALE as i32))
    };
    assert!(gone(fs::read_dir(&mounts[0].path).map(drop)));
    assert!(gone(fs::metadata(mounts[0].at("x")).map(drop)));
    fs::rename(directory.path().join("kept"), &file).expect("rename");
    eventually(SOON, "it serves again", || state(&mounts[0]).0 == Some(0));
    assert_eq!(state(&plain), (Some(0), "serving".to_owned()));
    fs::read_dir(&mounts[0].path).expect("its names");
}

/// Users other than root, and all users of kernels before 6.17, cannot find the process otherwise.
#[test]
fn the_status_names_the_processes() {
    let mount = Mount::new(&fixture("tiny.latest.h5"));
    let text = fs::read_to_string(mount.at(".h5fs/status")).expect("the status");
    let fact = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value.expect("a line").to_owned()
    };
    let program = |pid: &str| fs::read(format!("/proc/{pid}/cmdline")).expect("a process");
    assert!(program(&fact("pid: ")).starts_with(b"h5fs: worker\0"));
    assert!(program(&fact("supervisor pid: ")).starts_with(b"h5fs: supervisor\0"));
    assert!(fact("memory bytes: ").parse::<u64>().expect("a number") > 1 << 20);
    let own = format!("pid: {}", fact("pid: "));
    let told = run(h5fs(["status"]).arg(&mount.path), SOON).success();
    assert!(
        told.text().lines().any(|line| line == own),
        "{}",
        told.text()
    );
}

#[test]
fn options_that_take_rights_away_are_set() {
    let options = |words: &str| {
        let mount = Mount::with(&fixture("tiny.latest.h5"), &["-o", words]);
        let table = fs::read_to_string("/proc/self/mountinfo").expect("the mount table");
        let point = format!(" {} ", mount.path.display());
        let line = table.lines().find(|line| line.contains(&point));
        let fields: Vec<_> = line.expect("its line").split(' ').collect();
        fields[5].to_owned()
    };
    assert!(options("noexec").split(',').any(|word| word == "noexec"));
    assert!(!options("noexec,exec").contains("noexec"));
    if is_root() {
        let both = options("noexec,nosymfollow");
        assert!(
            both.contains("noexec") && both.contains("nosymfollow"),
            "{both}"
        );
    }
}

/// Two files may contain objects of the same name, and several mounts may share a log.
#[test]
fn each_line_of_the_log_names_the_mount_and_the_file() {
    let (_kept, source) = damaged(b"OHDR", 1, 30);
    let directory = tempfile::tempdir().expect("temporary directory");
    let (top, log) = (directory.path().join("top"), directory.path().join("log"));
    fs::create_dir(&top).expect("a directory");
    for name in ["a.h5", "b.h5"] {
        fs::copy(&source, top.join(name)).expect("copy");
    }
    let options = format!("log_file={}", log.display());
    let mount = Mount::with(&top, &["-o", &options]);
    let faulty: Vec<_> = tree(&mount.path)
        .into_iter()
        .filter(|path| fs::File::open(path).is_err())
        .collect();
    assert_eq!(faulty.len(), 2, "{faulty:?}");
    let lines = fs::read_to_string(&log).expect("log");
    assert_eq!(lines.lines().count(), 2, "{lines}");
    for (path, line) in faulty.iter().zip(lines.lines()) {
        let object = path.strip_prefix(&mount.path).expect("in the mount");
        let object = object.display().to_string().replacen('/', ":/", 1);
        let wanted = format!("]: {}: warning: {object}: ", mount.path.display());
        assert!(line.contains(&wanted), "{wanted} in {line}");
    }
}

/// A filesystem that looks full would alarm monitoring systems.
#[test]
fn a_mount_is_not_full() {
    let mount = Mount::new(&fixture("tiny.latest.h5"));
    let mut df = Command::new("df");
    df.args(["--output=size,pcent", "-B1"]).arg(&mount.path);
    let said = run(&mut df, SOON).success().text();
    let size = fs::metadata(fixture("tiny.latest.h5")).expect("stat").len();
    let words: Vec<_> = said
        .lines()
        .last()
        .expect("a line")
        .split_whitespace()
        .collect();
    assert_eq!(words[1], "0%", "{said}");
    // In blocks of 512 bytes.
    assert!(
        words[0]
            .parse::<u64>()
            .is_ok_and(|bytes| bytes.abs_diff(size) < 512),
        "{said}"
    );
}

/// Tests Type=notify of systemd.service(5).
#[test]
fn a_service_manager_hears_when_the_mount_answers() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("bind");
    socket.set_read_timeout(Some(MOUNT_LIMIT)).expect("timeout");
    let mount = Mount::prepare();
    let mut command = h5fs(["--foreground"]);
    command.env("NOTIFY_SOCKET", &path);
    command.arg(fixture("tiny.latest.h5")).arg(&mount.path);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("start");
    let mut heard = [0; 64];
    let length = socket.recv(&mut heard).expect("a word");
    assert_eq!(&heard[..length], b"READY=1\n");
    assert!(mount.at("group").is_dir());
    mount.unmount_when_free();
    wait(&mut child, MOUNT_LIMIT).expect("ends when unmounted");
}
