//! The types of the table of trees of views.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use h5fs_conventions::table_budget::TableBudget;
use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result, ignore_permanent};
use h5fs_reader::model::datatype::ByteOrder;
use h5fs_reader::model::selection::{Axis, AxisPositions};
use h5fs_reader::model::selector::Selector;
use h5fs_reader::model::{Array, Datatype, Node, NodeId, shape};
use h5fs_view::documents::html::page_site::PageLinks;
use h5fs_view::elements::Elements;
use h5fs_view::json::SharedPaths;
use h5fs_view::table::anndata_codes;
use h5fs_view::table::group::Group;
use h5fs_view::table::pytables;
use h5fs_view::text_files::counted_text::{CountedFile, TextLengthIndex, TextUnits};
use h5fs_view::text_files::streamed::{ResumableText, StreamedText};
use h5fs_view::text_files::text::InMemoryContent;
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
use crate::limits;
use crate::name;
use crate::state::counts::{self, CountKey};
use crate::state::inode::TreeNumber;
use crate::views::store_object::{StoreChunks, source_tree_name, store_name};

/// A tree of views. The tree has the same directories as the file's own tree, and files that show
/// some of the objects.
pub(crate) struct ViewTree {
    /// Name of the tree's directory in `.h5fs`.
    pub(crate) name: &'static [u8],
    /// Tree number of the tree's directories, part of their inode numbers. The number must never
    /// change.
    pub(crate) number: TreeNumber,
    /// Which objects other than groups have a directory in this tree, and what the directory
    /// contains.
    pub(crate) shape: TreeShape,
    /// The object name that stands for the root in the names of the root's own files, if this tree
    /// has such files.
    pub(crate) root_name: Option<&'static [u8]>,
    /// The forms of files. An object has a file of each form that fits the object.
    pub(crate) forms: &'static [ViewForm],
}

/// Which objects other than groups have a directory in a tree of views, and what the directory
/// contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TreeShape {
    /// No object other than a group has a directory.
    Files,
    /// All objects, with a file for each attribute.
    Attributes,
    /// Arrays of references, with a link for each element.
    References,
    /// Image stacks, with a file of the first form for each picture.
    Frames,
    /// Arrays of a Zarr store, with their document and chunks. A group contains its document.
    Store(StoreChunks),
}

/// A form of the files in a tree of views: a suffix, and functions for the size and the content of
/// files.
pub(crate) struct ViewForm {
    /// Tree number of the files of this form, part of their inode numbers. The first form has the
    /// number of the tree's directories plus 1.
    pub(crate) number: TreeNumber,
    /// The suffix that a file's name has after the object's name.
    pub(crate) suffix: &'static [u8],
    /// A function that returns the size of an object's file, or `None` if the object has no file of
    /// this form.
    pub(super) size: fn(&FileState, &Node) -> Result<Option<FileSize>>,
    /// A function that opens an object's file, unless `open_elements` opens it.
    pub(crate) open: fn(&ViewSubject<'_>) -> Result<Box<dyn View>>,
    /// A function that opens the file of an array or of a selection.
    pub(crate) open_elements: Option<ElementsViewer>,
    /// Whether `open` also opens further pages about a group, which selectors name.
    pub(crate) has_pages: bool,
    /// Whether `open` also opens parts of an array, which selectors name.
    pub(crate) has_parts: bool,
    /// Whether `open` also opens ranges of rows of a group's table, which selectors name.
    pub(crate) has_rows: bool,
    /// Whether a netCDF variable is shown with the current length of its dimensions, padded with
    /// fill values.
    pub(crate) shows_padded_variable: bool,
    /// Whether an array is shown as its writer intended, if that differs from the stored array:
    /// empty arrays of MATLAB.
    pub(crate) shows_intended_array: bool,
}

/// A function that opens the file of an array or a selection. It returns `None` if the elements
/// have no such file.
pub(crate) type ElementsViewer = fn(&ViewSubject<'_>, Elements) -> Result<Option<Box<dyn View>>>;

/// A tree without files, as the default for the fields of rows of the table.
pub(super) const EMPTY_TREE: ViewTree = ViewTree {
    name: b"",
    number: 0,
    shape: TreeShape::Files,
    root_name: None,
    forms: &[],
};

/// A form that fits no object, as the default for the fields of forms.
pub(super) const EMPTY_FORM: ViewForm = ViewForm {
    number: 0,
    suffix: b"",
    size: |_, _| Ok(None),
    open: |_| Err(Error::NotFound),
    open_elements: None,
    has_pages: false,
    has_parts: false,
    has_rows: false,
    shows_padded_variable: false,
    shows_intended_array: false,
};

/// The size of a file in a tree of views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileSize {
    /// Size in bytes.
    Exact(u64),
    /// The size is unknown until the file is opened: its bytes must be counted, or attributes read.
    Counted,
}

/// The object, or the part of an object, that a file in a tree of views shows.
pub(crate) struct ViewSubject<'a> {
    pub(crate) file: &'a Arc<FileState>,
    pub(crate) node: &'a Node,
    /// Number of the file's form in its tree of views.
    pub(crate) form_number: TreeNumber,
    /// The selector of the part of the array or group that the file shows; empty for the whole
    /// object.
    pub(crate) selector: &'a [u8],
    /// The object's path, with names as in the file.
    pub(crate) path: Vec<u8>,
    /// A function that compares the ASDF block with an object's elements with the block's checksum,
    /// if the option `verify` is set.
    pub(crate) verify: &'a dyn Fn(NodeId) -> Result<()>,
    /// Relative URLs of the files to which a page about the object links.
    pub(crate) site: Option<&'a dyn PageLinks>,
}

impl ViewTree {
    /// Returns the kind of chunks in the tree, if the tree is a Zarr store.
    pub(crate) fn store(&self) -> Option<StoreChunks> {
        match self.shape {
            TreeShape::Store(store) => Some(store),
            _ => None,
        }
    }

    /// Returns this tree's name for the directory of the object that the file's own tree shows as
    /// `name`.
    pub(crate) fn directory_name(&self, name: &[u8]) -> Vec<u8> {
        match (self.shape, name) {
            (TreeShape::Attributes, [b'@', rest @ ..]) => {
                return name::shorten([b"%40", rest].concat());
            }
            (TreeShape::Attributes, _) => return name.to_vec(),
            (TreeShape::Store(_), _) => return store_name(name),
            _ => {}
        }
        let guarded = self.suffixes().find_map(|(dotted, suffix)| {
            let stem = name.strip_suffix(dotted)?;
            Some(name::shorten([stem, b"%2E", suffix].concat()))
        });
        guarded.unwrap_or_else(|| name.to_vec())
    }

    /// Returns the name in the file's own tree of the group whose directory this tree shows as
    /// `shown`; the inverse of [`directory_name`](Self::directory_name).
    pub(crate) fn group_name(&self, shown: &[u8]) -> Vec<u8> {
        let guarded = match self.shape {
            TreeShape::Store(_) => Some(source_tree_name(shown)),
            TreeShape::Attributes => shown.strip_prefix(b"%40").map(|rest| [b"@", rest].concat()),
            _ => self.suffixes().find_map(|(dotted, suffix)| {
                let stem = shown.strip_suffix(suffix)?.strip_suffix(b"%2E")?;
                Some([stem, dotted].concat())
            }),
        };
        guarded.unwrap_or_else(|| shown.to_vec())
    }

    /// Iterates over the suffixes of the tree's files: each with the dot and without it.
    fn suffixes(&self) -> impl Iterator<Item = (&'static [u8], &'static [u8])> {
        let forms = self.forms.iter();
        forms.filter_map(|form| Some((form.suffix, form.suffix.split_first()?.1)))
    }

    /// Returns this tree's name for the file of the form `form` of an object that the file's own
    /// tree shows as `name`. In the root, one letter is escaped if the object has the same name as
    /// the root's own file.
    pub(crate) fn file_name(&self, form: &ViewForm, name: &[u8], at_root: bool) -> Vec<u8> {
        match (self.root_name, name) {
            (Some(root), [letter @ b'a'..=b'z', rest @ ..]) if at_root && root == name => {
                let escaped = format!("%{letter:02X}").into_bytes();
                form.file_name(&[&escaped, rest].concat())
            }
            _ => form.file_name(name),
        }
    }

    /// Converts the names of a path in the file's own tree to the names in this tree. The last name
    /// is a directory, or a file of `form`. Returns `None` if no such file can exist.
    pub(crate) fn shown_path(
        &self,
        names: &[impl AsRef<[u8]>],
        form: Option<&ViewForm>,
        from_root: bool,
    ) -> Option<Vec<Vec<u8>>> {
        let directory = |name: &[u8]| self.directory_name(name);
        let Some((last, groups)) = names.split_last() else {
            return match form {
                Some(form) if from_root => Some(vec![[self.root_name?, form.suffix].concat()]),
                Some(_) => None,
                None => Some(Vec::new()),
            };
        };
        let at_root = from_root && groups.is_empty();
        let groups = groups.iter().map(|name| directory(name.as_ref()));
        let last = match form {
            Some(form) => self.file_name(form, last.as_ref(), at_root),
            None => directory(last.as_ref()),
        };
        Some(groups.chain([last]).collect())
    }

    /// Returns the name in the file's own tree of the object whose file is called `stem` plus a
    /// suffix. `at_root` says whether the file is in the root of this tree. The inverse of
    /// [`file_name`](Self::file_name).
    pub(crate) fn object_name(&self, stem: &[u8], at_root: bool) -> Vec<u8> {
        let root = self.root_name.filter(|_| at_root).unwrap_or_default();
        match root {
            [letter @ b'a'..=b'z', rest @ ..]
                if stem == [format!("%{letter:02X}").as_bytes(), rest].concat() =>
            {
                root.to_vec()
            }
            _ => stem.to_vec(),
        }
    }
}

impl ViewForm {
    /// Returns the name of the object's file: `name`, the object's name in the file's own tree,
    /// with the suffix of this form.
    fn file_name(&self, name: &[u8]) -> Vec<u8> {
        name::shorten([name, self.suffix].concat())
    }

    /// Returns the node of the object `id` for a file of this form. If the object cannot be read,
    /// the form for pages returns a substitute node, because such objects have pages too.
    ///
    /// # Errors
    /// Fails if the object cannot be read, with a permanent or a temporary error.
    pub(crate) fn node(&self, file: &FileState, id: NodeId) -> Result<Arc<Node>> {
        let node = if self.shows_padded_variable {
            file.padded_variables().node(id)
        } else {
            file.container.node(id)
        };
        let node = node.and_then(|node| Ok(self.intended_node(file, &node)?.unwrap_or(node)));
        match node {
            Err(error) if self.has_pages && !error.is_transient() => {
                Ok(Arc::new(Node::damaged(id, error)))
            }
            node => node,
        }
    }

    /// Returns the node that a file of this form shows in place of `node`, if it differs from
    /// `node`.
    ///
    /// # Errors
    /// `Corrupt` if the node contradicts its own description; fails if the node cannot be
    /// determined now.
    pub(crate) fn intended_node(&self, file: &FileState, node: &Node) -> Result<Option<Arc<Node>>> {
        if self.shows_intended_array {
            file.intended_node(node)
        } else {
            Ok(None)
        }
    }

    /// Returns the size of the object's file, or `None` if it has none. If damage makes it
    /// impossible to determine whether the object has a file, the file exists, so that opening it
    /// reports the damage.
    ///
    /// # Errors
    /// Fails if the size cannot be determined now.
    pub(crate) fn size(&self, file: &FileState, node: &Node) -> Result<Option<FileSize>> {
        let meant = self.intended_node(file, node);
        let size = meant.and_then(|meant| (self.size)(file, meant.as_deref().unwrap_or(node)));
        match size {
            Err(Error::NotFound) => Ok(None),
            Err(error) if !error.is_transient() => Ok(Some(FileSize::Counted)),
            size => size,
        }
    }

    /// Returns the size of the file for `node`, after `node` was replaced by the node that the form
    /// shows. Returns `None` if the object has no file.
    ///
    /// # Errors
    /// Fails as [`size`](Self::size) does.
    pub(crate) fn shown_size(&self, file: &FileState, node: &Node) -> Result<Option<FileSize>> {
        if !self.shows_padded_variable || node.array().is_none() {
            return self.size(file, node);
        }
        match self.node(file, node.id) {
            Err(error) if !error.is_transient() => Ok(Some(FileSize::Counted)),
            padded => self.size(file, &*padded?),
        }
    }

    /// Opens the object's file.
    ///
    /// # Errors
    /// `NotFound` if the object has no file; fails if it is known before reading that the file
    /// cannot be served.
    pub(crate) fn open(&self, subject: &ViewSubject<'_>) -> Result<Box<dyn View>> {
        match (self.open_elements, subject.node.array()) {
            (Some(view), Some(_)) => view(subject, subject.elements()?)?.ok_or(Error::NotFound),
            _ => (self.open)(subject),
        }
    }
}

/// Returns the exact size of an array's file, which `length` computes. Returns `None` if the object
/// has no file of this form.
pub(super) fn exact_size(
    node: &Node,
    length: fn(&Array) -> Result<Option<u64>>,
) -> Result<Option<FileSize>> {
    let length = node.array().map_or(Ok(None), |array| length(array))?;
    Ok(length.map(FileSize::Exact))
}

/// Boxes the content of a file. `None` means that the elements have no file of this form.
pub(super) fn boxed_if_some(view: Option<impl View + 'static>) -> Option<Box<dyn View>> {
    view.map(|view| Box::new(view) as Box<dyn View>)
}

/// Boxes the content of a file. Fails with `NotFound` if the object has no file of this form.
pub(super) fn boxed_view(view: Option<impl View + 'static>) -> Result<Box<dyn View>> {
    boxed_if_some(view).ok_or(Error::NotFound)
}

/// Returns the whole text if it is short, quickly written and undamaged.
///
/// # Errors
/// Fails if the text cannot be written now.
fn short_text(text: &impl ResumableText) -> Result<Option<Vec<u8>>> {
    let (mut place, mut out) = (text.begin(), Vec::new());
    // This text has a short time limit of its own.
    let cancel = CancelToken::default();
    let started = Instant::now();
    while out.len() < limits::GROWING_TEXT && started.elapsed() < limits::GROWING_TIME {
        let enough = limits::GROWING_TEXT - out.len();
        match ignore_permanent(text.write_from(&mut place, enough, &cancel, &mut out))? {
            Some(true) => {}
            Some(false) => return Ok(Some(out)),
            None => return Ok(None),
        }
    }
    Ok(None)
}

impl<'a> ViewSubject<'a> {
    /// Creates the subject for a file that shows the part of an object that `selected` selects.
    pub(crate) fn for_part(
        file: &'a Arc<FileState>,
        node: &'a Node,
        form: &ViewForm,
        selected: &'a [u8],
    ) -> Self {
        ViewSubject {
            file,
            node,
            form_number: form.number,
            selector: selected,
            path: Vec::new(),
            verify: &|_| Ok(()),
            site: None,
        }
    }

    /// Returns the rows to show of a group's table of `count` rows: all, or the contiguous rows
    /// that the selector names.
    ///
    /// # Errors
    /// `NotFound` if the selector names no such rows.
    pub(super) fn selected_rows(&self, count: u64) -> Result<Range<u64>> {
        if self.selector.is_empty() {
            return Ok(0..count);
        }
        let selector = Selector::parse(self.selector).ok_or(Error::NotFound)?;
        let row = Datatype::integer(1, false, ByteOrder::Little);
        let selection = selector.select(&row, &shape::Shape::fixed(vec![count]))?;
        let first = selection.offset;
        let is_next =
            |axis: &Axis| axis.count < 2 || matches!(axis.positions, AxisPositions::Strided(1));
        match &*selection.axes {
            [] => Ok(first..first.saturating_add(1)),
            [axis] if is_next(axis) => Ok(first..first.saturating_add(axis.count)),
            _ => Err(Error::NotFound),
        }
    }

    /// Returns the object's array. If the option `verify` is set, first verifies the checksum of
    /// the ASDF block that contains its elements.
    ///
    /// # Errors
    /// `NotFound` if the object is not an array; fails if the array is known to be unreadable.
    pub(super) fn array(&self) -> Result<Arc<Array>> {
        let array = self.node.array().ok_or(Error::NotFound)?;
        if let Err(error) = &array.storage {
            return Err(error.clone());
        }
        (self.verify)(self.node.id)?;
        Ok(Arc::clone(array))
    }

    /// Converts elements to the meaning that the writing program intended, for display.
    ///
    /// # Errors
    /// Fails if the meaning cannot be read.
    pub(super) fn intended_elements(&self, elements: Elements) -> Result<Elements> {
        let container = &*self.file.container;
        let root = Group {
            container,
            engine: &self.file.engine,
            budget: &TableBudget::default(),
            id: container.root(),
        };
        let elements = anndata_codes::replace_codes(&root, self.node, elements)?;
        pytables::convert_elements(container, elements)
    }

    /// Returns all elements of the object's array.
    pub(super) fn elements(&self) -> Result<Elements> {
        Elements::from_reader(self.file.reader(self.node.id, &self.array()?)?)
    }

    /// Returns the path of the object, even if the file shows only a part of it. Returns an empty
    /// path if the object has none.
    ///
    /// # Errors
    /// Fails if the path cannot be determined now.
    pub(super) fn known_path(&self) -> Result<Vec<u8>> {
        if !self.path.is_empty() {
            return Ok(self.path.clone());
        }
        Ok(self
            .file
            .path_index()
            .checked_path(self.node.id)?
            .unwrap_or_default())
    }

    /// Returns a function that finds the paths of objects by node ID, for texts that mention other
    /// objects.
    pub(super) fn path_finder(&self) -> SharedPaths {
        let file = Arc::clone(self.file);
        Arc::new(move |node: NodeId| file.path_index().checked_path(node))
    }

    /// Opens a text that can only be written sequentially. `advice` is the part of the error
    /// message that says what to read in place of a text that is too long. For a growing file, a
    /// short text is written when the file is opened, so that the text belongs to one state.
    ///
    /// # Errors
    /// Fails if a part of the text cannot be written, or if the text is too long for its bytes to
    /// be counted.
    pub(crate) fn open_sequential_text(
        &self,
        text: impl ResumableText + 'static,
        advice: &'static str,
    ) -> Result<Box<dyn View>> {
        if self.file.is_growing()
            && let Some(whole) = short_text(&text)?
        {
            return Ok(Box::new(InMemoryContent::new(whole)));
        }
        let count = self.count_text(advice, || {
            counts::count_sequential_text(&text, &self.file.budget)
        })?;
        Ok(Box::new(StreamedText::new(text, count.bytes())))
    }

    /// Opens a text that consists of units, such as lines or rows, which can be written
    /// independently.
    ///
    /// # Errors
    /// Fails as [`open_sequential_text`](Self::open_sequential_text) does.
    pub(crate) fn open_units(&self, units: impl TextUnits + 'static) -> Result<Box<dyn View>> {
        let (engine, budget) = (&self.file.engine, &self.file.budget);
        let advice = " (a selector after the name, such as [0:1000], reads a part; parquet/ has \
                      tables of any length)";
        let count = self.count_text(advice, || counts::count_units(&units, engine, budget))?;
        Ok(Box::new(CountedFile::from_count(units, count)))
    }

    /// Returns the length and the resume points of the object's text, from the cache or from
    /// `count`. `advice` is used as in [`open_sequential_text`](Self::open_sequential_text).
    fn count_text(
        &self,
        advice: &str,
        count: impl FnOnce() -> counts::CountResult,
    ) -> Result<Arc<TextLengthIndex>> {
        let text = CountKey {
            form_number: self.form_number,
            node: self.node.id,
            selector: self.selector.into(),
        };
        let what = format!("length of the text{advice}");
        let too_long = || Error::limit(what, limits::COUNTED_BYTES);
        self.file.count_text(text, count)?.ok_or_else(too_long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text with one part, or whose writing fails with an error.
    struct OnePart(Result<&'static [u8]>);

    impl ResumableText for OnePart {
        type ResumePoint = ();

        fn begin(&self) {}

        fn write_from(
            &self,
            (): &mut (),
            _: usize,
            _: &CancelToken,
            out: &mut Vec<u8>,
        ) -> Result<bool> {
            out.extend_from_slice(self.0.clone()?);
            Ok(false)
        }
    }

    #[test]
    fn a_transient_error_fails_a_short_text() {
        assert_eq!(
            short_text(&OnePart(Ok(b"text"))),
            Ok(Some(b"text".to_vec()))
        );
        let damaged = Error::corrupt("a part", None);
        assert_eq!(short_text(&OnePart(Err(damaged))), Ok(None));
        let passing = Error::cancelled();
        assert_eq!(short_text(&OnePart(Err(passing.clone()))), Err(passing));
    }
}
