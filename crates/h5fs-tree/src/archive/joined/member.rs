//! Opens the members of a joined file.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use h5fs_joined::members::{MemberFiles, MemberKey, OpenedMember};
use h5fs_reader::detect;
use h5fs_reader::error::{Cause, Error, Result};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::Source;
use h5fs_reader::source::identity::Identity;
use h5fs_reader::source::local::audience::Readers;
use h5fs_reader::source::neighbours::Neighbours;
use h5fs_reader::source::open::SharedOpenSource;
use nix::errno::Errno;
use sha2::{Digest, Sha256};

use crate::archive::joined::JoinedFiles;
use crate::archive::joined::listing::{FileListing, ListedFile};
use crate::errno;

/// Minimum time since a file's last modification before the result of scanning the file is stored
/// for later mounts. If a program writes to a memory map, the file's time changes only when the
/// system writes the page to disk, up to half a minute later.
const MIN_UNMODIFIED_TIME: Duration = Duration::from_secs(60);

/// Options for opening the data files that form a joined file.
#[derive(Debug, Clone, Copy)]
pub(in crate::archive) struct MemberOptions {
    pub(in crate::archive) force: bool,
    pub(in crate::archive) verify: bool,
    /// Whether a data file is omitted that cannot be opened because of a temporary error.
    pub(in crate::archive) partial: bool,
}

/// Opens the data files of one listing, for a joined file.
pub(in crate::archive) struct ListingOpener {
    files: Arc<JoinedFiles>,
    listing: Arc<FileListing>,
    neighbours: Arc<Neighbours>,
    caches: detect::Caches,
    options: MemberOptions,
    /// States in which remote data files were scanned, by the index of the file in the listing.
    /// Contains only files whose scanned state has information that the listing lacks, such as a
    /// version.
    scanned: Mutex<HashMap<usize, Identity>>,
}

impl ListingOpener {
    /// Creates an opener for the files of the most recent listing of `files`.
    pub(in crate::archive) fn new(
        files: &Arc<JoinedFiles>,
        neighbours: Arc<Neighbours>,
        caches: &detect::Caches,
        options: MemberOptions,
    ) -> Self {
        ListingOpener {
            files: Arc::clone(files),
            listing: files.opened_listing(),
            neighbours,
            caches: caches.clone(),
            options,
            scanned: Mutex::default(),
        }
    }

    fn file(&self, number: usize) -> Result<&ListedFile> {
        self.listing.files.get(number).ok_or(Error::NotFound)
    }

    /// Opens the bytes of a data file in its current state, for a request with the token `cancel`.
    fn open_source(&self, file: &ListedFile, cancel: &CancelToken) -> Result<SharedOpenSource> {
        let root = self.files.root();
        let opened = root.open(&file.path, &|| !cancel.is_cancelled());
        let opened = opened
            .and_then(|opened| {
                opened
                    .content
                    .into_source_ignoring_recent_writes(&root.absolute_path(&file.path))
            })
            .map_err(|error| match error {
                error if root.is_remote() || !is_file_gone(&error) => error,
                _ => change_error(file),
            })?;
        // For a remote object, a listing may have fewer facts.
        if !root.is_remote() && opened.opened_identity() != file.state {
            return Err(change_error(file));
        }
        Ok(opened)
    }

    /// Parses an open data file and returns it as a member of the joined file.
    fn parse_member(&self, file: &ListedFile, source: SharedOpenSource) -> Result<OpenedMember> {
        let (options, absolute) = (self.options, self.files.root().absolute_path(&file.path));
        if !options.force {
            detect::refuse_locked(&*source).inspect_err(|_| self.files.set_locked(&file.path))?;
        }
        // All users who may read the joined file can see the data that a member includes from other
        // files.
        let readers = self.neighbours.readers();
        if !readers.may_read([], || source.audience())? {
            let what = "not every user may read it";
            return Err(Error::from_cause(Cause::Forbidden, what));
        }
        let own = self.neighbours.for_neighbour(&absolute, &absolute, readers);
        let own = Arc::new(own.with_absence_reports_to(&self.neighbours, &file.path));
        let source = self.neighbours.add_opened(&absolute, source)?;
        let shared = Arc::<_>::clone(&source);
        let container = detect::open(shared, Arc::clone(&own), &self.caches, options.force);
        let container = container.map_err(|error| {
            if error.is_transient() || !source.is_remote() || !detect::is_html_page(&*source) {
                return error;
            }
            let what = format!("{}: the server sends a web page", file.path.display());
            Error::from_cause(Cause::System(Errno::EACCES as i32), what)
        })?;
        if container.is_growing() {
            let what = "a writer appends to it (its lock says so)";
            return Err(Error::Usage(what.to_owned()));
        }
        Ok(OpenedMember {
            container,
            neighbours: own,
        })
    }

    /// Returns the state in which the data file with the index `number` was scanned, or else its
    /// state in the listing.
    fn expected_state(&self, number: usize, file: &ListedFile) -> Identity {
        let scanned = lock(&self.scanned).get(&number).cloned();
        scanned.unwrap_or_else(|| file.state.clone())
    }
}

impl MemberFiles for ListingOpener {
    fn member_paths(&self) -> &[Arc<[u8]>] {
        &self.listing.names
    }

    fn open(&self, number: usize, cancel: &CancelToken) -> Result<OpenedMember> {
        let file = self.file(number)?;
        let source = self.open_source(file, cancel)?;
        let opened = source.opened_identity();
        let member = self.parse_member(file, source)?;
        if !opened.is_comparable_to(&file.state) {
            lock(&self.scanned).insert(number, opened);
        }
        Ok(member)
    }

    fn reopen(&self, number: usize) -> Result<OpenedMember> {
        let file = self.file(number)?;
        let opened = self.open_source(file, &CancelToken::default());
        let opened = opened.and_then(|source| {
            let is_same = source
                .opened_identity()
                .is_consistent_with(&self.expected_state(number, file));
            is_same.then_some(source).ok_or_else(|| change_error(file))
        });
        let opened = opened.map_err(|error| match error {
            Error::NotFound => change_error(file),
            error => error,
        });
        let source = opened.inspect_err(|error| {
            if errno::is_stale(error) {
                self.files.ignore_stored_scan(file);
                self.neighbours.states().record_change();
            }
        })?;
        self.parse_member(file, source)
    }

    fn open_linked(
        &self,
        from: &OpenedMember,
        name: &[u8],
        cancel: &CancelToken,
    ) -> Result<Option<OpenedMember>> {
        let found = from
            .neighbours
            .open_with_neighbours(name, &|| !cancel.is_cancelled())?;
        let Some((source, neighbours)) = found else {
            return Ok(None);
        };
        let neighbours = Arc::new(neighbours);
        let own = Arc::clone(&neighbours);
        let container = detect::open(source, own, &self.caches, self.options.force)?;
        Ok(Some(OpenedMember {
            container,
            neighbours,
        }))
    }

    fn cache_key(&self, number: usize) -> Option<MemberKey> {
        let file = self.file(number).ok()?;
        let shows_changes = match &file.state {
            // A date has a resolution of a second, within which the object may change twice.
            Identity::Object(object) => !object.state.etag.is_empty(),
            state => state.is_unmodified_for(MIN_UNMODIFIED_TIME),
        };
        let is_scanned_so = self
            .expected_state(number, file)
            .is_consistent_with(&file.state);
        let is_known = shows_changes && is_scanned_so && !self.files.ignores_stored_scan(file);
        let is_shared = self.neighbours.readers() != Readers::Owner;
        let how = (self.options.force, self.options.verify, is_shared);
        is_known.then(|| member_key((&file.path, &file.state), how))
    }

    fn weight(&self) -> u64 {
        self.listing.weight()
    }

    fn is_remote(&self) -> bool {
        self.files.root().is_remote()
    }

    fn can_omit_unreadable(&self) -> bool {
        self.options.partial
    }

    fn should_verify(&self) -> bool {
        self.options.verify
    }

    fn report_start(&self) {
        self.files.progress.begin(self.listing.files.len());
    }

    fn report_scanned(&self, was_known: bool) {
        self.files.progress.count_scanned(was_known);
    }
}

/// Creates the error that `file` has changed since it was listed or scanned.
fn change_error(file: &ListedFile) -> Error {
    Error::from_cause(Cause::Stale, file.path.display().to_string())
}

/// Returns whether the error means that a file was removed, or replaced by a directory, a FIFO or a
/// link.
fn is_file_gone(error: &Error) -> bool {
    const OTHERS: [Errno; 5] = [
        Errno::ENOENT,
        Errno::ENOTDIR,
        Errno::EISDIR,
        Errno::EINVAL,
        Errno::ELOOP,
    ];
    OTHERS.contains(&Errno::from_raw(errno::from_error(error)))
}

/// Returns the key under which the scan result of a file in one state is stored. `how` contains the
/// options `force` and `verify`, and whether other users read the file.
fn member_key(file: (&Path, &Identity), how: (bool, bool, bool)) -> MemberKey {
    let mut hasher = KeyHasher::default();
    (file, how).hash(&mut hasher);
    hasher.0.finalize().into()
}

/// A [`Hasher`](std::hash::Hasher) that computes a SHA-256 digest of the hashed values.
#[derive(Default)]
struct KeyHasher(Sha256);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}
