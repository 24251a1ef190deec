//! Joined files, compared with the numbers that were written into them. `tests/readers` compares
//! such files with xarray.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use crate::harness::{LONG, MOUNT_LIMIT, Mount, h5fs, run, script};
use crate::web::Web;

#[track_caller]
fn joined(command: &str, paths: &[&Path]) {
    run(script("joined.py").arg(command).args(paths), LONG).success();
}

#[test]
fn files_are_one_by_their_coordinates() {
    let directory = tempfile::tempdir().expect("temporary directory");
    joined("write", &[directory.path()]);
    let mount = Mount::with(directory.path(), &[]);
    joined("check", &[directory.path(), &mount.path]);
}

#[test]
fn what_files_do_not_agree_on_is_not_shown() {
    let directory = tempfile::tempdir().expect("temporary directory");
    joined("traps", &[directory.path()]);
    let mount = Mount::with(directory.path(), &[]);
    joined("fell", &[directory.path(), &mount.path]);
}

#[test]
fn what_is_read_is_of_one_state() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mount = Mount::with(directory.path(), &[]);
    joined("changes", &[directory.path(), &mount.path]);
}

#[test]
fn files_in_which_nothing_is_right() {
    let directory = tempfile::tempdir().expect("temporary directory");
    joined("hostile", &[directory.path()]);
    let mount = Mount::with(directory.path(), &[]);
    joined("inert", &[directory.path(), &mount.path]);
}

/// Mounts a directory with a separate cache directory.
#[track_caller]
fn with_cache(source: &Path, cache: &Path) -> Mount {
    let mount = Mount::prepare();
    let mut command = h5fs([source, &mount.path]);
    run(command.env("XDG_CACHE_HOME", cache), MOUNT_LIMIT).success();
    mount
}

/// Returns the single cache file for scan results.
#[track_caller]
fn kept(cache: &Path) -> PathBuf {
    let files = fs::read_dir(cache.join("h5fs/joined")).expect("the directory");
    let files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.into_iter().next().expect("a file")
}

/// Returns the directory of twelve files whose last write is more than a minute ago, so that their
/// timestamps will reliably show a later change.
fn months() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/text/months")
}

/// Returns the joined bytes of all months, and the number of files that were read for them.
fn year(cache: &Path) -> (Vec<u8>, u64) {
    let mount = with_cache(&months(), cache);
    let shown = fs::read(mount.at(".h5fs/joined/temperature")).expect("the year");
    let of_month = |month| mount.at(&format!("2025-{month:02}.nc/temperature"));
    let parts = (1..=12).map(|month| fs::read(of_month(month)).expect("a month"));
    assert!(shown == parts.collect::<Vec<_>>().concat());
    let read = mount.status("joined files read");
    mount.unmount();
    mount.must_be_gone(MOUNT_LIMIT);
    (shown, read)
}

#[test]
fn the_next_mount_knows_what_was_read_of_files() {
    let cache = tempfile::tempdir().expect("temporary directory");
    let cache = cache.path();
    let (shown, read) = year(cache);
    assert_eq!(read, 12);
    assert_eq!(year(cache), (shown.clone(), 0));
    // Damaged cache entries are read again from the files, and then cached again.
    let file = kept(cache);
    let mut bytes = fs::read(&file).expect("what is kept");
    for at in (100..bytes.len()).step_by(1000) {
        bytes[at] ^= 1;
    }
    fs::write(&file, bytes).expect("damaged");
    let again = |is_read: bool| {
        let (found, read) = year(cache);
        assert!(found == shown && (read > 0) == is_read, "{read} files");
    };
    again(true);
    again(false);
    let bytes = fs::read(&file).expect("what is kept");
    fs::write(&file, &bytes[..bytes.len() / 3]).expect("cut off");
    again(true);
    again(false);
}

/// The timestamp of a file does not show a change of a memory page that has not been written to
/// disk.
#[test]
fn what_was_written_just_now_is_read_again() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let cache = tempfile::tempdir().expect("temporary directory");
    joined("days", &[directory.path()]);
    for value in [0_u8, 77] {
        let mount = with_cache(directory.path(), cache.path());
        let mut expected = numbers(0..20);
        if value > 0 {
            expected[7 * 16..8 * 16].copy_from_slice(&f32::from(value).to_le_bytes().repeat(4));
        }
        let shown = fs::read(mount.at(".h5fs/joined/a")).expect("the numbers");
        assert!(shown == expected);
        assert_eq!(mount.status("joined files read"), 20);
        mount.unmount();
        mount.must_be_gone(MOUNT_LIMIT);
        let mut python = script("joined.py");
        python
            .arg("replace")
            .arg(directory.path())
            .args(["7", "77"]);
        run(&mut python, LONG).success();
    }
}

#[test]
fn what_stands_in_other_files_is_read_again() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let cache = tempfile::tempdir().expect("temporary directory");
    for first in [3.0_f64, 5.0] {
        let mut python = script("joined.py");
        python.arg("outside").arg(directory.path());
        run(python.arg(first.to_string()), LONG).success();
        let mount = with_cache(directory.path(), cache.path());
        let days = fs::read(mount.at(".h5fs/joined/time")).expect("the days");
        assert_eq!(days, [first, first + 1.0].map(f64::to_le_bytes).concat());
        assert_eq!(mount.status("joined files read"), 2);
        mount.unmount();
        mount.must_be_gone(MOUNT_LIMIT);
    }
}

#[test]
fn a_mount_that_joins_nothing_leaves_nothing_in_the_cache() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let cache = tempfile::tempdir().expect("temporary directory");
    joined("days", &[directory.path()]);
    let mount = with_cache(directory.path(), cache.path());
    fs::read(mount.at("day_0.nc/a")).expect("the numbers");
    let file = kept(cache.path());
    mount.unmount();
    mount.must_be_gone(MOUNT_LIMIT);
    assert!(!file.exists());
    let list = |source: &Path, path: &str| {
        let mut command = h5fs(["ls".as_ref(), source, path.as_ref()]);
        run(command.env("XDG_CACHE_HOME", cache.path()), MOUNT_LIMIT).success();
    };
    list(directory.path(), "day_0.nc");
    assert!(!file.exists());
    // Results for recently written files are not cached. The empty cache file is deleted by the
    // next use of the cache.
    list(directory.path(), ".h5fs/joined");
    let head = file.metadata().expect("the file").len();
    list(&months(), ".h5fs/joined");
    assert!(!file.exists());
    let file = kept(cache.path());
    assert!(file.metadata().expect("what is kept").len() > head);
}

/// Returns the expected values of the twenty files of days: the number of each day, four times.
fn numbers(days: std::ops::Range<u8>) -> Vec<u8> {
    let numbers = days.flat_map(|day| [f32::from(day); 4]);
    numbers.flat_map(f32::to_le_bytes).collect()
}

#[test]
fn files_of_the_web_are_one_with_few_requests() {
    let directory = tempfile::tempdir().expect("temporary directory");
    joined("days", &[directory.path()]);
    for kind in [&[][..], &["webdav"]] {
        are_one_from_the_web(&Web::by("web_server.py", directory.path(), kind));
    }
}

#[track_caller]
fn are_one_from_the_web(web: &Web) {
    let mount = Mount::new(Path::new(&web.url("/")));
    let shown = fs::read(mount.at(".h5fs/joined/a"));
    assert_eq!(shown.expect("the numbers"), numbers(0..20));
    // One request for the index page, and for each file one lookup and one request for its bytes.
    assert!(mount.status("network requests") <= 2 * 20 + 2);
}

#[test]
fn a_file_that_cannot_be_read_now_is_an_error_of_all() {
    let directory = tempfile::tempdir().expect("temporary directory");
    joined("days", &[directory.path()]);
    let web = Web::by("web_server.py", directory.path(), &["failing"]);
    let mount = Mount::with(Path::new(&web.url("/")), &["-o", "timeout=1"]);
    let error = fs::metadata(mount.at(".h5fs/joined/a")).expect_err("no file less");
    assert_eq!(error.raw_os_error(), Some(Errno::EIO as i32), "{error}");
    let shown = fs::read(mount.at(".h5fs/joined[day_1?.nc]/a"));
    assert_eq!(shown.expect("the numbers"), numbers(10..20));
}

#[test]
fn files_of_the_web_that_are_known_are_not_asked_for() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let cache = tempfile::tempdir().expect("temporary directory");
    joined("days", &[directory.path()]);
    let web = Web::by("web_server.py", directory.path(), &["webdav"]);
    let listed = |requests: u64| {
        let mount = with_cache(Path::new(&web.url("/")), cache.path());
        assert!(mount.at(".h5fs/joined/a").metadata().expect("it").len() == 20 * 16);
        assert!(mount.status("network requests") <= requests);
    };
    listed(2 * 20 + 2);
    // Only the listing is requested.
    listed(2);
}

#[test]
fn others_are_shown_no_file_that_they_may_not_read() {
    let directory = tempfile::tempdir().expect("temporary directory");
    joined("days", &[directory.path()]);
    let set = |path: &Path, mode| {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("its mode");
    };
    set(directory.path(), 0o755);
    set(&directory.path().join("day_19.nc"), 0o640);
    let mount = Mount::with(directory.path(), &["-o", "allow_other"]);
    let shown = fs::read(mount.at(".h5fs/joined/a"));
    assert_eq!(shown.expect("the numbers"), numbers(0..19));
    let errors = fs::read_to_string(mount.at(".h5fs/errors")).expect("the errors");
    assert!(errors.contains("day_19.nc: left out"), "{errors}");
}
