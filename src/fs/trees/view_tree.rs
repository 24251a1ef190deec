//! One tree of views: a row of the table of trees.

use std::sync::Arc;

use crate::error::{Error, Result, if_lasting};
use crate::fs::file_state::FileState;
use crate::fs::inode::Tree;
use crate::model::{Array, Node, NodeId};
use crate::view::View;
use crate::view::elements::Elements;
use crate::view::json::SharedPaths;
use crate::view::streamed::{ResumableText, Streamed};

/// A tree of views. It has the directories of the source's tree, and files for some of the objects.
pub(in crate::fs) struct ViewTree {
    /// Its name beneath `.h5fs`.
    pub(in crate::fs) name: &'static [u8],
    /// The number of its directories in inode numbers; the number after it is that of its files. It
    /// stays what it is whatever other trees there are.
    pub(in crate::fs) number: Tree,
    /// The suffix that an object's name gets.
    pub(in crate::fs) suffix: &'static [u8],
    /// Whether an object has a directory, with a file for each of its attributes, instead of a
    /// file.
    pub(in crate::fs) of_attributes: bool,
    /// Whether it has files of parts of arrays, too.
    pub(in crate::fs) has_selections: bool,
    /// The size of an object's file; `None` where it has none.
    pub(super) size: fn(&FileState, &Node) -> Result<Option<Size>>,
    /// The object's file, opened.
    pub(in crate::fs) open: fn(&Subject<'_>) -> Result<Box<dyn View>>,
}

/// A tree without files, for rows to say only what is different in them.
pub(super) const WITHOUT_FILES: ViewTree = ViewTree {
    name: b"",
    number: 0,
    suffix: b"",
    of_attributes: false,
    has_selections: false,
    size: |_, _| Ok(None),
    open: |_| Err(Error::NotFound),
};

/// How long a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fs) enum Size {
    /// That many bytes.
    Exact(u64),
    /// Only its end tells.
    Streamed,
}

/// The object that a file is a view of.
pub(in crate::fs) struct Subject<'a> {
    pub(in crate::fs) file: &'a Arc<FileState>,
    pub(in crate::fs) node: &'a Node,
    /// The object's path, names as in the file.
    pub(in crate::fs) path: Vec<u8>,
    /// Checks the block with an object's elements, where that is wanted before they are served.
    pub(in crate::fs) verify: &'a dyn Fn(NodeId) -> Result<()>,
}

impl ViewTree {
    /// The size of the object's file; `None` where it has none.
    ///
    /// # Errors
    /// As that cannot be found out now.
    pub(in crate::fs) fn size(&self, file: &FileState, node: &Node) -> Result<Option<Size>> {
        if_lasting((self.size)(file, node)).map(Option::flatten)
    }
}

/// The number of the files in the tree whose directories have `number`.
pub(in crate::fs) fn files(number: Tree) -> Tree {
    number + 1
}

/// Fails where the array cannot be read now: its block may say how long it is.
pub(in crate::fs) fn refuse_unread(array: &Array) -> Result<()> {
    match &array.storage {
        Err(error) if error.is_passing() => Err(error.clone()),
        _ => Ok(()),
    }
}

/// The size of an array's file, which `length` tells.
pub(super) fn exact(
    node: &Node,
    length: fn(&Array) -> Result<Option<u64>>,
) -> Result<Option<Size>> {
    let length = node.array().map_or(Ok(None), |array| length(array))?;
    Ok(length.map(Size::Exact))
}

/// An object's file; `None` where it has none.
pub(super) fn shown(view: Option<impl View + 'static>) -> Result<Box<dyn View>> {
    let view = view.ok_or(Error::NotFound)?;
    Ok(Box::new(view))
}

/// A text that is produced from front to back; `None` where the object has none.
pub(super) fn streamed(text: Option<impl ResumableText + 'static>) -> Result<Box<dyn View>> {
    shown(text.map(Streamed::new))
}

impl Subject<'_> {
    /// The array, checked.
    ///
    /// # Errors
    /// `NotFound` where it is none; as it is known not to be readable.
    pub(super) fn array(&self) -> Result<Arc<Array>> {
        let array = self.node.array().ok_or(Error::NotFound)?;
        if let Err(error) = &array.storage {
            return Err(error.clone());
        }
        (self.verify)(self.node.id)?;
        Ok(Arc::clone(array))
    }

    /// All elements of the array.
    pub(super) fn elements(&self) -> Result<Elements> {
        Elements::whole(self.file.reader(self.node.id, &self.array()?)?)
    }

    /// Finds the paths of objects, for texts that name them.
    pub(super) fn paths(&self) -> SharedPaths {
        let file = Arc::clone(self.file);
        Arc::new(move |node: NodeId| file.index().known_path(node))
    }
}
