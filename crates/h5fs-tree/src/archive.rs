//! A directory of files shown as one tree, where each data file appears as a directory.
//!
//! | file | content |
//! |---|---|
//! | `requests` | the requests of the kernel |
//! | `entries` | files and directories that the kernel knows, with their numbers and paths |
//! | `entry_inspector` | the type of the entry at a path: a directory, a data file, another file, a link |
//! | `members`, `opening` | the open data files; how a data file is opened |
//! | `ordinary_files` | files that are shown unchanged |
//! | `status` | the status of the mount, as a text |
//! | `joined` | all data files as one: the list of files, and detection of changes |
//! | `member_inodes` | the numbers of the inodes within data files |
//! | `listing` | the entries of a directory |
//! | `root_names` | names in the root directory, where `.h5fs` is reserved |
//!
//! Files are read only on demand. Names and attributes are valid for a second, and each listing
//! reads its directory. New, deleted and changed files are thus noticed without a watch. A
//! [`Filesystem`] serves the content of each data file, as if that file were mounted alone.

mod entries;
mod entry_inspector;
mod heavy_members;
mod joined;
mod listing;
mod member_inodes;
mod members;
mod opening;
mod ordinary_files;
mod requests;
mod root_names;
mod status;

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use h5fs_joined::choice::{self, JoinChoice};
use h5fs_reader::array::{CancelToken, Engine, MemoryReservation};
use h5fs_reader::error::line::escape_to_one_line;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::directory::{Directory, DirectoryEntries};
use h5fs_reader::source::identity::Identity;
use h5fs_reader::source::local::changes::ChangeWatcher;
use h5fs_reader::wire::to_u64;
use h5fs_view::text_files::text::InMemoryContent;
use lru::LruCache;

use crate::archive::entries::{
    ERRORS, EntryKind, EntryProperties, JOINED, JOINED_STORE, KnownEntries, METRICS, ORIGINAL,
    README, STATUS, VIEWS, is_entry, joined_properties,
};
use crate::archive::entry_inspector::{EntryInspector, FoundEntry};
use crate::archive::joined::progress::ScanProgress;
use crate::archive::member_inodes::MemberInodes;
use crate::archive::members::{ArchiveMember, ArchiveMembers};
use crate::archive::opening::MemberOpener;
use crate::archive::ordinary_files::{OrdinaryFile, OrdinaryFiles};
use crate::errno::{is_denied, is_fault, stale_error};
use crate::filesystem::Filesystem;
use crate::limits;
use crate::name;
use crate::options::Options;
use crate::requests::{Ino, Requests};
use crate::stat::{FileKind, LookupEntry, Stat};
use crate::state::errors::{ErrorKind, RecentErrors};
use crate::state::handle::{Caching, Handle, HandleTarget, Handles, OpenedHandle};
use crate::state::inode::ROOT;
use crate::state::status_texts::StatusTexts;
use crate::state::traffic::RequestCounters;
use crate::views::readme;

/// Maximum number of paths for which the archive remembers the last logged error.
const MAX_LOGGED_PATHS: NonZeroUsize = NonZeroUsize::new(limits::OBJECT_ERRORS).unwrap();

/// Name of the directory `.h5fs/original`, which shows the data files as ordinary files with their
/// original bytes.
const ORIGINALS: &[u8] = b"original";

/// Name of the symbolic link in `.h5fs` to the Zarr store of the joined file. `STORE_TARGET` is the
/// text of the link.
const STORE: &[u8] = b"joined.zarr";
const STORE_TARGET: &[u8] = b"joined/.h5fs/file.zarr";

/// A text file in `.h5fs` about the mount itself, such as `status`.
struct ArchiveStatusFile {
    name: &'static [u8],
    ino: Ino,
    text: fn(&Archive) -> Vec<u8>,
}

/// All text files in `.h5fs` about the mount itself.
const STATUS_FILES: &[ArchiveStatusFile] = &[
    ArchiveStatusFile {
        name: b"status",
        ino: STATUS,
        text: Archive::status_text,
    },
    ArchiveStatusFile {
        name: b"metrics",
        ino: METRICS,
        text: Archive::metrics_text,
    },
    ArchiveStatusFile {
        name: b"errors",
        ino: ERRORS,
        text: |archive| archive.errors.text(),
    },
    ArchiveStatusFile {
        name: readme::NAME,
        ino: README,
        text: |_| readme::text(),
    },
];

impl ArchiveStatusFile {
    /// Returns the name, inode number and kind of this file, for the listing of `.h5fs`.
    const fn as_fixed_entry(&self) -> FixedEntry {
        (self.name, self.ino, FileKind::File)
    }
}

/// Names in the directory `.h5fs` of an archive, with inode numbers and kinds.
const VIEW_NAMES: &[FixedEntry] = &[
    (ORIGINALS, ORIGINAL, FileKind::Directory),
    (choice::NAME, JOINED, FileKind::Directory),
    (STORE, JOINED_STORE, FileKind::Symlink),
    STATUS_FILES[0].as_fixed_entry(),
    STATUS_FILES[1].as_fixed_entry(),
    STATUS_FILES[2].as_fixed_entry(),
    STATUS_FILES[3].as_fixed_entry(),
];

/// Iterates over the names in the directory `.h5fs` of an archive.
#[cfg(test)]
pub(crate) fn view_names() -> impl Iterator<Item = &'static [u8]> {
    VIEW_NAMES.iter().map(|(name, ..)| *name)
}

/// Name of the extended attribute with the reason why a data file cannot be read.
const ERROR_ATTRIBUTE: &[u8] = b"user.h5fs.error";

/// A mounted directory of files.
pub struct Archive {
    options: Options,
    root: Arc<dyn Directory>,
    engine: Arc<Engine>,
    inspector: Arc<EntryInspector>,
    /// Progress of scanning the data files to join them, for `.h5fs/status`.
    scan_progress: Arc<ScanProgress>,
    entries: KnownEntries,
    member_inodes: MemberInodes,
    members: ArchiveMembers,
    handles: Handles<OpenEntry>,
    status_texts: StatusTexts,
    /// Time when the directory was first found to be missing.
    missing_since: Mutex<Option<SystemTime>>,
    /// The last logged error of each path, so that the same error is logged only once.
    logged_errors: Mutex<LruCache<PathBuf, String>>,
    /// Errors of all data files of the directory, for `.h5fs/errors`.
    errors: Arc<RecentErrors>,
    traffic: RequestCounters,
    ordinary: OrdinaryFiles,
    started_at: Instant,
}

/// The name, inode number and kind of a directory entry that exists in every archive.
type FixedEntry = (&'static [u8], Ino, FileKind);

/// The file or directory that an inode number of the archive identifies.
enum InodeTarget {
    /// The directory `.h5fs` at the root.
    Views,
    /// A text file in `.h5fs` about the mount itself.
    Status(&'static ArchiveStatusFile),
    /// The symbolic link in `.h5fs` to the Zarr store of the joined file.
    StoreLink,
    /// A file or directory below the mounted directory, with its path from the root of the archive.
    Entry(EntryProperties, PathBuf),
    /// An inode within a data file: the data file, and the inode number in the data file's own
    /// tree.
    InMember(Arc<ArchiveMember>, Ino),
}

/// The content of a handle: an open file or directory of the archive.
struct OpenEntry {
    content: ArchiveContent,
    _held: MemoryReservation,
}

/// An open file or directory within a data file.
struct OpenMemberInode {
    member: Arc<ArchiveMember>,
    /// Inode number in the data file's own tree.
    local_ino: Ino,
    is_directory: bool,
    /// For a growing data file, the state of the data file when this file was opened. `None` if
    /// reads may return bytes of later states.
    state: Option<Identity>,
    is_cancelled_on_close: bool,
}

impl HandleTarget for OpenEntry {
    fn is_cancelled_on_close(&self) -> bool {
        matches!(&self.content, ArchiveContent::InMember(inner) if inner.is_cancelled_on_close)
    }

    /// Returns false, because the data file that contains the open file detects the end of its own
    /// state.
    fn has_ended(&self) -> bool {
        false
    }
}

enum ArchiveContent {
    InMember(OpenMemberInode),
    File(OrdinaryFile),
    Directory {
        ino: Ino,
        names: Mutex<Box<dyn DirectoryEntries>>,
    },
    Text(InMemoryContent),
    /// The directory `.h5fs`, or the directory of a data file that cannot be read. Its entries are
    /// fixed.
    Fixed {
        ino: Ino,
        names: &'static [FixedEntry],
    },
}

impl Archive {
    /// Creates the archive of the files below `root`. `changes` is the watcher that reports writes
    /// to open files.
    pub fn new(
        root: Arc<dyn Directory>,
        changes: Option<Arc<ChangeWatcher>>,
        options: &Options,
    ) -> Self {
        let engine = Engine::new(options.cache_size, options.threads);
        let errors = Arc::<RecentErrors>::default();
        let look = Arc::new(EntryInspector::new(&root, options));
        let joining = Arc::default();
        let opener = MemberOpener::new(
            (&root, &look),
            &joining,
            (&engine, &errors),
            changes,
            options,
        );
        Archive {
            options: options.clone(),
            inspector: look,
            scan_progress: joining,
            members: ArchiveMembers::new(
                Box::new(move |opening| opener.open(opening)),
                options.open_files,
            ),
            root,
            engine,
            entries: KnownEntries::default(),
            member_inodes: MemberInodes::default(),
            handles: Handles::default(),
            status_texts: StatusTexts::default(),
            missing_since: Mutex::default(),
            logged_errors: Mutex::new(LruCache::sparse(MAX_LOGGED_PATHS)),
            errors,
            traffic: RequestCounters::default(),
            ordinary: OrdinaryFiles::default(),
            started_at: Instant::now(),
        }
    }

    /// Opens the joined file of all data files, without using or evicting data files that requests
    /// have opened.
    ///
    /// # Errors
    /// Fails if the files cannot be joined.
    pub fn open_joined(&self) -> Result<Filesystem> {
        self.members
            .open_joined(Path::new(OsStr::from_bytes(choice::NAME)))
    }

    /// Logs why the file at `path` cannot be read, unless the last logged error of the path is the
    /// same.
    fn record_error(&self, path: &Path, error: &Error) {
        if matches!(error, Error::NotFound) || error.is_transient() && !is_denied(error) {
            return;
        }
        let text = error.to_string();
        let name = path.display().to_string();
        let reason = text.strip_prefix(&format!("{name}: ")).unwrap_or(&text);
        let mut logged = lock(&self.logged_errors);
        if logged.get(path).is_none_or(|known| known != reason) {
            log::warn!("{name}: {reason}");
            self.errors.add(
                ErrorKind::from_error(error),
                &escape_to_one_line(&name),
                reason,
            );
            logged.put(path.to_path_buf(), reason.to_owned());
        }
    }

    fn inode_target(&self, ino: Ino) -> Result<InodeTarget> {
        if ino == VIEWS {
            return Ok(InodeTarget::Views);
        }
        if let Some(told) = STATUS_FILES.iter().find(|told| told.ino == ino) {
            return Ok(InodeTarget::Status(told));
        }
        if ino == JOINED_STORE {
            return Ok(InodeTarget::StoreLink);
        }
        if is_entry(ino) {
            let (place, path) = self.entries.get(ino).ok_or_else(stale_error)?;
            return Ok(InodeTarget::Entry(place, path));
        }
        let (member, local) = self.member_inodes.get(ino).ok_or_else(stale_error)?;
        Ok(InodeTarget::InMember(member, local))
    }

    /// Determines the type of the entry at `path`. `known` contains the properties from the
    /// previous lookup of the entry.
    fn inspect(
        &self,
        path: &Path,
        is_original: bool,
        known: Option<EntryProperties>,
    ) -> Result<FoundEntry> {
        self.inspector.inspect(path, is_original, known)
    }

    /// Looks up `name` in the directory `parent`, increments the lookup count of its inode, and
    /// returns its entry. `of` is the path of the directory, and whether it is below
    /// `.h5fs/original`.
    fn lookup_entry(&self, parent: Ino, of: (&Path, bool), name: &[u8]) -> Result<LookupEntry> {
        let (path, is_original) = of;
        if parent == ROOT && name == name::VIEWS {
            return self.fixed_entry(VIEWS);
        }
        let name = root_names::real_name(parent == ROOT, name);
        let path = path.join(OsStr::from_bytes(&name));
        let known = self.entries.known_properties(parent, &name);
        let found = self.inspect(&path, is_original, known)?;
        Ok(self.add_entry_lookup((parent, is_original), &name, (&path, &found)))
    }

    /// Increments the lookup count of `name` in the directory `parent` and returns its entry.
    /// `found` is the result of inspecting `path`, the path of `name`.
    fn add_entry_lookup(
        &self,
        (parent, is_original): (Ino, bool),
        name: &[u8],
        (path, found): (&Path, &FoundEntry),
    ) -> LookupEntry {
        let place = found.properties(parent, is_original);
        let ino = self.entries.add_lookup(name, place);
        self.inspector.lookup_reply(ino, found, (path, is_original))
    }

    /// Returns the directory entry for an inode number that exists in every archive, such as the
    /// number of `.h5fs`.
    fn fixed_entry(&self, ino: Ino) -> Result<LookupEntry> {
        let path = Path::new("");
        let found = self.inspect(path, true, None)?;
        Ok(self.inspector.lookup_reply(ino, &found, (path, true)))
    }

    /// Calls `answer` with the filesystem of the data file whose directory has the inode number
    /// `ino`. The outer error means that the data file cannot be opened. The inner result is the
    /// result of `answer`.
    fn with_data_file<T>(
        &self,
        (ino, place, path): (Ino, EntryProperties, &Path),
        cancel: &CancelToken,
        answer: impl FnOnce(&Filesystem) -> Result<T>,
    ) -> Result<Result<T>> {
        let member = self.member(ino, place, path);
        let answered = self
            .members
            .with_member(&member, cancel, |filesystem| Ok(answer(filesystem)));
        answered.map_err(|error| self.log_open_error(path, error))
    }

    /// Returns the data file, or the joined file, whose directory has the inode number `ino`.
    fn member(&self, ino: Ino, place: EntryProperties, path: &Path) -> Arc<ArchiveMember> {
        self.members.get(ino, path, place.kind == EntryKind::Joined)
    }

    /// Looks up the joined file called `name` in `.h5fs`, increments its lookup count, and returns
    /// its entry.
    fn lookup_joined(&self, name: &[u8]) -> Result<LookupEntry> {
        if name == choice::NAME {
            return self.fixed_entry(JOINED);
        }
        JoinChoice::parse(name).ok_or(Error::NotFound)?;
        let ino = self.entries.add_lookup(name, joined_properties(VIEWS));
        self.fixed_entry(ino)
    }

    /// Returns the entry of the symbolic link in `.h5fs` to the Zarr store of the joined file.
    fn store_link(&self) -> Result<LookupEntry> {
        let entry = self.fixed_entry(JOINED_STORE)?;
        let attributes = Stat {
            kind: FileKind::Symlink,
            size: to_u64(STORE_TARGET.len()),
            permissions: 0o777,
            links: 1,
            ..entry.attributes
        };
        Ok(LookupEntry {
            attributes,
            ..entry
        })
    }

    /// Logs why the data file at `path` cannot be opened, and returns the error. Returns `ESTALE`
    /// if the path is no longer a data file.
    fn log_open_error(&self, path: &Path, error: Error) -> Error {
        if is_caused_by_content(&error) && self.inspector.is_ordinary_by_content(path) {
            return stale_error();
        }
        self.record_error(path, &error);
        error
    }

    /// Increments the lookup count of the inode with the number `local` in `member`. Returns the
    /// inode number in the mount.
    fn add_member_lookup(&self, member: &Arc<ArchiveMember>, local: Ino) -> Ino {
        let (ino, is_new) = self.member_inodes.add_lookup(member, local);
        if is_new {
            self.members.add_use(member);
        }
        ino
    }

    /// Opens an ordinary file, which is shown unchanged. `ino` is the inode number of the file.
    fn open_ordinary(
        &self,
        ino: Ino,
        (place, path): (EntryProperties, &Path),
        cancel: &CancelToken,
    ) -> Result<OpenedHandle> {
        let opened = self.root.open(path, &|| !cancel.is_cancelled());
        let opened = opened.map_err(stale_if_missing);
        let opened = opened.inspect_err(|error| self.record_error(path, error))?;
        if opened.entry_id != place.file_ino {
            // The kernel has the length of another file, and will look up the name again.
            return Err(stale_error());
        }
        let (file, caching) = self.ordinary.open(ino, opened.content, path)?;
        self.insert(ArchiveContent::File(file), caching)
    }

    fn insert(&self, content: ArchiveContent, caching: Caching) -> Result<OpenedHandle> {
        self.insert_at_handle(self.handles.new_handle(), content, caching)
    }

    fn insert_at_handle(
        &self,
        handle: Handle,
        content: ArchiveContent,
        caching: Caching,
    ) -> Result<OpenedHandle> {
        let _held = self.engine.reserve_memory(limits::OPEN_HANDLE)?;
        self.handles
            .insert(handle, OpenEntry { content, _held }, caching)
    }

    /// Opens the file or directory with the inode number `local` in `member`. `member` registers it
    /// under the same handle as the archive.
    fn open_in_member(
        &self,
        (member, local, is_directory): (&Arc<ArchiveMember>, Ino, bool),
        cancel: &CancelToken,
    ) -> Result<OpenedHandle> {
        let handle = self.handles.new_handle();
        self.members.with_member(member, cancel, |filesystem| {
            let own = filesystem.open_under_handle(handle, (local, is_directory), cancel)?;
            let content = ArchiveContent::InMember(OpenMemberInode {
                member: Arc::clone(member),
                local_ino: local,
                is_directory,
                state: filesystem.pinned_state(handle),
                is_cancelled_on_close: own.is_cancelled_on_close,
            });
            let caching = match own.caching {
                // The listing may become outdated, and no notification tells the kernel.
                Caching::UntilChanged if is_directory => Caching::WhileOpen,
                caching => caching,
            };
            let inserted = self.insert_at_handle(handle, content, caching);
            if inserted.is_ok() {
                self.members.add_use(member);
            } else {
                filesystem.release(handle);
            }
            inserted
        })
    }

    /// Calls `answer` with the filesystem of the data file that contains the open file of `handle`.
    /// If the data file was closed and reopened in the meantime, first reopens the file under the
    /// same handle.
    fn with_open_member<T>(
        &self,
        handle: Handle,
        inner: &OpenMemberInode,
        cancel: &CancelToken,
        answer: impl FnOnce(&Filesystem) -> Result<T>,
    ) -> Result<T> {
        self.members
            .with_member_without_refresh(&inner.member, cancel, |filesystem| {
                if !filesystem.is_handle_open(handle) {
                    filesystem.open_under_handle(
                        handle,
                        (inner.local_ino, inner.is_directory),
                        cancel,
                    )?;
                    if filesystem.pinned_state(handle) != inner.state {
                        // The file has grown while the member was closed.
                        filesystem.release(handle);
                        return Err(stale_error());
                    }
                }
                answer(filesystem)
            })
    }
}

/// Returns whether the data file's own content is the cause of the error, for example damage or an
/// unknown format.
fn is_caused_by_content(error: &Error) -> bool {
    is_fault(error) || matches!(error, Error::Usage(_))
}

/// Returns whether the error is permanent. The directory of a data file with a permanent error
/// appears empty. For temporary errors, an empty listing would be wrong, because the data file may
/// be readable later.
fn is_permanent(error: &Error) -> bool {
    is_caused_by_content(error) && !error.is_transient()
}

/// Replaces the inode number of a data file's entry by the inode number in the mount.
fn with_inode_number(mut entry: LookupEntry, ino: Ino) -> LookupEntry {
    entry.ino = ino;
    entry.attributes.ino = ino;
    entry
}

/// Converts `NotFound` to `ESTALE`, for an entry that an earlier lookup has found.
fn stale_if_missing(error: Error) -> Error {
    match error {
        Error::NotFound => stale_error(),
        other => other,
    }
}
