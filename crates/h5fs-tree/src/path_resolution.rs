//! Resolves paths in a tree without the kernel, for commands that do not mount.

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Cause, Error, Result};
use nix::errno::Errno;

use crate::filesystem::Filesystem;
use crate::limits;
use crate::requests::{Ino, Requests};
use crate::stat::{FileKind, LookupEntry};
use crate::state::inode::ROOT;

impl Filesystem {
    /// Returns the entry at `path`, given as shown names from the root. Symbolic links are
    /// followed. The caller must forget the entry's inode.
    ///
    /// # Errors
    /// `NotFound`; `ELOOP` after 40 symbolic links; `ENOTDIR` below a file.
    pub fn resolve(&self, path: &[u8]) -> Result<LookupEntry> {
        self.resolve_without_lookup(path, true)
    }

    /// Resolves `path` like [`resolve`](Self::resolve), without following a symbolic link at the
    /// end.
    ///
    /// # Errors
    /// Fails as [`resolve`](Self::resolve) does.
    pub fn resolve_link(&self, path: &[u8]) -> Result<LookupEntry> {
        self.resolve_without_lookup(path, false)
    }

    fn resolve_without_lookup(&self, path: &[u8], follow_last: bool) -> Result<LookupEntry> {
        let cancel = CancelToken::default();
        let mut way = PathResolution::from_root(self, &cancel)?;
        let found = way.resolve(path, follow_last);
        way.release();
        found
    }
}

impl dyn Requests + '_ {
    /// Returns the entry at `path`, given as shown names from the root. If `follow_last` is true, a
    /// symbolic link at the end is followed too. Increments the lookup counts of the entry and of
    /// the directories on the path. An entry of a mounted directory of files would have no path if
    /// its directories were forgotten.
    ///
    /// # Errors
    /// - `Usage` with the reason if a link or a selector leads nowhere.
    /// - `NotFound` if the path does not exist for any other reason.
    /// - Fails after 40 symbolic links, or if a name before the last one is a file.
    pub fn find_path(&self, path: &[u8], follow_last: bool) -> Result<LookupEntry> {
        let found = self.find_path_with_cancel(path, follow_last, &CancelToken::default());
        found.map(|found| found.entry)
    }

    /// Finds an entry like [`find_path`](Self::find_path). Returns also the inodes whose lookups
    /// the caller must release.
    ///
    /// # Errors
    /// Fails as [`find_path`](Self::find_path) does.
    pub(crate) fn find_path_with_cancel(
        &self,
        path: &[u8],
        follow_last: bool,
        cancel: &CancelToken,
    ) -> Result<ResolvedEntry> {
        let mut way = PathResolution::from_root(self, cancel)?;
        way.explains_errors = true;
        match way.resolve(path, follow_last) {
            Ok(entry) => {
                let passed = way.directories.iter().chain([&entry]);
                // The root is not counted.
                let counted = passed.map(|passed| passed.ino).filter(|ino| *ino != ROOT);
                let counted = counted.collect();
                let mut names = way.names;
                names.extend(way.last_name);
                Ok(ResolvedEntry {
                    entry,
                    names,
                    looked_up: counted,
                })
            }
            Err(error) => {
                let explained = way.explain_error(error, path);
                way.release();
                Err(explained)
            }
        }
    }
}

/// The result of a path resolution: the entry, and its path without symbolic links.
pub(crate) struct ResolvedEntry {
    pub(crate) entry: LookupEntry,
    /// The names from the root to the entry, without symbolic links.
    pub(crate) names: Vec<Vec<u8>>,
    /// The inode numbers of the entry and the directories on its path. The caller must release one
    /// lookup of each.
    pub(crate) looked_up: Vec<Ino>,
}

/// The state of a path resolution. Like the kernel, it holds a lookup of each directory on the
/// path.
struct PathResolution<'a> {
    tree: &'a dyn Requests,
    cancel: &'a CancelToken,
    directories: Vec<LookupEntry>,
    /// The names of the directories on the path, except the root.
    names: Vec<Vec<u8>>,
    /// The last name of the path, if it is not a directory.
    last_name: Option<Vec<u8>>,
    /// The symbolic links being followed. Each link after the first is on the path that the
    /// previous link contains.
    links: Vec<FollowedLink>,
    /// The name that does not exist, if the resolution failed for that reason.
    absent_name: Option<Vec<u8>>,
    /// Whether an error message explains why the path does not exist.
    explains_errors: bool,
    /// The path of a symbolic link whose target does not exist, and the reason.
    dangling_link: Option<(Vec<u8>, String)>,
}

/// A symbolic link that the resolution has followed.
struct FollowedLink {
    path: Vec<u8>,
    text: Vec<u8>,
    /// Number of names that remained on the path after the link.
    remaining_names: usize,
}

impl FollowedLink {
    /// Returns the reason why the target of the link does not exist, according to the link's text.
    fn missing_target_reason(&self) -> String {
        let text = String::from_utf8_lossy(&self.text);
        match self.text.first() {
            Some(b'/') => format!("link to {text}: leads outside the source"),
            _ => format!("link to {text}: no such name"),
        }
    }
}

impl<'a> PathResolution<'a> {
    fn from_root(tree: &'a dyn Requests, cancel: &'a CancelToken) -> Result<Self> {
        Ok(PathResolution {
            tree,
            cancel,
            directories: vec![tree.getattr_with_cancel(ROOT, cancel)?],
            names: Vec::new(),
            last_name: None,
            links: Vec::new(),
            absent_name: None,
            explains_errors: false,
            dangling_link: None,
        })
    }

    /// Releases the lookups of the directories on the path.
    fn release(self) {
        for passed in self.directories {
            self.tree.forget(passed.ino, 1);
        }
    }

    /// Returns the entry at `path`, which is relative to the current directory. Afterwards, the
    /// current directory is the directory that contains the entry.
    fn resolve(&mut self, path: &[u8], follow_last: bool) -> Result<LookupEntry> {
        let mut names = reversed_names(path);
        let mut hops = 0;
        while let Some(name) = names.pop() {
            self.links
                .retain(|link| link.remaining_names <= names.len());
            match &*name {
                b"" | b"." => continue,
                b".." => {
                    self.ascend();
                    continue;
                }
                _ => {}
            }
            let next = self
                .tree
                .lookup_with_cancel(self.current_directory(), &name, self.cancel);
            let next = next.inspect_err(|_| self.absent_name = Some(name.clone()))?;
            let follow = follow_last || !names.is_empty();
            if next.attributes.kind == FileKind::Symlink && follow {
                hops += 1;
                let text = self.read_link_text(&next, &name);
                self.tree.forget(next.ino, 1);
                let text = text?;
                if hops > limits::SYMLINK_HOPS {
                    return Err(self.refusal(Errno::ELOOP, &name));
                }
                let path = self.path_of(&name);
                let left = names.len();
                names.extend(reversed_names(&text));
                let is_outside = text.starts_with(b"/");
                self.links.push(FollowedLink {
                    path,
                    text,
                    remaining_names: left,
                });
                // A link with an absolute path leads out of the tree.
                if is_outside {
                    self.absent_name = Some(Vec::new());
                    return Err(Error::NotFound);
                }
            } else if next.attributes.kind == FileKind::Directory {
                self.directories.push(next);
                self.names.push(name);
            } else if names.is_empty() {
                self.last_name = Some(name);
                return Ok(next);
            } else {
                self.tree.forget(next.ino, 1);
                return Err(self.refusal(Errno::ENOTDIR, &name));
            }
        }
        self.directories.pop().ok_or(Error::NotFound)
    }

    /// Returns the text of the symbolic link `link`, called `name`. If errors are explained, fails
    /// for a link into a file that is not shown without reading the text, because a read would log
    /// the same explanation.
    fn read_link_text(&mut self, link: &LookupEntry, name: &[u8]) -> Result<Vec<u8>> {
        if self.explains_errors
            && let Some(reason) = self.tree.dangling_reason(link.ino, false)
        {
            self.dangling_link = Some((self.path_of(name), reason));
            return Err(Error::NotFound);
        }
        self.tree.readlink_with_cancel(link.ino, self.cancel)
    }

    /// Returns the inode number of the current directory.
    fn current_directory(&self) -> Ino {
        self.directories.last().map_or(ROOT, |at| at.ino)
    }

    /// Moves to the parent of the current directory, unless it is the root.
    fn ascend(&mut self) {
        if self.names.pop().is_some()
            && let Some(left) = self.directories.pop()
        {
            self.tree.forget(left.ino, 1);
        }
    }

    /// Returns the path of a name in the current directory.
    fn path_of(&self, name: &[u8]) -> Vec<u8> {
        let mut path = Vec::new();
        for name in self.names.iter().map(Vec::as_slice).chain([name]) {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        path
    }

    fn refusal(&self, errno: Errno, name: &[u8]) -> Error {
        let path = String::from_utf8_lossy(&self.path_of(name)).into_owned();
        Error::from_cause(Cause::System(errno as i32), path)
    }

    /// Adds the reason why `path` does not exist to the error, if the reason is known. If a
    /// symbolic link on the path is the cause, the message names the link.
    fn explain_error(&self, error: Error, path: &[u8]) -> Error {
        match &error {
            Error::NotFound => match self.failure_reason() {
                Some((place, reason)) if !are_same_path(&place, path) => {
                    let place = String::from_utf8_lossy(&place);
                    Error::Usage(format!("{place}: {reason}"))
                }
                Some((_, reason)) => Error::Usage(reason),
                None => error,
            },
            Error::Io { cause, what } if are_same_path(what.as_bytes(), path) => {
                Error::Usage(cause.to_string())
            }
            _ => error,
        }
    }

    /// Returns the path of the entry because of which the resolution failed, and the reason.
    fn failure_reason(&self) -> Option<(Vec<u8>, String)> {
        if self.dangling_link.is_some() {
            return self.dangling_link.clone();
        }
        let name = self.absent_name.as_deref()?;
        let path = self.path_of(name);
        if let Some(reason) = self.tree.absence_reason(self.current_directory(), name) {
            return Some((path, reason));
        }
        if let Some(link) = self.links.last() {
            let found = PathResolution::from_root(self.tree, self.cancel)
                .and_then(|mut way| way.resolve(&link.path, false));
            let reason = found
                .ok()
                .and_then(|it| self.tree.dangling_reason(it.ino, true));
            return Some((
                link.path.clone(),
                reason.unwrap_or_else(|| link.missing_target_reason()),
            ));
        }
        // The name before a selector may be a link that leads nowhere.
        let bracket = name.iter().position(|&byte| byte == b'[')?;
        let before = path.get(..path.len() - name.len() + bracket)?;
        let mut way = PathResolution::from_root(self.tree, self.cancel).ok()?;
        way.explains_errors = true;
        way.resolve(before, true).err()?;
        way.failure_reason().filter(|_| bracket > 0)
    }
}

/// Returns whether two paths are equal except for slashes at their ends.
fn are_same_path(one: &[u8], other: &[u8]) -> bool {
    let names = |path: &[u8]| {
        let names = path
            .split(|&byte| byte == b'/')
            .filter(|name| !name.is_empty());
        names.map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    names(one) == names(other)
}

/// Splits a path into names, in reverse order.
fn reversed_names(path: &[u8]) -> Vec<Vec<u8>> {
    let mut names: Vec<_> = path
        .split(|&byte| byte == b'/')
        .map(<[u8]>::to_vec)
        .collect();
    names.reverse();
    names
}
