//! Other files that a source may reference: members of a family, external raw files, virtual
//! sources, external links. The user, never the file, decides which files may be opened.

pub(crate) mod absent_files;
pub mod neighbour;
pub mod policy;

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use lru::LruCache;

use crate::error::{Cause, Error, Result, quote};
use crate::limits;
use crate::memory::cancel::WantedCheck;
use crate::memory::lock::lock;
use crate::source::local::audience::Readers;
use crate::source::local::changes::ChangeWatcher;
use crate::source::local::descriptors::max_open_files;
use crate::source::local::root::{Root, SourceDirectory};
use crate::source::mounts::mount_guard::MountGuard;
use crate::source::neighbours::neighbour::{Neighbour, NeighbourStates};
use crate::source::neighbours::policy::{OpenRefusal, OpenedPath, OtherFilesPolicy, refusal};
use crate::source::open::SharedOpenSource;
use crate::source::remote::connection::Connection;
use crate::source::remote::prefix::Prefix;
use crate::wire::{Count, to_u64};

/// Number of external raw files that each HDF5 file keeps open.
const OPEN_RAW_FILES: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// The directories of a file, with access to the files that it may reference.
#[derive(Debug)]
pub struct Neighbours {
    root: Arc<Root>,
    /// The directories to search for neighbours, in order.
    locations: Arc<[FileLocation]>,
    /// The users to whom the file is shown. A neighbour is opened only if each of them may read it.
    readers: Readers,
    /// Whether an absent part of the file's content is an error.
    is_strict: bool,
    raw_files: RawFiles,
    states: Arc<NeighbourStates>,
}

/// The directory and the name of a file. As in the HDF5 library, a file opened by a symbolic link
/// has two locations: the link's, then the target's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FileLocation {
    /// Path from the root's directory to the directory of the file, or an absolute path if the file
    /// is elsewhere.
    base: PathBuf,
    name: OsString,
}

impl FileLocation {
    /// Returns the location of the file at this absolute path.
    fn new(path: &Path, root: &Root) -> Self {
        let directory = path.parent().unwrap_or(Path::new("/"));
        let beneath = directory.strip_prefix(root.path());
        FileLocation {
            base: beneath.unwrap_or(directory).to_path_buf(),
            name: path.file_name().unwrap_or_default().to_owned(),
        }
    }
}

/// Open raw files, by the locations of the referencing file and the name in that file. Another
/// state of the referencing file has a separate cache.
type RawFiles = Arc<Mutex<LruCache<(Arc<[FileLocation]>, Vec<u8>), Arc<Neighbour>>>>;

/// Returns an empty cache of raw files.
fn empty_raw_file_cache() -> RawFiles {
    Arc::new(Mutex::new(LruCache::sparse(max_open_files(OPEN_RAW_FILES))))
}

/// A neighbour that was found.
#[derive(Debug)]
pub struct LocatedNeighbour {
    /// The open file.
    pub file: SharedOpenSource,
    /// The absolute path next to which the file's own neighbours are searched. This is `real_path`,
    /// unless a symbolic link in another directory leads to the file. Then it is the path of that
    /// link, in which only the last component is a link.
    pub path: PathBuf,
    /// The path without any symbolic link.
    pub real_path: PathBuf,
    /// The users to whom the file may be shown: those who may read it and search the directories
    /// above it.
    pub readers: Readers,
}

/// A located file, `None` if the file does not exist, or the reason why it was not opened.
pub type LocateResult = std::result::Result<Option<LocatedNeighbour>, OpenRefusal>;

impl Neighbours {
    /// Creates the neighbours of the file at `source`, an absolute path without symbolic links. If
    /// the directory cannot be entered, the neighbours are unreadable, but the source is not.
    ///
    /// Because neighbours are shown to all users in `readers`, only files that all of them may read
    /// are opened. No file is looked up in the mount of `guard`, which shows the source.
    pub fn new(
        source: &Path,
        policy: OtherFilesPolicy,
        guard: Option<MountGuard>,
        readers: Readers,
    ) -> Self {
        let root = SourceDirectory::open(source, policy, guard);
        Self::with_root(source, Root::Directory(root), readers)
    }

    /// Creates the neighbours of the object at the URL `source`: the other objects of its prefix.
    pub fn for_object(
        source: &Path,
        store: &Arc<Connection>,
        policy: OtherFilesPolicy,
        readers: Readers,
    ) -> Self {
        Self::with_root(source, Root::Prefix(Prefix::new(store, policy)), readers)
    }

    fn with_root(source: &Path, root: Root, readers: Readers) -> Self {
        let root = Arc::new(root);
        Neighbours {
            locations: Arc::new([FileLocation::new(source, &root)]),
            root,
            readers,
            is_strict: false,
            raw_files: empty_raw_file_cache(),
            states: Arc::default(),
        }
    }

    /// Sets the watcher of the files that are opened.
    #[must_use]
    pub fn with_watcher(mut self, changes: Option<Arc<ChangeWatcher>>) -> Self {
        self.states = NeighbourStates::with_watcher(changes.clone());
        self.root = match Arc::try_unwrap(self.root) {
            Ok(Root::Directory(directory)) => Root::Directory(directory.watched_by(changes)).into(),
            Ok(root) => root.into(),
            Err(shared) => shared,
        };
        self
    }

    /// Adds the location of the absolute path `named`, by which the file was opened. Only the last
    /// component may be a symbolic link.
    #[must_use]
    pub fn with_opened_path(mut self, named: &Path) -> Self {
        let link = FileLocation::new(named, &self.root);
        if !self.locations.contains(&link) {
            self.locations = [link]
                .into_iter()
                .chain(self.locations.iter().cloned())
                .collect();
        }
        self
    }

    /// Returns neighbours for a source without a directory: no file may be opened.
    pub fn unavailable() -> Self {
        Neighbours {
            root: Arc::new(Root::Directory(SourceDirectory::absent())),
            locations: Arc::new([]),
            readers: Readers::Owner,
            is_strict: false,
            raw_files: empty_raw_file_cache(),
            states: Arc::default(),
        }
    }

    /// Returns the users to whom the file is shown.
    pub fn readers(&self) -> Readers {
        self.readers
    }

    /// Sets whether an absent part of the content is an error.
    #[must_use]
    pub fn fail_on_absent(self, is_strict: bool) -> Self {
        Neighbours { is_strict, ..self }
    }

    /// Returns the neighbours of a file that was located among these neighbours and is shown to
    /// `readers`. Names are resolved from that file's directory; the policy stays the same.
    pub fn for_neighbour(&self, located: &Path, real: &Path, readers: Readers) -> Self {
        Neighbours {
            readers,
            raw_files: empty_raw_file_cache(),
            states: NeighbourStates::with_watcher(self.root.changes().cloned()),
            ..self.for_part(located, real)
        }
    }

    /// Reports missing files to `whole`, together with `name`, the name of this file. Used when
    /// several files are shown as one.
    #[must_use]
    pub fn with_absence_reports_to(mut self, whole: &Self, name: &Path) -> Self {
        self.states = self.states.with_absence_reports_to(&whole.states, name);
        self
    }

    /// Returns neighbours like [`for_neighbour`](Self::for_neighbour), for a file whose elements
    /// are shown as elements of the source. All users who may read the source see these elements,
    /// and a change of the file is a change of the source.
    fn for_part(&self, located: &Path, real: &Path) -> Self {
        let part = Neighbours {
            root: Arc::clone(&self.root),
            locations: Arc::new([FileLocation::new(real, &self.root)]),
            readers: self.readers,
            is_strict: self.is_strict,
            raw_files: Arc::clone(&self.raw_files),
            states: Arc::clone(&self.states),
        };
        part.with_opened_path(located)
    }

    /// Returns a located file's path relative to the directory of the mounted source, or its
    /// absolute path if the file is elsewhere. The returned name leads from the source back to the
    /// file.
    pub fn name_relative_to_source(&self, located: &Path) -> Vec<u8> {
        let beneath = located.strip_prefix(self.root.path());
        let name = beneath.unwrap_or(located).as_os_str();
        name.to_owned().into_vec()
    }

    /// Returns the names of the file to which these neighbours belong. The name by which the file
    /// was opened comes first.
    pub(crate) fn referencing_file_names(&self) -> impl Iterator<Item = &[u8]> {
        self.locations
            .iter()
            .map(|location| location.name.as_bytes())
    }

    /// Returns whether `self` and `other` are the neighbours of the same file.
    pub fn belong_to_same_file(&self, other: &Self) -> bool {
        let own = self.locations.last();
        own.is_some() && own == other.locations.last()
    }

    /// Opens the file that the source calls `name`. Returns `None` if the file does not exist.
    ///
    /// If an absolute name does not exist, its last component is tried next to the source, as in
    /// the HDF5 library: files are often moved together.
    ///
    /// # Errors
    /// - `Io` if the policy or the system refuses access, or the file is not a regular file.
    /// - `ESTALE` if another state of the file was opened before.
    /// - [`Error::cancelled`] if `is_wanted` returns false while a server is waited for.
    pub fn open(&self, name: &[u8], is_wanted: &WantedCheck<'_>) -> Result<Option<Arc<Neighbour>>> {
        let opened = self.open_with_path(name, is_wanted)?;
        Ok(opened.map(|(neighbour, _)| neighbour))
    }

    /// Opens a file like [`open`](Self::open), and returns the file's own neighbours as well.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does.
    pub fn open_with_neighbours(
        &self,
        name: &[u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<Option<(Arc<Neighbour>, Self)>> {
        let Some((neighbour, path)) = self.open_with_path(name, is_wanted)? else {
            // The elements of the file are shown as the fill value, and no event reports the file's
            // arrival.
            self.states.mark_unwatched();
            return Ok(None);
        };
        let real = self.root.real_path(&path, &neighbour.opened_identity())?;
        let part = self.for_part(&self.root.resolve_parent(&path)?, &real);
        Ok(Some((neighbour, part)))
    }

    /// Opens a file like [`open`](Self::open), and also returns the path by which it was opened.
    fn open_with_path(
        &self,
        name: &[u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<Option<(Arc<Neighbour>, PathBuf)>> {
        let missed = |path: &Path| self.states.record_absence(path);
        let found = self.find(name, &missed, is_wanted);
        let Some((file, path)) = found.map_err(OpenRefusal::error)? else {
            return Ok(None);
        };
        if self.readers != Readers::Owner {
            let real = self.root.real_path(&path, &file.opened_identity())?;
            let way = self.root.directory_audiences(&real);
            if !self.readers.may_read(way, || file.audience())? {
                return Err(unshared_file_error(&path));
            }
        }
        let neighbour = self.states.open(&path, file)?;
        Ok(Some((neighbour, path)))
    }

    /// Records that `part` of the content does not exist.
    ///
    /// # Errors
    /// `Io` if absent parts are errors.
    pub(crate) fn record_missing_part(&self, part: &str) -> Result<()> {
        if self.is_strict {
            let what = format!("virtual source {part}: missing (strict)");
            return Err(Error::from_cause(Cause::Missing, what));
        }
        let reason = "missing; its elements in virtual datasets are fill values";
        self.states.record_absent_file(part, reason);
        Ok(())
    }

    /// Adds a file that was opened by this absolute path to the neighbours. A change of the file is
    /// then a change of the content.
    ///
    /// # Errors
    /// `ESTALE` if another file or another state of the file was there before.
    pub fn add_opened(&self, path: &Path, file: SharedOpenSource) -> Result<Arc<Neighbour>> {
        self.states.open(path, file)
    }

    /// Returns the states of the neighbours when they were opened.
    pub fn states(&self) -> &NeighbourStates {
        &self.states
    }

    /// Opens a raw file, which contains only elements of a dataset, like [`open`](Self::open). A
    /// dataset may reference many such files, so the most recently used ones stay open.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does, and with `Corrupt` if the file does not exist. Failures
    /// are not cached, because the file may appear later.
    pub(crate) fn open_raw(
        &self,
        name: &[u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<Arc<Neighbour>> {
        if let Some(file) = self.find_open_raw(name) {
            return Ok(file);
        }
        let missing = || {
            let name = quote(name);
            Error::corrupt(format!("external raw file {name}: missing"), None)
        };
        let file = self.open(name, is_wanted)?.ok_or_else(missing)?;
        lock(&self.raw_files).put(self.raw_key(name), Arc::clone(&file));
        Ok(file)
    }

    /// Returns the raw file called `name` if it is open.
    pub(crate) fn find_open_raw(&self, name: &[u8]) -> Option<Arc<Neighbour>> {
        lock(&self.raw_files).get(&self.raw_key(name)).cloned()
    }

    fn raw_key(&self, name: &[u8]) -> (Arc<[FileLocation]>, Vec<u8>) {
        (Arc::clone(&self.locations), name.to_vec())
    }

    /// Returns whether opening a neighbour needs a request to a server.
    pub fn is_remote(&self) -> bool {
        self.root.is_remote()
    }

    /// Opens a file like [`open`](Self::open), and returns its location and the users who may read
    /// it. The file is opened even if not all users of this source may read it; the caller must
    /// check that.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does, and with `ESTALE` if the file is replaced or moved
    /// during the call.
    pub fn locate(&self, name: &[u8], is_wanted: &WantedCheck<'_>) -> LocateResult {
        let found = self.find(name, &|_| Ok(()), is_wanted)?;
        found.map(|found| self.located(found)).transpose()
    }

    /// Locates the file for which [`name_relative_to_source`](Self::name_relative_to_source)
    /// returned `name`.
    ///
    /// # Errors
    /// Fails as [`locate`](Self::locate) does.
    pub fn locate_by_relative_name(
        &self,
        name: &[u8],
        is_wanted: &WantedCheck<'_>,
    ) -> LocateResult {
        let Some(name) = self.allowed_path(name)? else {
            return Ok(None);
        };
        let found = self.root.open_next_to_source(name, is_wanted)?;
        found.map(|found| self.located(found)).transpose()
    }

    fn located(
        &self,
        (file, path): (SharedOpenSource, PathBuf),
    ) -> std::result::Result<LocatedNeighbour, OpenRefusal> {
        let failed = |error| OpenRefusal::Failed(path.clone(), error);
        let real = self
            .root
            .real_path(&path, &file.opened_identity())
            .map_err(failed)?;
        let named = self.root.resolve_parent(&path).map_err(failed)?;
        let way = match self.readers {
            Readers::Owner => Vec::new(),
            Readers::All(_) => self.root.directory_audiences(&real),
        };
        let readers = self.readers.for_link_target(way, || file.audience());
        let readers = readers.map_err(failed)?;
        let path = if named.parent() == real.parent() {
            real.clone()
        } else {
            named
        };
        Ok(LocatedNeighbour {
            file,
            path,
            real_path: real,
            readers,
        })
    }

    /// Converts `name` to a path. Returns `None` if a file cannot have that name.
    fn allowed_path<'a>(
        &self,
        name: &'a [u8],
    ) -> std::result::Result<Option<&'a Path>, OpenRefusal> {
        let bytes = |path: &Path| path.as_os_str().len().plus_one();
        let bases = self.locations.iter().map(|location| bytes(&location.base));
        let taken = bytes(self.root.path()).plus(bases.max().unwrap_or(0));
        if name.len() > limits::FILE_PATH.minus_or_zero(taken) {
            let most = to_u64(limits::FILE_PATH);
            return Err(OpenRefusal::Refused(Error::limit(
                "path of another file",
                most,
            )));
        }
        let name = Path::new(OsStr::from_bytes(name));
        if name.as_os_str().is_empty() || name.as_os_str().as_bytes().contains(&0) {
            return Ok(None);
        }
        match self.root.policy() {
            OtherFilesPolicy::None => Err(refusal(name, "external=none")),
            _ => Ok(Some(name)),
        }
    }

    /// Finds the file called `name`. Returns the file and the path by which it was opened. Calls
    /// `missed` for each path that does not exist.
    fn find(
        &self,
        name: &[u8],
        missed: &dyn Fn(&Path) -> Result<()>,
        is_wanted: &WantedCheck<'_>,
    ) -> OpenedPath {
        let missed = |path: &Path| {
            let failed = |error| OpenRefusal::Failed(path.to_path_buf(), error);
            missed(path).map_err(failed)
        };
        let Some(name) = self.allowed_path(name)? else {
            return Ok(None);
        };
        let (itself, beside) = if name.is_absolute() {
            (Some(name), name.file_name().map(Path::new))
        } else {
            (None, Some(name))
        };
        if let Some(name) = itself {
            match self.root.open_absolute(name)? {
                Some(found) => return Ok(Some(found)),
                None => missed(name)?,
            }
        }
        let Some(beside) = beside else {
            return Ok(None);
        };
        for location in self.locations.iter() {
            let path = location.base.join(beside);
            match self.root.open_next_to_source(&path, is_wanted)? {
                Some(found) => return Ok(Some(found)),
                None => missed(&self.root.path().join(&path))?,
            }
        }
        Ok(None)
    }
}

/// Returns the error for a file that some users of the mount may not read.
fn unshared_file_error(name: &Path) -> Error {
    refusal(
        name,
        "allow_other: not every user who may read the source may read this file; see umask=",
    )
    .error()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use nix::sys::stat::Mode;
    use std::fs;

    #[test]
    fn changes_may_be_missed_while_a_part_is_absent() {
        let (_outer, inner) = files();
        let own = Neighbours::new(
            &inner.join("a"),
            OtherFilesPolicy::WithinDirectory,
            None,
            Readers::Owner,
        );
        assert!(own.open(b"later", &|| true).unwrap().is_none());
        assert!(own.states().can_notice_every_change());
        assert!(
            own.open_with_neighbours(b"later", &|| true)
                .unwrap()
                .is_none()
        );
        assert!(!own.states().can_notice_every_change());
    }

    /// Creates files where an absolute name was searched without success: at the name itself, and
    /// at its last component.
    #[test]
    fn a_file_that_appears_at_a_searched_path_is_a_change() {
        for comes in ["sub/later", "later"] {
            let (_outer, inner) = files();
            let own = Neighbours::new(
                &inner.join("a"),
                OtherFilesPolicy::WithinDirectory,
                None,
                Readers::Owner,
            );
            let sought = inner.join("sub/later").into_os_string().into_vec();
            assert!(own.open(&sought, &|| true).unwrap().is_none());
            assert!(own.open(&sought, &|| true).unwrap().is_none());
            assert!(!own.states().has_found_change());
            fs::write(inner.join(comes), "later").unwrap();
            own.open(&sought, &|| true).unwrap_err();
            assert!(own.states().has_found_change(), "{comes}");
        }
        let (_outer, inner) = files();
        let own = Neighbours::new(
            &inner.join("a"),
            OtherFilesPolicy::WithinDirectory,
            None,
            Readers::Owner,
        );
        let sought = inner.join("sub/b").into_os_string().into_vec();
        assert_eq!(own.open(&sought, &|| true).unwrap().expect("b").length(), 1);
        assert_eq!(own.open(&sought, &|| true).unwrap().expect("b").length(), 1);
        fs::write(inner.join("sub/b"), "another").unwrap();
        own.open(&sought, &|| true).unwrap_err();
        assert!(own.states().has_found_change());
    }

    /// Creates `outer/x`, `outer/in/{a, b}`, `outer/in/sub/a`, and a link `outer/in/alias` to
    /// `sub/a`.
    fn files() -> (tempfile::TempDir, PathBuf) {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().canonicalize().unwrap().join("in");
        fs::create_dir_all(inner.join("sub")).unwrap();
        fs::write(outer.path().join("x"), "outside").unwrap();
        for name in ["a", "b", "sub/a"] {
            fs::write(inner.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("sub/a", inner.join("alias")).unwrap();
        std::os::unix::fs::symlink("../x", inner.join("out")).unwrap();
        (outer, inner)
    }

    fn name(neighbours: &Neighbours, name: &str) -> Option<String> {
        let located = neighbours.locate(name.as_bytes(), &|| true).unwrap()?;
        Some(String::from_utf8(neighbours.name_relative_to_source(&located.path)).unwrap())
    }

    #[test]
    fn a_file_has_one_name() {
        let (_outer, inner) = files();
        let own = Neighbours::new(
            &inner.join("a"),
            OtherFilesPolicy::WithinDirectory,
            None,
            Readers::Owner,
        );
        let absolute = inner.join("sub/a").display().to_string();
        std::os::unix::fs::symlink("a", inner.join("sub/same")).unwrap();
        for spelling in ["sub/a", "./sub//a", "sub/../sub/a", "sub/same", &absolute] {
            assert_eq!(name(&own, spelling).as_deref(), Some("sub/a"), "{spelling}");
        }
        for spelling in ["alias", "sub/../alias"] {
            assert_eq!(name(&own, spelling).as_deref(), Some("alias"), "{spelling}");
        }
        assert_eq!(name(&own, "sub/b"), None);
        assert_eq!(name(&own, "/nowhere/b").as_deref(), Some("b"));
    }

    #[test]
    fn no_path_leads_into_the_mount() {
        let (_outer, inner) = files();
        std::os::unix::fs::symlink("sub/../sub", inner.join("to-sub")).unwrap();
        std::os::unix::fs::symlink("loop", inner.join("loop")).unwrap();
        let guarded = |point: PathBuf| {
            Some(MountGuard {
                mount_point: point,
                device: None,
                foreign: None,
            })
        };
        let own = Neighbours::new(
            &inner.join("b"),
            OtherFilesPolicy::Any,
            guarded(inner.join("sub")),
            Readers::Owner,
        );
        let absolute = inner.join("sub/a").display().to_string();
        let around = format!("/proc/self/root{absolute}");
        for name in [
            "sub",
            "sub/a",
            "./sub//a",
            "a/../sub/a",
            "alias",
            "to-sub/a",
            "../in/sub/a",
            &absolute,
            &around,
        ] {
            let refused = own.open(name.as_bytes(), &|| true).unwrap_err();
            assert!(
                refused.to_string().contains("the mount itself"),
                "{name}: {refused}"
            );
        }
        for name in ["a", "./a", "../x"] {
            assert!(
                own.open(name.as_bytes(), &|| true).unwrap().is_some(),
                "{name}"
            );
        }
        assert!(own.open(b"loop", &|| true).is_err());
        let hidden = Neighbours::new(
            &inner.join("b"),
            OtherFilesPolicy::WithinDirectory,
            guarded(inner.clone()),
            Readers::Owner,
        );
        assert!(hidden.open(b"a", &|| true).is_err());
    }

    #[test]
    fn a_path_is_not_followed_after_a_missing_component() {
        let (_outer, inner) = files();
        let own = Neighbours::new(
            &inner.join("b"),
            OtherFilesPolicy::Any,
            Some(MountGuard {
                mount_point: inner.join("sub"),
                device: None,
                foreign: None,
            }),
            Readers::Owner,
        );
        assert!(own.open(b"absent/../sub/a", &|| true).unwrap().is_none());
        assert!(own.open(b"a/../../in/a", &|| true).is_ok());
        let longest = [b"./".repeat(1900), b"a".to_vec()].concat();
        assert!(own.open(&longest, &|| true).unwrap().is_some());
        let longer = own.open(&b"a/".repeat(300_000), &|| true).unwrap_err();
        assert!(longer.to_string().len() < 1000);
    }

    #[test]
    fn a_neighbour_can_open_files_of_its_own_directory_only() {
        let (outer, inner) = files();
        let own = Neighbours::new(
            &inner.join("b"),
            OtherFilesPolicy::WithinDirectory,
            None,
            Readers::Owner,
        );
        let a = inner.join("sub/a");
        let other = own.for_neighbour(&a, &a, Readers::Owner);
        assert_eq!(other.referencing_file_names().collect::<Vec<_>>(), [b"a"]);
        assert_eq!(name(&other, "a").as_deref(), Some("sub/a"));
        assert_eq!(name(&other, "../a").as_deref(), Some("a"));
        assert_eq!(name(&other, "b"), None);
        for refused in ["../../x", "../out", "../../in/a", "/etc/passwd"] {
            assert!(
                other.locate(refused.as_bytes(), &|| true).is_err(),
                "{refused}"
            );
        }
        let all = Neighbours::new(
            &inner.join("b"),
            OtherFilesPolicy::Any,
            None,
            Readers::Owner,
        );
        let outside = all.locate(b"../x", &|| true).unwrap().unwrap();
        assert_eq!(outside.file.length(), 7);
        let real = outer.path().canonicalize().unwrap().join("x");
        assert_eq!(
            all.name_relative_to_source(&outside.path),
            real.as_os_str().as_bytes()
        );
        let beyond = all.for_neighbour(&outside.path, &outside.real_path, Readers::Owner);
        assert_eq!(name(&beyond, "in/sub/a").as_deref(), Some("sub/a"));
    }

    /// Replaces a file by a FIFO without a writer and by a link out of the directory, in turns.
    #[test]
    fn a_replacement_of_a_file_is_neither_awaited_nor_read() {
        let (_outer, inner) = files();
        nix::unistd::mkfifo(&inner.join("fifo"), Mode::S_IRWXU).unwrap();
        let own = Neighbours::new(
            &inner.join("b"),
            OtherFilesPolicy::WithinDirectory,
            None,
            Readers::Owner,
        );
        let done = std::sync::atomic::AtomicBool::new(false);
        let swap = |name: &str| {
            let new = inner.join("new");
            match name {
                "out" => std::os::unix::fs::symlink("../x", &new),
                _ => fs::hard_link(inner.join(name), &new),
            }
            .unwrap();
            fs::rename(&new, inner.join("c")).unwrap();
        };
        swap("a");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    ["fifo", "a", "out", "a"].iter().for_each(|name| swap(name));
                }
            });
            let mut opened = 0;
            for _ in 0..2000 {
                if let Ok(found) = own.open(b"c", &|| true) {
                    assert_eq!(found.expect("something is there").length(), 1);
                    opened += 1;
                }
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(opened > 0);
        });
    }
}
