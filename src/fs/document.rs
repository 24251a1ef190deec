//! The Ndarray Data Language document of an object, for whoever wants it without a mount.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::Filesystem;
use crate::fs::inode::What;
use crate::view::ndl::{Description, Options, Source};
use crate::view::streamed::ResumableText;

impl Filesystem {
    /// Hands `put` the document of the object at `path`, piece by piece; the root's is that of the
    /// whole file. `damaged` is told what of which object cannot be read.
    ///
    /// # Errors
    /// `NotFound` where there is nothing that such a document describes; those of `put`; as the
    /// file cannot be read.
    pub fn document(
        &self,
        path: &[u8],
        options: Options,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
        damaged: &mut dyn FnMut(&[u8], &Error),
    ) -> Result<()> {
        const PIECE: usize = 64 << 10;
        let found = self.resolve(path)?;
        let (live, entry) = self.standing(found.ino)?;
        if !matches!(entry.what, What::Group | What::Object) {
            return Err(Error::NotFound);
        }
        let links = live.container.node(entry.node)?.link_count;
        let path = self
            .space(&live)
            .file_path(&entry, links)
            .ok_or(Error::NotFound)?;
        let index = Arc::clone(&live);
        let document = Description {
            source: Source {
                container: Arc::clone(&live.container),
                engine: Arc::clone(&live.engine),
                paths: Arc::new(move |node| index.index().known_path(node)),
            },
            node: entry.node,
            path,
            options,
        };
        let mut place = document.begin();
        let mut piece = Vec::new();
        let mut written = Ok(true);
        while let Ok(true) = written {
            written = document.write_part(&mut place, PIECE, &mut piece, damaged);
            put(&piece)?;
            piece.clear();
        }
        written.map(|_| ())
    }
}
