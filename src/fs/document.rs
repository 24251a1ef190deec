//! The Ndarray Data Language document of an object, for whoever wants it without a mount.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::Filesystem;
use crate::fs::inode::What;
use crate::view::ndl::{self, Options, Source};
use crate::view::piped::Sink;

impl Filesystem {
    /// Hands `sink` the document of the object at `path`; the root's is that of the whole file.
    ///
    /// # Errors
    /// `NotFound` where there is nothing that such a document describes; those of `sink`; as the file
    /// cannot be read.
    pub fn document(&self, path: &[u8], options: Options, sink: &mut dyn Sink) -> Result<()> {
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
        let source = Source {
            container: Arc::clone(&live.container),
            engine: Arc::clone(&live.engine),
            paths: Arc::new(move |node| index.index().path(node)),
        };
        ndl::write(&source, entry.node, &path, options, sink)
    }
}
