//! The documents of growing files that are open, by the numbers of their inodes.
//!
//! A document is of the state that its file was in when it was opened. As long as it is open, its
//! inode stands for this document alone: whoever opens that inode shares it, and `stat` tells its
//! length. A lookup that would find a later state hands out another number. So neither a size, nor
//! the pages of memory that the kernel keeps for each inode, are of two states.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::error::{Result, if_lasting};
use crate::fs::forest::file_state::FileState;
use crate::fs::state::inode::{self, Inode, NodeType};
use crate::memory::lock::lock;
use crate::model::Shape;
use crate::source::identity::Identity;
use crate::view::View;

/// The content of an open file, in one state of what it is read from.
#[derive(Clone)]
pub(in crate::fs) struct Document {
    pub(in crate::fs) file: Arc<FileState>,
    pub(in crate::fs) view: Arc<dyn View>,
    /// Of an array's own bytes: the dimensions behind the first, while which stay the same what is
    /// appended stands behind what was there.
    rows: Option<Box<[u64]>>,
}

impl Document {
    /// The content `view` of `inode`, opened in the state `file`.
    ///
    /// # Errors
    /// Fails if the array whose bytes it is cannot be looked at now.
    pub(in crate::fs) fn new(
        file: Arc<FileState>,
        inode: &Inode,
        view: Box<dyn View>,
    ) -> Result<Self> {
        let rows = if file.is_growing() {
            rows(&file, inode)?
        } else {
            None
        };
        let view = view.into();
        Ok(Document { file, view, rows })
    }

    /// Whether a reader of it is to be handed what `file`, a later state, has appended.
    ///
    /// # Errors
    /// Fails as [`new`](Self::new) does.
    pub(in crate::fs) fn goes_on_in(&self, file: &FileState, inode: &Inode) -> Result<bool> {
        Ok(self.rows.is_some() && self.rows == rows(file, inode)?)
    }

    /// The state of a growing file in which it stays.
    pub(in crate::fs) fn stays_in(&self) -> Option<Identity> {
        let stays = self.file.is_growing() && self.rows.is_none();
        stays.then(|| self.file.identity()).flatten()
    }

    /// Whether it is of a later state than `other`, which it goes on from, or of the same one.
    fn goes_on_from(&self, other: &Document) -> bool {
        let is_later = self.file.opened() >= other.file.opened();
        is_later && self.rows.is_some() && self.rows == other.rows
    }

    /// Whether it has an end that stays where it is.
    fn is_pinned(&self, inode: &Inode) -> bool {
        // The directory of views has files that tell of the mount.
        let is_of_file = inode.node_type != NodeType::Single;
        self.file.is_growing() && is_of_file
    }
}

/// The dimensions behind the first of the array whose bytes `inode` is.
fn rows(file: &FileState, inode: &Inode) -> Result<Option<Box<[u64]>>> {
    if inode.node_type != NodeType::Object {
        return Ok(None);
    }
    let node = if_lasting(file.container.node(inode.node))?;
    let array = node.as_ref().and_then(|node| node.array());
    let behind_first = |shape: &Shape| shape.dims().get(1..).unwrap_or_default().into();
    Ok(array.map(|array| behind_first(&array.shape)))
}

type ByNumber = HashMap<u64, (Document, usize)>;

/// The open documents of growing files.
#[derive(Clone, Default)]
pub(in crate::fs) struct Pins(Arc<Mutex<ByNumber>>);

/// Has an inode stand for its document until this is dropped.
pub(in crate::fs) struct Pin {
    pins: Pins,
    ino: u64,
}

impl Drop for Pin {
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

impl Pins {
    /// Has the inode `ino` stand for `document`, or for the one that it stands for already, where
    /// that does not go on in this one; gives the one that it stands for.
    pub(in crate::fs) fn pin(
        &self,
        ino: u64,
        inode: &Inode,
        document: Document,
    ) -> (Document, Option<Pin>) {
        if !document.is_pinned(inode) {
            return (document, None);
        }
        let mut pins = lock(&self.0);
        let (pinned, handles) = pins.entry(ino).or_insert_with(|| (document.clone(), 0));
        *handles += 1;
        let gone = if document.goes_on_from(pinned) {
            std::mem::replace(pinned, document)
        } else {
            document
        };
        let pinned = pinned.clone();
        drop(pins);
        // It may take time, for which others need not wait.
        drop(gone);
        (pinned, Some(self.guard(ino)))
    }

    fn guard(&self, ino: u64) -> Pin {
        let pins = self.clone();
        Pin { pins, ino }
    }

    /// The document that the inode `ino` stands for, whatever `file` has appended since.
    ///
    /// # Errors
    /// Fails if it cannot be found out now whether that goes on in `file`.
    pub(in crate::fs) fn fixed(
        &self,
        ino: u64,
        file: &FileState,
        inode: &Inode,
    ) -> Result<Option<Document>> {
        let pinned = lock(&self.0).get(&ino).map(|(pinned, _)| pinned.clone());
        match pinned {
            Some(pinned) if !pinned.goes_on_in(file, inode)? => Ok(Some(pinned)),
            _ => Ok(None),
        }
    }

    /// The number of what has the number `ino` where no earlier state of it is open.
    ///
    /// # Errors
    /// Fails as [`fixed`](Self::fixed) does.
    pub(in crate::fs) fn number(&self, ino: u64, file: &FileState, inode: &Inode) -> Result<u64> {
        Ok(match self.fixed(ino, file, inode)? {
            Some(pinned) if !pinned.file.is_same_state(file) => inode::of_state(ino, file.opened()),
            _ => ino,
        })
    }
}
