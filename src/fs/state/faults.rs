//! The errors of objects, for a bounded number of objects.

use std::num::NonZeroUsize;
use std::sync::Mutex;

use h5fs_reader::error::Error;
use h5fs_reader::memory::lock::lock;
use lru::LruCache;

use crate::limits;

/// The last error of each object, by inode number.
pub(in crate::fs) struct Faults(Mutex<LruCache<u64, Fault>>);

/// An error of an object.
struct Fault {
    text: String,
    /// Whether a later attempt may succeed.
    is_passing: bool,
}

impl Default for Faults {
    fn default() -> Self {
        let most = NonZeroUsize::new(limits::OBJECT_ERRORS).unwrap_or(NonZeroUsize::MIN);
        Faults(Mutex::new(LruCache::sparse(most)))
    }
}

impl Faults {
    /// Records an error. Returns whether it differs from the recorded one.
    pub(in crate::fs) fn record(&self, ino: u64, error: &Error) -> bool {
        let text = error.to_string();
        let mut faults = lock(&self.0);
        let is_known = faults.get(&ino).is_some_and(|known| known.text == text);
        let is_passing = error.is_passing();
        faults.put(ino, Fault { text, is_passing });
        !is_known
    }

    /// Removes the error of an object if it was temporary.
    pub(in crate::fs) fn remove_temporary(&self, ino: u64) {
        let mut faults = lock(&self.0);
        if faults.peek(&ino).is_some_and(|fault| fault.is_passing) {
            faults.pop(&ino);
        }
    }

    /// Returns the text of an object's error.
    pub(in crate::fs) fn text(&self, ino: u64) -> Option<String> {
        lock(&self.0).get(&ino).map(|fault| fault.text.clone())
    }

    pub(in crate::fs) fn clear(&self) {
        lock(&self.0).clear();
    }
}
