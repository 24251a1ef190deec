//! Inode numbers, and what they stand for.
//!
//! | number | what |
//! |---|---|
//! | 1 | the root |
//! | below 2^62 | an object of the source: its [`NodeId`] |
//! | bit 63 set | a link of the source that is no hard link: a hash of its group and name |
//! | bit 62 set | what stands beside the source's tree: 16 bits say in which tree, 46 what in it |
//!
//! The first three are the same in every mount of an unchanged file. In the trees beside it an
//! object has its `NodeId` below 2^45, all else a hash with bit 45 set.
//!
//! Once the source has changed, all numbers but the root's are turned into others, see
//! [`of_generation`]: a number that the kernel knows must not come to stand for something else
//! while a process has the old file open.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use crate::model::NodeId;

/// The root's number.
pub(in crate::fs) const ROOT: u64 = 1;
/// The number of the directory of views, as those below in the first state of the source.
pub(in crate::fs) const VIEWS: u64 = BESIDE;
/// The number of the status file in it.
pub(in crate::fs) const STATUS: u64 = BESIDE | 1;
/// The number of the directory of other files in it.
pub(in crate::fs) const EXTERNAL: u64 = BESIDE | 2;

/// The number of the text of an ASDF tree in it.
pub(in crate::fs) const TREE_TEXT: u64 = BESIDE | 3;
/// The number of the directory of ASDF blocks in it.
pub(in crate::fs) const BLOCKS: u64 = BESIDE | 4;
/// The number of the list of errors in it.
pub(in crate::fs) const ERRORS: u64 = BESIDE | 5;
/// The number of the figures for Prometheus in it.
pub(in crate::fs) const METRICS: u64 = BESIDE | 6;

/// The number of the list of the files that a joined file is made of.
pub(in crate::fs) const MEMBERS: u64 = BESIDE | 7;

/// The bit of a link that is no hard link.
pub(in crate::fs) const LINK: u64 = 1 << 63;
const BESIDE: u64 = NodeId::END;
const TREE_SHIFT: u32 = 46;
const HASHED: u64 = 1 << 45;

/// The number of a tree.
pub(in crate::fs) type Tree = u16;
/// The source's own tree.
pub(in crate::fs) const SOURCE: Tree = 0;
/// Other spellings of other files' names.
pub(in crate::fs) const SPELLINGS: Tree = 1;
/// ASDF blocks. Between the spellings and these are the trees of views, each with two numbers: for
/// directories, and for files.
pub(in crate::fs) const BLOCK_FILES: Tree = 254;
/// Parts of arrays in the source's own tree.
pub(in crate::fs) const SELECTIONS: Tree = 255;
/// The first of the trees of other files.
pub(in crate::fs) const FIRST_FILE: Tree = 256;

/// The type of thing that an inode stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fs) enum NodeType {
    /// A group, as a directory.
    Group,
    /// Any other object, or one that cannot be read, as a regular file.
    Object,
    /// A symbolic link; `node` is the group it is in.
    Link,
    /// A link that does not say where it leads, as a regular file; `node` is the group it is in.
    DamagedLink,
    /// An object that cannot be read now, as a directory, so that a walk down the tree meets the
    /// error; it is listed, and never looked up. `node` is the group it is in.
    Unreadable,
    /// The directory of views, `.h5fs`, of the source or of another file.
    Views,
    /// A single entry of that directory; its name says which row of the directory it is.
    Single,
    /// An ASDF block, decoded.
    Block,
    /// Another spelling of another file's name, as a symbolic link.
    Spelling,
    /// A directory in a tree of views.
    ViewDirectory,
    /// A symbolic link in a tree of views; `node` is the group whose directory it is in.
    ViewLink,
    /// A view of an object.
    View,
    /// A directory of a Zarr store within that of the object `node`; the name is the path from
    /// there.
    StoreDirectory,
    /// A document or a chunk of a Zarr store; the name is the path from the directory of the object
    /// `node` on.
    StoreFile,
    /// An attribute of an object.
    Attribute,
    /// An element of the array of references `node`, as a symbolic link.
    Reference,
    /// A picture of the stack `node`.
    Frame,
    /// A part of an array, in any tree; `node` is the group that the array is in. The name is the
    /// array's, a `/`, and the selector.
    Selection,
}

/// An inode that the kernel knows, or a group that has been met.
#[derive(Debug, Clone)]
pub(in crate::fs) struct Inode {
    pub(in crate::fs) node_type: NodeType,
    /// The state of the source that it belongs to.
    pub(in crate::fs) generation: u32,
    /// The tree that it stands in.
    pub(in crate::fs) tree: Tree,
    /// The object, or the group that holds the link.
    pub(in crate::fs) node: NodeId,
    /// The directory that it was first met in.
    pub(in crate::fs) parent: u64,
    /// The name that it was first met under, as shown.
    pub(in crate::fs) name: Box<[u8]>,
}

impl Inode {
    pub(in crate::fs) fn is_same_link(&self, other: &Inode) -> bool {
        self.node == other.node && self.name == other.name
    }

    /// Whether this is where a group is a directory.
    pub(in crate::fs) fn is_home(&self, generation: u32) -> bool {
        self.node_type == NodeType::Group && self.generation == generation
    }

    /// Whether it is kept though the kernel has forgotten it, where the state `generation` of the
    /// source is shown.
    pub(in crate::fs) fn stays(&self, generation: u32) -> bool {
        let is_views = self.node_type == NodeType::Views && self.tree == SOURCE;
        let is_fixed = self.node_type == NodeType::Group || is_views;
        // So does all that stands in the directory of views.
        let views = of_generation(generation, VIEWS);
        self.generation == generation && (is_fixed || self.parent == views)
    }
}

/// Whether an object's identity can be an inode number in `tree`.
pub(in crate::fs) fn is_object(tree: Tree, node: NodeId) -> bool {
    tree == SOURCE || node.number() < HASHED
}

/// The number in the state `generation` for the inode that has `number` in the first state of the
/// source, and the reverse.
///
/// It differs from the numbers of states before, but for objects so far on in their files that the
/// bits of a generation reach theirs; these are turned around, so that after few changes that is
/// beyond terabytes.
pub(in crate::fs) fn of_generation(generation: u32, number: u64) -> u64 {
    let shift = match number & (LINK | BESIDE) {
        BESIDE => HASHED.trailing_zeros() - u32::BITS,
        _ => BESIDE.trailing_zeros() - u32::BITS,
    };
    match number ^ (u64::from(generation.reverse_bits()) << shift) {
        // No object has its number; the one that would get it is left the one that it has.
        ROOT => number,
        turned => turned,
    }
}

/// The number of an object in `tree`, which is not the root of the source.
pub(in crate::fs) fn of_node(generation: u32, tree: Tree, node: NodeId) -> u64 {
    let first = match tree {
        SOURCE => node.number(),
        _ => within(tree) | (node.number() & (HASHED - 1)),
    };
    of_generation(generation, first)
}

/// The object of a number, if it is one of an object; the reverse of [`of_node`].
pub(in crate::fs) fn node_of(generation: u32, ino: u64) -> Option<NodeId> {
    let first = of_generation(generation, ino);
    NodeId::new(match first & BESIDE {
        0 => first,
        _ => first & (HASHED - 1),
    })
}

/// The number of what is shown as `name` in `group` of `tree` and is no object: FNV-1a, so that
/// every mount finds the same.
pub(in crate::fs) fn of_link(generation: u32, tree: Tree, group: NodeId, name: &[u8]) -> u64 {
    let group = group.number().to_le_bytes();
    let bytes = group.iter().chain(name);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let first = match tree {
        SOURCE => hash | LINK,
        _ => within(tree) | HASHED | (hash & (HASHED - 1)),
    };
    of_generation(generation, first)
}

/// The number of the element `number` of the array `node` in `tree`. Those of one array differ from
/// each other, and arrays begin far from each other, as the factor is odd and of random bits.
pub(in crate::fs) fn of_element(generation: u32, tree: Tree, node: NodeId, number: u64) -> u64 {
    let first = node.number().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let element = first.wrapping_add(number) & (HASHED - 1);
    of_generation(generation, within(tree) | HASHED | element)
}

/// Another number for what has the number `ino`, in the state of its file that was opened then.
pub(in crate::fs) fn of_state(ino: u64, opened: Instant) -> u64 {
    let mut hasher = DefaultHasher::new();
    (ino, opened).hash(&mut hasher);
    let hash = HASHED | hasher.finish() & (HASHED - 1);
    match ino & BESIDE {
        0 => within(SELECTIONS) | hash,
        _ => ino & !(HASHED - 1) | hash,
    }
}

fn within(tree: Tree) -> u64 {
    BESIDE | (u64::from(tree) << TREE_SHIFT)
}

/// Whether a number is a hash, which others may have too.
pub(in crate::fs) fn is_hash(ino: u64) -> bool {
    ino & LINK != 0 || ino & BESIDE != 0 && ino & HASHED != 0
}

/// The number to try after that of another with the same hash.
pub(in crate::fs) fn next_hash(ino: u64) -> u64 {
    if ino & LINK != 0 {
        return ino.wrapping_add(1) | LINK;
    }
    let hash = HASHED - 1;
    (ino & !hash) | (ino.wrapping_add(1) & hash)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn numbers_of_trees_do_not_meet() {
        let node = NodeId::of(HASHED - 1);
        for tree in [1, FIRST_FILE, Tree::MAX] {
            for generation in [0, 1, 7, u32::MAX] {
                let object = of_node(generation, tree, node);
                let link = of_link(generation, tree, node, b"x");
                assert_eq!((object >> TREE_SHIFT) & 0xffff, u64::from(tree));
                assert_eq!(node_of(generation, object), Some(node));
                assert!(!is_hash(object) && is_hash(link) && is_hash(next_hash(link)));
                assert!(object < LINK && link < LINK && object >= BESIDE);
            }
        }
        let last = within(7) | HASHED | (HASHED - 1);
        assert_eq!(next_hash(last), within(7) | HASHED);
        assert_eq!(of_node(0, SOURCE, NodeId::of(800)), 800);
    }

    #[test]
    fn states_of_the_source_have_numbers_of_their_own() {
        let far = NodeId::of((1 << 32) - 1);
        for tree in [SOURCE, 2, FIRST_FILE] {
            let mut numbers = HashSet::new();
            for generation in 0..1000 {
                for node in [NodeId::of(2), NodeId::of(800), far] {
                    let number = of_node(generation, tree, node);
                    assert_eq!(node_of(generation, number), Some(node));
                    assert!(numbers.insert(number) && number != ROOT);
                }
                assert!(numbers.insert(of_link(generation, tree, far, b"x")));
                assert!(numbers.insert(of_generation(generation, VIEWS)) || tree != SOURCE);
            }
        }
        // An object that a file claims where its number would be the root's.
        let claimed = NodeId::of(ROOT ^ (1 << 61));
        assert_eq!(of_node(1, SOURCE, claimed), claimed.number());
        assert_eq!(node_of(1, claimed.number()), Some(claimed));
    }
}
