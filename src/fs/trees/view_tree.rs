//! One tree of views: a row of the table of trees.

use std::sync::Arc;

use crate::error::{Error, Result, if_lasting};
use crate::fs::counts::CountedText;
use crate::fs::file_state::FileState;
use crate::fs::inode::Tree;
use crate::fs::store_object::Store;
use crate::model::{Array, Node, NodeId};
use crate::view::View;
use crate::view::counted::{Counted, Units};
use crate::view::elements::Elements;
use crate::view::json::SharedPaths;
use crate::view::streamed::{ResumableText, Streamed};

/// A tree of views. It has the directories of the source's tree, and files for some of the objects.
pub(in crate::fs) struct ViewTree {
    /// Its name beneath `.h5fs`.
    pub(in crate::fs) name: &'static [u8],
    /// The number of its directories in inode numbers. It stays what it is whatever other trees
    /// there are.
    pub(in crate::fs) number: Tree,
    /// Whether an object has a directory, with a file for each of its attributes, instead of a
    /// file.
    pub(in crate::fs) of_attributes: bool,
    /// Whether an array of references has a directory, with a link for each of its elements.
    pub(in crate::fs) of_references: bool,
    /// Whether a stack of pictures has a directory, with a file of the first form for each of them.
    pub(in crate::fs) of_frames: bool,
    /// The chunks that it has, where it is a Zarr store: each group and array has a directory, with
    /// its document in it.
    pub(in crate::fs) store: Option<Store>,
    /// Whether the root itself, too, has its files here, under the name `%`, which stands for the
    /// empty one.
    pub(in crate::fs) has_root: bool,
    /// The forms of its files: an object has a file of each form that fits it.
    pub(in crate::fs) forms: &'static [Form],
}

/// A form of the files in a tree of views.
pub(in crate::fs) struct Form {
    /// The number of its files in inode numbers; that of the first form is the tree's number and 1.
    pub(in crate::fs) number: Tree,
    /// The suffix that an object's name gets.
    pub(in crate::fs) suffix: &'static [u8],
    /// The size of an object's file; `None` where it has none.
    pub(super) size: fn(&FileState, &Node) -> Result<Option<Size>>,
    /// The object's file, opened, where `view` does not open it.
    pub(super) open: fn(&Subject<'_>) -> Result<Box<dyn View>>,
    /// The file of an array, or of a selection from one; `None` where these elements have none.
    pub(in crate::fs) view: Option<ViewOfElements>,
}

/// Makes the file of an array, or of a selection from one; `None` where these elements have none.
pub(in crate::fs) type ViewOfElements = fn(&Subject<'_>, Elements) -> Result<Option<Box<dyn View>>>;

/// A tree without files, for rows to say only what is different in them.
pub(super) const WITHOUT_FILES: ViewTree = ViewTree {
    name: b"",
    number: 0,
    of_attributes: false,
    of_references: false,
    of_frames: false,
    store: None,
    has_root: false,
    forms: &[],
};

/// A form that fits no object, for rows to say only what is different in them.
pub(super) const OF_NOTHING: Form = Form {
    number: 0,
    suffix: b"",
    size: |_, _| Ok(None),
    open: |_| Err(Error::NotFound),
    view: None,
};

/// How long a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fs) enum Size {
    /// That many bytes.
    Exact(u64),
    /// Only its end tells.
    Streamed,
    /// Only the open file tells: what it shows has to be counted.
    Counted,
}

/// The object that a file is a view of.
pub(in crate::fs) struct Subject<'a> {
    pub(in crate::fs) file: &'a Arc<FileState>,
    pub(in crate::fs) node: &'a Node,
    /// The number of the file's form.
    pub(in crate::fs) form: Tree,
    /// The selector of a part of the array; empty for the whole object.
    pub(in crate::fs) selected: &'a [u8],
    /// The object's path, names as in the file.
    pub(in crate::fs) path: Vec<u8>,
    /// Checks the block with an object's elements, where that is wanted before they are served.
    pub(in crate::fs) verify: &'a dyn Fn(NodeId) -> Result<()>,
}

impl Form {
    /// The size of the object's file; `None` where it has none.
    ///
    /// # Errors
    /// As that cannot be found out now.
    pub(in crate::fs) fn size(&self, file: &FileState, node: &Node) -> Result<Option<Size>> {
        if_lasting((self.size)(file, node)).map(Option::flatten)
    }

    /// The object's file, opened.
    ///
    /// # Errors
    /// `NotFound` where it has none; as it is known before reading that it cannot be served.
    pub(in crate::fs) fn open(&self, subject: &Subject<'_>) -> Result<Box<dyn View>> {
        match (self.view, subject.node.array()) {
            (Some(view), Some(_)) => view(subject, subject.elements()?)?.ok_or(Error::NotFound),
            _ => (self.open)(subject),
        }
    }
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

/// A file of elements; `None` where they have none.
pub(super) fn viewed(view: Option<impl View + 'static>) -> Option<Box<dyn View>> {
    view.map(|view| Box::new(view) as Box<dyn View>)
}

/// An object's file; `None` where it has none.
pub(super) fn shown(view: Option<impl View + 'static>) -> Result<Box<dyn View>> {
    viewed(view).ok_or(Error::NotFound)
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

    /// The object's path, of which a part may be shown; empty where it has none.
    ///
    /// # Errors
    /// As that cannot be found out now.
    pub(super) fn known_path(&self) -> Result<Vec<u8>> {
        if !self.path.is_empty() {
            return Ok(self.path.clone());
        }
        Ok(self
            .file
            .index()
            .known_path(self.node.id)?
            .unwrap_or_default())
    }

    /// Finds the paths of objects, for texts that name them.
    pub(super) fn paths(&self) -> SharedPaths {
        let file = Arc::clone(self.file);
        Arc::new(move |node: NodeId| file.index().known_path(node))
    }

    /// A text of units: of an exact size where it can be counted, else a stream.
    ///
    /// # Errors
    /// As a unit cannot be written.
    pub(super) fn counted(&self, units: impl Units + 'static) -> Result<Box<dyn View>> {
        let text = CountedText {
            form: self.form,
            node: self.node.id,
            selected: self.selected.into(),
        };
        let count = self.file.count(text, &units)?;
        Ok(Box::new(Counted::of(units, count)))
    }
}
