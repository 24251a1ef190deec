//! The list of the data files of a directory at one time, and of the omitted files.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use h5fs_joined::choice::JoinChoice;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::source::directory::Directory;
use h5fs_reader::source::identity::Identity;
use h5fs_reader::wire::{Count, to_u64};
use nix::errno::Errno;

use crate::archive::entries::EntryKind;
use crate::archive::entry_inspector::{EntryInspector, FoundEntry as Looked};
use crate::archive::joined::temporary;
use crate::errno::{self, is_denied};
use crate::limits;

/// Maximum number of symbolic links followed to one file.
const LINKS: usize = 8;

/// Maximum depth of nested directories that are searched for data files.
const DEPTH: usize = 32;

/// Options and directory for listing the files that are joined.
pub(super) struct FileLister {
    pub(super) root: Arc<dyn Directory>,
    pub(super) inspector: Arc<EntryInspector>,
    pub(super) choice: JoinChoice,
    /// Whether other users can read the joined file. If so, files that these users cannot read are
    /// omitted, because the joined file shows their content.
    pub(super) allow_other: bool,
    /// Whether files and directories are omitted that cannot be read because of a temporary error.
    /// If false, such an error ends the listing.
    pub(super) partial: bool,
}

/// The data files of a directory at one time, sorted by path.
#[derive(Debug, Default)]
pub(in crate::archive) struct FileListing {
    pub(super) names: Vec<Arc<[u8]>>,
    pub(super) files: Vec<ListedFile>,
    /// Paths of omitted files and directories, each with the reason.
    pub(in crate::archive) omitted: Vec<(String, String)>,
    /// A hash of the paths and states of all files.
    pub(super) hash: u64,
}

impl FileListing {
    /// Returns the approximate memory of the listing, in bytes.
    pub(super) fn weight(&self) -> u64 {
        /// Bytes that an allocation needs in addition to its content. Names are shared, but counted
        /// here.
        const ALLOCATION_OVERHEAD: usize = 64;
        let file = |file: &ListedFile| size_of::<ListedFile>().plus(file.path.as_os_str().len());
        let files = self
            .files
            .iter()
            .map(|own| to_u64(file(own).plus(ALLOCATION_OVERHEAD)));
        let left_out = self.omitted.iter();
        let left_out =
            left_out.map(|(name, why)| to_u64(name.len() + why.len() + ALLOCATION_OVERHEAD));
        u64::sum(files.chain(left_out))
    }
}

/// A data file, and its state when it was listed.
#[derive(Debug)]
pub(super) struct ListedFile {
    /// The path of the file. For a symbolic link, the path of the link's target.
    pub(super) path: PathBuf,
    pub(super) state: Identity,
}

/// The files found so far by a search of the directory.
struct DirectoryScan<'a> {
    files: Vec<(Arc<[u8]>, ListedFile)>,
    omitted: Vec<(String, String)>,
    /// Symbolic links. Their targets are added after all other files, so that a file is listed by
    /// its own path.
    links: Vec<PathBuf>,
    cancel: &'a CancelToken,
}

impl DirectoryScan<'_> {
    /// Records the symbolic link at `path`, whose target is added after all other files.
    ///
    /// # Errors
    /// `Limit` if there are too many links.
    fn add_link(&mut self, path: PathBuf) -> Result<()> {
        Error::check_room(
            self.links.len(),
            limits::JOINED_FILES,
            "joined: links in a directory",
        )?;
        self.links.push(path);
        Ok(())
    }

    /// Moves the files with names of temporary files from the found files to the omitted ones.
    ///
    /// # Errors
    /// `Limit` if there are too many omitted files.
    fn omit_temporary_files(&mut self) -> Result<()> {
        let names: Vec<_> = self.files.iter().map(|(name, _)| name).collect();
        let reasons = temporary::omission_reasons(&names);
        for ((name, file), reason) in std::mem::take(&mut self.files).into_iter().zip(reasons) {
            match reason {
                Some(reason) => self.omit(Path::new(OsStr::from_bytes(&name)), &reason)?,
                None => self.files.push((name, file)),
            }
        }
        Ok(())
    }

    /// Records that the file or directory at `path` is omitted, with the reason.
    ///
    /// # Errors
    /// `Limit` if there are too many omitted files.
    fn omit(&mut self, path: &Path, reason: &str) -> Result<()> {
        Error::check_room(
            self.omitted.len(),
            limits::JOINED_FILES,
            "joined: number of files left out",
        )?;
        let name = path.display().to_string();
        self.omitted.push((name, reason.to_owned()));
        Ok(())
    }
}

impl FileLister {
    /// Lists the data files of the directory. `freed` is the number of times that a writer has
    /// unlocked an omitted file. This number is part of the listing's hash, so that an unlocked
    /// file counts as a change.
    ///
    /// # Errors
    /// Fails if the directory cannot be listed. `Limit` if there are too many files. Returns
    /// [`Error::cancelled`] if `cancel` ends the request.
    pub(super) fn list(&self, freed: usize, cancel: &CancelToken) -> Result<FileListing> {
        let mut found = DirectoryScan {
            files: Vec::new(),
            omitted: Vec::new(),
            links: Vec::new(),
            cancel,
        };
        self.list_beneath(Path::new(""), 0, &mut found)?;
        self.add_link_targets(&mut found)?;
        found.files.sort_by(|(a, _), (b, _)| a.cmp(b));
        found.omit_temporary_files()?;
        let DirectoryScan {
            files,
            omitted: left_out,
            ..
        } = found;
        let mut hasher = DefaultHasher::new();
        freed.hash(&mut hasher);
        for (name, file) in &files {
            (name, &file.path, &file.state).hash(&mut hasher);
        }
        let (names, files) = files.into_iter().unzip();
        Ok(FileListing {
            names,
            files,
            omitted: left_out,
            hash: hasher.finish(),
        })
    }

    fn list_beneath(
        &self,
        directory: &Path,
        depth: usize,
        found: &mut DirectoryScan<'_>,
    ) -> Result<()> {
        Error::check_limit(depth, DEPTH, "joined: directories within directories")?;
        let mut names = Vec::new();
        self.root.list(directory)?.visit(0, &mut |listed| {
            if !listed.name.starts_with(b".") {
                names.push((listed.name.to_vec(), listed.info.clone()));
            }
            names.len() > limits::JOINED_NAMES
        })?;
        Error::check_limit(
            names.len(),
            limits::JOINED_NAMES,
            "joined: names in a directory",
        )?;
        for (name, there) in names {
            found.cancel.check_cancelled()?;
            let path = directory.join(OsStr::from_bytes(&name));
            let listed =
                there.and_then(|there| self.inspector.inspect_listed(&path, false, &there));
            let looked = match listed {
                Some(found) => Ok(found),
                None => self.inspector.inspect(&path, false, None),
            };
            let looked = looked.and_then(|looked| match looked.read_error {
                Some(error) if self.is_chosen(&path) => Err(error),
                _ => Ok(looked),
            });
            match looked {
                Ok(looked) => self.add_found(path, looked, depth, found)?,
                // The file was removed meanwhile, or is not a regular file. On a server, a listed
                // file should exist.
                Err(Error::NotFound) if !self.root.is_remote() || !self.is_chosen(&path) => {}
                Err(error) => self.omit_unreadable(&path, error, found)?,
            }
        }
        Ok(())
    }

    /// Adds the file or directory at `path`, which could not be read because of `error`, to the
    /// omitted ones. This applies if the error is permanent, or if the user permits partial
    /// results.
    ///
    /// # Errors
    /// Fails with `error` in all other cases.
    fn omit_unreadable(
        &self,
        path: &Path,
        error: Error,
        found: &mut DirectoryScan<'_>,
    ) -> Result<()> {
        let lasts = !error.is_transient()
            || is_own_mount(&error)
            || is_denied(&error) && !self.root.is_remote()
            || self.partial && !error.is_cancelled();
        if !lasts {
            return Err(error);
        }
        found.omit(path, &error.to_string())
    }

    /// Adds the data file at `path` or, if `path` is a directory, all data files below it.
    fn add_found(
        &self,
        path: PathBuf,
        looked: Looked,
        depth: usize,
        found: &mut DirectoryScan<'_>,
    ) -> Result<()> {
        if self.is_unreadable_for_others(&looked) {
            return found.omit(&path, "not every user may read it");
        }
        match looked.kind {
            EntryKind::Directory => match self.list_beneath(&path, depth + 1, found) {
                Err(error) if matches!(error, Error::Limit { .. }) || error.is_cancelled() => {
                    Err(error)
                }
                Err(error) => self.omit_unreadable(&path, error, found),
                Ok(()) => Ok(()),
            },
            EntryKind::DataFile => self.add_file(&path, path.clone(), looked.info.identity, found),
            EntryKind::Symlink if self.is_chosen(&path) => found.add_link(path),
            EntryKind::Symlink | EntryKind::File | EntryKind::Joined => Ok(()),
        }
    }

    /// Adds the target of each symbolic link, unless the target was already added by its own path
    /// or for another link.
    fn add_link_targets(&self, found: &mut DirectoryScan<'_>) -> Result<()> {
        let taken = found.files.iter().map(|(_, file)| file.path.clone());
        let mut taken: HashSet<PathBuf> = taken.collect();
        let mut links = std::mem::take(&mut found.links);
        links.sort();
        for link in links {
            found.cancel.check_cancelled()?;
            match self.link_target(&link) {
                Ok(Some((target, state))) if taken.insert(target.clone()) => {
                    self.add_file(&link, target, state, found)?;
                }
                Ok(_) => {}
                Err(Error::NotFound) => found.omit(&link, "a dangling link")?,
                Err(Error::Usage(reason)) => found.omit(&link, &reason)?,
                Err(error) => self.omit_unreadable(&link, error, found)?,
            }
        }
        Ok(())
    }

    /// Returns whether the user's choice of files includes the file with this path.
    fn is_chosen(&self, name: &Path) -> bool {
        self.choice.includes_path(name.as_os_str().as_bytes())
    }

    /// Returns whether some users who can read the joined file have no permission to read this
    /// file.
    fn is_unreadable_for_others(&self, looked: &Looked) -> bool {
        const ALL: u32 = 0o444;
        const ALL_SEARCH: u32 = 0o555;
        let wanted = match looked.kind {
            EntryKind::Directory => ALL_SEARCH,
            EntryKind::DataFile => ALL,
            // The target of a link is checked separately.
            _ => return false,
        };
        self.allow_other && looked.info.attributes.mode & wanted != wanted
    }

    /// Returns whether some users who can read the joined file may not enter a directory on the
    /// path of this file.
    fn is_unreachable_for_others(&self, path: &Path) -> bool {
        self.allow_other
            && path.ancestors().skip(1).any(|above| {
                let looked = self.inspector.inspect(above, false, None);
                looked.is_ok_and(|looked| self.is_unreadable_for_others(&looked))
            })
    }

    fn add_file(
        &self,
        name: &Path,
        path: PathBuf,
        state: Identity,
        found: &mut DirectoryScan<'_>,
    ) -> Result<()> {
        if !self.is_chosen(name) {
            return Ok(());
        }
        Error::check_room(
            found.files.len(),
            limits::JOINED_FILES,
            "joined: files of a directory",
        )?;
        let name = name.as_os_str().as_bytes().into();
        found.files.push((name, ListedFile { path, state }));
        Ok(())
    }

    /// Returns the path and the state of the data file to which the symbolic link `link` leads.
    /// Returns `None` if the target is not a data file.
    ///
    /// # Errors
    /// `Usage` if the link leads out of the joined directory. Fails if the target cannot be read.
    fn link_target(&self, link: &Path) -> Result<Option<(PathBuf, Identity)>> {
        let refused = |why: &str| Err(Error::Usage(why.to_owned()));
        let mut at = link.to_path_buf();
        for _ in 0..LINKS {
            let text = PathBuf::from(self.root.read_link(&at)?);
            let text = text
                .strip_prefix(self.root.path())
                .map(Path::to_path_buf)
                .unwrap_or_else(|_| at.parent().unwrap_or(Path::new("")).join(&text));
            match resolve_dot_dot(&text) {
                Some(within) => at = within,
                None => return refused("a link that leads outside the directory"),
            }
            let found = self.inspector.inspect(&at, false, None)?;
            match found.kind {
                EntryKind::DataFile
                    if self.is_unreadable_for_others(&found)
                        || self.is_unreachable_for_others(&at) =>
                {
                    return refused("not every user may read it");
                }
                EntryKind::DataFile => return Ok(Some((at, found.info.identity))),
                EntryKind::Symlink => {}
                _ => return found.read_error.map_or(Ok(None), Err),
            }
        }
        refused("too many links in a chain")
    }
}

fn is_own_mount(error: &Error) -> bool {
    errno::from_error(error) == Errno::EDEADLK as i32
}

/// Resolves `..` in a relative path. Returns `None` if the path leads out of the directory.
fn resolve_dot_dot(path: &Path) -> Option<PathBuf> {
    let mut own = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => own.push(name),
            Component::ParentDir => own.pop().then_some(())?,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(own)
}
