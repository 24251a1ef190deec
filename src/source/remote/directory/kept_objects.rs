//! The objects of a prefix that stay open when nobody reads them, so that what came of them is there
//! when they are read again.

use std::sync::Arc;
use std::sync::Mutex;

use lru::LruCache;

use crate::limits;
use crate::memory::lock::lock;
use crate::source::remote::object::RemoteObject;
use crate::wire::Count;

/// Objects by their names, the one that was used last first.
#[derive(Debug)]
pub(super) struct KeptObjects(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    objects: LruCache<Vec<u8>, KeptObject>,
    /// How many of them nobody has read.
    unread: usize,
}

#[derive(Debug)]
struct KeptObject {
    object: Arc<RemoteObject>,
    is_read: bool,
}

impl KeptObjects {
    /// None.
    pub(super) fn new() -> Self {
        KeptObjects(Mutex::new(Kept {
            objects: LruCache::sparse(limits::KEPT_OBJECTS),
            unread: 0,
        }))
    }

    /// The object called `name`, if it is there in the state in which it was opened.
    pub(super) fn unchanged(&self, name: &[u8]) -> Option<Arc<RemoteObject>> {
        let object = lock(&self.0)
            .objects
            .get(name)
            .map(|kept| Arc::clone(&kept.object))?;
        object.is_unchanged().then_some(object)
    }

    /// Keeps the object called `name`, which is read now or may be.
    pub(super) fn keep(&self, name: &[u8], object: &Arc<RemoteObject>, is_read: bool) {
        let mut kept = lock(&self.0);
        let new = KeptObject {
            object: Arc::clone(object),
            is_read,
        };
        // Another one may give way.
        let gone = kept.objects.push(name.to_vec(), new);
        if !is_read {
            kept.unread = kept.unread.one_more();
        }
        if gone.as_ref().is_some_and(|(_, gone)| !gone.is_read) {
            kept.unread = kept.unread.left_after(1);
        }
        // Closing it takes the lock of the connection.
        drop(kept);
        drop(gone);
    }

    /// Whether one more may be opened before anybody reads it.
    pub(super) fn may_open_unread(&self) -> bool {
        lock(&self.0).unread < limits::UNREAD_OBJECTS
    }
}
