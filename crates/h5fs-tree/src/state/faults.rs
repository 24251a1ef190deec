//! The last error of each object, for a bounded number of objects.

use std::num::NonZeroUsize;
use std::sync::Mutex;

use h5fs_reader::error::Error;
use h5fs_reader::memory::lock::lock;
use lru::LruCache;

use crate::limits;

/// The last error of each object that could not be read, by inode number.
pub(crate) struct ObjectFaults(Mutex<LruCache<u64, ObjectFault>>);

/// The error of an object that could not be read.
struct ObjectFault {
    text: String,
    /// Whether the error is temporary, so that a later read may succeed.
    is_temporary: bool,
}

impl Default for ObjectFaults {
    fn default() -> Self {
        let most = NonZeroUsize::new(limits::OBJECT_ERRORS).unwrap_or(NonZeroUsize::MIN);
        ObjectFaults(Mutex::new(LruCache::sparse(most)))
    }
}

impl ObjectFaults {
    /// Records `error` as the last error of the object `ino`. Returns whether it differs from the
    /// object's previous error.
    pub(crate) fn record(&self, ino: u64, error: &Error) -> bool {
        let text = error.to_string();
        let mut faults = lock(&self.0);
        let is_known = faults.get(&ino).is_some_and(|known| known.text == text);
        let is_passing = error.is_transient();
        faults.put(
            ino,
            ObjectFault {
                text,
                is_temporary: is_passing,
            },
        );
        !is_known
    }

    /// Removes the recorded error of the object `ino` if the error was temporary, because a read
    /// has succeeded.
    pub(crate) fn remove_temporary(&self, ino: u64) {
        let mut faults = lock(&self.0);
        if faults.peek(&ino).is_some_and(|fault| fault.is_temporary) {
            faults.pop(&ino);
        }
    }

    /// Returns the message of the last error of the object `ino`.
    pub(crate) fn text(&self, ino: u64) -> Option<String> {
        lock(&self.0).get(&ino).map(|fault| fault.text.clone())
    }

    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }
}
