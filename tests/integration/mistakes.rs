//! Messages for likely mistakes on the command line.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::harness::{Finished, MOUNT_LIMIT, Mount, fixture, h5fs, run};
use crate::objects::server::Server;

fn tell(words: &[&str], top: &Path) -> Finished {
    run(h5fs(words).current_dir(top), MOUNT_LIMIT)
}

/// Creates a working directory that contains `a.h5`.
fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path().canonicalize().expect("path");
    fs::copy(fixture("tiny.latest.h5"), top.join("a.h5")).expect("copy");
    (directory, top)
}

#[test]
fn words_of_other_programs_are_answered() {
    let (_kept, top) = place();
    for (words, wanted) in [
        (
            &["mount", "a.h5", "mnt"][..],
            "mount: type `h5fs SOURCE MOUNTPOINT` to mount",
        ),
        (&["mount"], "mount: type `h5fs SOURCE MOUNTPOINT` to mount"),
        (
            &["umount", "mnt"],
            "umount: type `fusermount3 -u MOUNTPOINT` to unmount",
        ),
        (
            &["unmount"],
            "unmount: type `fusermount3 -u MOUNTPOINT` to unmount",
        ),
        (&["help", "nonsense"], "nonsense: no such command or file"),
        (&["info"], "info: no such command or file"),
        (&["info", "a.h5", "more"], "info: no such command or file"),
    ] {
        let told = tell(words, &top);
        assert!(
            told.one_line().starts_with(&format!("h5fs: {wanted}")),
            "{told:?}"
        );
        assert_eq!(told.status.code(), Some(2), "{words:?}");
    }
    let said = |words: &[&str]| tell(words, &top).success().text();
    assert_eq!(said(&["help"]), said(&["--help"]));
    assert_eq!(said(&["version"]), said(&["--version"]));
    for command in [
        "ls", "cat", "ndl", "check", "prefetch", "cache", "view", "serve", "status", "list",
    ] {
        assert_eq!(said(&["help", command]), said(&[command, "--help"]));
    }
}

/// A file with the name of such a word is a source like any other file.
#[test]
fn a_file_that_is_called_as_such_a_word_is_mounted() {
    let (_kept, top) = place();
    for word in ["mount", "help", "version"] {
        fs::copy(top.join("a.h5"), top.join(word)).expect("copy");
        let mount = Mount::prepare();
        let mut command = h5fs([word.as_ref(), mount.path.as_os_str()]);
        run(command.current_dir(&top), MOUNT_LIMIT).success();
        assert!(mount.at("contiguous").is_file());
    }
}

#[test]
fn the_option_that_was_meant_is_told() {
    let (_kept, top) = place();
    for (words, wanted) in [
        (&["ls", "--recursiv", "a.h5"][..], "'--recursive'"),
        (&["a.h5", "mnt", "--foregroud"], "'--foreground'"),
        (&["check", "--dat", "a.h5"], "'--data'"),
    ] {
        let told = tell(words, &top);
        assert!(
            told.one_line().contains(&format!("did you mean {wanted}?")),
            "{told:?}"
        );
        assert_eq!(told.status.code(), Some(2));
    }
}

#[test]
fn other_schemes_are_no_files() {
    let (_kept, top) = place();
    for source in [
        "gcs://b/k",
        "ftp://joe:sesame@h/a.h5",
        "http:/x",
        "s3:b/k",
        "file:///a.h5",
    ] {
        for words in [&["ls", source][..], &["check", source], &[source, "."]] {
            let told = tell(words, &top);
            let line = told.one_line();
            assert!(
                line.contains(
                    "s3://, gs://, az://, hf://, http://, https://, pelican:// or osdf://"
                ),
                "{line}"
            );
            assert!(!line.contains("sesame"), "{line}");
            assert_eq!(told.status.code(), Some(2), "{words:?}");
        }
    }
    fs::create_dir(top.join("gcs:")).expect("a directory");
    fs::copy(top.join("a.h5"), top.join("gcs:/a.h5")).expect("copy");
    tell(&["ls", "gcs://a.h5"], &top).success();
}

#[test]
fn what_is_no_file_is_called_so() {
    let (_kept, top) = place();
    mkfifo(&top.join("fifo"), Mode::S_IRWXU).expect("mkfifo");
    let _socket = UnixListener::bind(top.join("socket")).expect("bind");
    for source in ["fifo", "socket", "/dev/null"] {
        for words in [&["ls", source][..], &["check", source], &[source, "."]] {
            let told = tell(words, &top);
            assert_eq!(
                told.one_line(),
                format!("h5fs: {source}: not a regular file")
            );
        }
    }
}

#[test]
fn a_mount_point_that_is_missing_can_be_made() {
    let (_kept, top) = place();
    for (point, option) in [("mnt", ""), ("new/mnt", " -p")] {
        let told = tell(&["a.h5", point], &top);
        let wanted = format!("h5fs: {point}: no such directory; `mkdir{option} {point}` makes it");
        assert_eq!(told.one_line(), wanted);
    }
}

#[test]
fn labels_need_a_kernel_that_has_them() {
    let known = fs::read_to_string("/proc/filesystems").expect("filesystems");
    if known.contains("selinuxfs") {
        crate::harness::skip("this kernel has SELinux");
        return;
    }
    for name in ["context", "fscontext", "defcontext", "rootcontext"] {
        let option = format!("{name}=system_u:object_r:usr_t:s0");
        let (mount, told) = Mount::attempt(&fixture("tiny.latest.h5"), &["-o", &option]);
        let line = told.one_line();
        let wanted = format!(": -o {name}=: this kernel has no SELinux");
        assert!(line.ends_with(&wanted), "{line}");
        assert!(!mount.is_up());
    }
}

/// The warning appears once, under the name with which the source was given.
#[test]
fn a_file_that_is_cut_off_is_told_once() {
    let (_kept, top) = place();
    let content = fs::read(top.join("a.h5")).expect("read");
    fs::write(top.join("cut.h5"), &content[..content.len() - 1]).expect("write");
    std::os::unix::fs::symlink("cut.h5", top.join("link.h5")).expect("a link");
    for source in ["cut.h5", "./cut.h5", "link.h5"] {
        let mount = Mount::prepare();
        let mut command = h5fs([source.as_ref(), mount.path.as_os_str()]);
        let told = run(command.current_dir(&top), MOUNT_LIMIT).success();
        let line = told.stderr.trim_end();
        let wanted = format!("h5fs: warning: {source}: the file is truncated");
        assert!(
            line.starts_with(&wanted) && !line.contains('\n'),
            "{told:?}"
        );
    }
    let several = tell(&["ls", "cut.h5", "a.h5"], &top);
    assert_eq!(
        several.stderr.matches("the file is truncated").count(),
        1,
        "{several:?}"
    );
}

/// Missing credentials files, and profiles that no file contains.
#[test]
fn credentials_that_are_missing_are_named() {
    let (_kept, top) = place();
    let config = top.join(".aws/config");
    fs::create_dir(top.join(".aws")).expect("a directory");
    fs::write(&config, "[default]\n[profile lab]\nregion = eu-north-1\n").expect("write");
    fs::write(top.join("keys"), "[default]\n").expect("write");
    let credentials = top.join(".aws/credentials");
    let profile = format!(
        "no profile `none` in {}, {} (No such file or directory)",
        config.display(),
        credentials.display()
    );
    let server = Server::start();
    let endpoint = server.url("");
    for (options, wanted) in [
        (
            &["--credentials", "/nope"][..],
            "/nope: No such file or directory",
        ),
        (
            &["--credentials", "keys", "--profile", "none"],
            "no profile `none` in keys",
        ),
        (&["--profile", "none"], &profile),
    ] {
        for words in [&["ls", "s3://data/a.h5"][..], &["s3://data/a.h5", "mnt"]] {
            let mut command = h5fs(words);
            command.args(options).args(["--endpoint", &endpoint]);
            fs::create_dir_all(top.join("mnt")).expect("a directory");
            command.current_dir(&top).env("HOME", &top);
            for variable in [
                "AWS_PROFILE",
                "AWS_CONFIG_FILE",
                "AWS_SHARED_CREDENTIALS_FILE",
            ] {
                command.env_remove(variable);
            }
            let told = run(&mut command, MOUNT_LIMIT);
            assert_eq!(told.one_line(), format!("h5fs: s3://data/a.h5: {wanted}"));
        }
    }
}

/// A message must not end with an error number or with words that add no information.
#[test]
fn no_message_ends_in_a_number_or_in_words_that_say_nothing() {
    let (_kept, top) = place();
    // No process listens there once the socket is closed.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let refused = format!("http://127.0.0.1:{port}/a.h5");
    let server = Server::start();
    server.put("/data/a.h5", fs::read(top.join("a.h5")).expect("read"));
    server.faults(|to| to.status = Some(500));
    let failing = server.url("/data/a.h5");
    for words in [
        &["ls", &refused, "--timeout", "1"][..],
        &["ls", &failing, "--timeout", "1"],
        &["check", &failing, "--timeout", "1"],
        &["ls", "/root/../dev/null/x"],
        &["a.h5", ".", "--log-file", "none/log"],
        &["ls", ""],
    ] {
        let told = tell(words, &top);
        let line = told.one_line();
        assert!(!line.contains("os error"), "{line}");
        assert!(!line.ends_with("Input/output error"), "{line}");
    }
    let log = tell(&["a.h5", ".", "--log-file", "none/log"], &top);
    assert_eq!(log.one_line(), "h5fs: none/log: No such file or directory");
}
