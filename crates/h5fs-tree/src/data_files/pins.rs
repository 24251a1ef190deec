//! Bindings of inodes of growing files to their open content, so that an open file has a fixed
//! length.
//!
//! A document belongs to the state of its file when it was opened. While the document is open, its
//! inode refers to this document alone: other opens share the document, and `stat` returns its
//! length. A lookup in a later state returns a different inode number. So sizes and cached pages,
//! which the kernel keeps by inode, never mix two states.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use h5fs_reader::error::{Result, ignore_permanent};
use h5fs_reader::memory::lock::lock;
use h5fs_reader::model::Shape;
use h5fs_reader::source::identity::Identity;
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
use crate::state::inode::{self, Inode, NodeType};

/// The content of a file that is open, in one state of its source.
#[derive(Clone)]
pub(crate) struct OpenDocument {
    pub(crate) file: Arc<FileState>,
    pub(crate) view: Arc<dyn View>,
    /// For a file with the raw bytes of an array: all dimensions of the array except the first.
    /// While they are unchanged, appended bytes follow the existing ones.
    row_shape: Option<Box<[u64]>>,
}

impl OpenDocument {
    /// Creates the document for opening `inode`. `view` is its content in the state `file`.
    ///
    /// # Errors
    /// Fails if the array cannot be read now.
    pub(crate) fn new(file: Arc<FileState>, inode: &Inode, view: Box<dyn View>) -> Result<Self> {
        let rows = if file.is_growing() {
            row_shape(&file, inode)?
        } else {
            None
        };
        let view = view.into();
        Ok(OpenDocument {
            file,
            view,
            row_shape: rows,
        })
    }

    /// Returns whether a later read of this document also returns bytes that a writer has appended
    /// up to the state `file`.
    ///
    /// # Errors
    /// Fails as [`new`](Self::new) does.
    pub(crate) fn can_read_growth(&self, file: &FileState, inode: &Inode) -> Result<bool> {
        Ok(self.row_shape.is_some() && self.row_shape == row_shape(file, inode)?)
    }

    /// Returns the state of a growing file whose bytes the document returns. `None` if reads also
    /// return bytes of later states.
    pub(crate) fn pinned_state(&self) -> Option<Identity> {
        let stays = self.file.is_growing() && self.row_shape.is_none();
        stays.then(|| self.file.identity()).flatten()
    }

    /// Returns whether this document is the document `other` in the same or a later state, with
    /// bytes appended.
    fn is_continuation(&self, other: &OpenDocument) -> bool {
        let is_later = self.file.opened_at() >= other.file.opened_at();
        is_later && self.row_shape.is_some() && self.row_shape == other.row_shape
    }

    /// Returns whether the length of the document `inode` is fixed while it is open.
    fn is_pinned(&self, inode: &Inode) -> bool {
        // The directory of views contains files about the mount itself.
        let is_of_file = inode.node_type != NodeType::ViewsEntry;
        self.file.is_growing() && is_of_file
    }
}

/// Returns all dimensions of the array except the first, if `inode` shows the raw bytes of an
/// array.
fn row_shape(file: &FileState, inode: &Inode) -> Result<Option<Box<[u64]>>> {
    if inode.node_type != NodeType::Object {
        return Ok(None);
    }
    let node = ignore_permanent(file.container.node(inode.node))?;
    let array = node.as_ref().and_then(|node| node.array());
    let behind_first = |shape: &Shape| shape.dims().get(1..).unwrap_or_default().into();
    Ok(array.map(|array| behind_first(&array.shape)))
}

type DocumentsByInode = HashMap<u64, (OpenDocument, usize)>;

/// The bindings of inodes to the open documents of growing files, with the number of handles of
/// each.
#[derive(Clone, Default)]
pub(crate) struct DocumentPins(Arc<Mutex<DocumentsByInode>>);

/// A guard for one handle of a document. The inode stays bound to the document until all its guards
/// are dropped.
pub(crate) struct DocumentPin {
    pins: DocumentPins,
    ino: u64,
}

impl Drop for DocumentPin {
    fn drop(&mut self) {
        let mut pins = lock(&self.pins.0);
        if let Some((_, handles)) = pins.get_mut(&self.ino) {
            *handles -= 1;
            if *handles == 0 {
                let gone = pins.remove(&self.ino);
                drop(pins);
                drop(gone);
            }
        }
    }
}

impl DocumentPins {
    /// Binds the inode `ino` to `document`. If the inode is bound already, its binding stays,
    /// unless `document` is the bound document with bytes appended. Returns the bound document, and
    /// a guard if a binding is necessary.
    pub(crate) fn pin(
        &self,
        ino: u64,
        inode: &Inode,
        document: OpenDocument,
    ) -> (OpenDocument, Option<DocumentPin>) {
        if !document.is_pinned(inode) {
            return (document, None);
        }
        let mut pins = lock(&self.0);
        let (pinned, handles) = pins.entry(ino).or_insert_with(|| (document.clone(), 0));
        *handles += 1;
        let gone = if document.is_continuation(pinned) {
            std::mem::replace(pinned, document)
        } else {
            document
        };
        let pinned = pinned.clone();
        drop(pins);
        // Dropping the document may take time, so the lock is released first.
        drop(gone);
        (pinned, Some(self.guard(ino)))
    }

    fn guard(&self, ino: u64) -> DocumentPin {
        let pins = self.clone();
        DocumentPin { pins, ino }
    }

    /// Returns the document to which the inode `ino` is bound, unless its reads also return bytes
    /// appended up to the state `file`.
    ///
    /// # Errors
    /// Fails if the array of the document cannot be read now.
    pub(crate) fn pinned_document(
        &self,
        ino: u64,
        file: &FileState,
        inode: &Inode,
    ) -> Result<Option<OpenDocument>> {
        let pinned = lock(&self.0).get(&ino).map(|(pinned, _)| pinned.clone());
        match pinned {
            Some(pinned) if !pinned.can_read_growth(file, inode)? => Ok(Some(pinned)),
            _ => Ok(None),
        }
    }

    /// Returns the inode number for an entry in the state `file`: `ino`, or another number if `ino`
    /// is bound to a document of an earlier state.
    ///
    /// # Errors
    /// Fails as [`pinned_document`](Self::pinned_document) does.
    pub(crate) fn number_for_state(
        &self,
        ino: u64,
        file: &FileState,
        inode: &Inode,
    ) -> Result<u64> {
        Ok(match self.pinned_document(ino, file, inode)? {
            Some(pinned) if !pinned.file.is_same_state(file) => {
                inode::number_in_state(ino, file.opened_at())
            }
            _ => ino,
        })
    }
}
