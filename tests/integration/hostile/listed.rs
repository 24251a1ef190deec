//! Every listed name can be looked up, in every tree and with any damage. Otherwise `cp -r` and
//! `tar` fail.

use std::fs;
use std::path::{Path, PathBuf};

use h5fs_tree::{Filesystem, Options};

use super::visit::{Bounds, walk};
use crate::harness::fixtures;

/// Bounds that include each tree of a small file.
const WHOLE: Bounds = Bounds {
    objects: 2000,
    bytes: 1 << 10,
    ..Bounds::SMALL
};

#[test]
fn in_the_fixtures() {
    in_each_file(fixtures());
}

/// Size limit of tested files in bytes, because a larger file costs more time without more names.
const LARGEST: u64 = 64 << 10;

/// A file of the corpus with an array of 10¹² elements of stride 0. Its picture takes minutes without
/// optimization.
const SLOW: &str = "nd_strides_zero.asdf";

/// Walks the trees of all files below a directory.
pub(crate) fn in_each_file(directory: &Path) {
    let options = Options {
        cache_size: (4 << 20).into(),
        threads: 1,
        ..Options::default()
    };
    let mut objects = 0;
    let mut lost = Vec::new();
    for file in files(directory).filter(|file| !file.ends_with(SLOW)) {
        // Some files are refused intentionally.
        let Ok(tree) = Filesystem::open(&file, &options) else {
            continue;
        };
        let seen = walk(&tree, WHOLE);
        objects += seen.objects;
        let paths = seen.lost.into_iter();
        lost.extend(paths.map(|path| format!("{}: {path}", file.display())));
    }
    assert!(objects > 1000, "{objects} objects");
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

/// Returns the files below a directory.
fn files(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).expect("directory") {
            let path = entry.expect("entry").path();
            match path.is_dir() {
                true => open.push(path),
                false if path.metadata().expect("size").len() <= LARGEST => files.push(path),
                false => {}
            }
        }
    }
    files.sort();
    files.into_iter()
}
