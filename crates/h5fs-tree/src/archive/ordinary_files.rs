//! The files of an archive that are shown unchanged.

use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex};

use h5fs_reader::array::{Bytes, ReadStream};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::directory::OpenContent;
use h5fs_reader::source::identity::{Fingerprint, Identity};
use h5fs_reader::source::local::descriptors::max_open_ordinary_files;
use h5fs_reader::source::open::SharedOpenSource;
use h5fs_reader::source::{Urgency, read_block};
use h5fs_reader::wire::to_u64;
use lru::LruCache;
use nix::errno::Errno;
use rustix::buffer::spare_capacity;
use rustix::fs::{SeekFrom, seek};
use rustix::io::pread;

use crate::errno::{refusal_error, stale_error};
use crate::limits;
use crate::requests::{Ino, SeekKind, Version};
use crate::state::handle::Caching;

/// Maximum number of files for which the state at the last open is remembered.
const MAX_KNOWN_STATES: NonZeroUsize = NonZeroUsize::new(limits::KNOWN_KINDS).unwrap();

/// The ordinary files of an archive.
pub(super) struct OrdinaryFiles {
    /// The states of files when they were last opened, by inode number. An unchanged state means
    /// that the kernel's cached pages are still valid.
    states: Mutex<LruCache<Ino, Identity>>,
    /// A value of which each open local file holds a clone. Its reference count thus gives the
    /// number of open local files, which is limited.
    open_reference: Arc<()>,
}

impl Default for OrdinaryFiles {
    fn default() -> Self {
        OrdinaryFiles {
            states: Mutex::new(LruCache::sparse(MAX_KNOWN_STATES)),
            open_reference: Arc::default(),
        }
    }
}

/// An open ordinary file.
pub(super) enum OrdinaryFile {
    Local {
        file: File,
        /// Length in bytes when the file was opened. The kernel may still assume this length. 0 if
        /// the kernel caches nothing.
        length: u64,
        /// A clone of `OrdinaryFiles::open_reference`, which counts this file as open.
        _open: Arc<()>,
    },
    Object {
        object: SharedOpenSource,
        stream: ReadStream,
    },
}

impl OrdinaryFiles {
    /// Opens the ordinary file at `path` with the inode number `ino`. Returns the file, and how the
    /// kernel may cache its bytes.
    ///
    /// # Errors
    /// Fails with the error of the operating system.
    pub(super) fn open(
        &self,
        ino: Ino,
        content: OpenContent,
        path: &Path,
    ) -> Result<(OrdinaryFile, Caching)> {
        match content {
            OpenContent::File(file) => {
                if Arc::strong_count(&self.open_reference) > max_open_ordinary_files() {
                    return Err(refusal_error(Errno::EMFILE, "number of open files"));
                }
                let failed = |error| Error::from_io(&error, path.display().to_string());
                let metadata = file.metadata().map_err(failed)?;
                let state = Identity::File(Fingerprint::from_metadata(&metadata));
                let caching = self.record_open(ino, state);
                let open = Arc::clone(&self.open_reference);
                let file = OrdinaryFile::local((file, open), caching, metadata.len());
                Ok((file, caching))
            }
            OpenContent::Object(object) => {
                let caching = self.record_open(ino, object.opened_identity());
                let stream = ReadStream::new();
                Ok((OrdinaryFile::Object { object, stream }, caching))
            }
        }
    }

    /// Records that the file was opened in this `state`, and returns how the kernel may cache its
    /// bytes. Pages that the kernel has cached are valid if the state is the same as at the last
    /// open and no write was in progress. A recently written file is not cached: after a
    /// truncation, the kernel would pad it with zeros to its old length.
    fn record_open(&self, ino: Ino, state: Identity) -> Caching {
        let mut states = lock(&self.states);
        if !state.is_unmodified_for(limits::UNSEEN_WRITE) {
            states.pop(&ino);
            return Caching::Never;
        }
        let before = states.put(ino, state.clone());
        if before == Some(state) {
            Caching::UntilChanged
        } else {
            Caching::WhileOpen
        }
    }
}

impl OrdinaryFile {
    /// Creates an open local file. `length` is the length that the kernel may assume, in bytes.
    fn local((file, open): (File, Arc<()>), caching: Caching, length: u64) -> Self {
        let length = if caching == Caching::Never { 0 } else { length };
        OrdinaryFile::Local {
            file,
            length,
            _open: open,
        }
    }

    /// Reads `length` bytes at `offset`. Fewer bytes are returned only at the end of the file.
    ///
    /// # Errors
    /// `ESTALE` if the file is shorter than the kernel assumes; otherwise the error of the
    /// operating system or the server.
    pub(super) fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        match self {
            OrdinaryFile::Local {
                file,
                length: known,
                ..
            } => read_local(file, *known, offset, length),
            OrdinaryFile::Object { object, stream } => read_object(object, stream, offset, length),
        }
    }

    /// Returns the version of the file's current content, for clients that cache a copy. `root` is
    /// the path or the URL of the archive.
    ///
    /// # Errors
    /// Fails with the error of the operating system.
    pub(super) fn version(&self, root: &Path) -> Result<Version> {
        let (length, identity) = match self {
            OrdinaryFile::Local { file, .. } => {
                let metadata = file.metadata();
                let metadata =
                    metadata.map_err(|error| Error::from_io(&error, "checking a file"))?;
                let identity = Identity::File(Fingerprint::from_metadata(&metadata));
                (metadata.len(), identity)
            }
            OrdinaryFile::Object { object, .. } => (object.length(), object.opened_identity()),
        };
        let is_strong = match &identity {
            Identity::Object(object) => object.state.has_strong_tag(),
            Identity::File(_) | Identity::Directory(_) => true,
        };
        Ok(Version {
            length,
            identity: Some(identity),
            generation: 0,
            state_tag: None,
            stored_in: is_strong.then(|| root.to_owned()),
        })
    }

    /// Returns the offset of the next data or hole at or after `offset`. A remote object has no
    /// holes.
    ///
    /// # Errors
    /// `ENXIO` past the end; otherwise the error of the operating system.
    pub(super) fn seek(&self, offset: u64, whence: SeekKind) -> Result<u64> {
        match (self, whence) {
            (OrdinaryFile::Local { file, .. }, whence) => {
                let to = match whence {
                    SeekKind::Data => SeekFrom::Data(offset),
                    SeekKind::Hole => SeekFrom::Hole(offset),
                };
                seek(file, to).map_err(|errno| Error::from_io(&errno.into(), "seek"))
            }
            (OrdinaryFile::Object { object, .. }, _) if offset >= object.length() => {
                Err(refusal_error(Errno::ENXIO, "seek"))
            }
            (OrdinaryFile::Object { .. }, SeekKind::Data) => Ok(offset),
            (OrdinaryFile::Object { object, .. }, SeekKind::Hole) => Ok(object.length()),
        }
    }
}

fn read_local(file: &File, known: u64, offset: u64, length: usize) -> Result<Bytes> {
    use rustix::io::Errno;
    let mut bytes = Vec::with_capacity(length);
    let mut at = offset;
    while bytes.len() < length {
        match pread(file, spare_capacity(&mut bytes), at) {
            Ok(0) if at < known => return Err(stale_error()),
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::from_io(&errno.into(), "reading a file")),
        }
        at = offset.saturating_add(to_u64(bytes.len()));
    }
    bytes.truncate(length);
    Ok(bytes.into())
}

fn read_object(
    object: &SharedOpenSource,
    stream: &ReadStream,
    offset: u64,
    length: usize,
) -> Result<Bytes> {
    let whole = object.length();
    let length = to_u64(length).min(whole.saturating_sub(offset));
    if length == 0 {
        return Ok(Vec::new().into());
    }
    let end = offset.saturating_add(length);
    if let Some(ahead) = stream.record_byte_read(offset, end, whole) {
        let length = ahead.end.saturating_sub(ahead.start);
        object.prefetch(&[(ahead.start, length)], Urgency::Expected);
    }
    Ok(read_block(&**object, offset, length, "object")?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(path: &str) -> Identity {
        Identity::File(Fingerprint::from_metadata(
            &std::fs::metadata(path).unwrap(),
        ))
    }

    #[test]
    fn cached_content_belongs_to_one_file_state() {
        let files = OrdinaryFiles::default();
        // The directory `/usr` has not changed for a long time.
        let old = state("/usr");
        assert!(old.is_unmodified_for(limits::UNSEEN_WRITE));
        assert_eq!(files.record_open(7, old.clone()), Caching::WhileOpen);
        assert_eq!(files.record_open(7, old.clone()), Caching::UntilChanged);
        assert_eq!(files.record_open(8, old.clone()), Caching::WhileOpen);
        let young = tempfile::NamedTempFile::new().unwrap();
        let young = state(young.path().to_str().unwrap());
        for _ in 0..2 {
            assert_eq!(files.record_open(7, young.clone()), Caching::Never);
        }
        assert_eq!(files.record_open(7, old), Caching::WhileOpen);
    }

    #[test]
    fn a_file_that_the_kernel_keeps_and_that_becomes_shorter_is_stale() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, b"elements").unwrap();
        let open =
            |caching| OrdinaryFile::local((file.reopen().unwrap(), Arc::default()), caching, 8);
        let (kept, direct) = (open(Caching::WhileOpen), open(Caching::Never));
        for open in [&kept, &direct] {
            assert_eq!(&open.read(2, 100).unwrap()[..], b"ements");
            assert!(open.read(8, 1).unwrap().is_empty());
        }
        file.as_file().set_len(3).unwrap();
        assert_eq!(&kept.read(0, 3).unwrap()[..], b"ele");
        assert_eq!(kept.read(0, 8).unwrap_err(), stale_error());
        assert_eq!(&direct.read(0, 8).unwrap()[..], b"ele");
    }
}
