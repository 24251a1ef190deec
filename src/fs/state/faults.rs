//! The faults of objects, for as many objects as are remembered.

use std::num::NonZeroUsize;
use std::sync::Mutex;

use lru::LruCache;

use crate::error::Error;
use crate::limits;
use crate::memory::lock::lock;

/// The last fault of each object, by the object's inode number.
pub(in crate::fs) struct Faults(Mutex<LruCache<u64, Fault>>);

/// A fault of an object.
struct Fault {
    text: String,
    /// It may be over the next time.
    is_passing: bool,
}

impl Default for Faults {
    fn default() -> Self {
        let most = NonZeroUsize::new(limits::OBJECT_ERRORS).unwrap_or(NonZeroUsize::MIN);
        Faults(Mutex::new(LruCache::sparse(most)))
    }
}

impl Faults {
    /// Remembers a fault; whether it is another one than was remembered.
    pub(in crate::fs) fn note(&self, ino: u64, error: &Error) -> bool {
        let text = error.to_string();
        let mut faults = lock(&self.0);
        let is_known = faults.get(&ino).is_some_and(|known| known.text == text);
        let is_passing = error.is_passing();
        faults.put(ino, Fault { text, is_passing });
        !is_known
    }

    /// Forgets the fault of an object if it was passing.
    pub(in crate::fs) fn forgive(&self, ino: u64) {
        let mut faults = lock(&self.0);
        if faults.peek(&ino).is_some_and(|fault| fault.is_passing) {
            faults.pop(&ino);
        }
    }

    /// The text of an object's fault.
    pub(in crate::fs) fn text(&self, ino: u64) -> Option<String> {
        lock(&self.0).get(&ino).map(|fault| fault.text.clone())
    }

    pub(in crate::fs) fn clear(&self) {
        lock(&self.0).clear();
    }
}
