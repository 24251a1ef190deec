//! Directories listed a batch at a time, for commands that walk the tree without a mount.

use std::vec;

use crate::error::{Error, Result};
use crate::fs::{Entry, Filesystem, Handle, Ino, Kind, Requests, Stat};

/// Names fetched from a directory at a time.
const BATCH: usize = 256;

/// A name of a directory and what stands there, which is counted: it is to be given back with
/// `forget`.
pub(in crate::cli) struct Named {
    pub(in crate::cli) name: Vec<u8>,
    pub(in crate::cli) ino: Ino,
    /// Without what is costly to find.
    pub(in crate::cli) stat: Stat,
}

impl Named {
    fn new(name: &[u8], entry: &Entry) -> Self {
        Named {
            name: name.to_vec(),
            ino: entry.ino,
            stat: entry.attributes,
        }
    }
}

/// The names of a directory, without `.` and `..`, in the order of the file's index; those of an
/// ordinary directory sorted.
pub(in crate::cli) struct Names<'a> {
    filesystem: &'a dyn Requests,
    directory: Ino,
    handle: Handle,
    cookie: u64,
    batch: vec::IntoIter<Named>,
    is_ordered: bool,
    /// Why a name that was listed leads nowhere.
    failed: Option<Error>,
}

impl<'a> Names<'a> {
    pub(in crate::cli) fn open(filesystem: &'a dyn Requests, directory: Ino) -> Result<Self> {
        Ok(Names {
            filesystem,
            directory,
            handle: filesystem.opendir(directory)?.handle,
            cookie: 0,
            batch: Vec::new().into_iter(),
            is_ordered: filesystem.is_ordered(directory),
            failed: None,
        })
    }

    /// Whether those that were listed stand in the order of the file's index, as they are too many.
    pub(in crate::cli) fn are_unordered(&self) -> bool {
        self.filesystem.is_unordered(self.handle)
    }

    /// The next name; `None` at the end.
    ///
    /// # Errors
    /// Fails if the index is damaged, or what bears a name cannot be opened; nothing comes after
    /// that.
    pub(in crate::cli) fn next(&mut self) -> Result<Option<Named>> {
        if self.batch.len() == 0 {
            self.batch = if self.is_ordered {
                self.fetch()?
            } else {
                self.fetch_all()?
            }
            .into_iter();
        }
        match (self.batch.next(), self.failed.take()) {
            (None, Some(error)) => Err(error),
            (named, failed) => {
                self.failed = failed;
                Ok(named)
            }
        }
    }

    /// All names that are left, sorted.
    fn fetch_all(&mut self) -> Result<Vec<Named>> {
        let mut all = Vec::new();
        while self.failed.is_none() {
            let batch = self.fetch()?;
            if batch.is_empty() {
                break;
            }
            all.extend(batch);
        }
        all.sort_by(|a: &Named, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// The next names; none at the end. An answer may hold nothing but a `.`, behind which the
    /// listing goes on.
    fn fetch(&mut self) -> Result<Vec<Named>> {
        loop {
            let before = self.cookie;
            let batch = self.fetch_some()?;
            if !batch.is_empty() || self.failed.is_some() || self.cookie == before {
                return Ok(batch);
            }
        }
    }

    fn fetch_some(&mut self) -> Result<Vec<Named>> {
        let mut batch = Vec::new();
        let mut unknown = Vec::new();
        let cookie = &mut self.cookie;
        self.filesystem
            .readdir_plus(self.handle, *cookie, &mut |listed, entry| {
                if batch.len() + unknown.len() == BATCH {
                    return true;
                }
                *cookie = listed.next;
                match entry {
                    _ if matches!(listed.name, b"." | b"..") => {}
                    Some(entry) => batch.push(Named::new(listed.name, entry)),
                    None => unknown.push(listed.name.to_vec()),
                }
                false
            })?;
        for name in unknown {
            match self.filesystem.lookup(self.directory, &name) {
                Ok(entry) => batch.push(Named::new(&name, &entry)),
                // It was removed meanwhile.
                Err(Error::NotFound) if !self.is_ordered => {}
                Err(error) => self.failed = Some(error),
            }
        }
        Ok(batch)
    }
}

impl Drop for Names<'_> {
    fn drop(&mut self) {
        for named in self.batch.by_ref() {
            self.filesystem.forget(named.ino, 1);
        }
        self.filesystem.release(self.handle);
    }
}

/// Something that a walk comes to.
pub(in crate::cli) enum Visited<'a> {
    /// A directory and its path; the walk itself gives it back. Its entries come next.
    Directory(&'a [u8], Ino),
    /// Any other entry, and its path.
    Entry(&'a [u8], Named),
    /// A directory, by its path, that cannot be listed, or no further than this.
    Broken(&'a [u8], Error),
}

/// Hands the root and all that is beneath it to `visit` until that says `false`, each directory
/// before what is in it; then the blocks of an ASDF file. Of the tree it holds no more than the way
/// down to where it is.
pub(in crate::cli) fn walk(filesystem: &Filesystem, visit: &mut dyn FnMut(Visited<'_>) -> bool) {
    let go_on = walk_from(filesystem, filesystem.root(), b"/", visit);
    if let Some(blocks) = blocks(filesystem).filter(|_| go_on) {
        walk_from(filesystem, blocks, b"/.h5fs/blocks", visit);
    }
}

/// Hands what is in these trees of views to `visit`, as [`walk`] does.
pub(in crate::cli) fn walk_views(
    filesystem: &Filesystem,
    trees: &[&[u8]],
    visit: &mut dyn FnMut(Visited<'_>) -> bool,
) {
    for tree in trees {
        let path = [b"/.h5fs/", *tree].concat();
        let found = beneath_views(filesystem, tree);
        if found.is_some_and(|tree| !walk_from(filesystem, tree, &path, visit)) {
            return;
        }
    }
}

/// The directory of an ASDF file's blocks.
fn blocks(filesystem: &Filesystem) -> Option<Ino> {
    beneath_views(filesystem, b"blocks")
}

/// Finds a directory beneath `.h5fs`.
fn beneath_views(filesystem: &Filesystem, name: &[u8]) -> Option<Ino> {
    let views = filesystem.lookup(filesystem.root(), b".h5fs").ok()?.ino;
    let found = filesystem.lookup(views, name);
    filesystem.forget(views, 1);
    Some(found.ok()?.ino)
}

fn walk_from(
    filesystem: &Filesystem,
    directory: Ino,
    path: &[u8],
    visit: &mut dyn FnMut(Visited<'_>) -> bool,
) -> bool {
    let mut walk = Walk {
        filesystem,
        path: path.to_vec(),
        levels: Vec::new(),
    };
    let mut go_on = walk.enter(directory, visit);
    while go_on && !walk.levels.is_empty() {
        go_on = walk.step(visit);
    }
    go_on
}

struct Walk<'a> {
    filesystem: &'a Filesystem,
    /// Of what was met last.
    path: Vec<u8>,
    levels: Vec<Level<'a>>,
}

/// A directory that a walk is in.
struct Level<'a> {
    directory: Ino,
    names: Names<'a>,
    /// Bytes of its path.
    path: usize,
}

impl Walk<'_> {
    /// Goes into the directory at the path; whether to go on.
    fn enter(&mut self, directory: Ino, visit: &mut dyn FnMut(Visited<'_>) -> bool) -> bool {
        let go_on = visit(Visited::Directory(&self.path, directory));
        match Names::open(self.filesystem, directory) {
            Ok(names) => {
                self.levels.push(Level {
                    directory,
                    names,
                    path: self.path.len(),
                });
                go_on
            }
            Err(error) => {
                self.filesystem.forget(directory, 1);
                go_on && visit(Visited::Broken(&self.path, error))
            }
        }
    }

    /// Goes to the next name, or back up at the last one; whether to go on.
    fn step(&mut self, visit: &mut dyn FnMut(Visited<'_>) -> bool) -> bool {
        let Some(level) = self.levels.last_mut() else {
            return false;
        };
        self.path.truncate(level.path);
        let torn = match level.names.next() {
            Ok(Some(named)) => {
                push(&mut self.path, &named.name);
                return match named.stat.kind {
                    Kind::Directory => self.enter(named.ino, visit),
                    _ => visit(Visited::Entry(&self.path, named)),
                };
            }
            Ok(None) => None,
            Err(error) => Some(error),
        };
        self.filesystem.forget(level.directory, 1);
        self.levels.pop();
        torn.is_none_or(|error| visit(Visited::Broken(&self.path, error)))
    }
}

/// The path of a name in a directory.
pub(in crate::cli) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = directory.to_vec();
    push(&mut path, name);
    path
}

fn push(path: &mut Vec<u8>, name: &[u8]) {
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_with_one_slash() {
        assert_eq!(join(b"/", b"a"), b"/a");
        assert_eq!(join(b"x/y", b"a"), b"x/y/a");
    }
}
