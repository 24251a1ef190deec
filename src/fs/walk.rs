//! Paths walked inside the tree, for commands that have no kernel to do it.

use nix::errno::Errno;

use crate::error::{Error, Result};
use crate::fs::errno::refusal;
use crate::fs::{Entry, Filesystem, Kind};
use crate::limits;

impl Filesystem {
    /// What `path` (names as shown, from the root) leads to, across symbolic links; counted.
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
        let mut names = pending(path);
        let mut at = self.getattr(self.root())?;
        let mut hops = 0;
        while let Some(name) = names.pop() {
            if at.attributes.kind != Kind::Directory {
                self.forget(at.ino, 1);
                return Err(refusal(Errno::ENOTDIR, "path"));
            }
            let next = match &*name {
                b"" | b"." => continue,
                b".." => self.getattr(self.parent(at.ino)?)?,
                _ => {
                    let found = self.lookup(at.ino, &name);
                    self.forget(at.ino, 1);
                    found?
                }
            };
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
            } else {
                at = next;
            }
        }
        Ok(at)
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
