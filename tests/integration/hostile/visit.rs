//! Reads a whole tree through the library, as `find`, `ls -l`, `getfattr` and `cat` together would.
//!
//! This file uses only the library, so that the fuzz targets can walk in the same way.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use h5fs_reader::detect::{self, Caches};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Container;
use h5fs_reader::source::memory::MemorySource;
use h5fs_reader::source::neighbours::Neighbours;
use h5fs_tree::{
    FileKind, Filesystem, Ino, OpenedHandle, Options, Requests, SeekKind, SourceAttributes,
};

/// Limits of a walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Objects of the whole tree.
    pub(crate) objects: usize,
    /// Names of one directory.
    pub(crate) names: usize,
    /// Bytes at the start of a file. The same number is read in its middle and at its end.
    pub(crate) bytes: usize,
    /// Whether the walk includes `.h5fs`.
    pub(crate) views: bool,
    /// Whether files are also read with a selector after their names.
    pub(crate) selectors: bool,
}

impl Bounds {
    /// The bounds `SMALL` without `.h5fs` and selectors.
    pub(crate) const OWN: Bounds = Bounds {
        views: false,
        selectors: false,
        ..Bounds::SMALL
    };

    /// Bounds that include every object of a small file, with any damage.
    pub(crate) const SMALL: Bounds = Bounds {
        objects: 1000,
        names: 500,
        bytes: 64 << 10,
        views: true,
        selectors: false,
    };
}

/// The results of a walk.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) objects: usize,
    pub(crate) bytes: usize,
    pub(crate) attributes: usize,
    pub(crate) errors: usize,
    /// The time of the longest request.
    pub(crate) longest: Duration,
    /// Names that were listed but not found.
    pub(crate) lost: Vec<String>,
}

/// Opens the file with these bytes.
pub(crate) fn container(bytes: Vec<u8>) -> Result<Arc<dyn Container>> {
    let neighbours = Arc::new(Neighbours::unavailable());
    let source = Arc::new(MemorySource::new(bytes));
    detect::open(source, neighbours, &Caches::default(), true)
}

/// Returns the tree of the file with these bytes.
pub(crate) fn filesystem(bytes: Vec<u8>) -> Result<Filesystem> {
    let origin = SourceAttributes {
        path: PathBuf::new(),
        size: bytes.len() as u64,
        uid: 0,
        gid: 0,
        mode: 0o644,
        modified: (0, 0),
    };
    let options = Options {
        cache_size: (4 << 20).into(),
        threads: 1,
        ..Options::default()
    };
    Ok(Filesystem::new(container(bytes)?, origin, &options))
}

/// Opens the file with these bytes, and walks its tree within `bounds`.
pub(crate) fn open_and_walk(bytes: Vec<u8>, bounds: Bounds) -> Result<Seen> {
    Ok(walk(&filesystem(bytes)?, bounds))
}

/// Walks the whole tree within `bounds`.
pub(crate) fn walk(filesystem: &Filesystem, bounds: Bounds) -> Seen {
    let mut walk = Walk {
        filesystem,
        bounds,
        seen: Seen::default(),
        pending: VecDeque::from([(filesystem.root(), Vec::new())]),
        path: Vec::new(),
    };
    // The listing of the root does not contain it.
    if bounds.views
        && let Ok(views) = filesystem.lookup(filesystem.root(), b".h5fs")
    {
        walk.pending.push_back((views.ino, b"/.h5fs".to_vec()));
    }
    // Breadth first, so that small bounds still include some objects of every view.
    while let Some((directory, path)) = walk.pending.pop_front() {
        walk.directory(directory, &path);
    }
    walk.seen
}

struct Walk<'a> {
    filesystem: &'a Filesystem,
    bounds: Bounds,
    seen: Seen,
    pending: VecDeque<(Ino, Vec<u8>)>,
    /// The path of the current object.
    path: Vec<u8>,
}

impl Walk<'_> {
    /// Sends a request. Records an error, and continues.
    fn ask<T>(&mut self, request: impl FnOnce(&Filesystem) -> Result<T>) -> Option<T> {
        let start = Instant::now();
        let result = request(self.filesystem);
        self.seen.longest = self.seen.longest.max(start.elapsed());
        if let Err(Error::NotFound) = &result {
            self.seen.lost.push(self.path.escape_ascii().to_string());
        }
        if let Err(error) = &result {
            self.seen.errors += 1;
            assert!(!error.to_string().is_empty(), "an error without words");
        }
        result.ok()
    }

    fn directory(&mut self, ino: Ino, path: &[u8]) {
        self.path = path.to_vec();
        self.attributes(ino);
        for (name, kind) in self.names(ino) {
            if self.seen.objects >= self.bounds.objects {
                return;
            }
            self.seen.objects += 1;
            self.path = [path, b"/", &*name].concat();
            let Some(found) = self.ask(|tree| tree.lookup(ino, &name)) else {
                continue;
            };
            self.ask(|tree| tree.getattr(found.ino));
            match kind {
                FileKind::Directory if found.attributes.kind == FileKind::Directory => {
                    self.pending.push_back((found.ino, self.path.clone()));
                }
                FileKind::Symlink => {
                    self.ask(|tree| tree.readlink(found.ino));
                }
                _ => {
                    self.attributes(found.ino);
                    self.content(found.ino, found.attributes.size);
                    if self.bounds.selectors {
                        self.selected(ino, &name);
                    }
                }
            }
        }
    }

    fn selected(&mut self, directory: Ino, name: &[u8]) {
        const SELECTORS: [&[u8]; 4] = [b"[1:]", b"[..., ::2]", b"[0]", b"[a]"];
        for selector in SELECTORS {
            // No listing contains these names.
            let found = self
                .filesystem
                .lookup(directory, &[name, selector].concat());
            if let Ok(found) = found {
                self.content(found.ino, found.attributes.size);
            }
        }
    }

    fn names(&mut self, ino: Ino) -> Vec<(Vec<u8>, FileKind)> {
        let Some(OpenedHandle { handle, .. }) = self.ask(|tree| tree.opendir(ino)) else {
            return Vec::new();
        };
        let (mut names, mut cookie) = (Vec::new(), 0);
        loop {
            let before = names.len();
            let mut next = cookie;
            let listed = self.ask(|tree| {
                tree.readdir(handle, cookie, &mut |entry| {
                    if names.len() >= before + 100 {
                        return true;
                    }
                    next = entry.next;
                    if !matches!(entry.name, b"." | b"..") {
                        names.extend(entry.kind.map(|kind| (entry.name.to_vec(), kind)));
                    }
                    false
                })
            });
            let failed = listed.is_none();
            if failed || next == cookie || names.len() >= self.bounds.names {
                break;
            }
            cookie = next;
        }
        self.filesystem.release(handle);
        names
    }

    fn attributes(&mut self, ino: Ino) {
        for name in self.ask(|tree| tree.listxattr(ino)).unwrap_or_default() {
            self.seen.attributes += 1;
            self.ask(|tree| tree.getxattr(ino, &name));
        }
    }

    fn content(&mut self, ino: Ino, size: u64) {
        let Some(OpenedHandle { handle, .. }) = self.ask(|tree| tree.open_file(ino)) else {
            return;
        };
        let piece = self.bounds.bytes;
        let end = size.saturating_sub(piece as u64);
        let mut offsets = vec![0, size / 2, end];
        offsets.dedup();
        for offset in offsets {
            let read = self.ask(|tree| tree.read(handle, offset, piece));
            self.seen.bytes += read.map_or(0, |bytes| bytes.len());
        }
        for (offset, whence) in [(0, SeekKind::Hole), (size / 2, SeekKind::Data)] {
            match self.filesystem.lseek(handle, offset, whence) {
                Ok(at) => assert!(at >= offset, "a seek backwards"),
                Err(error) => assert!(!matches!(error, Error::Usage(_)), "{error}"),
            }
        }
        self.filesystem.release(handle);
    }
}
