//! Inode numbers and the objects that they identify.
//!
//! | number | meaning |
//! |---|---|
//! | 1 | the root |
//! | below 2^62 | an object of the source: its [`NodeId`] |
//! | bit 63 set | a link of the source other than a hard link: a hash of its group and name |
//! | bit 62 set | an entry outside the source's tree: 16 bits identify the tree, 46 bits the entry |
//!
//! The numbers of the first three rows are the same in every mount of an unchanged file. In the
//! last row, the 46 bits of an object are its `NodeId`, if this is below 2^45. The 46 bits of any
//! other entry are a hash with bit 45 set.
//!
//! When the source changes, every inode number except the root's is mapped to another one; see
//! [`number_in_generation`]. A number that the kernel knows must not get another meaning while a
//! process has the old file open.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use h5fs_reader::model::NodeId;

/// Inode number of the root.
pub(crate) const ROOT: u64 = 1;
/// Inode number of the directory of views, `.h5fs`, until the source changes for the first time.
/// [`number_in_generation`] maps it to the number after a change.
pub(crate) const VIEWS: u64 = FIRST_OUTSIDE_SOURCE;
/// Inode number of `.h5fs/status`.
pub(crate) const STATUS: u64 = FIRST_OUTSIDE_SOURCE | 1;
/// Inode number of `.h5fs/external`, the directory of externally linked files.
pub(crate) const EXTERNAL: u64 = FIRST_OUTSIDE_SOURCE | 2;

/// Inode number of `.h5fs/tree.yaml`, the text of an ASDF file's tree.
pub(crate) const TREE_TEXT: u64 = FIRST_OUTSIDE_SOURCE | 3;
/// Inode number of `.h5fs/blocks`, the directory of ASDF blocks.
pub(crate) const BLOCKS: u64 = FIRST_OUTSIDE_SOURCE | 4;
/// Inode number of `.h5fs/errors`.
pub(crate) const ERRORS: u64 = FIRST_OUTSIDE_SOURCE | 5;
/// Inode number of `.h5fs/metrics`.
pub(crate) const METRICS: u64 = FIRST_OUTSIDE_SOURCE | 6;

/// Inode number of `.h5fs/members.csv`, the list of a joined file's members.
pub(crate) const MEMBERS: u64 = FIRST_OUTSIDE_SOURCE | 7;

/// Inode number of `.h5fs/README.txt`, the description of `.h5fs`.
pub(crate) const README: u64 = FIRST_OUTSIDE_SOURCE | 8;

/// Inode number of `.h5fs/kerchunk.json`, the references to the chunks of a Zarr store.
pub(crate) const KERCHUNK: u64 = FIRST_OUTSIDE_SOURCE | 9;

/// The bit that is set in the inode numbers of links other than hard links.
pub(crate) const LINK_BIT: u64 = 1 << 63;
const FIRST_OUTSIDE_SOURCE: u64 = NodeId::END;
const TREE_SHIFT: u32 = 46;
const HASH_BIT: u64 = 1 << 45;

/// A tree number: 16 bits of an inode number that identify the tree which contains the entry.
pub(crate) type TreeNumber = u16;
/// Tree number of the source's own tree.
pub(crate) const SOURCE: TreeNumber = 0;
/// Tree number of the symbolic links in `.h5fs/external` for other spellings of files' names.
pub(crate) const SPELLINGS: TreeNumber = 1;
/// Number of the text `.h5fs/kerchunk.json` among the texts whose bytes are counted.
pub(crate) const REFERENCES: TreeNumber = 253;
/// Tree number of ASDF blocks. The numbers between `SPELLINGS` and `BLOCK_FILES` belong to the
/// trees of views. Each tree has one number for its directories, and one for the files of each
/// form.
pub(crate) const BLOCK_FILES: TreeNumber = 254;
/// Tree number of selections in the source's own tree.
pub(crate) const SELECTIONS: TreeNumber = 255;
/// Lowest tree number of externally linked files and their trees of views.
pub(crate) const FIRST_FILE: TreeNumber = 256;

/// The type of an inode, which determines the node that implements requests about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeType {
    /// A group, as a directory.
    Group,
    /// An object other than a group, or an unreadable object, as a regular file.
    Object,
    /// A symbolic link; `node` is the group that contains the link.
    Link,
    /// A link with a damaged target, as a regular file; `node` is the group that contains the link.
    DamagedLink,
    /// An object that cannot be read because of a temporary error, as a directory, so that a
    /// recursive walk encounters the error. The object is listed but cannot be looked up. `node` is
    /// the group that contains the object.
    Unreadable,
    /// The directory of views, `.h5fs`, of the source or of an externally linked file.
    Views,
    /// An entry of the directory of views that is not a tree of views, such as `status`. The name
    /// identifies it.
    ViewsEntry,
    /// A decompressed block of an ASDF file.
    Block,
    /// A name in `.h5fs/external` that spells the path of a file differently, as a symbolic link.
    Spelling,
    /// A directory in a tree of views.
    ViewDirectory,
    /// A symbolic link in a tree of views; `node` is the group whose directory contains the link.
    ViewLink,
    /// A file that is a view of the object `node`.
    View,
    /// A directory of a Zarr store. The name is its path relative to the store directory of the
    /// object `node`.
    StoreDirectory,
    /// A document or a chunk of a Zarr store. The name is its path relative to the store directory
    /// of the object `node`.
    StoreFile,
    /// A file with the value of an attribute of the object `node`.
    Attribute,
    /// An element of the array of references `node`, as a symbolic link.
    Reference,
    /// A file with one picture of the image stack `node`.
    Frame,
    /// A file that shows a part of an array, in any tree. `node` is the group that contains the
    /// array. The name is the array's name, a `/`, and the selector.
    Selection,
}

/// An inode that the kernel knows, or a group whose directory is known.
#[derive(Debug, Clone)]
pub(crate) struct Inode {
    pub(crate) node_type: NodeType,
    /// Generation of the source to which the inode belongs.
    pub(crate) generation: u32,
    /// Tree number of the tree that contains the inode.
    pub(crate) tree: TreeNumber,
    /// The object that the inode shows, or the group that contains the link.
    pub(crate) node: NodeId,
    /// Inode number of the directory where the inode was first found.
    pub(crate) parent: u64,
    /// Shown name under which the inode was first found.
    pub(crate) name: Box<[u8]>,
}

impl Inode {
    pub(crate) fn is_same_link(&self, other: &Inode) -> bool {
        self.node == other.node && self.name == other.name
    }

    /// Returns whether the inode is the directory of a group, in the state `generation` of the
    /// source.
    pub(crate) fn is_group_directory(&self, generation: u32) -> bool {
        self.node_type == NodeType::Group && self.generation == generation
    }

    /// Returns whether the inode stays in memory after the kernel has forgotten it, while the
    /// source has the generation `generation`.
    pub(crate) fn is_retained(&self, generation: u32) -> bool {
        let is_views = self.node_type == NodeType::Views && self.tree == SOURCE;
        let is_fixed = self.node_type == NodeType::Group || is_views;
        // All entries of the directory of views stay as well.
        let views = number_in_generation(generation, VIEWS);
        self.generation == generation && (is_fixed || self.parent == views)
    }
}

/// Returns whether the node ID of an object is small enough to be part of its inode number in
/// `tree`.
pub(crate) fn is_node_in_range(tree: TreeNumber, node: NodeId) -> bool {
    tree == SOURCE || node.number() < HASH_BIT
}

/// Converts between the inode number in the first state of the source and the number in the state
/// `generation`. The function is its own inverse.
///
/// The result differs from the numbers of earlier states, except for objects at very large offsets,
/// where the bits of the generation overlap the address. The bits of the generation are reversed,
/// so that after few changes this affects only offsets beyond terabytes.
pub(crate) fn number_in_generation(generation: u32, number: u64) -> u64 {
    let shift = match number & (LINK_BIT | FIRST_OUTSIDE_SOURCE) {
        FIRST_OUTSIDE_SOURCE => HASH_BIT.trailing_zeros() - u32::BITS,
        _ => FIRST_OUTSIDE_SOURCE.trailing_zeros() - u32::BITS,
    };
    match number ^ (u64::from(generation.reverse_bits()) << shift) {
        // No object has the root's number. The object that would be mapped to it keeps its own
        // number.
        ROOT => number,
        turned => turned,
    }
}

/// Returns the inode number of the object `node` in `tree`. The object must not be the root of the
/// source.
pub(crate) fn node_number(generation: u32, tree: TreeNumber, node: NodeId) -> u64 {
    let first = match tree {
        SOURCE => node.number(),
        _ => tree_bits(tree) | (node.number() & (HASH_BIT - 1)),
    };
    number_in_generation(generation, first)
}

/// Returns the object with the inode number `ino`; the inverse of [`node_number`]. Returns `None`
/// if the number does not belong to an object.
pub(crate) fn node_with_number(generation: u32, ino: u64) -> Option<NodeId> {
    let first = number_in_generation(generation, ino);
    NodeId::new(match first & FIRST_OUTSIDE_SOURCE {
        0 => first,
        _ => first & (HASH_BIT - 1),
    })
}

/// Returns the inode number of an entry other than an object. The directory of `group` in `tree`
/// shows the entry as `name`.
pub(crate) fn link_number(generation: u32, tree: TreeNumber, group: NodeId, name: &[u8]) -> u64 {
    let group = group.number().to_le_bytes();
    let bytes = group.iter().chain(name);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let first = match tree {
        SOURCE => hash | LINK_BIT,
        _ => tree_bits(tree) | HASH_BIT | (hash & (HASH_BIT - 1)),
    };
    number_in_generation(generation, first)
}

/// Returns the inode number of the element with the index `number` of the array `node` in `tree`.
/// The numbers of one array's elements are distinct. The multiplier is odd with random bits, so
/// that the numbers for different arrays are far apart.
pub(crate) fn element_number(generation: u32, tree: TreeNumber, node: NodeId, number: u64) -> u64 {
    let first = node.number().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let element = first.wrapping_add(number) & (HASH_BIT - 1);
    number_in_generation(generation, tree_bits(tree) | HASH_BIT | element)
}

/// Returns an inode number other than `ino` for the same entry in a later state of a growing file.
/// `opened` is the time when the file was opened in that state.
pub(crate) fn number_in_state(ino: u64, opened: Instant) -> u64 {
    let mut hasher = DefaultHasher::new();
    (ino, opened).hash(&mut hasher);
    let hash = HASH_BIT | hasher.finish() & (HASH_BIT - 1);
    match ino & FIRST_OUTSIDE_SOURCE {
        0 => tree_bits(SELECTIONS) | hash,
        _ => ino & !(HASH_BIT - 1) | hash,
    }
}

fn tree_bits(tree: TreeNumber) -> u64 {
    FIRST_OUTSIDE_SOURCE | (u64::from(tree) << TREE_SHIFT)
}

/// Returns whether the inode number `ino` is a hash, so that other entries may have the same
/// number.
pub(crate) fn is_hash(ino: u64) -> bool {
    ino & LINK_BIT != 0 || ino & FIRST_OUTSIDE_SOURCE != 0 && ino & HASH_BIT != 0
}

/// Returns the inode number to try next if `ino` belongs to another entry with the same hash.
pub(crate) fn next_candidate(ino: u64) -> u64 {
    if ino & LINK_BIT != 0 {
        return ino.wrapping_add(1) | LINK_BIT;
    }
    let hash = HASH_BIT - 1;
    (ino & !hash) | (ino.wrapping_add(1) & hash)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn inode_numbers_of_trees_are_disjoint() {
        let node = NodeId::for_test(HASH_BIT - 1);
        for tree in [1, FIRST_FILE, TreeNumber::MAX] {
            for generation in [0, 1, 7, u32::MAX] {
                let object = node_number(generation, tree, node);
                let link = link_number(generation, tree, node, b"x");
                assert_eq!((object >> TREE_SHIFT) & 0xffff, u64::from(tree));
                assert_eq!(node_with_number(generation, object), Some(node));
                assert!(!is_hash(object) && is_hash(link) && is_hash(next_candidate(link)));
                assert!(object < LINK_BIT && link < LINK_BIT && object >= FIRST_OUTSIDE_SOURCE);
            }
        }
        let last = tree_bits(7) | HASH_BIT | (HASH_BIT - 1);
        assert_eq!(next_candidate(last), tree_bits(7) | HASH_BIT);
        assert_eq!(node_number(0, SOURCE, NodeId::for_test(800)), 800);
    }

    #[test]
    fn inode_numbers_of_source_states_are_disjoint() {
        let far = NodeId::for_test((1 << 32) - 1);
        for tree in [SOURCE, 2, FIRST_FILE] {
            let mut numbers = HashSet::new();
            for generation in 0..1000 {
                for node in [NodeId::for_test(2), NodeId::for_test(800), far] {
                    let number = node_number(generation, tree, node);
                    assert_eq!(node_with_number(generation, number), Some(node));
                    assert!(numbers.insert(number) && number != ROOT);
                }
                assert!(numbers.insert(link_number(generation, tree, far, b"x")));
                assert!(numbers.insert(number_in_generation(generation, VIEWS)) || tree != SOURCE);
            }
        }
        // A hostile file can claim an object whose number would be mapped to the root's.
        let claimed = NodeId::for_test(ROOT ^ (1 << 61));
        assert_eq!(node_number(1, SOURCE, claimed), claimed.number());
        assert_eq!(node_with_number(1, claimed.number()), Some(claimed));
    }
}
