//! The files of an archive that are shown as they are.

use std::fs::File;
use std::num::NonZeroUsize;
use std::sync::Mutex;

use lru::LruCache;
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, pread};

use crate::array::Bytes;
use crate::error::{Error, Result};
use crate::fs::handle::Caching;
use crate::fs::requests::Ino;
use crate::limits;
use crate::memory::lock::lock;
use crate::source::identity::Fingerprint;
use crate::wire::to_u64;

/// Files of which the state is remembered.
const KNOWN: NonZeroUsize = NonZeroUsize::new(limits::KNOWN_KINDS).unwrap();

/// The states in which these files were opened last.
pub(super) struct OrdinaryFiles(Mutex<LruCache<Ino, Fingerprint>>);

impl Default for OrdinaryFiles {
    fn default() -> Self {
        OrdinaryFiles(Mutex::new(LruCache::sparse(KNOWN)))
    }
}

impl OrdinaryFiles {
    /// Takes note that the file is opened in this state. What the kernel has kept since the last
    /// time is right if the file was in the same state then, and no write was under way.
    pub(super) fn opened(&self, ino: Ino, state: Fingerprint) -> Caching {
        let mut states = lock(&self.0);
        if state.rest().is_none_or(|rest| rest < limits::UNSEEN_WRITE) {
            states.pop(&ino);
            return Caching::WhileOpen;
        }
        match states.put(ino, state) == Some(state) {
            true => Caching::Lasting,
            false => Caching::WhileOpen,
        }
    }
}

/// The `length` bytes of `file` at `offset`, fewer at its end only.
///
/// # Errors
/// As the system says.
pub(super) fn read(file: &File, offset: u64, length: usize) -> Result<Bytes> {
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let at = offset.saturating_add(to_u64(bytes.len()));
        match pread(file, spare_capacity(&mut bytes), at) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::io(&errno.into(), "reading a file")),
        }
    }
    bytes.truncate(length);
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(path: &str) -> Fingerprint {
        Fingerprint::of(&std::fs::metadata(path).unwrap())
    }

    #[test]
    fn content_is_kept_for_the_state_that_it_was_read_in() {
        let files = OrdinaryFiles::default();
        // Nobody has changed this for long.
        let old = state("/usr");
        assert!(old.rest().is_some_and(|rest| rest >= limits::UNSEEN_WRITE));
        assert_eq!(files.opened(7, old), Caching::WhileOpen);
        assert_eq!(files.opened(7, old), Caching::Lasting);
        assert_eq!(files.opened(8, old), Caching::WhileOpen);
        let young = tempfile::NamedTempFile::new().unwrap();
        let young = state(young.path().to_str().unwrap());
        for _ in 0..2 {
            assert_eq!(files.opened(7, young), Caching::WhileOpen);
        }
        assert_eq!(files.opened(7, old), Caching::WhileOpen);
    }
}
