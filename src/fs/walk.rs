//! Paths walked inside the tree, for commands that have no kernel to do it.

use nix::errno::Errno;

use crate::error::{Error, Result};
use crate::fs::errno::refusal;
use crate::fs::filesystem::Filesystem;
use crate::fs::stat::{Entry, Kind};
use crate::limits;

impl Filesystem {
    /// The entry that `path` (names as shown, from the root) leads to across symbolic links;
    /// counted.
    ///
    /// # Errors
    /// `NotFound`; `ELOOP` after 40 symbolic links; `ENOTDIR` beneath a file.
    pub fn resolve(&self, path: &[u8]) -> Result<Entry> {
        self.walk(path, true)
    }

    /// The same, but where the last name is a symbolic link, that itself.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    pub fn resolve_link(&self, path: &[u8]) -> Result<Entry> {
        self.walk(path, false)
    }

    fn walk(&self, path: &[u8], follow_last: bool) -> Result<Entry> {
        // As the kernel does, this keeps the directories that it is in.
        let mut way = vec![self.getattr(self.root())?];
        let found = self.go(path, follow_last, &mut way);
        for passed in way {
            self.forget(passed.ino, 1);
        }
        found
    }

    /// Goes `path` from the last directory of `way`, which then ends in the one that the result is
    /// in.
    fn go(&self, path: &[u8], follow_last: bool, way: &mut Vec<Entry>) -> Result<Entry> {
        let mut names = pending(path);
        let mut hops = 0;
        while let Some(name) = names.pop() {
            match &*name {
                b"" | b"." => continue,
                b".." => {
                    if way.len() > 1
                        && let Some(left) = way.pop()
                    {
                        self.forget(left.ino, 1);
                    }
                    continue;
                }
                _ => {}
            }
            let next = self.lookup(way.last().map_or(self.root(), |at| at.ino), &name)?;
            let follow = follow_last || !names.is_empty();
            if next.attributes.kind == Kind::Symlink && follow {
                hops += 1;
                let text = self.readlink(next.ino);
                self.forget(next.ino, 1);
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
                way.push(next);
            } else if names.is_empty() {
                return Ok(next);
            } else {
                self.forget(next.ino, 1);
                return Err(refusal(Errno::ENOTDIR, "path"));
            }
        }
        way.pop().ok_or(Error::NotFound)
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
