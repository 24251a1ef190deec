//! Paths walked inside the tree, for commands that have no kernel to do it.

use nix::errno::Errno;

use crate::error::{Error, Result};
use crate::fs::errno::refusal;
use crate::fs::filesystem::Filesystem;
use crate::fs::requests::Requests;
use crate::fs::stat::{Entry, Kind};
use crate::fs::state::inode::ROOT;
use crate::limits;

impl Filesystem {
    /// The entry that `path` (names as shown, from the root) leads to across symbolic links;
    /// counted.
    ///
    /// # Errors
    /// `NotFound`; `ELOOP` after 40 symbolic links; `ENOTDIR` beneath a file.
    pub fn resolve(&self, path: &[u8]) -> Result<Entry> {
        self.passing(path, true)
    }

    /// The same, but where the last name is a symbolic link, that itself.
    ///
    /// # Errors
    /// Fails as [`resolve`](Self::resolve) does.
    pub fn resolve_link(&self, path: &[u8]) -> Result<Entry> {
        self.passing(path, false)
    }

    fn passing(&self, path: &[u8], follow_last: bool) -> Result<Entry> {
        let mut way = Way::from_root(self)?;
        let found = way.go(path, follow_last);
        for passed in way.directories {
            self.forget(passed.ino, 1);
        }
        found
    }
}

impl dyn Requests + '_ {
    /// The entry that `path` (names as shown, from the root) leads to, with `follow_last` across a
    /// symbolic link at its end, too; counted, as are the directories on the way, without which
    /// the entry of a directory of files has no path.
    ///
    /// # Errors
    /// `NotFound`; `ELOOP` after 40 symbolic links; `ENOTDIR` beneath a file.
    pub(crate) fn find(&self, path: &[u8], follow_last: bool) -> Result<Entry> {
        Way::from_root(self)?.go(path, follow_last)
    }
}

/// The directories that lead to a place. As the kernel does, this keeps them.
struct Way<'a> {
    tree: &'a dyn Requests,
    directories: Vec<Entry>,
}

impl<'a> Way<'a> {
    fn from_root(tree: &'a dyn Requests) -> Result<Self> {
        Ok(Way {
            tree,
            directories: vec![tree.getattr(ROOT)?],
        })
    }

    /// Goes `path` from the last directory, which is the one that the result is in afterwards.
    fn go(&mut self, path: &[u8], follow_last: bool) -> Result<Entry> {
        let mut names = pending(path);
        let mut hops = 0;
        while let Some(name) = names.pop() {
            match &*name {
                b"" | b"." => continue,
                b".." => {
                    if self.directories.len() > 1
                        && let Some(left) = self.directories.pop()
                    {
                        self.tree.forget(left.ino, 1);
                    }
                    continue;
                }
                _ => {}
            }
            let parent = self.directories.last().map_or(ROOT, |at| at.ino);
            let next = self.tree.lookup(parent, &name)?;
            let follow = follow_last || !names.is_empty();
            if next.attributes.kind == Kind::Symlink && follow {
                hops += 1;
                let text = self.tree.readlink(next.ino);
                self.tree.forget(next.ino, 1);
                let text = text?;
                if hops > limits::SYMLINK_HOPS {
                    return Err(refusal(Errno::ELOOP, "path"));
                }
                // An absolute text leads out of the tree.
                if text.starts_with(b"/") {
                    return Err(Error::NotFound);
                }
                names.extend(pending(&text));
            } else if next.attributes.kind == Kind::Directory {
                self.directories.push(next);
            } else if names.is_empty() {
                return Ok(next);
            } else {
                self.tree.forget(next.ino, 1);
                return Err(refusal(Errno::ENOTDIR, "path"));
            }
        }
        self.directories.pop().ok_or(Error::NotFound)
    }
}

/// The names of a path, the first one last.
fn pending(path: &[u8]) -> Vec<Vec<u8>> {
    let mut names: Vec<_> = path
        .split(|&byte| byte == b'/')
        .map(<[u8]>::to_vec)
        .collect();
    names.reverse();
    names
}
