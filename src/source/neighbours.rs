//! Files beside the source that it may name: members of a family, external raw files, virtual
//! sources, external links. The user chooses which files may be opened, never the file.

pub mod absent;
pub mod neighbour;
pub mod policy;

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use lru::LruCache;

use crate::error::{Cause, Error, Result, quoted};
use crate::limits;
use crate::memory::lock::lock;
use crate::source::local::audience::Readers;
use crate::source::local::changes::Changes;
use crate::source::local::descriptors::share_of;
use crate::source::local::root::{Directory, Root};
use crate::source::mounts::mount_guard::MountGuard;
use crate::source::neighbours::neighbour::{Neighbour, NeighbourStates};
use crate::source::neighbours::policy::{Opened, Policy, Unopened, refused};
use crate::source::open::SharedOpen;
use crate::source::remote::connection::Connection;
use crate::source::remote::prefix::Prefix;
use crate::wire::{Count, to_u64};

/// Raw files with elements of HDF5 datasets that each HDF5 file keeps open.
const OPEN_RAW_FILES: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// The directory of a file, and what may be opened from there.
#[derive(Debug)]
pub struct Neighbours {
    root: Arc<Root>,
    /// The directories in which neighbours are sought, one after the other.
    locations: Arc<[Location]>,
    /// The readers of the file: all of them must have the right to read a file that is opened.
    readers: Readers,
    /// Whether it is an error that a part of the file's content is absent.
    is_strict: bool,
    raw_files: RawFiles,
    states: Arc<NeighbourStates>,
}

/// The directory and the name of a file. A file that was opened by a symbolic link has the link's
/// location first, and then that of the link's target, as in the HDF5 library.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Location {
    /// From the root's directory to the file's own; absolute where that lies elsewhere.
    base: PathBuf,
    name: OsString,
}

impl Location {
    /// Of the file at this absolute path.
    fn of(path: &Path, root: &Root) -> Self {
        let directory = path.parent().unwrap_or(Path::new("/"));
        let beneath = directory.strip_prefix(root.path());
        Location {
            base: beneath.unwrap_or(directory).to_path_buf(),
            name: path.file_name().unwrap_or_default().to_owned(),
        }
    }
}

/// Raw files by the locations of the naming file and their names there. Another state of that file
/// does not share them.
type RawFiles = Arc<Mutex<LruCache<(Arc<[Location]>, Vec<u8>), Arc<Neighbour>>>>;

/// No raw files yet.
fn no_raw_files() -> RawFiles {
    Arc::new(Mutex::new(LruCache::sparse(share_of(OPEN_RAW_FILES))))
}

/// A file that was found.
#[derive(Debug)]
pub struct Located {
    /// The open file.
    pub file: SharedOpen,
    /// An absolute path without symbolic links, so that one file has one path however it was named.
    /// Only a file that a link in another directory leads to has the link's path, as its neighbours
    /// are sought there.
    pub path: PathBuf,
    /// Where it is, without any symbolic link.
    pub real: PathBuf,
    /// Its readers, as the directories above it let them through.
    pub readers: Readers,
}

/// A file that was located, `None` where there is none; or why it is not opened.
pub type LocateResult = std::result::Result<Option<Located>, Unopened>;

impl Neighbours {
    /// The neighbours of the file at `source`, an absolute path without symbolic links. A directory
    /// that cannot be entered makes each of them unreadable, not the source.
    ///
    /// Only files that all `readers` of the source may read are opened: they are shown to them all.
    /// Nothing is looked up in the mount that shows the source, of which `guard` tells.
    pub fn of(source: &Path, policy: Policy, guard: Option<MountGuard>, readers: Readers) -> Self {
        let root = Directory::of(source, policy, guard);
        Self::within(source, Root::Directory(root), readers)
    }

    /// The neighbours of the object at `source`, its URL: the other objects of its prefix.
    pub fn of_object(
        source: &Path,
        store: &Arc<Connection>,
        policy: Policy,
        readers: Readers,
    ) -> Self {
        Self::within(source, Root::Prefix(Prefix::of(store, policy)), readers)
    }

    fn within(source: &Path, root: Root, readers: Readers) -> Self {
        let root = Arc::new(root);
        Neighbours {
            locations: Arc::new([Location::of(source, &root)]),
            root,
            readers,
            is_strict: false,
            raw_files: no_raw_files(),
            states: Arc::default(),
        }
    }

    /// `changes` watches the files that are opened.
    #[must_use]
    pub fn watched_by(mut self, changes: Option<Arc<Changes>>) -> Self {
        self.states = NeighbourStates::told_by(changes.clone());
        self.root = match Arc::try_unwrap(self.root) {
            Ok(Root::Directory(directory)) => Root::Directory(directory.watched_by(changes)).into(),
            Ok(root) => root.into(),
            Err(shared) => shared,
        };
        self
    }

    /// The file was opened by the absolute path `named`, in which only the last name is a symbolic
    /// link, if any.
    #[must_use]
    pub fn opened_by(mut self, named: &Path) -> Self {
        let link = Location::of(named, &self.root);
        if !self.locations.contains(&link) {
            self.locations = [link]
                .into_iter()
                .chain(self.locations.iter().cloned())
                .collect();
        }
        self
    }

    /// For a source that has no directory: nothing may be opened.
    pub fn none() -> Self {
        Neighbours {
            root: Arc::new(Root::Directory(Directory::none())),
            locations: Arc::new([]),
            readers: Readers::Owner,
            is_strict: false,
            raw_files: no_raw_files(),
            states: Arc::default(),
        }
    }

    /// The readers of the file.
    pub fn readers(&self) -> Readers {
        self.readers
    }

    /// With `is_strict` it is an error that a part of the content is absent.
    #[must_use]
    pub fn strict(self, is_strict: bool) -> Self {
        Neighbours { is_strict, ..self }
    }

    /// The neighbours of a file that was located among these, or among theirs, for these `readers`:
    /// names are resolved from its own directory, the policy stays the same.
    pub fn of_neighbour(&self, located: &Path, real: &Path, readers: Readers) -> Self {
        Neighbours {
            readers,
            raw_files: no_raw_files(),
            states: NeighbourStates::told_by(self.root.changes().cloned()),
            ..self.of_part(located, real)
        }
    }

    /// Those of a file of several that are shown as one: what is missing is reported as missing from
    /// `whole`, with the file's name.
    #[must_use]
    pub fn reporting_to(mut self, whole: &Self, name: &Path) -> Self {
        self.states = self.states.reporting_to(&whole.states, name);
        self
    }

    /// Like [`of_neighbour`](Self::of_neighbour), of a file whose elements are shown as those of
    /// the source: readers of the source see these too, and a change is one of the source.
    fn of_part(&self, located: &Path, real: &Path) -> Self {
        let part = Neighbours {
            root: Arc::clone(&self.root),
            locations: Arc::new([Location::of(real, &self.root)]),
            readers: self.readers,
            is_strict: self.is_strict,
            raw_files: Arc::clone(&self.raw_files),
            states: Arc::clone(&self.states),
        };
        part.opened_by(located)
    }

    /// A located file's path beneath the directory of the source that is mounted; one that lies
    /// elsewhere keeps its absolute path. As a name, it leads back to the file from the source.
    pub fn name_of(&self, located: &Path) -> Vec<u8> {
        let beneath = located.strip_prefix(self.root.path());
        let name = beneath.unwrap_or(located).as_os_str();
        name.to_owned().into_vec()
    }

    /// The file's own names: the one that it was opened by first.
    pub fn own_names(&self) -> impl Iterator<Item = &[u8]> {
        self.locations
            .iter()
            .map(|location| location.name.as_bytes())
    }

    /// Whether both are the neighbours of one file.
    pub fn are_of(&self, other: &Self) -> bool {
        let own = self.locations.last();
        own.is_some() && own == other.locations.last()
    }

    /// Opens the file that the source calls `name`; `None` where there is no such file.
    ///
    /// An absolute name that leads nowhere is tried once more by its last component, beside the
    /// source, as the HDF5 library does: files move together.
    ///
    /// # Errors
    /// `Io` where the policy forbids it or the system does: not a regular file, no permission;
    /// `ESTALE` where another state of it was there before.
    pub fn open(&self, name: &[u8]) -> Result<Option<Arc<Neighbour>>> {
        let opened = self.open_at(name)?;
        Ok(opened.map(|(neighbour, _)| neighbour))
    }

    /// Like [`open`](Self::open), for a file that may name others in turn, together with its own
    /// neighbours.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does.
    pub fn open_part(&self, name: &[u8]) -> Result<Option<(Arc<Neighbour>, Self)>> {
        let Some((neighbour, path)) = self.open_at(name)? else {
            // Its elements are shown as the fill value, and nothing tells when it comes.
            self.states.unsettle();
            return Ok(None);
        };
        let real = self.root.real(&path, &neighbour.opened())?;
        let part = self.of_part(&self.root.named(&path)?, &real);
        Ok(Some((neighbour, part)))
    }

    /// Like [`open`](Self::open), with the path by which it was opened.
    fn open_at(&self, name: &[u8]) -> Result<Option<(Arc<Neighbour>, PathBuf)>> {
        let missed = |path: &Path| self.states.missed(path);
        let Some((file, path)) = self.find(name, &missed).map_err(Unopened::error)? else {
            return Ok(None);
        };
        if self.readers != Readers::Owner {
            let real = self.root.real(&path, &file.opened())?;
            let way = self.root.way_to(&real);
            if !self.readers.may_read(way, || file.audience())? {
                return Err(private(&path));
            }
        }
        let neighbour = self.states.found(&path, file)?;
        Ok(Some((neighbour, path)))
    }

    /// There is no such `part` of the content.
    ///
    /// # Errors
    /// `Io` where that is not to be passed over.
    pub fn lacks_part(&self, part: &str) -> Result<()> {
        if self.is_strict {
            let what = format!("virtual source {part}: missing (strict)");
            return Err(Error::caused(Cause::Missing, what));
        }
        let reason = "missing; its elements in virtual datasets are fill values";
        self.states.lacks(part, reason);
        Ok(())
    }

    /// A file that was opened by this absolute path, as one of these: a change of it is one of what is
    /// shown.
    ///
    /// # Errors
    /// `ESTALE` where another file or another state of it was there before.
    pub fn take(&self, path: &Path, file: SharedOpen) -> Result<Arc<Neighbour>> {
        self.states.found(path, file)
    }

    /// How the neighbours looked that were opened.
    pub fn states(&self) -> &NeighbourStates {
        &self.states
    }

    /// Like [`open`](Self::open), for a file without structure, of which a dataset may have many,
    /// and a file many datasets: those that were used last stay open.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does, and `Corrupt` where there is none. A failure is not
    /// kept: the file may come back.
    pub fn open_raw(&self, name: &[u8]) -> Result<Arc<Neighbour>> {
        let open = || lock(&self.raw_files);
        let key = (Arc::clone(&self.locations), name.to_vec());
        if let Some(file) = open().get(&key) {
            return Ok(Arc::clone(file));
        }
        let missing = || {
            let name = quoted(name);
            Error::corrupt(format!("external raw file {name}: missing"), None)
        };
        let file = self.open(name)?.ok_or_else(missing)?;
        open().put(key, Arc::clone(&file));
        Ok(file)
    }

    /// Like [`open`](Self::open), and says where the file is. Its readers are told, not checked.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does; `ESTALE` where the file is replaced or moved meanwhile.
    pub fn locate(&self, name: &[u8]) -> LocateResult {
        let found = self.find(name, &|_| Ok(()))?;
        found.map(|found| self.located(found)).transpose()
    }

    /// The file that [`name_of`](Self::name_of) called `name`.
    ///
    /// # Errors
    /// Fails as [`locate`](Self::locate) does.
    pub fn locate_again(&self, name: &[u8]) -> LocateResult {
        let Some(name) = self.path(name)? else {
            return Ok(None);
        };
        let found = self.root.open_beside(name)?;
        found.map(|found| self.located(found)).transpose()
    }

    fn located(
        &self,
        (file, path): (SharedOpen, PathBuf),
    ) -> std::result::Result<Located, Unopened> {
        let failed = |error| Unopened::Failed(path.clone(), error);
        let real = self.root.real(&path, &file.opened()).map_err(failed)?;
        let named = self.root.named(&path).map_err(failed)?;
        let way = match self.readers {
            Readers::Owner => Vec::new(),
            Readers::All(_) => self.root.way_to(&real),
        };
        let readers = self.readers.of_linked(way, || file.audience());
        let readers = readers.map_err(failed)?;
        let path = if named.parent() == real.parent() {
            real.clone()
        } else {
            named
        };
        Ok(Located {
            file,
            path,
            real,
            readers,
        })
    }

    /// `name` as a path, `None` where it cannot be that of a file.
    fn path<'a>(&self, name: &'a [u8]) -> std::result::Result<Option<&'a Path>, Unopened> {
        let bytes = |path: &Path| path.as_os_str().len().one_more();
        let bases = self.locations.iter().map(|location| bytes(&location.base));
        let taken = bytes(self.root.path()).with_more(bases.max().unwrap_or(0));
        if name.len() > limits::FILE_PATH.left_after(taken) {
            let most = to_u64(limits::FILE_PATH);
            return Err(Unopened::Refused(Error::limit(
                "path of another file",
                most,
            )));
        }
        let name = Path::new(OsStr::from_bytes(name));
        if name.as_os_str().is_empty() || name.as_os_str().as_bytes().contains(&0) {
            return Ok(None);
        }
        match self.root.policy() {
            Policy::None => Err(refused(name, "external=none")),
            _ => Ok(Some(name)),
        }
    }

    /// The file called `name`, and the path by which it was opened. `missed` is told where there is
    /// none.
    fn find(&self, name: &[u8], missed: &dyn Fn(&Path) -> Result<()>) -> Opened {
        let missed = |path: &Path| {
            let failed = |error| Unopened::Failed(path.to_path_buf(), error);
            missed(path).map_err(failed)
        };
        let Some(name) = self.path(name)? else {
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
            match self.root.open_beside(&path)? {
                Some(found) => return Ok(Some(found)),
                None => missed(&self.root.path().join(&path))?,
            }
        }
        Ok(None)
    }
}

/// `name` may not be read by all users that the mount lets in.
fn private(name: &Path) -> Error {
    refused(
        name,
        "allow_other: not all who may read the source may read it; see umask=",
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
    fn nothing_is_kept_while_a_part_is_absent() {
        let (_outer, inner) = files();
        let own = Neighbours::of(&inner.join("a"), Policy::Within, None, Readers::Owner);
        assert!(own.open(b"later").unwrap().is_none());
        assert!(own.states().is_settled());
        assert!(own.open_part(b"later").unwrap().is_none());
        assert!(!own.states().is_settled());
    }

    /// Files come where an absolute name was sought in vain: as it is, and by its last component.
    #[test]
    fn a_file_that_comes_where_it_was_sought_is_a_change() {
        for comes in ["sub/later", "later"] {
            let (_outer, inner) = files();
            let own = Neighbours::of(&inner.join("a"), Policy::Within, None, Readers::Owner);
            let sought = inner.join("sub/later").into_os_string().into_vec();
            assert!(own.open(&sought).unwrap().is_none());
            assert!(own.open(&sought).unwrap().is_none());
            assert!(!own.states().met_a_change());
            fs::write(inner.join(comes), "later").unwrap();
            own.open(&sought).unwrap_err();
            assert!(own.states().met_a_change(), "{comes}");
        }
        let (_outer, inner) = files();
        let own = Neighbours::of(&inner.join("a"), Policy::Within, None, Readers::Owner);
        let sought = inner.join("sub/b").into_os_string().into_vec();
        assert_eq!(own.open(&sought).unwrap().expect("b").length(), 1);
        assert_eq!(own.open(&sought).unwrap().expect("b").length(), 1);
        fs::write(inner.join("sub/b"), "another").unwrap();
        own.open(&sought).unwrap_err();
        assert!(own.states().met_a_change());
    }

    /// `outer/x`, `outer/in/{a, b}`, `outer/in/sub/a`, and a link `outer/in/alias` to `sub/a`.
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
        let located = neighbours.locate(name.as_bytes()).unwrap()?;
        Some(String::from_utf8(neighbours.name_of(&located.path)).unwrap())
    }

    #[test]
    fn a_file_has_one_name() {
        let (_outer, inner) = files();
        let own = Neighbours::of(&inner.join("a"), Policy::Within, None, Readers::Owner);
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
    fn no_way_leads_into_the_mount() {
        let (_outer, inner) = files();
        std::os::unix::fs::symlink("sub/../sub", inner.join("to-sub")).unwrap();
        std::os::unix::fs::symlink("loop", inner.join("loop")).unwrap();
        let guarded = |point: PathBuf| {
            Some(MountGuard {
                point,
                device: None,
                foreign: None,
            })
        };
        let own = Neighbours::of(
            &inner.join("b"),
            Policy::Any,
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
            let refused = own.open(name.as_bytes()).unwrap_err();
            assert!(
                refused.to_string().contains("the mount itself"),
                "{name}: {refused}"
            );
        }
        for name in ["a", "./a", "../x"] {
            assert!(own.open(name.as_bytes()).unwrap().is_some(), "{name}");
        }
        assert!(own.open(b"loop").is_err());
        let hidden = Neighbours::of(
            &inner.join("b"),
            Policy::Within,
            guarded(inner.clone()),
            Readers::Owner,
        );
        assert!(hidden.open(b"a").is_err());
    }

    #[test]
    fn a_way_that_ends_is_not_gone_on() {
        let (_outer, inner) = files();
        let own = Neighbours::of(
            &inner.join("b"),
            Policy::Any,
            Some(MountGuard {
                point: inner.join("sub"),
                device: None,
                foreign: None,
            }),
            Readers::Owner,
        );
        assert!(own.open(b"absent/../sub/a").unwrap().is_none());
        assert!(own.open(b"a/../../in/a").is_ok());
        let longest = [b"./".repeat(1900), b"a".to_vec()].concat();
        assert!(own.open(&longest).unwrap().is_some());
        let longer = own.open(&b"a/".repeat(300_000)).unwrap_err();
        assert!(longer.to_string().len() < 1000);
    }

    #[test]
    fn a_neighbour_sees_its_own_directory_but_no_more() {
        let (outer, inner) = files();
        let own = Neighbours::of(&inner.join("b"), Policy::Within, None, Readers::Owner);
        let a = inner.join("sub/a");
        let other = own.of_neighbour(&a, &a, Readers::Owner);
        assert_eq!(other.own_names().collect::<Vec<_>>(), [b"a"]);
        assert_eq!(name(&other, "a").as_deref(), Some("sub/a"));
        assert_eq!(name(&other, "../a").as_deref(), Some("a"));
        assert_eq!(name(&other, "b"), None);
        for refused in ["../../x", "../out", "../../in/a", "/etc/passwd"] {
            assert!(other.locate(refused.as_bytes()).is_err(), "{refused}");
        }
        let all = Neighbours::of(&inner.join("b"), Policy::Any, None, Readers::Owner);
        let outside = all.locate(b"../x").unwrap().unwrap();
        assert_eq!(outside.file.length(), 7);
        let real = outer.path().canonicalize().unwrap().join("x");
        assert_eq!(all.name_of(&outside.path), real.as_os_str().as_bytes());
        let beyond = all.of_neighbour(&outside.path, &outside.real, Readers::Owner);
        assert_eq!(name(&beyond, "in/sub/a").as_deref(), Some("sub/a"));
    }

    /// A file, a FIFO that nobody writes to, and a link out of the directory take each other's
    /// place.
    #[test]
    fn what_takes_the_place_of_a_file_is_neither_waited_for_nor_read() {
        let (_outer, inner) = files();
        nix::unistd::mkfifo(&inner.join("fifo"), Mode::S_IRWXU).unwrap();
        let own = Neighbours::of(&inner.join("b"), Policy::Within, None, Readers::Owner);
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
                if let Ok(found) = own.open(b"c") {
                    assert_eq!(found.expect("something is there").length(), 1);
                    opened += 1;
                }
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(opened > 0);
        });
    }
}
