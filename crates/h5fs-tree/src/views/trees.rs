//! The table of the trees of views below `.h5fs`.
//!
//! # A new tree
//!
//! 1. Write `views/trees/NAME.rs` with a `TREE`: its name, a number that no tree has or had (even,
//!    from 20 on), and the forms of its files. The fields of a form are:
//!    - `number`: odd; the first form has the tree's number plus 1
//!    - `suffix`: the suffix of the file names
//!    - `size`: the size of an object's file, or `None` if the object has no such file
//!    - `open`: opens the file
//!    - `open_elements`, in place of `open`: opens the file of an array or of a selection
//!
//!    The other fields come from `..EMPTY_TREE` and `..EMPTY_FORM`.
//! 2. Add the tree here twice: `mod NAME;`, and a row of [`TREES`] at its position in the listing
//!    of `.h5fs`.
//!
//! No other change is needed: directories, links, names, lookup, `stat`, listings and handles are
//! the same in all trees. The content of a file is a [`View`](h5fs_view::view::View). A view of
//! more than a few lines gets a file in the crate `h5fs-view`, where it is tested without a tree. A
//! text whose length is known only after its bytes are counted (`ViewSubject::open_units`,
//! `ViewSubject::open_sequential_text`) has the size `FileSize::Counted`.

mod assembled;
mod attrs;
mod cf;
mod chunks;
mod csv;
mod file_zarr;
mod fits;
mod hdf5;
mod html;
mod json;
mod mask;
mod ndl;
mod netcdf;
mod npy;
mod offsets;
mod parquet;
mod part;
mod png;
mod refs;
mod stored_zarr;
mod text;
mod tiff;
pub(crate) mod view_tree;

use crate::state::inode::TreeNumber;
use crate::views::trees::view_tree::{ViewForm, ViewTree};

/// All trees, in listing order.
pub(crate) static TREES: &[ViewTree] = &[
    assembled::TREE,
    attrs::TREE,
    cf::TREE,
    chunks::TREE,
    csv::TREE,
    file_zarr::TREE,
    fits::TREE,
    hdf5::TREE,
    html::TREE,
    json::TREE,
    mask::TREE,
    ndl::TREE,
    netcdf::TREE,
    npy::TREE,
    offsets::TREE,
    parquet::TREE,
    png::TREE,
    refs::TREE,
    stored_zarr::TREE,
    text::TREE,
    tiff::TREE,
];

/// A file in `.h5fs`, next to the trees, that is a view of the root object. In a tree, the root has
/// no name for such a file.
pub(crate) struct RootFile {
    pub(crate) name: &'static [u8],
    /// Number of the file's form.
    pub(crate) number: TreeNumber,
    /// Whether the file exists only for formats with additional content besides objects (ASDF).
    pub(crate) needs_extras: bool,
}

/// The views of the root object in `.h5fs`, in listing order.
pub(crate) static ROOT_FILES: &[RootFile] = &[
    RootFile {
        name: b"file.h5",
        number: 49,
        needs_extras: false,
    },
    RootFile {
        name: b"ndl.yaml",
        number: 15,
        needs_extras: false,
    },
    RootFile {
        name: b"file.nc",
        number: 51,
        needs_extras: false,
    },
    RootFile {
        name: b"tree.json",
        number: 29,
        needs_extras: false,
    },
    RootFile {
        name: b"asdf.json",
        number: 11,
        needs_extras: true,
    },
];

/// Returns the tree of views called `name`.
pub(crate) fn tree_named(name: &[u8]) -> Option<&'static ViewTree> {
    TREES.iter().find(|tree| tree.name == name)
}

/// Returns the tree of views whose directories, or whose files of any form, have the number
/// `number`.
pub(crate) fn tree_with_number(number: TreeNumber) -> Option<&'static ViewTree> {
    let has = |form: &ViewForm| form.number == number;
    let mut trees = TREES.iter();
    trees.find(|tree| number == tree.number || tree.forms.iter().any(has))
}

/// Returns the form whose files have the number `number`.
pub(crate) fn form_with_number(number: TreeNumber) -> Option<&'static ViewForm> {
    let mut forms = TREES.iter().flat_map(|tree| tree.forms);
    forms.find(|form| form.number == number)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::state::inode::{BLOCK_FILES, SPELLINGS};

    /// Inode numbers are derived from these numbers, which must be the same in the next release.
    #[test]
    fn each_tree_has_a_unique_number() {
        let forms = TREES.iter().flat_map(|tree| tree.forms);
        let of_files: Vec<TreeNumber> = forms.map(|form| form.number).collect();
        let of_trees: Vec<TreeNumber> = TREES.iter().map(|tree| tree.number).collect();
        let numbers = of_files.iter().chain(&of_trees);
        assert!(
            numbers
                .clone()
                .all(|&number| number > SPELLINGS && number < BLOCK_FILES)
        );
        let distinct: HashSet<&TreeNumber> = numbers.collect();
        assert_eq!(distinct.len(), of_files.len() + of_trees.len());
        assert!(of_trees.iter().all(|number| number % 2 == 0));
        for tree in TREES {
            let first = tree.forms.first();
            assert!(first.is_none_or(|form| form.number == tree.number + 1));
        }
        let of = |name: &[u8]| tree_named(name).expect("a tree").number;
        assert_eq!((of(b"assembled"), of(b"json"), of(b"offsets")), (2, 10, 18));
        assert_eq!(tree_with_number(11).expect("files").name, b"json");
        assert_eq!(form_with_number(11).expect("files").suffix, b".json");
        assert!(form_with_number(10).is_none());
        assert!(
            ROOT_FILES
                .iter()
                .all(|file| form_with_number(file.number).is_some())
        );
        assert!(tree_with_number(0).is_none() && tree_with_number(1).is_none());
    }
}
