//! Requests of tests to a tree: names, content and errors, each with little processor time.

use std::time::Duration;

use h5fs_reader::error::{Error, Result};
use h5fs_tree::{FileKind, Filesystem, Handle, Requests, errno};
use nix::errno::Errno;

use super::processor::within;
use super::visit::{Bounds, filesystem, walk};

/// Limit of processor time for a request.
const SOON: Duration = Duration::from_secs(10);

/// The tree of a file.
pub(crate) struct Tree(pub(crate) Filesystem);

impl Tree {
    /// Mounts `bytes` in memory.
    #[track_caller]
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Tree(soon(|| filesystem(bytes)).expect("a file that opens"))
    }

    /// Returns the names in a directory in the order of the listing, or the error of an incomplete
    /// listing.
    pub(crate) fn names(&self, path: &str) -> Result<Vec<Vec<u8>>> {
        let (names, outcome) = self.listing(path);
        outcome.map(|()| names)
    }

    /// Returns the names that a directory lists before its end or its first error, and that error.
    pub(crate) fn listing(&self, path: &str) -> (Vec<Vec<u8>>, Result<()>) {
        let (mut names, mut cookie) = (Vec::new(), 0);
        let outcome = self.list(path, |handle| {
            loop {
                let before = cookie;
                self.0.readdir(handle, cookie, &mut |entry| {
                    if !matches!(entry.name, b"." | b"..") {
                        names.push(entry.name.to_vec());
                    }
                    cookie = entry.next;
                    false
                })?;
                if cookie == before {
                    return Ok(());
                }
            }
        });
        (names, outcome)
    }

    fn list(&self, path: &str, list: impl FnOnce(Handle) -> Result<()>) -> Result<()> {
        let directory = self.0.resolve(path.as_bytes())?.ino;
        let handle = self.0.opendir(directory)?.handle;
        let outcome = list(handle);
        self.0.release(handle);
        outcome
    }

    /// Returns at most a megabyte of a file.
    pub(crate) fn content(&self, path: &str) -> Result<Vec<u8>> {
        self.part(path, 0, 1 << 20)
    }

    pub(crate) fn part(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>> {
        let file = self.0.resolve(path.as_bytes())?.ino;
        let handle = self.0.open_file(file)?.handle;
        let bytes = self.0.read(handle, offset, length);
        self.0.release(handle);
        Ok(bytes?.to_vec())
    }

    pub(crate) fn attribute(&self, path: &str, name: &str) -> Result<String> {
        let ino = self.0.resolve(path.as_bytes())?.ino;
        let value = self.0.getxattr(ino, name.as_bytes())?;
        Ok(String::from_utf8_lossy(&value).into_owned())
    }

    /// Returns the text of a symbolic link.
    pub(crate) fn link(&self, path: &str) -> Result<String> {
        let ino = self.0.resolve_link(path.as_bytes())?.ino;
        Ok(String::from_utf8_lossy(&self.0.readlink(ino)?).into_owned())
    }

    pub(crate) fn kind(&self, path: &str) -> Result<FileKind> {
        Ok(self.0.resolve_link(path.as_bytes())?.attributes.kind)
    }

    pub(crate) fn size(&self, path: &str) -> Result<u64> {
        Ok(self.0.resolve(path.as_bytes())?.attributes.size)
    }
}

/// Returns the error number for the kernel.
#[track_caller]
pub(crate) fn errno_of<T: std::fmt::Debug>(result: Result<T>) -> Errno {
    Errno::from_raw(errno::from_error(&result.expect_err("an error")))
}

/// Runs `work`, which must not take long.
#[track_caller]
pub(crate) fn soon<T>(work: impl FnOnce() -> T) -> T {
    within(SOON, work)
}

/// Checks a file that contains `good` and `bad`. `bad` exists and cannot be read, or cannot be
/// listed if it is a directory, and reports the reason. `good` is intact, and a walk ends.
#[track_caller]
pub(crate) fn bad_alone_is_bad(bytes: Vec<u8>) -> Error {
    let tree = Tree::new(bytes);
    assert_eq!(tree.names("/"), Ok(vec![b"bad".to_vec(), b"good".to_vec()]));
    assert_eq!(tree.content("good"), Ok(b"goodness".to_vec()));
    let error = match soon(|| tree.kind("bad")) {
        Ok(FileKind::Directory) => tree
            .names("bad")
            .expect_err("a directory that cannot be listed"),
        Ok(_) => soon(|| tree.content("bad")).expect_err("a file that cannot be read"),
        Err(error) => error,
    };
    let answer = Errno::from_raw(errno::from_error(&error));
    assert!(
        matches!(answer, Errno::EIO | Errno::EOPNOTSUPP),
        "{answer}: {error}"
    );
    if tree.kind("bad") == Ok(FileKind::File) {
        let told = tree.attribute("bad", "user.h5fs.error");
        assert!(told.is_ok_and(|text| !text.is_empty()), "{error}");
    }
    assert_eq!(tree.content("good"), Ok(b"goodness".to_vec()));
    within(30 * SOON, || walk(&tree.0, Bounds::SMALL));
    error
}

/// Checks a file that contains `good`: it is readable, and a walk over the rest ends.
#[track_caller]
pub(crate) fn good_is_good(bytes: Vec<u8>) -> Tree {
    let tree = Tree::new(bytes);
    assert_eq!(tree.content("good"), Ok(b"goodness".to_vec()));
    // There are many requests, and some count a text of 256 MiB.
    within(30 * SOON, || walk(&tree.0, Bounds::SMALL));
    tree
}

/// Checks that a file with a damaged root is refused with a reason of one line.
#[track_caller]
pub(crate) fn refused(bytes: Vec<u8>) -> Error {
    let error = soon(|| filesystem(bytes)).err().expect("a refusal");
    let line = error.to_string();
    assert!(!line.is_empty() && !line.contains('\n'), "{line:?}");
    error
}
