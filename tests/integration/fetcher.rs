//! The fetcher process: its credentials, its cache and its end.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{MOUNT_LIMIT, Mount, Process, SOON, fixture, h5fs, is_root, run, tree, wait};
use crate::objects::server::Server;
use crate::objects::sigv4::Keys;
use crate::remote::array_file;

pub(crate) const SECRET: &str = "0123456789abcdefSECRETfedcba9876543210";

/// Starts a server with one of the fixtures at `/data/NAME`.
pub(crate) fn server_of(name: &str) -> Server {
    let server = Server::start();
    server.put(
        &format!("/data/{name}"),
        fs::read(fixture(name)).expect("fixture"),
    );
    server
}

fn called(mount: &Mount, role: &str) -> Process {
    let mut all = mount.processes().into_iter();
    all.find(|process| process.is_called(role))
        .expect("the process")
}

#[test]
fn s3_is_read_with_the_keys_of_the_environment() {
    let server = server_of("groups.latest.h5");
    let keys = Keys {
        id: "AKIDEXAMPLE".to_owned(),
        secret: SECRET.to_owned(),
        token: String::new(),
        region: "eu-north-1".to_owned(),
    };
    server.faults(|to| to.keys = Some(keys));
    let endpoint = server.url("");
    let ls = |secret: &str| {
        let mut command = h5fs(["ls", "--endpoint", &endpoint, "s3://data/groups.latest.h5"]);
        command
            .env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
            .env("AWS_SECRET_ACCESS_KEY", secret)
            .env("AWS_REGION", "eu-north-1")
            .env_remove("AWS_SESSION_TOKEN");
        run(&mut command, MOUNT_LIMIT)
    };
    let local = run(
        &mut h5fs([Path::new("ls"), &fixture("groups.latest.h5")]),
        MOUNT_LIMIT,
    );
    assert_eq!(ls(SECRET).success().text(), local.success().text());
    let refused = ls("wrong");
    assert!(refused.one_line().contains("403"), "{}", refused.one_line());
}

#[test]
fn no_password_of_an_endpoint_is_printed() {
    let url = format!("http://joe:{SECRET}@127.0.0.1");
    let word = format!("endpoint={url}");
    for source in [
        vec!["ls", "--endpoint", &url, "s3://b/k"],
        vec!["-o", &word, "s3://b/k", "/mnt"],
        vec!["ls", &format!("s3://joe:{SECRET}@b/k")],
        vec!["ls", &format!("http://joe:{SECRET}/@127.0.0.1/k")],
    ] {
        let said = run(&mut h5fs(&source), MOUNT_LIMIT);
        let line = said.one_line();
        assert!(!said.status.success() && !line.contains(SECRET), "{line}");
    }
    let mut command = h5fs(["ls", "s3://b/k"]);
    let said = run(command.env("AWS_ENDPOINT_URL", &url), MOUNT_LIMIT);
    assert!(!said.one_line().contains(SECRET), "{}", said.one_line());
}

/// A cache that cannot be used causes a warning at mounting.
#[test]
fn a_cache_that_cannot_be_used_is_said_at_the_mount() {
    let server = server_of("tiny.latest.h5");
    let directory = tempfile::tempdir().expect("directory");
    let (file, open) = (directory.path().join("file"), directory.path().join("open"));
    fs::write(&file, "a file").expect("a file");
    fs::create_dir_all(open.join("h5fs-1")).expect("directory");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(open.join("h5fs-1"), mode).expect("a mode");
    let url = server.url("/data/tiny.latest.h5");
    for cache in [file.join("cache"), open] {
        let cache = cache.display().to_string();
        let (mount, finished) = Mount::attempt(Path::new(&url), &["--disk-cache", &cache]);
        assert!(finished.status.success(), "{finished:?}");
        let said = finished.stderr.lines().filter(|line| line.contains(&cache));
        let said: Vec<_> = said.collect();
        assert_eq!(said.len(), 1, "{finished:?}");
        assert!(said[0].contains("the disk cache is not used"), "{said:?}");
        assert!(mount.at("grid").exists());
    }
}

#[test]
fn a_mount_ends_with_each_of_its_processes() {
    let server = server_of("groups.latest.h5");
    for role in ["worker", "fetcher"] {
        let mount = Mount::new(Path::new(&server.url("/data/groups.latest.h5")));
        called(&mount, role).signal(Signal::SIGKILL);
        mount.must_be_gone(SOON);
    }
}

/// Without its supervisor, the mount continues until it is unmounted. Then no process remains.
#[test]
fn a_mount_outlives_its_supervisor() {
    let server = Server::start();
    server.put("/data/run.asdf", array_file(b'x', 4 << 20));
    let mount = Mount::new(Path::new(&server.url("/data/run.asdf")));
    called(&mount, "supervisor").signal(Signal::SIGKILL);
    let bytes = fs::read(mount.at("data")).expect("the array");
    assert!(bytes.len() == 4 << 20 && bytes.iter().all(|byte| *byte == b'x'));
    mount.unmount();
    mount.must_be_gone(SOON);
}

/// SIGINT ends a program and a command that wait for a server that does not answer.
#[test]
fn whoever_is_interrupted_waits_no_longer() {
    let server = Server::start();
    // Too large to be transferred completely when it is opened.
    server.put("/data/run.asdf", array_file(b'x', 12 << 20));
    let url = server.url("/data/run.asdf");
    let mount = Mount::new(Path::new(&url));
    server.faults(|to| to.hang = u32::MAX);
    let (mut reader, mut asked) = (Command::new("cat"), h5fs(["cat", &url, "data"]));
    reader.arg(mount.at("data"));
    for command in [&mut reader, &mut asked] {
        let mut child = command.stdout(Stdio::null()).spawn().expect("a child");
        std::thread::sleep(Duration::from_millis(700));
        assert!(child.try_wait().expect("a child").is_none(), "it waits");
        let began = Instant::now();
        let process = Pid::from_raw(child.id().try_into().expect("a number"));
        kill(process, Signal::SIGINT).expect("a signal");
        let ended = wait(&mut child, SOON).expect("it ends");
        assert_eq!(ended.signal(), Some(Signal::SIGINT as i32));
        // A call may take half a second to be interrupted, plus the time that other tests take.
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{:?}",
            began.elapsed()
        );
    }
}

#[test]
fn a_fetcher_that_ends_with_its_worker_is_no_failure() {
    let server = server_of("groups.latest.h5");
    let directory = tempfile::tempdir().expect("directory");
    let log = directory.path().join("log");
    let (url, to_log) = (
        server.url("/data/groups.latest.h5"),
        log.display().to_string(),
    );
    let mounted = || Mount::with(Path::new(&url), &["--log-file", &to_log]);
    for _ in 0..12 {
        let mount = mounted();
        mount.unmount();
        mount.must_be_gone(SOON);
    }
    let gone = "the fetcher has ended";
    let logged = fs::read_to_string(&log).unwrap_or_default();
    assert!(!logged.contains(gone), "{logged}");
    // A fetcher that ends alone is a failure, which the log names.
    let mount = mounted();
    called(&mount, "fetcher").signal(Signal::SIGKILL);
    mount.must_be_gone(SOON);
    let logged = fs::read_to_string(&log).expect("the log");
    assert!(logged.contains(gone), "{logged}");
}

/// Caching stops, and all bytes are right.
#[test]
fn a_cache_on_a_full_disk_is_none() {
    if !is_root() {
        crate::harness::skip("only root can mount a small disk");
        return;
    }
    let directory = tempfile::tempdir().expect("directory");
    let (disk, log) = (directory.path().join("disk"), directory.path().join("log"));
    fs::create_dir(&disk).expect("directory");
    let small = Disk::mounted(&disk, "size=512k");
    let server = Server::start();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    server.put("/data/p/a.txt", bytes.clone());
    let (endpoint, to_log) = (server.url(""), log.display().to_string());
    let cache = disk.join("cache").display().to_string();
    for _ in 0..2 {
        let options = [
            "--anonymous",
            "--endpoint",
            &endpoint,
            "--log-file",
            &to_log,
        ];
        let options = [&options[..], &["--disk-cache", &cache]].concat();
        let mount = Mount::with(Path::new("s3://data/p/"), &options);
        assert!(fs::read(mount.at("a.txt")).expect("a file") == bytes);
        mount.unmount();
        mount.must_be_gone(SOON);
    }
    let logged = fs::read_to_string(&log).expect("the log");
    let lines = logged.lines().filter(|line| line.contains("cache")).count();
    assert!(
        (1..=2).contains(&lines),
        "a line for each mount at most: {logged}"
    );
    drop(small);
}

/// The worker reads a file of the cache, and cannot write to it. The cache may change or be
/// deleted.
#[test]
fn a_file_of_the_cache_is_handed_to_the_worker() {
    const LENGTH: usize = 20 << 20;
    let directory = tempfile::tempdir().expect("directory");
    let cache = directory.path().join("cache");
    let server = Server::start();
    let bytes: Vec<u8> = (0..LENGTH as u32).map(|n| n.to_le_bytes()[1]).collect();
    let mut object = array_file(0, LENGTH);
    let begin = object.len() - LENGTH;
    object[begin..].copy_from_slice(&bytes);
    server.put("/data/run.asdf", object);
    let source = server.url("/data/run.asdf");
    let to_cache = cache.display().to_string();
    // The kernel caches no bytes, so each read reaches the worker.
    let options = ["--direct-io", "--disk-cache", &to_cache];
    let mounted = || Mount::with(Path::new(&source), &options);
    let mount = mounted();
    assert!(fs::read(mount.at("data")).expect("the array") == bytes);
    mount.unmount();
    mount.must_be_gone(SOON);
    server.seen();
    let mount = mounted();
    let read = || fs::read(mount.at("data")).expect("the array");
    assert!(read() == bytes);
    let sent: usize = server.seen().iter().map(|one| one.sent).sum();
    // A check of the object's state requests one byte.
    assert_eq!(sent, 1, "all of it is in the cache");
    let worker = format!("/proc/{}", called(&mount, "worker").pid);
    let open = fs::read_dir(format!("{worker}/fd")).expect("descriptors");
    let numbers: Vec<_> = open
        .map(|entry| entry.expect("a descriptor"))
        .filter(|entry| fs::read_link(entry.path()).is_ok_and(|to| to.starts_with(&cache)))
        .map(|entry| entry.file_name().into_string().expect("a number"))
        .collect();
    assert_eq!(numbers.len(), 1, "one file of 64 MiB");
    let how = fs::read_to_string(format!("{worker}/fdinfo/{}", numbers[0])).expect("flags");
    let flags = how.lines().find(|line| line.starts_with("flags:"));
    assert!(
        flags.is_some_and(|line| line.ends_with('0')),
        "not read only: {how}"
    );
    for path in tree(&cache).iter().filter(|path| path.is_file()) {
        let mut content = fs::read(path).expect("a file of the cache");
        content.iter_mut().step_by(5000).for_each(|byte| *byte ^= 1);
        fs::write(path, content).expect("a file of the cache");
    }
    assert!(read() == bytes, "bits have flipped");
    let sent: usize = server.seen().iter().map(|one| one.sent).sum();
    assert!(
        sent > LENGTH / 2,
        "the pages that are wrong are fetched: {sent}"
    );
    fs::remove_dir_all(&cache).expect("the cache");
    assert!(read() == bytes, "the cache is gone");
    mount.unmount();
    mount.must_be_gone(SOON);
}

/// A filesystem in memory, which is unmounted when the value is dropped.
struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    fn mounted(at: &'a Path, options: &str) -> Self {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at);
        run(&mut mount, MOUNT_LIMIT).success();
        Disk(at)
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let mut unmount = Command::new("umount");
        run(unmount.arg(self.0), MOUNT_LIMIT);
    }
}

/// A thousand readers each wait for a separate object.
#[test]
fn a_mount_ends_while_its_server_hangs() {
    const READERS: usize = 1000;
    let server = Server::start();
    for number in 0..READERS {
        server.put(&format!("/data/p/{number}.h5"), vec![0; 5000]);
    }
    let endpoint = server.url("");
    let options = ["--anonymous", "--endpoint", &endpoint];
    let mount = Mount::with(Path::new("s3://data/p/"), &options);
    server.faults(|to| to.hang = u32::MAX);
    let readers: Vec<_> = (0..READERS)
        .map(|number| {
            let inside = mount.at(&format!("{number}.h5/x"));
            let reader = std::thread::Builder::new().stack_size(64 << 10);
            let reader = reader.spawn(move || fs::metadata(inside).is_err());
            reader.expect("a reader")
        })
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    assert!(readers.iter().all(|reader| !reader.is_finished()));
    let began = Instant::now();
    called(&mount, "supervisor").signal(Signal::SIGTERM);
    mount.must_be_gone(SOON);
    let took = began.elapsed();
    assert!(
        readers
            .into_iter()
            .all(|reader| reader.join().expect("a reader"))
    );
    // Two seconds, and much more while other tests use the processors.
    assert!(took < Duration::from_secs(30), "{took:?}");
    eprintln!("unmounted in {took:?}");
}

/// A credentials file is opened by its path again after a key rotation: another file may have
/// replaced it, or a link may lead to another directory.
#[test]
fn keys_in_another_file_of_the_same_name_are_found() {
    let server = Server::start();
    let directory = tempfile::tempdir().expect("directory");
    let at = |name: &str| directory.path().join(name);
    let write = |name: &str, id: &str| {
        let lines = format!("aws_access_key_id = {id}\naws_secret_access_key = {SECRET}\n");
        fs::write(at(name), format!("[default]\n{lines}")).expect("a file of credentials");
        let keys = Keys {
            id: id.to_owned(),
            secret: SECRET.to_owned(),
            token: String::new(),
            region: "eu-north-1".to_owned(),
        };
        server.faults(|to| to.keys = Some(keys));
    };
    for version in ["v1", "v2"] {
        fs::create_dir(at(version)).expect("directory");
    }
    symlink("v1", at("..data")).expect("link");
    symlink("..data/token", at("linked")).expect("link");
    let replace_file = || {
        write("new", "AKIDNEXT");
        fs::rename(at("new"), at("plain")).expect("rename");
    };
    let replace_directory = || {
        write("v2/token", "AKIDLAST");
        symlink("v2", at("..new")).expect("link");
        fs::rename(at("..new"), at("..data")).expect("rename");
        fs::remove_dir_all(at("v1")).expect("the old directory");
    };
    let ways: [(&str, &str, &dyn Fn()); 2] = [
        ("plain", "plain", &replace_file),
        ("linked", "v1/token", &replace_directory),
    ];
    for name in ["a.txt", "b.txt"] {
        server.put(&format!("/data/{name}"), name.into());
    }
    for (named, stored, replace) in ways {
        write(stored, "AKIDFIRST");
        let (endpoint, key) = (server.url(""), at(named).display().to_string());
        let options = ["--endpoint", &endpoint, "--region", "eu-north-1"];
        let options = [&options[..], &["--credentials", &key]].concat();
        let mount = Mount::with(Path::new("s3://data/"), &options);
        assert_eq!(fs::read(mount.at("a.txt")).expect("an object"), b"a.txt");
        replace();
        let next = fs::read(mount.at("b.txt"));
        assert_eq!(next.expect("an object"), b"b.txt", "{named}");
        let opener = called(&mount, "opener");
        let environ = fs::read(format!("/proc/{}/environ", opener.pid)).expect("variables");
        assert!(!String::from_utf8_lossy(&environ).contains("AWS_"));
        mount.unmount();
        mount.must_be_gone(SOON);
    }
}
