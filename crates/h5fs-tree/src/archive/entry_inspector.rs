//! The type of the entry at a path of an archive. At most the first bytes of a file are read.
//!
//! In a remote directory, the file name decides until the file is opened. A name with the suffix of
//! data files counts as a data file. A name of a text, a picture or an archive counts as an
//! ordinary file. Listing a remote directory reads no files at all.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use h5fs_reader::detect;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::directory::{Directory, EntryType, PathInfo};
use h5fs_reader::source::identity::Identity;
use lru::LruCache;
use nix::errno::Errno;

use crate::archive::entries::{EntryKind, EntryProperties};
use crate::archive::root_names;
use crate::errno::refusal_error;
use crate::limits;
use crate::options::Options;
use crate::stat::{FileKind, LookupEntry, SourceAttributes, Stat};

/// Time for which the kernel may cache a reply. A change in the directory is thus visible after at
/// most this time.
pub(super) const LIFETIME: Duration = Duration::from_secs(1);

/// Maximum number of files whose type is cached.
const KNOWN: NonZeroUsize = NonZeroUsize::new(limits::KNOWN_KINDS).unwrap();

/// Determines the type of an entry: directory, data file, other file, or symbolic link.
pub(super) struct EntryInspector {
    root: Arc<dyn Directory>,
    options: Options,
    /// The types of files by file state, as determined from the first bytes of each file. A lookup
    /// often follows a listing of the same name, and then needs no read.
    kinds: Mutex<LruCache<Identity, EntryKind>>,
}

/// The file, directory or link found at a path, with its type.
pub(super) struct FoundEntry {
    pub(super) kind: EntryKind,
    pub(super) info: PathInfo,
    state: u32,
    /// The error that prevented determining the type of a regular file from its content.
    pub(super) read_error: Option<Error>,
}

impl FoundEntry {
    /// Returns the properties to store for the found entry in the directory `parent`.
    pub(super) fn properties(&self, parent: u64, is_original: bool) -> EntryProperties {
        EntryProperties {
            parent,
            kind: self.kind,
            is_original,
            state_hash: self.state,
            file_ino: self.info.entry_id,
        }
    }
}

impl EntryInspector {
    pub(super) fn new(root: &Arc<dyn Directory>, options: &Options) -> Self {
        EntryInspector {
            root: Arc::clone(root),
            options: options.clone(),
            kinds: Mutex::new(LruCache::sparse(KNOWN)),
        }
    }

    /// Returns the entry at `path`. With `is_original`, every regular file is an ordinary file.
    /// `known` contains the properties from the previous lookup: the first bytes are read again
    /// only if the file has changed.
    ///
    /// # Errors
    /// `NotFound` if the path does not exist, or is a type of file that is not shown. Otherwise the
    /// error of the operating system.
    pub(super) fn inspect(
        &self,
        path: &Path,
        is_original: bool,
        known: Option<EntryProperties>,
    ) -> Result<FoundEntry> {
        let for_others = self.options.allow_other;
        let there = if detect::has_data_file_extension(path.as_os_str().as_bytes()) {
            self.root.path_info_before_read(path, for_others)?
        } else {
            self.root.path_info(path, for_others)?
        };
        let state = hash(&there.identity);
        let mut unread = None;
        let kind = match there.kind {
            EntryType::Directory => {
                self.refuse_own_mount(path)?;
                EntryKind::Directory
            }
            EntryType::Symlink => EntryKind::Symlink,
            EntryType::Other => return Err(Error::NotFound),
            EntryType::File if is_original => EntryKind::File,
            EntryType::File => {
                let known = known.filter(|known| known.state_hash == state);
                let known = self
                    .cached_kind(&there.identity)
                    .or(known.map(|known| known.kind));
                match known {
                    Some(kind @ (EntryKind::DataFile | EntryKind::File)) => kind,
                    // An unreadable file is shown as an ordinary file, and opening it reports the
                    // error.
                    _ => self
                        .kind_of_file(path, &there.identity)
                        .unwrap_or_else(|error| {
                            unread = Some(error);
                            EntryKind::File
                        }),
                }
            }
        };
        Ok(FoundEntry {
            kind,
            info: there,
            state,
            read_error: unread,
        })
    }

    /// Returns the entry at `path`, which the listing of a remote directory contains with the
    /// metadata `there`. Returns `None` if the type depends on the file's first bytes, because
    /// listings do not read files.
    pub(super) fn inspect_listed(
        &self,
        path: &Path,
        is_original: bool,
        there: &PathInfo,
    ) -> Option<FoundEntry> {
        let kind = match there.kind {
            EntryType::Directory => EntryKind::Directory,
            EntryType::Symlink => EntryKind::Symlink,
            EntryType::Other => return None,
            EntryType::File if is_original => EntryKind::File,
            EntryType::File => self.kind_without_reading(path, &there.identity)?,
        };
        let (state, there) = (hash(&there.identity), there.clone());
        Some(FoundEntry {
            kind,
            info: there,
            state,
            read_error: None,
        })
    }

    /// Returns whether the directory is remote, so that inspecting an entry may need a request to a
    /// server.
    pub(super) fn is_remote(&self) -> bool {
        self.root.is_remote()
    }

    /// Returns the type of a remote object if its name alone decides it, else `None`. A name with
    /// the suffix of data files counts as a data file even if it is a directory: both are shown as
    /// directories.
    pub(super) fn kind_by_name(&self, path: &Path, is_original: bool) -> Option<EntryKind> {
        let is_data = !is_original && detect::has_data_file_extension(path.as_os_str().as_bytes());
        is_data.then_some(EntryKind::DataFile)
    }

    /// Returns the type of the regular file at `path` in the state `state`: the cached type, or the
    /// type that its first bytes show.
    ///
    /// # Errors
    /// Fails if the file cannot be opened.
    fn kind_of_file(&self, path: &Path, state: &Identity) -> Result<EntryKind> {
        let known = self.kind_without_reading(path, state);
        known.map_or_else(|| self.kind_by_content(path, state), Ok)
    }

    fn kind_by_content(&self, path: &Path, state: &Identity) -> Result<EntryKind> {
        let absolute = self.root.absolute_path(path);
        let opened = self.root.open(path, &|| true)?;
        let source = opened.content.into_source(&absolute, None)?;
        let is_known = if self.root.is_remote() {
            detect::object_has_known_signature(&*source)
        } else {
            detect::has_known_signature(&*source)
        };
        let kind = if is_known {
            EntryKind::DataFile
        } else {
            EntryKind::File
        };
        // The type of a file that is being written may change without a new time stamp.
        let is_same = self.root.is_remote() || source.opened_identity() == *state;
        if state.is_unmodified_for(LIFETIME) && is_same {
            lock(&self.kinds).put(state.clone(), kind);
        }
        Ok(kind)
    }

    fn kind_without_reading(&self, path: &Path, state: &Identity) -> Option<EntryKind> {
        let name = path.as_os_str().as_bytes();
        let by_name = || match self.root.is_remote() {
            true if detect::has_data_file_extension(name) => Some(EntryKind::DataFile),
            true if detect::has_foreign_extension(name) => Some(EntryKind::File),
            _ => None,
        };
        self.cached_kind(state).or_else(by_name)
    }

    /// Returns the cached type of the file with the identity `state`.
    fn cached_kind(&self, state: &Identity) -> Option<EntryKind> {
        lock(&self.kinds).get(state).copied()
    }

    /// Returns whether the remote file at `path`, which could not be opened as a data file, is an
    /// ordinary file according to its content. Its name alone had suggested a data file.
    pub(super) fn is_ordinary_by_content(&self, path: &Path) -> bool {
        let there = self.root.path_info(path, false);
        let Some(there) = there.ok().filter(|_| self.root.is_remote()) else {
            return false;
        };
        let known = self.cached_kind(&there.identity);
        let kind = known.map_or_else(|| self.kind_by_content(path, &there.identity), Ok);
        kind == Ok(EntryKind::File)
    }

    /// Checks that `path` does not lead into the mount itself: the mount point may be inside the
    /// directory that the mount shows, and a read would wait for its own reply.
    fn refuse_own_mount(&self, path: &Path) -> Result<()> {
        let guard = self
            .options
            .guard
            .as_ref()
            .filter(|_| !self.root.is_remote());
        let absolute = self.root.absolute_path(path);
        if guard.is_some_and(|guard| guard.is_crossed_by(&absolute)) {
            Err(refusal_error(
                Errno::EDEADLK,
                "it leads into the mount itself",
            ))
        } else {
            Ok(())
        }
    }

    /// Returns the reply to a lookup of `found`, with the inode number `ino`. `at` is the path, and
    /// whether it is below `.h5fs/original`.
    pub(super) fn lookup_reply(
        &self,
        ino: u64,
        found: &FoundEntry,
        at: (&Path, bool),
    ) -> LookupEntry {
        let kind = found.kind.file_kind();
        let attributes = match found.kind {
            EntryKind::DataFile | EntryKind::Joined => {
                let origin = SourceAttributes::new(PathBuf::new(), found.info.attributes);
                origin.stat(ino, kind, &self.options)
            }
            EntryKind::Symlink => {
                let text = self.link_text(at).map_or(0, |text| text.len());
                let size = h5fs_reader::wire::to_u64(text);
                let blocks = 0;
                Stat {
                    size,
                    blocks,
                    ..self.stat_of_original(ino, kind, found)
                }
            }
            _ => self.stat_of_original(ino, kind, found),
        };
        LookupEntry {
            ino,
            generation: 0,
            attributes,
            is_cacheable: true,
            is_sized: true,
        }
    }

    /// Returns the attributes of an ordinary file or a link, copied from the file itself.
    fn stat_of_original(&self, ino: u64, kind: FileKind, found: &FoundEntry) -> Stat {
        let (options, attributes) = (&self.options, &found.info.attributes);
        let mode = match kind {
            FileKind::Symlink => 0o777,
            _ => attributes.mode & 0o777 & !options.umask.unwrap_or(0),
        };
        let is_file = kind == FileKind::File;
        Stat {
            ino,
            kind,
            size: if is_file { attributes.size } else { 0 },
            blocks: if is_file { found.info.blocks } else { 0 },
            permissions: u16::try_from(mode).unwrap_or(0),
            links: 1,
            uid: options.uid.unwrap_or(attributes.uid),
            gid: options.gid.unwrap_or(attributes.gid),
            modified: attributes.modified,
        }
    }

    /// Returns the text of the symbolic link at `path`, adjusted to lead to the same target in the
    /// mount. If `is_original`, the link leads to the target below `.h5fs/original`.
    ///
    /// # Errors
    /// Fails with the error of the operating system.
    pub(super) fn link_text(&self, (path, is_original): (&Path, bool)) -> Result<Vec<u8>> {
        let text = PathBuf::from(self.root.read_link(path)?);
        let own = || text.as_os_str().as_bytes().to_vec();
        Ok(root_names::link_text(self.root.path(), (path, is_original), &text).unwrap_or_else(own))
    }
}

fn hash(state: &Identity) -> u32 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    // Half of the bits are enough, because the hash is compared together with a path.
    u32::try_from(hasher.finish() >> u32::BITS).unwrap_or(0)
}
