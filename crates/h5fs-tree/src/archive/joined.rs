//! The source of a joined file: all or some data files of an archive, and the detection of changes.
//!
//! | file | content |
//! |---|---|
//! | `listing` | the joined files at one time, and the omitted files |
//! | `temporary` | names of temporary files, which are omitted |
//! | `watcher` | checks in the background whether the directory has changed |
//! | `source` | the files as the source of a joined file |
//! | `member` | opens one of the files |
//! | `progress` | counts the scanned files |

mod listing;
pub(super) mod member;
pub(super) mod progress;
mod source;
mod temporary;
mod watcher;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use h5fs_joined::choice::JoinChoice;
use h5fs_reader::detect;
use h5fs_reader::error::Result;
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::directory::Directory;
use h5fs_reader::source::identity::{DirectoryIdentity, Identity};
use h5fs_reader::source::open::SharedOpenSource;

use crate::archive::entry_inspector::EntryInspector;
use crate::archive::joined::listing::{FileLister, FileListing, ListedFile};
use crate::archive::joined::progress::ScanProgress;
use crate::archive::joined::source::{JoinedSourceState, OpenJoinedSource};
use crate::archive::joined::watcher::DirectoryWatcher;
use crate::options::Options;

/// Time for which the result of checking a local directory for changes is valid.
const LOCAL_CHECK_VALIDITY: Duration = Duration::from_secs(1);

/// Time for which the result of checking a remote directory for changes is valid. Each check needs
/// a request for each page of the listing.
const REMOTE_CHECK_VALIDITY: Duration = Duration::from_secs(30);

/// Maximum number of omitted files for which each check for changes tests whether a writer still
/// has them locked.
const MAX_LOCKED_FILES: usize = 64;

/// The files of a directory that form a joined file, and the detection of changes.
pub(super) struct JoinedFiles {
    lister: FileLister,
    /// The listing of the files when the joined file was last opened.
    opened: Mutex<Arc<FileListing>>,
    /// The last check's time and its listing of the files, if this listing differs from `opened`.
    changed_listing: Mutex<Option<(Instant, FileListing)>>,
    /// Files that are omitted while a writer has locked them.
    locked: Mutex<Vec<PathBuf>>,
    /// Number of times that a file in `locked` was found unlocked. Part of the hash of a listing.
    unlock_count: AtomicUsize,
    was_opened: AtomicBool,
    /// Remote files whose state when opened differed from their state in the listing. Scan results
    /// stored by earlier mounts are not used for these files.
    distrusted: Mutex<HashSet<(PathBuf, Identity)>>,
    pub(super) progress: Arc<ScanProgress>,
}

impl JoinedFiles {
    pub(super) fn new(
        (root, look): (&Arc<dyn Directory>, &Arc<EntryInspector>),
        choice: JoinChoice,
        progress: &Arc<ScanProgress>,
        options: &Options,
    ) -> Arc<Self> {
        Arc::new(JoinedFiles {
            lister: FileLister {
                root: Arc::clone(root),
                inspector: Arc::clone(look),
                choice,
                allow_other: options.allow_other,
                partial: options.partial,
            },
            opened: Mutex::default(),
            changed_listing: Mutex::default(),
            locked: Mutex::default(),
            unlock_count: AtomicUsize::new(0),
            was_opened: AtomicBool::new(false),
            distrusted: Mutex::default(),
            progress: Arc::clone(progress),
        })
    }

    /// Lists the files and opens them as one source, which reports when the files change.
    ///
    /// # Errors
    /// Fails as [`FileLister::list`] does.
    pub(super) fn open(self: &Arc<Self>, cancel: &CancelToken) -> Result<SharedOpenSource> {
        let found = lock(&self.changed_listing).take();
        let listing = match found.filter(|(when, _)| when.elapsed() < LOCAL_CHECK_VALIDITY) {
            Some((_, listing)) => listing,
            None => {
                if self.was_opened.swap(true, Ordering::Relaxed) {
                    // The source is opened again because something has changed.
                    self.root().forget_listings();
                }
                self.list(cancel)?
            }
        };
        let hash = listing.hash;
        *lock(&self.opened) = Arc::new(listing);
        lock(&self.locked).clear();
        let identity = Identity::Directory(Arc::new(DirectoryIdentity {
            path: self.root().path().to_path_buf(),
            state: hash,
        }));
        let valid = if self.root().is_remote() {
            REMOTE_CHECK_VALIDITY
        } else {
            LOCAL_CHECK_VALIDITY
        };
        let files = Arc::downgrade(self);
        let look = move || {
            files
                .upgrade()
                .is_some_and(|files| files.is_listing_changed(hash))
        };
        Ok(Arc::new(OpenJoinedSource {
            root: Arc::clone(self.root()),
            state: Arc::new(JoinedSourceState(identity)),
            watcher: DirectoryWatcher::new(valid, Box::new(look)),
            allow_other: self.lister.allow_other,
        }))
    }

    /// Returns the directory that contains the files.
    pub(super) fn root(&self) -> &Arc<dyn Directory> {
        &self.lister.root
    }

    /// Returns which files are joined, and along which dimension.
    pub(super) fn choice(&self) -> &JoinChoice {
        &self.lister.choice
    }

    /// Returns the listing of the files when the joined file was last opened.
    pub(super) fn opened_listing(&self) -> Arc<FileListing> {
        Arc::clone(&lock(&self.opened))
    }

    fn list(&self, cancel: &CancelToken) -> Result<FileListing> {
        self.lister
            .list(self.unlock_count.load(Ordering::Relaxed), cancel)
    }

    /// Lists the files again. Returns whether the hash of the new listing differs from `hash`.
    fn is_listing_changed(&self, hash: u64) -> bool {
        let is_one_free = self.has_unlocked_file();
        let when = Instant::now();
        // If the directory cannot be listed now, no change is known.
        let Ok(now) = self.list(&CancelToken::default()) else {
            return is_one_free;
        };
        let differ = now.hash != hash;
        if differ {
            *lock(&self.changed_listing) = Some((when, now));
        }
        differ
    }

    /// Records that the file at `path` is omitted because a writer has locked it. Later checks try
    /// to lock it again.
    fn set_locked(&self, path: &Path) {
        let mut locked = lock(&self.locked);
        if locked.len() < MAX_LOCKED_FILES && !locked.iter().any(|own| own == path) {
            locked.push(path.to_path_buf());
        }
    }

    /// Records that the state of the remote file `file` when opened differed from its state in the
    /// listing.
    fn ignore_stored_scan(&self, file: &ListedFile) {
        if self.root().is_remote() {
            let own = (file.path.clone(), file.state.clone());
            lock(&self.distrusted).insert(own);
        }
    }

    fn ignores_stored_scan(&self, file: &ListedFile) -> bool {
        let distrusted = lock(&self.distrusted);
        !distrusted.is_empty() && distrusted.contains(&(file.path.clone(), file.state.clone()))
    }

    fn is_locked(&self, path: &Path) -> bool {
        let opened = self.root().open(path, &|| true).and_then(|opened| {
            let absolute = self.root().absolute_path(path);
            opened.content.into_source(&absolute, None)
        });
        opened.is_ok_and(|source| detect::refuse_locked(&*source).is_err())
    }

    /// Returns whether a writer has unlocked one of the omitted files. If so, the next listing has
    /// another hash.
    fn has_unlocked_file(&self) -> bool {
        let locked = lock(&self.locked).clone();
        let is_free = locked.iter().any(|path| !self.is_locked(path));
        if is_free {
            lock(&self.locked).clear();
            self.unlock_count.fetch_add(1, Ordering::Relaxed);
        }
        is_free
    }
}
