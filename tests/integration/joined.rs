//! Many files as one, compared with the numbers that were written into them. What xarray makes of
//! such files is compared by `tests/readers`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::harness::{LONG, Mount, run, script};
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

/// What is shown of the twenty files of days: their numbers, four times each.
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
    // The index page, and of each file a look, and one request for all of it.
    assert!(mount.status("network requests") <= 2 * 20 + 2);
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
