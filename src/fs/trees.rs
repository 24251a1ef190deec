//! The table of the trees of views beneath `.h5fs`.
//!
//! # A new tree
//!
//! 1. Write `src/fs/trees/NAME.rs` with a `TREE`: its name, a number that no tree has or had (even,
//!    from 20 on), the suffix that it adds to an object's name, the size of an object's file
//!    (`None` where it has none), and the file, opened. The rest comes from `..WITHOUT_FILES`.
//! 2. Name it here twice: `mod NAME;`, and a row of [`TREES`] where the listing of `.h5fs` is to
//!    show it.
//!
//! That is all: directories, links, names, lookup, `stat`, listings and handles are the same in all
//! trees. The content of a file is a [`View`](crate::view::View). A view of more than a few
//! lines gets a file in `src/view`, where it is tested without a tree. A file whose length is not
//! known before it is read has the size `Size::Streamed`.

mod assembled;
mod attrs;
mod chunks;
mod csv;
mod json;
mod mask;
mod ndl;
mod npy;
mod offsets;
pub(super) mod view_tree;

use crate::fs::inode::Tree;
use crate::fs::trees::view_tree::{ViewTree, files};

/// All trees, in the order in which they are listed.
pub(super) static TREES: &[ViewTree] = &[
    assembled::TREE,
    attrs::TREE,
    chunks::TREE,
    csv::TREE,
    json::TREE,
    mask::TREE,
    ndl::TREE,
    npy::TREE,
    offsets::TREE,
];

/// The number, as a tree, of the documents that describe objects.
pub(super) fn documents() -> Tree {
    files(ndl::TREE.number)
}

/// The tree with the number `number` for its directories or for its files.
pub(super) fn of_number(number: Tree) -> Option<&'static ViewTree> {
    let mut trees = TREES.iter();
    trees.find(|tree| number == tree.number || number == files(tree.number))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::fs::inode::{BLOCK_FILES, SPELLINGS};

    /// Inode numbers are made of them, and must be the same in the next release.
    #[test]
    fn each_tree_has_a_number_of_its_own() {
        let numbers: HashSet<Tree> = TREES.iter().map(|tree| tree.number).collect();
        assert_eq!(numbers.len(), TREES.len());
        for number in numbers {
            assert!(number % 2 == 0 && number > SPELLINGS && number < BLOCK_FILES);
        }
        let of = |name: &[u8]| {
            let tree = TREES.iter().find(|tree| tree.name == name);
            tree.expect("a tree").number
        };
        assert_eq!((of(b"assembled"), of(b"json"), of(b"offsets")), (2, 10, 18));
        assert_eq!(of_number(11).expect("files").name, b"json");
        assert!(of_number(0).is_none() && of_number(1).is_none());
    }
}
