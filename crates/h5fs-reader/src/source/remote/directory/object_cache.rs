//! Objects of a prefix that stay open between reads, so that their staged bytes can be reused.

use std::sync::Arc;
use std::sync::Mutex;

use lru::LruCache;

use crate::limits;
use crate::memory::lock::lock;
use crate::source::remote::object::RemoteObject;
use crate::wire::Count;

/// The cached objects by name. The least recently used object is evicted first.
#[derive(Debug)]
pub(super) struct OpenObjectCache(Mutex<ObjectCache>);

#[derive(Debug)]
struct ObjectCache {
    objects: LruCache<Vec<u8>, KeptObject>,
    /// Number of cached objects whose bytes were never read.
    unread: usize,
}

#[derive(Debug)]
struct KeptObject {
    object: Arc<RemoteObject>,
    is_read: bool,
}

impl OpenObjectCache {
    /// Creates an empty cache.
    pub(super) fn new() -> Self {
        OpenObjectCache(Mutex::new(ObjectCache {
            objects: LruCache::sparse(limits::KEPT_OBJECTS),
            unread: 0,
        }))
    }

    /// Returns the object called `name`, if it is cached and unchanged.
    pub(super) fn get_unchanged(&self, name: &[u8]) -> Option<Arc<RemoteObject>> {
        let object = lock(&self.0)
            .objects
            .get(name)
            .map(|kept| Arc::clone(&kept.object))?;
        object.is_unchanged().then_some(object)
    }

    /// Caches the object called `name`. `is_read` states whether the caller reads the object, and
    /// does not only check its existence.
    pub(super) fn insert(&self, name: &[u8], object: &Arc<RemoteObject>, is_read: bool) {
        let mut kept = lock(&self.0);
        let new = KeptObject {
            object: Arc::clone(object),
            is_read,
        };
        // The insertion may evict another object.
        let gone = kept.objects.push(name.to_vec(), new);
        if !is_read {
            kept.unread = kept.unread.plus_one();
        }
        if gone.as_ref().is_some_and(|(_, gone)| !gone.is_read) {
            kept.unread = kept.unread.minus_or_zero(1);
        }
        // Closing the evicted object locks the connection.
        drop(kept);
        drop(gone);
    }

    /// Returns whether one more object may be opened before any of its bytes are read.
    pub(super) fn may_open_unread(&self) -> bool {
        lock(&self.0).unread < limits::UNREAD_OBJECTS
    }
}
