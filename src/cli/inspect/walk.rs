//! Lists directories in batches, for commands that walk the tree without a mount.

use std::vec;

use h5fs_reader::error::{Error, Result};
use h5fs_tree::{FileKind, Filesystem, Handle, Ino, LookupEntry, Requests, Stat};

/// Number of names fetched from a directory at a time.
const BATCH: usize = 256;

/// A name in a directory, with the inode of its object. The look-up increased the inode's look-up
/// count, so the caller must call `forget`.
pub(in crate::cli) struct NamedInode {
    pub(in crate::cli) name: Vec<u8>,
    pub(in crate::cli) ino: Ino,
    /// Attributes of the inode, except those that take long to compute.
    pub(in crate::cli) stat: Stat,
}

impl NamedInode {
    fn new(name: &[u8], entry: &LookupEntry) -> Self {
        NamedInode {
            name: name.to_vec(),
            ino: entry.ino,
            stat: entry.attributes,
        }
    }
}

/// An iterator over the names in a directory, without `.` and `..`. Names of a group are in the
/// order of the file's index. Names of an ordinary directory are sorted.
pub(in crate::cli) struct DirectoryNames<'a> {
    filesystem: &'a dyn Requests,
    directory: Ino,
    handle: Handle,
    cookie: u64,
    batch: vec::IntoIter<NamedInode>,
    is_ordered: bool,
    /// The error of the first name that was listed, but could not be looked up.
    lookup_error: Option<Error>,
}

impl<'a> DirectoryNames<'a> {
    pub(in crate::cli) fn open(filesystem: &'a dyn Requests, directory: Ino) -> Result<Self> {
        Ok(DirectoryNames {
            filesystem,
            directory,
            handle: filesystem.opendir(directory)?.handle,
            cookie: 0,
            batch: Vec::new().into_iter(),
            is_ordered: filesystem.has_display_order(directory),
            lookup_error: None,
        })
    }

    /// Returns whether the names are not sorted, because they are too many. They are in the order
    /// of the file's index.
    pub(in crate::cli) fn are_unordered(&self) -> bool {
        self.filesystem.is_in_index_order(self.handle)
    }

    /// Returns the next name, or `None` at the end.
    ///
    /// # Errors
    /// Fails if the index is damaged, or if the object of a name cannot be opened. Listing cannot
    /// continue after an error.
    pub(in crate::cli) fn next(&mut self) -> Result<Option<NamedInode>> {
        if self.batch.len() == 0 {
            self.batch = if self.is_ordered {
                self.fetch_batch()?
            } else {
                self.fetch_all()?
            }
            .into_iter();
        }
        match (self.batch.next(), self.lookup_error.take()) {
            (None, Some(error)) => Err(error),
            (named, failed) => {
                self.lookup_error = failed;
                Ok(named)
            }
        }
    }

    /// Fetches all remaining names and sorts them.
    fn fetch_all(&mut self) -> Result<Vec<NamedInode>> {
        let mut all = Vec::new();
        while self.lookup_error.is_none() {
            let batch = self.fetch_batch()?;
            if batch.is_empty() {
                break;
            }
            all.extend(batch);
        }
        all.sort_by(|a: &NamedInode, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Fetches the next batch of names. Returns an empty vector at the end. A batch that contains
    /// only `.` or `..` does not end the listing.
    fn fetch_batch(&mut self) -> Result<Vec<NamedInode>> {
        loop {
            let before = self.cookie;
            let batch = self.read_batch()?;
            if !batch.is_empty() || self.lookup_error.is_some() || self.cookie == before {
                return Ok(batch);
            }
        }
    }

    fn read_batch(&mut self) -> Result<Vec<NamedInode>> {
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
                    Some(entry) => batch.push(NamedInode::new(listed.name, entry)),
                    None => unknown.push(listed.name.to_vec()),
                }
                false
            })?;
        for name in unknown {
            match self.filesystem.lookup(self.directory, &name) {
                Ok(entry) => batch.push(NamedInode::new(&name, &entry)),
                // The file was removed after it was listed.
                Err(Error::NotFound) if !self.is_ordered => {}
                Err(error) => self.lookup_error = Some(error),
            }
        }
        Ok(batch)
    }
}

impl Drop for DirectoryNames<'_> {
    fn drop(&mut self) {
        for named in self.batch.by_ref() {
            self.filesystem.forget(named.ino, 1);
        }
        self.filesystem.release(self.handle);
    }
}

/// An item that a walk visits.
pub(in crate::cli) enum VisitedItem<'a> {
    /// A directory: its path and its inode. The items in the directory follow. The walk itself
    /// releases the inode with `forget`.
    Directory(&'a [u8], Ino),
    /// An item that is not a directory, and its path.
    Entry(&'a [u8], NamedInode),
    /// A directory that cannot be listed completely: its path and the error.
    Unlistable(&'a [u8], Error),
}

/// Visits the root and everything below it. A directory is visited before its content. The blocks
/// of an ASDF file follow at the end. Stops when `visit` returns false. Only the directories on the
/// current path are held in memory.
pub(in crate::cli) fn walk(
    filesystem: &Filesystem,
    visit: &mut dyn FnMut(VisitedItem<'_>) -> bool,
) {
    let go_on = walk_from(filesystem, filesystem.root(), b"/", visit);
    if let Some(blocks) = find_blocks_directory(filesystem).filter(|_| go_on) {
        walk_from(filesystem, blocks, b"/.h5fs/blocks", visit);
    }
}

/// Visits everything in the view trees with these names. See [`walk`].
pub(in crate::cli) fn walk_views(
    filesystem: &Filesystem,
    trees: &[&[u8]],
    visit: &mut dyn FnMut(VisitedItem<'_>) -> bool,
) {
    for tree in trees {
        let path = [b"/.h5fs/", *tree].concat();
        let found = find_in_views(filesystem, tree);
        if found.is_some_and(|tree| !walk_from(filesystem, tree, &path, visit)) {
            return;
        }
    }
}

/// Finds the directory that contains the blocks of an ASDF file.
fn find_blocks_directory(filesystem: &Filesystem) -> Option<Ino> {
    find_in_views(filesystem, b"blocks")
}

/// Finds the directory `name` in `.h5fs`.
fn find_in_views(filesystem: &Filesystem, name: &[u8]) -> Option<Ino> {
    let views = filesystem.lookup(filesystem.root(), b".h5fs").ok()?.ino;
    let found = filesystem.lookup(views, name);
    filesystem.forget(views, 1);
    Some(found.ok()?.ino)
}

fn walk_from(
    filesystem: &Filesystem,
    directory: Ino,
    path: &[u8],
    visit: &mut dyn FnMut(VisitedItem<'_>) -> bool,
) -> bool {
    let mut walk = TreeWalk {
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

struct TreeWalk<'a> {
    filesystem: &'a Filesystem,
    /// Path of the item that was visited last.
    path: Vec<u8>,
    levels: Vec<WalkLevel<'a>>,
}

/// A directory whose content is being visited.
struct WalkLevel<'a> {
    directory: Ino,
    names: DirectoryNames<'a>,
    /// Length in bytes of the directory's path, which is the start of [`TreeWalk::path`].
    path: usize,
}

impl TreeWalk<'_> {
    /// Starts visiting the content of a directory, whose path is the current path. Returns whether
    /// to continue the walk.
    fn enter(&mut self, directory: Ino, visit: &mut dyn FnMut(VisitedItem<'_>) -> bool) -> bool {
        let go_on = visit(VisitedItem::Directory(&self.path, directory));
        match DirectoryNames::open(self.filesystem, directory) {
            Ok(names) => {
                self.levels.push(WalkLevel {
                    directory,
                    names,
                    path: self.path.len(),
                });
                go_on
            }
            Err(error) => {
                self.filesystem.forget(directory, 1);
                go_on && visit(VisitedItem::Unlistable(&self.path, error))
            }
        }
    }

    /// Visits the next name of the innermost directory, or leaves the directory after its last
    /// name. Returns whether to continue the walk.
    fn step(&mut self, visit: &mut dyn FnMut(VisitedItem<'_>) -> bool) -> bool {
        let Some(level) = self.levels.last_mut() else {
            return false;
        };
        self.path.truncate(level.path);
        let torn = match level.names.next() {
            Ok(Some(named)) => {
                push(&mut self.path, &named.name);
                return match named.stat.kind {
                    FileKind::Directory => self.enter(named.ino, visit),
                    _ => visit(VisitedItem::Entry(&self.path, named)),
                };
            }
            Ok(None) => None,
            Err(error) => Some(error),
        };
        self.filesystem.forget(level.directory, 1);
        self.levels.pop();
        torn.is_none_or(|error| visit(VisitedItem::Unlistable(&self.path, error)))
    }
}

/// Appends a name to the path of a directory.
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
