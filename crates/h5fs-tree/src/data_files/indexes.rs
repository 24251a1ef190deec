//! The path indexes of all files of a mount, with one weight limit for all of them.

use std::sync::{Arc, Mutex};

use h5fs_reader::memory::lock::lock;
use h5fs_reader::memory::shared_lru::{FileLru, SharedLru};
use h5fs_reader::model::Container;
use h5fs_reader::model::paths::PathIndex;

/// Maximum memory in bytes of the path indexes of all files together. One index with the maximum
/// number of links and the maximum length of names fits.
const PATH_INDEXES: u64 = 18 << 20;

/// The path indexes of all files of a mount.
pub(crate) struct PathIndexes {
    kept: Arc<SharedLru<(), Arc<PathIndex>>>,
    /// A lock that permits building only one index at a time, because a build needs memory from the
    /// first link on.
    build_lock: Mutex<()>,
}

impl Default for PathIndexes {
    fn default() -> Self {
        PathIndexes {
            kept: SharedLru::new(PATH_INDEXES),
            build_lock: Mutex::new(()),
        }
    }
}

/// The path index of one file, which maps objects to paths.
pub(crate) struct FilePathIndex {
    all: Arc<PathIndexes>,
    own: FileLru<(), Arc<PathIndex>>,
}

impl FilePathIndex {
    /// Creates the index of one file. `all` limits the memory of all indexes.
    pub(crate) fn new(all: &Arc<PathIndexes>) -> Self {
        FilePathIndex {
            all: Arc::clone(all),
            own: FileLru::new(&all.kept),
        }
    }

    /// Creates the index of an externally linked file of the same mount.
    pub(crate) fn for_linked_file(&self) -> Self {
        Self::new(&self.all)
    }

    /// Returns the index of `container`. The index is built by the first call, and again after it
    /// was evicted.
    pub(crate) fn get(&self, container: &Arc<dyn Container>) -> Arc<PathIndex> {
        if let Some(index) = self.own.get(()) {
            return index;
        }
        let _alone = lock(&self.all.build_lock);
        if let Some(index) = self.own.get(()) {
            return index;
        }
        let make_room = |weight| self.own.make_room(weight);
        let index = Arc::new(PathIndex::build(container, &make_room));
        if !index.is_complete() {
            log::warn!(
                "the file has too many links, so the canonical paths of some groups are unknown"
            );
        }
        if index.check_no_read_error().is_ok() {
            self.own.put((), Arc::clone(&index), index.weight());
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeContainer, ROOT};
    use crate::limits;
    use h5fs_reader::model::NodeId;

    /// Creates a graph with a total of `bytes` bytes of names, a thousand each, all for one object.
    fn container_with_names(bytes: usize) -> Arc<dyn Container> {
        let mut fake = FakeContainer::new();
        fake.add_bytes(800, 1, b"data");
        for i in 0..bytes / 1000 {
            fake.add_hard_link(ROOT, format!("{i:01000}"), 800);
        }
        Arc::new(fake)
    }

    fn is_cached(index: &FilePathIndex) -> bool {
        index.own.get(()).is_some()
    }

    #[test]
    fn the_indices_of_all_files_have_one_weight() {
        let all = Arc::default();
        let half = usize::try_from(PATH_INDEXES / 3).unwrap();
        let (large, small) = (container_with_names(half), container_with_names(1000));
        let files: [FilePathIndex; 5] = std::array::from_fn(|_| FilePathIndex::new(&all));
        files[0].get(&small);
        for file in &files[1..] {
            let index = file.get(&large);
            let first = [b"/", &[b'0'; 1000][..]].concat();
            assert_eq!(index.path(NodeId::for_test(800)), Some(first));
            files[0].get(&small);
        }
        let kept: Vec<bool> = files.iter().map(is_cached).collect();
        assert_eq!(kept, [true, false, false, true, true]);
    }

    #[test]
    fn the_names_of_other_files_are_bounded() {
        let mut fake = FakeContainer::new();
        let names = 2 * limits::NAMED_FILES / 1000;
        for i in 0..names {
            fake.add_external_link(ROOT, &format!("{i}"), &format!("{i:01000}"), "/");
        }
        let container: Arc<dyn Container> = Arc::new(fake);
        let index = PathIndex::build(&container, &|_| {});
        let kept: usize = index.other_files().map(<[u8]>::len).sum();
        assert!(kept > limits::NAMED_FILES * 9 / 10 && kept <= limits::NAMED_FILES);
        assert!(
            index.is_complete() && index.weight() <= h5fs_reader::wire::to_u64(limits::NAMED_FILES)
        );
    }

    #[test]
    fn other_indexes_are_evicted_before_building() {
        let all = Arc::default();
        let (first, second) = (FilePathIndex::new(&all), FilePathIndex::new(&all));
        let names = limits::PATH_INDEX_NAMES / 2;
        first.get(&container_with_names(names));
        let held = std::cell::Cell::new(0);
        let index = PathIndex::build(&container_with_names(names), &|weight| {
            second.own.make_room(weight);
            held.set(weight);
        });
        assert!(index.weight() <= held.get());
        assert!(is_cached(&first), "two of them have room");
        second.own.make_room(PATH_INDEXES);
        assert!(!is_cached(&first));
    }
}
