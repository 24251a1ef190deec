//! Pages in `.h5fs/html`, read by an HTML parser and by a browser, and `h5fs view`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::corpus;
use crate::harness::{
    LONG, MOUNT_LIMIT, Mount, SOON, eventually, h5fs, is_mounted, python, run, script, wait,
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Runs one of the script's commands, which fails with a traceback on any difference.
#[track_caller]
fn pages(command: &str, paths: &[&Path]) {
    run(script("pages.py").arg(command).args(paths), LONG).success();
}

/// Opens pages in a browser. Skips the test without a browser.
#[track_caller]
fn browsed(command: &str, mounts: &[&Path]) {
    let script = Path::new(ROOT).join("tests/browser/pages.py");
    let mut command_line = Command::new(python());
    command_line.env("PYTHONDONTWRITEBYTECODE", "1");
    let ended = run(command_line.arg(script).arg(command).args(mounts), LONG);
    match ended.stderr.strip_prefix("skipped: ") {
        Some(why) => crate::harness::skip(why.trim_end()),
        None => drop(ended.success()),
    }
}

fn written() -> TempDir {
    let directory = tempfile::tempdir().expect("temporary directory");
    pages("write", &[directory.path()]);
    directory
}

fn example(directory: &Path) -> PathBuf {
    let file = directory.join("climate.h5");
    let writer = Path::new(ROOT).join("scripts/example.py");
    run(Command::new(python()).arg(writer).arg(&file), LONG).success();
    file
}

#[test]
fn pages_show_what_h5py_reads() {
    let directory = written();
    let file = directory.path().join("pages.h5");
    let mount = Mount::new(&file);
    pages("check", &[&file, &mount.path]);
}

#[test]
fn pages_show_what_asdf_reads() {
    let directory = written();
    let file = directory.path().join("pages.asdf");
    let mount = Mount::new(&file);
    pages("asdf", &[&file, &mount.path]);
}

/// Checks the text, the natural sizes of pictures, and that the browser reports no problem,
/// requests nothing outside the mount, and runs no script.
#[test]
fn a_browser_shows_the_pages() {
    let directory = written();
    let mount = Mount::new(&directory.path().join("pages.h5"));
    browsed("fixture", &[&mount.path]);
    let mount = Mount::new(&example(directory.path()));
    browsed("example", &[&mount.path]);
}

/// Files of other programs, if the corpus exists.
#[test]
fn a_browser_shows_the_pages_of_real_files() {
    const FILES: &[&str] = &[
        "asdf/spacetelescope__gwcs/gwcs/tests/data/miri_lrs_wcs.asdf",
        "hdf5/distro__hdf-compass_0.7_b15/data/bag/bdb_00.bag",
        "hdf5/distro__libcgns_4.5.0/src/tests/data/cgnslib_vers-4100.cgns",
        "hdf5/distro__libminc_2.4.05/testdir/vio_xfm_test/test_short_grid_0.mnc",
        "hdf5/gauteh__hidefix/tests/data/coads_climatology.nc4",
        "hdf5/gauteh__hidefix/tests/data/jan.nc4",
        "hdf5/hdf5-1.14.5/tools/test/h5dump/testfiles/tfilters.h5",
        "hdf5/sdist__anndata-0.13.4/tests/data/archives/v0.13.3/adata.h5ad",
        "hdf5/sdist__nexusformat-2.1.0/src/nexusformat/examples/chopper.nxs",
        "hdf5/sdist__pymatreader-1.3.2/tests/test_data/cell_struct_v73.mat",
        "hdf5/sdist__pynwb-4.2.0/tests/back_compat/3.0.0_optogenetics_extension.nwb",
        "hdf5/sunpy__sunpy/sunpy/data/test/goes_13_leap_second.nc",
    ];
    let Some(corpus) = corpus::directory() else {
        return;
    };
    let mounts: Vec<Mount> = FILES
        .iter()
        .map(|name| Mount::new(&corpus.join(name)))
        .collect();
    for mount in &mounts {
        pages("sound", &[&mount.path]);
    }
    let paths: Vec<&Path> = mounts.iter().map(|mount| &*mount.path).collect();
    browsed("any", &paths);
}

/// The first page of a group of 100 000 members does not read the other members.
#[test]
fn the_page_of_a_large_group_is_quick() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("many.h5");
    pages("many", &[&file]);
    let mount = Mount::new(&file);
    let (worker, _) = mount.worker_and_supervisor(&file);
    let before = worker.processor_time();
    let page = fs::read_to_string(mount.at(".h5fs/html/many.html")).expect("the page");
    let took = worker.processor_time() - before;
    assert_eq!(page.matches("class=\"row\"").count(), 500);
    // Reading all members takes several seconds in an unoptimised build.
    assert!(took.as_secs_f64() < 1.5, "{took:?}");
}

/// The value range of a stack is determined from 64 of its 5000 chunks. The page reads no other
/// chunk than the first.
#[test]
fn the_page_of_a_large_stack_decodes_few_chunks() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("stack.h5");
    pages("stack", &[&file]);
    let mount = Mount::new(&file);
    let page = fs::read_to_string(mount.at(".h5fs/html/stack.html")).expect("the page");
    assert!(
        page.contains("of 4096 values in 64 of 5000 chunks"),
        "{page}"
    );
    // Also reads 20 rows of 8 values of the first picture.
    let decoded = mount.status("chunks decoded");
    assert!((64..=65).contains(&decoded), "{decoded}");
    fs::read(mount.at(".h5fs/html/stack[4999].png")).expect("the last picture");
    let after = mount.status("chunks decoded");
    assert!(after <= decoded + 1, "{after}");
    assert!(fs::metadata(mount.at(".h5fs/html/stack[:,:,0].png")).is_err());
}

/// Names are listed as h5py lists them, whatever the order of the index.
#[test]
fn names_are_listed_as_they_were_made_or_sorted() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("order.h5");
    let listed = run(script("pages.py").arg("order").arg(&file), LONG).success();
    let mut count = 0;
    for line in listed.text().lines() {
        let (group, names) = line.split_once(' ').expect("a group and its members");
        let shown = run(h5fs(["ls"]).arg(&file).arg(group), LONG).success();
        let shown = shown.text();
        let shown: Vec<&str> = shown.lines().collect();
        assert_eq!(shown.join(" "), names, "{group}");
        count += 1;
    }
    assert_eq!(count, 4);
}

#[test]
fn links_that_are_too_long_to_be_sorted_are_told() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("long.h5");
    run(script("pages.py").arg("long_links").arg(&file), LONG).success();
    let listed = run(h5fs(["ls"]).arg(&file).arg("g"), LONG).success();
    assert_eq!(listed.text().lines().count(), 9000);
    assert!(
        listed.stderr.contains("too many names to sort"),
        "{}",
        listed.stderr
    );
}

// ------------------------------------------------------------------ h5fs view

/// A running `h5fs view`. Dropping the value stops the program.
struct Viewed {
    child: Child,
    page: PathBuf,
}

impl Viewed {
    /// Starts the program with this directory as its PATH, and waits for the path of the page.
    fn new(source: &Path, programs: &Path, temporary: &Path) -> Self {
        let mut child = h5fs(["view"])
            .arg(source)
            .env("PATH", programs)
            .env("TMPDIR", temporary)
            .env("DISPLAY", ":0")
            .env_remove("SSH_CONNECTION")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(
                fs::File::create(temporary.join("stderr")).expect("file"),
            ))
            .spawn()
            .expect("h5fs view");
        let mut line = String::new();
        let output = child.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        Viewed {
            child,
            page: line.trim_end().into(),
        }
    }

    fn point(&self) -> &Path {
        self.page.ancestors().nth(3).expect("the mount point")
    }

    #[track_caller]
    fn end(&mut self, signal: Signal) {
        let point = self.point().to_owned();
        let id = i32::try_from(self.child.id()).expect("an id");
        kill(Pid::from_raw(id), signal).expect("a signal");
        let status = wait(&mut self.child, MOUNT_LIMIT).expect("an end");
        assert!(status.success(), "{status}");
        assert!(!point.exists(), "{} is left", point.display());
    }
}

impl Drop for Viewed {
    /// Unmounts even if the test has failed.
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            let id = i32::try_from(self.child.id()).expect("an id");
            let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
            let _ = wait(&mut self.child, MOUNT_LIMIT);
        }
    }
}

/// Creates a directory for programs, with fusermount3 and without xdg-open.
fn programs(directory: &Path) -> PathBuf {
    let programs = directory.join("programs");
    fs::create_dir(&programs).expect("directory");
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&inherited).map(|path| path.join("fusermount3"));
    let helper = places.find(|path| path.exists()).expect("fusermount3");
    symlink(helper, programs.join("fusermount3")).expect("a link");
    programs
}

#[test]
fn view_opens_the_page_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = example(directory.path());
    let programs = programs(directory.path());
    let opener = programs.join("xdg-open");
    let opened = directory.path().join("opened");
    let text = format!("#!/bin/sh\n/bin/cp -- \"$1\" {}\n", opened.display());
    fs::write(&opener, text).expect("a program");
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).expect("mode");
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut viewed = Viewed::new(&file, &programs, directory.path());
        assert!(viewed.page.ends_with(".h5fs/html/index.html"));
        assert!(is_mounted(viewed.point()));
        eventually(SOON, "xdg-open has the page", || {
            fs::read(&opened).is_ok_and(|page| page.ends_with(b"</html>\n"))
        });
        viewed.end(signal);
        fs::remove_file(&opened).expect("the copy");
    }
    // Unmounted by another program.
    let mut viewed = Viewed::new(&file, &programs, directory.path());
    let point = viewed.point().to_owned();
    eventually(SOON, "nobody reads the page", || {
        let unmounted = run(Command::new("fusermount3").arg("-u").arg(&point), SOON);
        unmounted.status.success()
    });
    let status = wait(&mut viewed.child, MOUNT_LIMIT).expect("an end");
    assert!(status.success() && !point.exists(), "{status}");
}

#[test]
fn view_without_xdg_open_says_so_and_stays() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = example(directory.path());
    let programs = programs(directory.path());
    let mut viewed = Viewed::new(&file, &programs, directory.path());
    eventually(SOON, "a complaint", || {
        let text = fs::read_to_string(directory.path().join("stderr")).expect("stderr");
        text == "h5fs: xdg-open is not installed; open the page above in a browser\n"
    });
    assert!(fs::read(&viewed.page).is_ok_and(|page| page.starts_with(b"<!DOCTYPE html>")));
    viewed.end(Signal::SIGTERM);
}

/// The working directory changes before the end, so the temporary directory needs an absolute path.
#[test]
fn view_leaves_nothing_where_no_absolute_directory_is_named() {
    let directory = tempfile::tempdir().expect("temporary directory");
    fs::write(directory.path().join("text.h5"), "no data").expect("file");
    for temporary in ["", "."] {
        let mut command = h5fs(["view", "text.h5"]);
        command.current_dir(directory.path()).env("DISPLAY", ":0");
        let command = command.env_remove("SSH_CONNECTION");
        let ended = run(command.env("TMPDIR", temporary), MOUNT_LIMIT);
        assert!(ended.one_line().contains("text.h5"), "{}", ended.stderr);
        let left = fs::read_dir(directory.path()).expect("directory");
        assert_eq!(left.count(), 1, "{temporary:?}");
    }
}

#[test]
fn view_of_what_cannot_be_mounted_fails_and_leaves_nothing() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("text.h5");
    fs::write(&file, "no data").expect("file");
    let temporary = directory.path().join("tmp");
    fs::create_dir(&temporary).expect("directory");
    let mut command = h5fs(["view"]);
    command.env("DISPLAY", ":0").env_remove("SSH_CONNECTION");
    let ended = run(command.arg(&file).env("TMPDIR", &temporary), MOUNT_LIMIT);
    assert!(ended.one_line().contains("text.h5"), "{}", ended.stderr);
    assert_eq!(fs::read_dir(&temporary).expect("directory").count(), 0);
}
