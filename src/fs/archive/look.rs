//! What stands at a path of an archive: one look, which reads no more than the first bytes.

use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lru::LruCache;
use nix::errno::Errno;

use crate::detect;
use crate::error::{Error, Result};
use crate::fs::archive::entries::{EntryKind, Place};
use crate::fs::errno::refusal;
use crate::fs::options::Options;
use crate::fs::stat::{Entry, Kind, Origin, Stat};
use crate::fs::symlink;
use crate::limits;
use crate::memory::lock::lock;
use crate::source::beneath::Beneath;
use crate::source::file::FileSource;
use crate::source::identity::{Fingerprint, Identity};
use crate::source::open::OpenSource;

/// How long the kernel may keep what it is told: as long as a name may be stale.
pub(super) const LIFETIME: Duration = Duration::from_secs(1);

/// Files of which the kind is remembered.
const KNOWN: NonZeroUsize = NonZeroUsize::new(limits::KNOWN_KINDS).unwrap();

/// Looks at paths.
pub(super) struct Look {
    root: Arc<Beneath>,
    options: Options,
    /// What the first bytes of files told, by the files' states: a name is looked up after it was
    /// listed.
    kinds: Mutex<LruCache<Fingerprint, EntryKind>>,
}

/// What was found at a path.
pub(super) struct Found {
    pub(super) kind: EntryKind,
    metadata: Metadata,
    /// The permission bits; where others are let in, none for users that an access control list
    /// keeps out.
    mode: u32,
    state: u32,
}

impl Found {
    /// As an entry of the directory `parent`.
    pub(super) fn place(&self, parent: u64, is_original: bool) -> Place {
        Place {
            parent,
            kind: self.kind,
            is_original,
            state: self.state,
            file: self.metadata.ino(),
        }
    }
}

/// What the system said of what stands at `path`.
pub(super) fn said<T>(result: io::Result<T>, path: &Path) -> Result<T> {
    result.map_err(|error| match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT | Errno::ENOTDIR) => Error::NotFound,
        _ => Error::io(&error, path.display().to_string()),
    })
}

impl Look {
    pub(super) fn new(root: &Arc<Beneath>, options: &Options) -> Self {
        Look {
            root: Arc::clone(root),
            options: options.clone(),
            kinds: Mutex::new(LruCache::sparse(KNOWN)),
        }
    }

    /// What stands at `path`; for the tree of the files' own bytes, each regular file is one.
    /// `known` is what was found there before: its first bytes are not read again as long as
    /// nothing has changed.
    ///
    /// # Errors
    /// `NotFound` where nothing stands there that can be shown; else as the system says.
    pub(super) fn at(&self, path: &Path, is_original: bool, known: Option<Place>) -> Result<Found> {
        let (metadata, mode) = said(self.metadata(path), path)?;
        let fingerprint = Fingerprint::of(&metadata);
        let state = hash(&fingerprint);
        let kind = if metadata.is_dir() {
            self.refuse_own_mount(path)?;
            EntryKind::Directory
        } else if metadata.is_symlink() {
            EntryKind::Symlink
        } else if !metadata.is_file() {
            // A device or a FIFO is nothing to be read.
            return Err(Error::NotFound);
        } else if is_original {
            EntryKind::File
        } else {
            let known = known.filter(|known| known.state == state);
            match known.map(|known| known.kind) {
                Some(kind @ (EntryKind::DataFile | EntryKind::File)) => kind,
                _ => self.kind_of_file(path, fingerprint),
            }
        };
        Ok(Found {
            kind,
            metadata,
            mode,
            state,
        })
    }

    fn metadata(&self, path: &Path) -> io::Result<(Metadata, u32)> {
        if self.options.allow_other {
            let (metadata, audience) = self.root.audience(path)?;
            return Ok((metadata, audience.mode()));
        }
        let metadata = self.root.metadata(path)?;
        let mode = metadata.mode();
        Ok((metadata, mode))
    }

    /// The kind of a regular file, by its content. One that cannot be read is shown as it is: who
    /// opens it is told why.
    fn kind_of_file(&self, path: &Path, state: Fingerprint) -> EntryKind {
        if let Some(kind) = lock(&self.kinds).get(&state) {
            return *kind;
        }
        let absolute = self.root.absolute(path);
        let file = self.root.open_file(path);
        let source = file.map(|file| FileSource::from_file(file, &absolute, None));
        let Ok(Ok(source)) = source else {
            return EntryKind::File;
        };
        let kind = match detect::is_known(&source) {
            true => EntryKind::DataFile,
            false => EntryKind::File,
        };
        // A file that is being written may become another one without another time.
        let is_calm = state.rest().is_some_and(|rest| rest >= LIFETIME);
        if is_calm && source.opened() == Identity::File(state) {
            lock(&self.kinds).put(state, kind);
        }
        kind
    }

    /// The mount itself may stand in the directory that it shows: there is no way into it.
    fn refuse_own_mount(&self, path: &Path) -> Result<()> {
        let guard = self.options.guard.as_ref();
        let absolute = self.root.absolute(path);
        match guard.is_some_and(|guard| guard.is_on_the_way(&absolute)) {
            true => Err(refusal(Errno::EDEADLK, "it leads into the mount itself")),
            false => Ok(()),
        }
    }

    /// The entry `ino` as it was found at `path`.
    pub(super) fn entry(&self, ino: u64, found: &Found, path: &Path) -> Entry {
        let kind = found.kind.shown();
        let attributes = match found.kind {
            EntryKind::DataFile => {
                let origin = Origin::new(PathBuf::new(), &found.metadata);
                let mode = found.mode;
                Origin { mode, ..origin }.stat(ino, kind, &self.options)
            }
            EntryKind::Symlink => {
                let text = self.link_text(path).map_or(0, |text| text.len());
                let size = crate::wire::to_u64(text);
                let blocks = 0;
                Stat {
                    size,
                    blocks,
                    ..self.own_stat(ino, kind, found)
                }
            }
            _ => self.own_stat(ino, kind, found),
        };
        Entry {
            ino,
            generation: 0,
            attributes,
            cacheable: true,
        }
    }

    /// The attributes that the file itself has.
    fn own_stat(&self, ino: u64, kind: Kind, found: &Found) -> Stat {
        let (options, metadata) = (&self.options, &found.metadata);
        let mode = match kind {
            Kind::Symlink => 0o777,
            _ => found.mode & 0o777 & !options.umask.unwrap_or(0),
        };
        let is_file = kind == Kind::File;
        Stat {
            ino,
            kind,
            size: if is_file { metadata.size() } else { 0 },
            blocks: if is_file { metadata.blocks() } else { 0 },
            permissions: u16::try_from(mode).unwrap_or(0),
            links: 1,
            uid: options.uid.unwrap_or(metadata.uid()),
            gid: options.gid.unwrap_or(metadata.gid()),
            modified: (
                metadata.mtime(),
                u32::try_from(metadata.mtime_nsec()).unwrap_or(0),
            ),
        }
    }

    /// The text of the symbolic link at `path`. An absolute one that leads into the directory leads
    /// to the same place in the mount.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn link_text(&self, path: &Path) -> Result<Vec<u8>> {
        let text = PathBuf::from(said(self.root.read_link(path), path)?);
        let inside = text.strip_prefix(self.root.path());
        let is_plain = |name: Component<'_>| matches!(name, Component::Normal(_));
        match inside {
            Ok(inside) if inside.components().all(is_plain) => {
                let names = |path: &Path| -> Vec<Box<[u8]>> {
                    let names = path
                        .iter()
                        .map(|name| name.to_os_string().into_vec().into());
                    names.collect()
                };
                let from = path.parent().unwrap_or(Path::new(""));
                Ok(symlink::relative(&names(from), &names(inside)))
            }
            _ => Ok(text.into_os_string().into_vec()),
        }
    }
}

fn hash(state: &Fingerprint) -> u32 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    // Half of the bits do: the number stands beside a path.
    u32::try_from(hasher.finish() >> u32::BITS).unwrap_or(0)
}
