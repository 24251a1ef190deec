//! The caches that all HDF5 files of one mount share. Each kind of value has one limit for all
//! files together.

use std::sync::Arc;

use crate::hdf5::file::cache_image::ImageStructureCounter;
use crate::hdf5::file::metadata::{BlockCache, BlockRange, TimedBlock};
use crate::hdf5::file::other_files::VirtualSourceFile;
use crate::hdf5::heap::global::ObjectDirectory;
use crate::hdf5::object::Object;
use crate::limits;
use crate::memory::gate::FairLock;
use crate::memory::shared_lru::{FileLru, SharedLru};
use crate::model::NodeId;

/// Maximum number of bytes of parsed objects (group, dataset, committed datatype) in the cache of a
/// mount.
const OBJECT_CACHE: u64 = 4 << 20;

/// Maximum number of bytes of the directories of global heap collections in the cache of a mount.
/// At least the size of the largest directory.
const GLOBAL_HEAP_CACHE: u64 = 2 << 20;

/// The caches of parsed structures that all HDF5 files of a mount share.
#[derive(Debug, Clone)]
pub(crate) struct Caches {
    blocks: Arc<SharedLru<BlockRange, TimedBlock>>,
    objects: Arc<SharedLru<NodeId, Arc<Object>>>,
    heaps: Arc<SharedLru<u64, Arc<ObjectDirectory>>>,
    other_files: Arc<SharedLru<Vec<u8>, Arc<dyn VirtualSourceFile>>>,
    /// The counter of the structures in the metadata cache images of all open files.
    pub(crate) image_structures: ImageStructureCounter,
    /// The lock that admits one thread of the mount at a time to describe an object that takes much
    /// memory.
    pub(crate) description_lock: Arc<FairLock>,
}

impl Default for Caches {
    fn default() -> Self {
        Caches {
            blocks: SharedLru::new(limits::METADATA_CACHE),
            objects: SharedLru::new(OBJECT_CACHE),
            heaps: SharedLru::new(GLOBAL_HEAP_CACHE),
            other_files: SharedLru::new(limits::VIRTUAL_SOURCES),
            image_structures: ImageStructureCounter::default(),
            description_lock: Arc::default(),
        }
    }
}

impl Caches {
    /// Creates a new file's share of the cache of metadata blocks.
    pub(crate) fn new_block_cache(&self) -> BlockCache {
        FileLru::new(&self.blocks)
    }

    /// Creates a new file's share of the cache of parsed objects. The key is the object's identity.
    pub(crate) fn new_object_cache(&self) -> FileLru<NodeId, Arc<Object>> {
        FileLru::new(&self.objects)
    }

    /// Creates a new file's share of the cache of directories of global heap collections. The key
    /// is the absolute offset of the collection.
    pub(crate) fn new_heap_directory_cache(&self) -> FileLru<u64, Arc<ObjectDirectory>> {
        FileLru::new(&self.heaps)
    }

    /// Creates the cache of the other files that a newly opened file references. The cache counts
    /// towards the capacity that all files of a mount share. The key is the normalized path.
    pub(crate) fn new_other_file_cache(&self) -> FileLru<Vec<u8>, Arc<dyn VirtualSourceFile>> {
        FileLru::new(&self.other_files)
    }
}
