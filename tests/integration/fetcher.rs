//! The process with the network: its keys, its secrets, its end.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::harness::{MOUNT_LIMIT, Mount, Process, SOON, fixture, h5fs, run, tree};
use crate::objects::server::Server;
use crate::objects::sigv4::Keys;

const SECRET: &str = "0123456789abcdefSECRETfedcba9876543210";

/// A server with one of the fixtures at `/data/NAME`.
fn server_of(name: &str) -> Server {
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

/// Whether a text is in one of the files of a directory.
fn is_beneath(directory: &Path, text: &str) -> bool {
    tree(directory).iter().any(|path| {
        let content = fs::read(path).unwrap_or_default();
        let name = path.display().to_string();
        name.contains(text)
            || content
                .windows(text.len())
                .any(|part| part == text.as_bytes())
    })
}

#[test]
fn secrets_are_nowhere_to_be_seen() {
    let server = server_of("groups.latest.h5");
    let directory = tempfile::tempdir().expect("directory");
    let (cache, log) = (directory.path().join("cache"), directory.path().join("log"));
    let mount = Mount::prepare();
    let source = server.url(&format!("/data/groups.latest.h5?token={SECRET}"));
    let source = source.replace("http://", &format!("http://joe:{SECRET}@"));
    let mut command = h5fs([source.as_str()]);
    command
        .arg(&mount.path)
        .arg("--disk-cache")
        .arg(&cache)
        .arg("--log-file")
        .arg(&log);
    command
        .env("H5FS_LOG", "trace")
        .env("AWS_SECRET_ACCESS_KEY", SECRET);
    run(&mut command, MOUNT_LIMIT).success();
    for path in tree(&mount.path) {
        // Directories and links cannot be read, and need not be.
        let _ = fs::read(path);
    }
    let seen = server.seen();
    assert!(
        seen.iter().all(|one| one.path.contains(SECRET)),
        "the server got it"
    );
    let status = fs::read_to_string(mount.at(".h5fs/status")).expect("status");
    assert!(!status.contains(SECRET));
    let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
    assert!(!mounts.contains(SECRET));
    for process in mount.processes() {
        let of = |what: &str| {
            let text = fs::read(format!("/proc/{}/{what}", process.pid)).unwrap_or_default();
            String::from_utf8_lossy(&text).into_owned()
        };
        assert!(!of("cmdline").contains(SECRET), "{}", of("cmdline"));
        assert!(!process.is_called("worker") || !of("environ").contains(SECRET));
        let limits = of("limits");
        let cores = limits
            .lines()
            .find(|line| line.starts_with("Max core file size"));
        let is_off = cores.is_none_or(|line| line.split_whitespace().any(|word| word == "0"));
        assert!(process.is_called("supervisor") || is_off, "{cores:?}");
    }
    mount.unmount();
    mount.must_be_gone(SOON);
    assert!(log.exists() && cache.exists());
    assert!(!is_beneath(directory.path(), SECRET));
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

#[test]
fn a_mount_ends_while_its_server_hangs() {
    let server = server_of("groups.latest.h5");
    let mount = Mount::new(Path::new(&server.url("/data/groups.latest.h5")));
    server.put("/data/groups.latest.h5", vec![0; 5000]);
    server.faults(|to| to.hang = 100_000);
    let readers: Vec<_> = (0..20)
        .map(|_| {
            let mut command = Command::new("find");
            command
                .arg(&mount.path)
                .args(["-type", "f", "-exec", "cat", "{}", "+"]);
            command
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null());
            command.spawn().expect("a reader")
        })
        .collect();
    let began = Instant::now();
    called(&mount, "supervisor").signal(Signal::SIGTERM);
    mount.must_be_gone(SOON);
    let took = began.elapsed();
    for mut reader in readers {
        let _ = reader.wait();
    }
    assert!(took < Duration::from_secs(4), "{took:?}");
}
