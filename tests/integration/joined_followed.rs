//! Joined files whose directory changes. Every read returns the state in which the files were
//! joined.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::stat::Mode;

use crate::harness::{LONG, MOUNT_LIMIT, Mount, SOON, eventually, h5fs, run, script};
use crate::objects::server::Server;
use crate::prefix::put_all;
use crate::web::Web;

/// Writes twenty files with one day each.
fn days(directory: &Path) {
    run(script("joined.py").arg("days").arg(directory), LONG).success();
}

/// Writes the file of a day again, with its four numbers packed by `factor`.
fn pack(directory: &Path, day: u8, factor: &str) {
    let mut python = script("joined.py");
    python.arg("pack").arg(directory);
    run(python.arg(day.to_string()).arg(factor), LONG).success();
}

/// Returns the first of the four numbers of each day.
fn numbers(bytes: &[u8]) -> Vec<f32> {
    let each = bytes.chunks_exact(16);
    each.map(|own| f32::from_le_bytes([own[0], own[1], own[2], own[3]]))
        .collect()
}

#[track_caller]
fn error_of<T>(read: std::io::Result<T>) -> Option<Errno> {
    let number = read.err().and_then(|error| error.raw_os_error());
    number.map(Errno::from_raw)
}

/// A different file with the name of a member is not read as that member.
#[test]
fn a_member_that_has_become_something_else_is_stale() {
    type Replace = fn(&Path);
    let others: [(&str, Replace); 4] = [
        ("a directory", |path| {
            fs::create_dir(path).expect("a directory");
        }),
        ("a FIFO", |path| {
            nix::unistd::mkfifo(path, Mode::S_IRUSR).expect("a FIFO");
        }),
        ("a link", |path| {
            std::os::unix::fs::symlink("day_6.nc", path).expect("a link");
        }),
        ("nothing", |_| {}),
    ];
    for (kind, replace) in others {
        let directory = tempfile::tempdir().expect("temporary directory");
        days(directory.path());
        let mount = Mount::with(directory.path(), &["-o", "direct_io"]);
        let shown = File::open(mount.at(".h5fs/joined/a")).expect("the numbers");
        let path = directory.path().join("day_7.nc");
        fs::remove_file(&path).expect("a file less");
        replace(&path);
        let read = shown.read_exact_at(&mut [0; 16], 7 * 16);
        assert_eq!(error_of(read), Some(Errno::ESTALE), "{kind}");
        drop(shown);
    }
}

/// A program that replaces a file first writes the new file under another name.
#[test]
fn a_temporary_file_beside_its_original_is_not_joined() {
    let directory = tempfile::tempdir().expect("temporary directory");
    days(directory.path());
    let at = |name: &str| directory.path().join(name);
    for name in ["day_3.nc.tmp", "day_5.nc.x8k2", "upload.part"] {
        fs::copy(at("day_3.nc"), at(name)).expect("a copy");
    }
    let mount = Mount::with(directory.path(), &[]);
    let shown = fs::read(mount.at(".h5fs/joined/a")).expect("the numbers");
    assert_eq!(
        numbers(&shown),
        (0_u8..20).map(f32::from).collect::<Vec<_>>()
    );
    let errors = fs::read_to_string(mount.at(".h5fs/errors")).expect("the errors");
    for name in ["day_3.nc.tmp", "day_5.nc.x8k2", "upload.part"] {
        assert!(errors.contains(&format!("{name}: left out")), "{errors}");
    }
    // A pattern that matches such files includes them.
    let chosen = fs::read(mount.at(".h5fs/joined[*.part]/a")).expect("the numbers");
    assert_eq!(numbers(&chosen), [3.0]);
}

/// A directory with readers is listed once a second, and new files are shown.
#[test]
fn what_comes_is_seen_by_the_next_lookup_after_a_second() {
    let directory = tempfile::tempdir().expect("temporary directory");
    days(directory.path());
    let first = directory.path().join("day_0.nc");
    let aside = tempfile::tempdir().expect("temporary directory");
    fs::copy(&first, aside.path().join("day_0.nc")).expect("a copy");
    fs::remove_file(&first).expect("a file less");
    let mount = Mount::with(directory.path(), &[]);
    let count = || fs::metadata(mount.at(".h5fs/joined/a")).map_or(0, |it| it.len() / 16);
    assert_eq!(count(), 19);
    fs::copy(aside.path().join("day_0.nc"), &first).expect("a copy");
    // The first lookup after the listing has expired waits for a new listing.
    std::thread::sleep(std::time::Duration::from_millis(2200));
    assert_eq!(count(), 20);
}

/// Mounts a URL with a separate cache directory.
fn with_cache(url: &str, cache: &Path, options: &[&str]) -> Mount {
    let mount = Mount::prepare();
    let mut command = h5fs([Path::new(url), &mount.path]);
    command.args(options);
    run(command.env("XDG_CACHE_HOME", cache), MOUNT_LIMIT).success();
    mount
}

/// Headers that an earlier mount cached belong to the file as it was listed, rather than to the
/// file that the server has now. `mount` mounts the server's ten days, and `replace` replaces day 7
/// by the same values with another packing.
#[track_caller]
fn is_read_in_the_state_in_which_it_was_joined(mount: impl Fn() -> Mount, replace: impl Fn()) {
    let read =
        |mount: &Mount| fs::read_to_string(mount.at(".h5fs/joined[day_?.nc]/.h5fs/cf/a.csv"));
    let first = mount();
    let before = read(&first).expect("the numbers");
    assert!(before.contains("7.0"), "{before}");
    first.unmount();
    first.must_be_gone(MOUNT_LIMIT);
    let mount = mount();
    let raw = mount.at(".h5fs/joined[day_?.nc]/a");
    assert!(raw.metadata().expect("it").len() > 0);
    let shown = File::open(&raw).expect("the numbers");
    replace();
    // Ten days of four numbers of eight bytes.
    let mut bytes = [0; 320];
    assert_eq!(
        error_of(shown.read_exact_at(&mut bytes, 0)),
        Some(Errno::ESTALE)
    );
    drop(shown);
    // The files are joined again at once, rather than when the listing expires.
    let began = std::time::Instant::now();
    eventually(SOON, "it is joined anew", || read(&mount).is_ok());
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    assert_eq!(read(&mount).expect("the numbers"), before);
}

/// Writes the files of twenty days. Those of days 6 to 8 are packed by 0.5.
fn packed_days(directory: &Path) {
    days(directory);
    for day in [6, 7, 8] {
        pack(directory, day, "0.5");
    }
}

#[test]
fn a_member_of_the_web_is_read_in_the_state_in_which_it_was_joined() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let cache = tempfile::tempdir().expect("temporary directory");
    packed_days(directory.path());
    let web = Web::by("web_server.py", directory.path(), &["webdav"]);
    is_read_in_the_state_in_which_it_was_joined(
        || with_cache(&web.url("/"), cache.path(), &[]),
        || pack(directory.path(), 7, "0.25"),
    );
}

#[test]
fn a_member_of_a_bucket_is_read_in_the_state_in_which_it_was_joined() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let cache = tempfile::tempdir().expect("temporary directory");
    packed_days(directory.path());
    let server = Server::start();
    put_all(&server, directory.path(), "days/");
    let endpoint = server.url("");
    let options = ["--endpoint", &endpoint, "--anonymous"];
    is_read_in_the_state_in_which_it_was_joined(
        || with_cache("s3://data/days/", cache.path(), &options),
        || {
            pack(directory.path(), 7, "0.25");
            put_all(&server, directory.path(), "days/");
        },
    );
}

/// A member that the server refuses makes the whole result an error, unless the user permits a
/// partial result.
#[test]
fn what_a_server_refuses_is_an_error_unless_a_part_is_asked_for() {
    let directory = tempfile::tempdir().expect("temporary directory");
    days(directory.path());
    for kind in ["refusing", "login", "failing"] {
        let web = Web::by("web_server.py", directory.path(), &[kind]);
        let url = web.url("/");
        let mount = Mount::with(Path::new(&url), &["-o", "timeout=1"]);
        let listed = fs::read_dir(mount.at(".h5fs/joined"));
        let expected = if kind == "failing" {
            Errno::EIO
        } else {
            Errno::EACCES
        };
        assert_eq!(error_of(listed), Some(expected), "{kind}");
        let looked = fs::metadata(mount.at(".h5fs/joined/a"));
        assert_eq!(error_of(looked), Some(expected), "{kind}");
        mount.unmount();
        mount.must_be_gone(MOUNT_LIMIT);
        let done = run(
            &mut h5fs(["ls", "--timeout", "1", &url, ".h5fs/joined"]),
            MOUNT_LIMIT,
        );
        assert!(
            !done.status.success() && done.stderr.contains("day_7.nc"),
            "{}",
            done.stderr
        );
        let mount = Mount::with(Path::new(&url), &["-o", "timeout=1,partial"]);
        let shown = fs::read(mount.at(".h5fs/joined/a")).expect("the numbers");
        let left = if kind == "refusing" { 18 } else { 19 };
        assert_eq!(shown.len(), left * 16, "{kind}");
        let errors = fs::read_to_string(mount.at(".h5fs/errors")).expect("the errors");
        assert!(errors.contains("day_7.nc: left out"), "{errors}");
    }
}

/// A recently written file becomes a file whose last write is more than a minute ago. Ageing is not
/// a change.
pub(crate) fn handles_stay_valid_when_files_are_a_minute_old() {
    let directory = tempfile::tempdir().expect("temporary directory");
    days(directory.path());
    let written = std::time::Instant::now();
    let mount = Mount::with(directory.path(), &["-o", "direct_io"]);
    let shown = File::open(mount.at(".h5fs/joined/a")).expect("the numbers");
    let mut bytes = [0; 16];
    while written.elapsed().as_secs() < 75 {
        for day in [0_u8, 7, 19] {
            let read = shown.read_exact_at(&mut bytes, u64::from(day) * 16);
            read.unwrap_or_else(|error| panic!("after {:?}: {error}", written.elapsed()));
            assert_eq!(numbers(&bytes), [f32::from(day)]);
        }
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
}
