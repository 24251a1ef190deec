//! Parts of datasets by selector, and the targets of links, compared with what h5py and NumPy read.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::harness::{LONG, Mount, SOON, h5fs, run, script};

/// Runs one of a script's commands, which fails with a traceback on any difference.
#[track_caller]
fn compare(name: &str, command: &str, paths: &[&Path]) {
    run(script(name).arg(command).args(paths), LONG).success();
}

fn written(name: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    compare(name, "write", &[directory.path()]);
    let main = directory.path().join("main.h5");
    (directory, main)
}

/// Creates the directory that contains the files with links to each other.
fn linked() -> (TempDir, PathBuf) {
    let (top, _) = written("linked.py");
    let inside = top.path().join("inside");
    (top, inside)
}

#[test]
fn parts_are_what_numpy_picks() {
    let (directory, main) = written("parts.py");
    let mount = Mount::new(&main);
    compare("parts.py", "check", &[directory.path(), &mount.path]);
}

#[test]
fn cat_takes_selectors_and_refuses_long_ones() {
    let (_directory, main) = written("parts.py");
    let cat = |path: &str| {
        let mut command = h5fs(["cat"]);
        run(command.arg(&main).arg(path), SOON)
    };
    assert_eq!(cat("names[[0,2]]").success().text(), "one\ndrei – ☃\n");
    assert_eq!(cat("grid/names[0,0]").success().text(), "one");
    let mut long = String::from("plane[[0");
    for place in 0..30_000 {
        write!(long, ",{}", place % 30).expect("a string takes all");
    }
    for end in ["]]", "],:]", "]"] {
        let refused = cat(&format!("{long}{end}"));
        assert!(!refused.status.success());
        assert!(
            refused.one_line().contains("name too long"),
            "{}",
            refused.one_line()
        );
    }
}

#[test]
fn links_take_selectors_and_have_views_as_their_targets() {
    let (_top, inside) = linked();
    let mount = Mount::new(&inside.join("main.h5"));
    compare("linked.py", "check", &[&inside, &mount.path]);
    // Repeats the test after the kernel's caches are gone.
    drop(mount);
    let mount = Mount::with(&inside.join("main.h5"), &["--direct-io"]);
    compare("linked.py", "check", &[&inside, &mount.path]);
}

#[test]
fn links_between_files_of_a_directory_take_selectors_and_have_views() {
    let (_top, inside) = linked();
    let mount = Mount::new(&inside);
    compare("linked.py", "among", &[&inside, &mount.path]);
}

#[test]
fn links_lead_into_no_file_that_the_policy_refuses() {
    let (_top, inside) = linked();
    let mount = Mount::with(&inside.join("main.h5"), &["-o", "external=none"]);
    compare("linked.py", "refused", &[&inside, &mount.path]);
}

#[test]
fn cat_follows_links_with_selectors() {
    let (_top, inside) = linked();
    let cat = |path: &str| {
        let mut command = h5fs(["cat"]);
        run(command.arg(inside.join("main.h5")).arg(path), SOON)
    };
    assert_eq!(cat("entry/names[2]").success().text(), "drei – ☃");
    assert_eq!(
        cat(".h5fs/json/entry/names.json")
            .success()
            .text()
            .matches("one")
            .count(),
        1
    );
    for circle in ["loop_a[0]", "circle[[1,0]]", ".h5fs/csv/loop_b[0].csv"] {
        let refused = cat(circle);
        let line = refused.one_line();
        assert!(line.contains("symbolic links"), "{line}");
    }
    let refused = cat("entry/names[4]");
    let line = refused.one_line();
    assert!(line.contains("4 is out of range: the shape is ["), "{line}");
}

#[test]
fn values_of_coordinates_select_as_in_xarray() {
    let (directory, main) = written("labels.py");
    let mount = Mount::new(&main);
    compare("labels.py", "check", &[directory.path(), &mount.path]);
}

#[test]
fn values_of_joined_coordinates_select_parts() {
    let (directory, _) = written("labels.py");
    let mount = Mount::new(&directory.path().join("runs"));
    compare("labels.py", "joined", &[&mount.path]);
}

#[test]
fn cat_explains_selectors_by_value() {
    let (_directory, main) = written("labels.py");
    for (path, reason) in [
        (
            "temp[foo=1]",
            "no dimension \"foo\" (dimensions: time, latitude, longitude)",
        ),
        (
            "temp[latitude=61]",
            "latitude: no such value; the coordinate has 7 values from 60.0 to -60.0",
        ),
        (
            "temp[time=2021]",
            "time: no such value; the coordinate has 90 values from 2020-01-15T00:00:00 to \
             2020-04-13T00:00:00",
        ),
        (
            "temp[time=2020-02-30]",
            "time: `2020-02-30` is not a time of the calendar standard",
        ),
        ("temp[latitude=north]", "latitude: `north` is not a number"),
        (
            "temp[time=2020,0:3]",
            "`0:3` has no dimension: name every dimension of the bracket",
        ),
        (
            "temp[longitude@5]",
            "5 is out of range: the shape is [90, 7, 5]",
        ),
        (
            "words[my station=~Bern]",
            "my station: no text is nearest to another",
        ),
        (
            "short[seven=3]",
            "seven: the coordinate has 7 values, and the dimension has length 8",
        ),
        ("plane[square=0]", "square: the dimension has no coordinate"),
        ("labelled[row=1]", "row@0 selects by position"),
        (
            ".h5fs/csv/temp[foo=1].csv",
            "no dimension \"foo\" (dimensions: time, latitude, longitude)",
        ),
        ("behind[broken=3]", "checksum"),
    ] {
        let mut command = h5fs(["cat"]);
        let refused = run(command.arg(&main).arg(path), SOON);
        assert!(!refused.status.success(), "{path}");
        let line = refused.one_line();
        assert!(line.contains(reason), "{path}: {line}");
    }
}

#[test]
fn cat_and_ls_suggest_the_path_that_was_meant() {
    let (_directory, main) = written("labels.py");
    let last_line = |command: &str, path: &str| {
        let mut command = h5fs([command]);
        let refused = run(command.arg(&main).arg(path), SOON);
        assert!(!refused.status.success(), "{path}");
        refused.one_line().to_owned()
    };
    for (path, meant) in [
        ("tmep", "temp"),
        ("latitud", "latitude"),
        ("csv/temp.csv", ".h5fs/csv/temp.csv"),
        ("csv/temp", ".h5fs/csv/temp.csv"),
        (".h5fs/csv/temp", ".h5fs/csv/temp.csv"),
        (
            ".h5fs/parqet/latitud.parquet",
            ".h5fs/parquet/latitude.parquet",
        ),
    ] {
        for command in ["cat", "ls"] {
            let line = last_line(command, path);
            let hint = format!("{path}: no such name; did you mean {meant}?");
            assert!(line.ends_with(&hint), "{command}: {line}");
        }
    }
    for path in ["nothing", "t", "temp/temp", ".h5fs/csv/nothing.csv"] {
        let line = last_line("cat", path);
        assert!(!line.contains("did you mean"), "{line}");
    }
}

#[test]
fn ls_draws_a_tree_with_types_and_shapes() {
    let (directory, _) = written("labels.py");
    let tree = |flags: &[&str]| {
        let mut command = h5fs(["ls", "--tree"]);
        command.args(flags).arg(directory.path().join("runs/0.h5"));
        run(&mut command, SOON).success().text()
    };
    assert_eq!(tree(&[]), "/\n├─ time  float64 [30]\n└─ v  int32 [30]\n");
    let with_attributes = tree(&["--attributes"]);
    assert!(
        with_attributes.contains("\n│  @units = hours since 2021-01-01\n"),
        "{with_attributes}"
    );
    assert!(
        with_attributes.contains("\n   @DIMENSION_LIST = "),
        "{with_attributes}"
    );
}
