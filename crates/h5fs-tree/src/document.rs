//! The Ndarray Data Language document of an object, for commands without a mount.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_view::documents::ndl::{NdlDescription, NdlOptions, NdlSource};
use h5fs_view::text_files::streamed::ResumableText;

use crate::filesystem::Filesystem;
use crate::requests::Requests;
use crate::state::inode::NodeType;

impl Filesystem {
    /// Passes the Ndarray Data Language document of the object at `path` to `put`, in several
    /// calls. The document of the root describes the whole file. `damaged` receives each object
    /// that cannot be read, with the error.
    ///
    /// # Errors
    /// - `NotFound` if the object does not exist.
    /// - `Usage` if such a document does not exist for the object.
    /// - The errors of `put`.
    /// - Fails if the file cannot be read.
    pub fn write_document(
        &self,
        path: &[u8],
        options: NdlOptions,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
        damaged: &mut dyn FnMut(&[u8], &Error),
    ) -> Result<()> {
        const PIECE: usize = 64 << 10;
        let tree: &dyn Requests = self;
        let found = tree.find_path(path, true)?;
        let (file, inode) = self.mount.find_inode(found.ino)?;
        if !matches!(inode.node_type, NodeType::Group | NodeType::Object) {
            let reason = "only groups, datasets and datatypes have such a description";
            return Err(Error::Usage(reason.to_owned()));
        }
        let links = file.container.node(inode.node)?.link_count;
        let path = self.mount.namespace(&file).file_path(&inode, links);
        let index = Arc::clone(&file);
        let document = NdlDescription {
            source: NdlSource {
                container: Arc::clone(&file.container),
                engine: Arc::clone(&file.engine),
                paths: Arc::new(move |node| index.path_index().checked_path(node)),
            },
            node: inode.node,
            path: path.ok_or(Error::NotFound)?,
            options,
        };
        let mut place = document.begin();
        let mut piece = Vec::new();
        let mut written = Ok(true);
        while let Ok(true) = written {
            written = document.write_part(&mut place, PIECE, &mut piece, damaged);
            self.mount.log_missing_files(&file);
            put(&piece)?;
            piece.clear();
        }
        written.map(|_| ())
    }
}
