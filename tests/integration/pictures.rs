//! Arrays as pictures, compared with what h5py reads from the same file.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::harness::{LONG, Mount, python, run, script};

/// Runs one of the script's commands, which fails with a traceback on any difference.
#[track_caller]
fn pictures(command: &str, paths: &[&Path]) {
    run(script("pictures.py").arg(command).args(paths), LONG).success();
}

fn written() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("pictures.h5");
    pictures("write", &[&file]);
    (directory, file)
}

#[test]
fn pictures_show_what_h5py_reads() {
    let (_directory, file) = written();
    let mount = Mount::new(&file);
    pictures("check", &[&file, &mount.path]);
}

/// Without a cache, and with reads of any size at any offset.
#[test]
fn pictures_are_the_same_when_they_are_encoded_again() {
    let (_directory, file) = written();
    let mount = Mount::with(&file, &["--direct-io", "--cache-size=0"]);
    pictures("check", &[&file, &mount.path]);
}

/// The positions of the grids were calculated by hand.
#[test]
fn tiff_files_of_grids_are_on_the_earth() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("grids.nc");
    let geotiff = |command: &str, paths: &[&Path]| {
        run(script("geotiff.py").arg(command).args(paths), LONG).success();
    };
    geotiff("write", &[&file]);
    let mount = Mount::new(&file);
    geotiff("check", &[&file, &mount.path]);
}

/// `stat` of a picture that takes more than a second to compress reads no pixel. Later reads of any
/// size are right.
#[test]
fn large_pictures_have_a_size_at_once() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("large.h5");
    pictures("write-large", &[&file]);
    let mount = Mount::new(&file);
    pictures("check-large", &[&file, &mount.path]);
    drop(mount);
    let mount = Mount::with(&file, &["--direct-io", "--cache-size=0"]);
    let whole = fs::read(mount.at(".h5fs/png/coloured.png")).expect("a picture");
    let picture = fs::File::open(mount.at(".h5fs/png/coloured.png")).expect("a picture");
    for at in (0..whole.len() - 3000).step_by(391_117) {
        let mut part = vec![0; 3000];
        picture.read_exact_at(&mut part, at as u64).expect("a part");
        assert!(part == whole[at..at + 3000], "{at}");
    }
}

/// All open handles of a picture share one copy.
#[test]
fn a_picture_is_opened_many_times() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("noise.h5");
    let script = format!(
        "import h5py, numpy\n\
         noise = numpy.random.default_rng(5).integers(0, 65536, (2000, 2000), 'u2')\n\
         h5py.File({file:?}, 'w').create_dataset('noise', data=noise)\n"
    );
    run(Command::new(python()).arg("-c").arg(script), LONG).success();
    let mount = Mount::new(&file);
    let path = mount.at(".h5fs/png/noise.png");
    let open: Vec<_> = (0..200)
        .map(|_| fs::File::open(&path).expect("open once more"))
        .collect();
    assert!(open[0].metadata().expect("its size").len() > 7_900_000);
    let mut byte = [0];
    let read = open.iter().all(|file| file.read_at(&mut byte, 1).is_ok());
    assert!(read && byte == *b"P");
}

#[test]
fn a_listing_of_a_stack_decodes_nothing() {
    let (_directory, file) = written();
    let mount = Mount::new(&file);
    let stack = mount.at(".h5fs/png/stack/>i2");
    let names = fs::read_dir(&stack).expect("a stack").count();
    assert_eq!((names, mount.status("chunks decoded")), (5, 0));
    fs::metadata(stack.join("000004.png")).expect("a picture");
    assert!(mount.status("chunks decoded") > 0);
}
