//! The directory of views, `.h5fs`, and the table of its entries. The directory `.h5fs` of an
//! externally linked file contains only the trees of views and the views of the root object.
//!
//! Most entries are trees of views, which have a table of their own. Every other entry is a
//! [`NonTreeEntry`]: a node in its own source file, and a row of [`ENTRIES_BEFORE_TREES`] or
//! [`ENTRIES_AFTER_TREES`] here.

pub(super) mod attribute_file;
pub(super) mod frame;
pub(super) mod guide;
pub(super) mod h5grove;
pub(super) mod kerchunk;
pub(super) mod readme;
pub(super) mod reference_link;
pub(super) mod selection;
pub(super) mod site;
pub(super) mod store;
pub(super) mod store_chunks;
pub(super) mod store_document;
pub(super) mod store_object;
pub(super) mod trees;
pub(super) mod view_group;
pub(super) mod view_nodes;

#[cfg(test)]
mod tests;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::NodeId;
use h5fs_reader::wire::to_usize;

use crate::data_files::file_state::FileState;
use crate::data_files::mount::{Mount, ViewFacts};
use crate::data_files::other_files;
use crate::name;
use crate::nodes::blocks::BlocksDirectory;
use crate::nodes::indexed::{self, IndexedEntry};
use crate::nodes::members_list::MembersList;
use crate::nodes::node::{FsNode, TargetInode};
use crate::nodes::other_nodes::OtherFilesDirectory;
use crate::nodes::status::{ERRORS, METRICS, STATUS};
use crate::nodes::tree_text::TreeText;
use crate::stat::{FileKind, LookupEntry};
use crate::state::inode::{self, Inode, NodeType, TreeNumber};
use crate::state::listing::{
    DOT_ENTRIES, ListedAttributes, ListingCallback, ListingEntry, ListingState,
};
use crate::views::kerchunk::KerchunkFile;
use crate::views::readme::Readme;
use crate::views::trees::{ROOT_FILES, TREES};
use crate::views::view_nodes::{ViewDirectory, ViewFile, is_size_counted};

/// The directory of views, `.h5fs`.
pub(super) struct ViewsRootDirectory;

/// An entry of `.h5fs` other than a tree of views.
struct NonTreeEntry {
    name: &'static [u8],
    /// Inode number of the entry until the source changes for the first time.
    /// [`inode::number_in_generation`] maps it to the number after a change.
    number: u64,
    node: &'static dyn FsNode,
    is_present: fn(&Mount, &FileState) -> bool,
}

/// Entries listed before the trees of views.
static ENTRIES_BEFORE_TREES: &[NonTreeEntry] = &[
    NonTreeEntry {
        name: readme::NAME,
        number: inode::README,
        node: &Readme,
        is_present: |mount, _| mount.options.views,
    },
    NonTreeEntry {
        name: other_files::DIRECTORY_NAME,
        number: inode::EXTERNAL,
        node: &OtherFilesDirectory,
        is_present: |_, _| true,
    },
    NonTreeEntry {
        name: b"status",
        number: inode::STATUS,
        node: &STATUS,
        is_present: |mount, _| mount.options.views,
    },
    NonTreeEntry {
        name: b"errors",
        number: inode::ERRORS,
        node: &ERRORS,
        is_present: |mount, _| mount.options.views,
    },
    NonTreeEntry {
        name: b"metrics",
        number: inode::METRICS,
        node: &METRICS,
        is_present: |mount, _| mount.options.views,
    },
];

/// Entries listed after the trees of views.
static ENTRIES_AFTER_TREES: &[NonTreeEntry] = &[
    NonTreeEntry {
        name: b"tree.yaml",
        number: inode::TREE_TEXT,
        node: &TreeText,
        is_present: |mount, file| {
            let extras = file.container.asdf_extras();
            mount.options.views && extras.is_some_and(|extras| extras.tree_text().is_some())
        },
    },
    NonTreeEntry {
        name: kerchunk::NAME,
        number: inode::KERCHUNK,
        node: &KerchunkFile,
        is_present: |mount, _| mount.options.views,
    },
    NonTreeEntry {
        name: b"blocks",
        number: inode::BLOCKS,
        node: &BlocksDirectory,
        is_present: |mount, file| mount.options.views && file.container.asdf_extras().is_some(),
    },
    NonTreeEntry {
        name: b"members.csv",
        number: inode::MEMBERS,
        node: &MembersList,
        is_present: |mount, file| mount.options.views && file.container.members_csv().is_some(),
    },
];

/// Iterates over the names of the entries other than trees of views.
#[cfg(test)]
fn names_beside_trees() -> impl Iterator<Item = &'static [u8]> {
    ENTRIES_BEFORE_TREES
        .iter()
        .chain(ENTRIES_AFTER_TREES)
        .map(|single| single.name)
}

/// An entry in the listing of `.h5fs`.
struct ViewsRow {
    name: &'static [u8],
    ino: u64,
    node: &'static dyn FsNode,
    /// If the entry is a view of the root object: the tree number of the view's form, such as NDL
    /// or JSON. `None` for all other entries.
    form_number: Option<TreeNumber>,
}

impl FsNode for ViewsRootDirectory {
    fn kind(&self) -> FileKind {
        FileKind::Directory
    }

    fn lookup(&self, target: &TargetInode<'_>, name: &[u8]) -> Result<LookupEntry> {
        if target.file.tree != inode::SOURCE {
            return lookup_views_entry(target, name);
        }
        let mut rows = rows(target)?.into_iter();
        let row = rows.find(|row| row.name == name).ok_or(Error::NotFound)?;
        row_entry(target, &row)
    }

    fn list(
        &self,
        target: &TargetInode<'_>,
        _: &mut ListingState,
        first: u64,
        visit: &mut ListingCallback<'_>,
    ) -> Result<()> {
        let mut rows = rows(target)?
            .into_iter()
            .skip(to_usize(first - DOT_ENTRIES)?);
        indexed::list(target, first, visit, |at| {
            Ok(rows.next().map(|row| (vec![row], at + 1)))
        })
    }
}

impl IndexedEntry for ViewsRow {
    fn visit(&self, views: &TargetInode<'_>, next: u64, visit: &mut ListingCallback<'_>) -> bool {
        let (mount, file) = (views.mount, views.file);
        let (root, kind) = (file.container.root(), self.node.kind());
        let form = self.form_number;
        let stat = || match file.tree == inode::SOURCE {
            _ if form.is_some_and(|form| is_size_counted(mount, file, root, form)) => None,
            _ if self.name == kerchunk::NAME => None,
            true => row_entry(views, self).ok().map(ListedAttributes::Uncounted),
            false => lookup_views_entry(views, self.name)
                .ok()
                .map(ListedAttributes::Counted),
        };
        let listed = ListingEntry {
            name: self.name,
            ino: self.ino,
            kind,
            stat: &|| stat().unwrap_or(ListedAttributes::Unknown(kind)),
        };
        visit(&listed, next)
    }
}

/// Returns the node of the entry `name` of `.h5fs`, if it is not a tree of views.
pub(super) fn non_tree_node(name: &[u8]) -> Option<&'static dyn FsNode> {
    let mut all = ENTRIES_BEFORE_TREES.iter().chain(ENTRIES_AFTER_TREES);
    let found = all.find(|single| single.name == name);
    found.map(|single| single.node)
}

/// Returns the entries of the directory `.h5fs` of a file, in listing order.
fn rows(views: &TargetInode<'_>) -> Result<Vec<ViewsRow>> {
    let (mount, file) = (views.mount, views.file);
    let single = |single: &NonTreeEntry| ViewsRow {
        name: single.name,
        ino: inode::number_in_generation(file.generation, single.number),
        node: single.node,
        form_number: None,
    };
    let is_there =
        |single: &&NonTreeEntry| file.tree == inode::SOURCE && (single.is_present)(mount, file);
    let mut rows: Vec<ViewsRow> = ENTRIES_BEFORE_TREES
        .iter()
        .filter(is_there)
        .map(single)
        .collect();
    for (name, in_source, node_type) in shown_trees(mount, file) {
        let tree = mount.other_files.tree_number(file, in_source)?;
        rows.push(ViewsRow {
            name,
            ino: inode::node_number(file.generation, tree, file.container.root()),
            node: node_of(node_type),
            form_number: (node_type == NodeType::View).then_some(tree),
        });
    }
    rows.extend(ENTRIES_AFTER_TREES.iter().filter(is_there).map(single));
    Ok(rows)
}

/// Iterates over the trees of views and the views of the root object in `.h5fs`: name, tree number
/// and node type.
fn tree_entries(
    root: NodeId,
    has_extras: bool,
) -> impl Iterator<Item = (&'static [u8], TreeNumber, NodeType)> {
    let trees = TREES.iter();
    let trees = trees.map(|tree| (tree.name, tree.number, NodeType::ViewDirectory));
    let files = ROOT_FILES
        .iter()
        .filter(move |file| has_extras || !file.needs_extras);
    let files = files.map(|file| (file.name, file.number, NodeType::View));
    let all = trees.chain(files);
    all.filter(move |(_, number, _)| inode::is_node_in_range(*number, root))
}

/// Iterates over the trees of views and the views of the root object that `file` has. Empty if the
/// options disable views.
fn shown_trees(
    mount: &Mount,
    file: &FileState,
) -> impl Iterator<Item = (&'static [u8], TreeNumber, NodeType)> + use<> {
    let are_shown = mount.options.views;
    let has_extras = file.container.asdf_extras().is_some();
    tree_entries(file.container.root(), has_extras).filter(move |_| are_shown)
}

/// Looks up `name`, a tree of views or a view of the root object, in the directory `.h5fs` of an
/// externally linked file. Increments the lookup count of its inode.
fn lookup_views_entry(views: &TargetInode<'_>, name: &[u8]) -> Result<LookupEntry> {
    let (mount, file) = (views.mount, views.file);
    let root = file.container.root();
    let mut trees = shown_trees(mount, file);
    let found = trees.find(|(tree, ..)| *tree == name);
    let (_, in_source, node_type) = found.ok_or(Error::NotFound)?;
    let tree = mount.other_files.tree_number(file, in_source)?;
    let inode = Inode {
        node_type,
        tree,
        node: root,
        parent: views.ino,
        name: name.into(),
        ..views.inode.clone()
    };
    let ino = inode::node_number(file.generation, tree, root);
    let node = node_of(node_type);
    TargetInode::add_lookup(mount, file, ino, &inode, |target| node.stat(target))
}

/// Returns the node of the root of a tree of views, or of a view of the root object.
fn node_of(node_type: NodeType) -> &'static dyn FsNode {
    match node_type {
        NodeType::View => &ViewFile,
        _ => &ViewDirectory,
    }
}

/// Returns the attributes of the entry `row`. Its lookups are not counted, because its inode always
/// exists.
fn row_entry(views: &TargetInode<'_>, row: &ViewsRow) -> Result<LookupEntry> {
    let mount = views.mount;
    let (file, inode) = mount.find_inode(row.ino)?;
    let (file, _granted) = file.for_request(&views.file.budget.cancel_token());
    let target = TargetInode {
        mount,
        file: &file,
        ino: row.ino,
        inode: &inode,
    };
    row.node.stat(&target)
}

/// What the mount of every file must know about the trees of views.
pub(super) const FACTS: ViewFacts = ViewFacts {
    fixed_inodes,
    tree_name: |number| trees::tree_with_number(number).map(|tree| tree.name),
};

/// Returns the inodes that exist in the mount of every file: the root, `.h5fs`, and the entries of
/// `.h5fs`.
fn fixed_inodes(generation: u32, root: NodeId) -> Vec<(u64, Inode)> {
    let views = inode::number_in_generation(generation, inode::VIEWS);
    let entry = |node_type, tree, parent, name: &[u8]| Inode {
        node_type,
        generation,
        tree,
        node: root,
        parent,
        name: name.into(),
    };
    let mut all = vec![
        (
            inode::ROOT,
            entry(NodeType::Group, inode::SOURCE, inode::ROOT, b""),
        ),
        (
            views,
            entry(NodeType::Views, inode::SOURCE, inode::ROOT, name::VIEWS),
        ),
    ];
    all.extend(
        ENTRIES_BEFORE_TREES
            .iter()
            .chain(ENTRIES_AFTER_TREES)
            .map(|single| {
                let ino = inode::number_in_generation(generation, single.number);
                (
                    ino,
                    entry(NodeType::ViewsEntry, inode::SOURCE, views, single.name),
                )
            }),
    );
    all.extend(tree_entries(root, true).map(|(name, number, node_type)| {
        let ino = inode::node_number(generation, number, root);
        (ino, entry(node_type, number, views, name))
    }));
    all
}
