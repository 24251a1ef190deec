//! The files of an archive that are shown as they are.

use std::fs::File;
use std::num::NonZeroUsize;
use std::sync::Mutex;

use lru::LruCache;
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, pread};

use crate::array::Bytes;
use crate::error::{Error, Result};
use crate::fs::errno::stale;
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

/// An open file.
pub(super) struct OrdinaryFile {
    pub(super) file: File,
    /// Its length when it was opened, which the kernel may take for its length now; 0 where the
    /// kernel keeps nothing of it.
    length: u64,
}

impl OrdinaryFiles {
    /// Takes note that the file is opened in this state. What the kernel has kept since the last
    /// time is right if the file was in the same state then, and no write was under way. Of a file
    /// that was written a moment ago it keeps nothing: it would fill up a file that has become
    /// shorter with zeros, to the length that it had.
    pub(super) fn opened(&self, ino: Ino, state: Fingerprint) -> Caching {
        let mut states = lock(&self.0);
        if state.rest().is_none_or(|rest| rest < limits::UNSEEN_WRITE) {
            states.pop(&ino);
            return Caching::Never;
        }
        match states.put(ino, state) == Some(state) {
            true => Caching::Lasting,
            false => Caching::WhileOpen,
        }
    }
}

impl OrdinaryFile {
    /// The open `file`, which is cached so and has so many bytes.
    pub(super) fn new(file: File, caching: Caching, length: u64) -> Self {
        let length = if caching == Caching::Never { 0 } else { length };
        OrdinaryFile { file, length }
    }

    /// The `length` bytes at `offset`, fewer at the end of the file only.
    ///
    /// # Errors
    /// `ESTALE` where the file has become shorter than the kernel takes it for; else as the system
    /// says.
    pub(super) fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        let mut bytes = Vec::with_capacity(length);
        let mut at = offset;
        while bytes.len() < length {
            match pread(&self.file, spare_capacity(&mut bytes), at) {
                Ok(0) if at < self.length => return Err(stale()),
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::io(&errno.into(), "reading a file")),
            }
            at = offset.saturating_add(to_u64(bytes.len()));
        }
        bytes.truncate(length);
        Ok(bytes.into())
    }
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
            assert_eq!(files.opened(7, young), Caching::Never);
        }
        assert_eq!(files.opened(7, old), Caching::WhileOpen);
    }

    #[test]
    fn a_file_that_the_kernel_keeps_and_that_becomes_shorter_is_stale() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, b"elements").unwrap();
        let open = |caching| OrdinaryFile::new(file.reopen().unwrap(), caching, 8);
        let (kept, direct) = (open(Caching::WhileOpen), open(Caching::Never));
        for open in [&kept, &direct] {
            assert_eq!(&open.read(2, 100).unwrap()[..], b"ements");
            assert!(open.read(8, 1).unwrap().is_empty());
        }
        file.as_file().set_len(3).unwrap();
        assert_eq!(&kept.read(0, 3).unwrap()[..], b"ele");
        assert_eq!(kept.read(0, 8).unwrap_err(), stale());
        assert_eq!(&direct.read(0, 8).unwrap()[..], b"ele");
    }
}
