//! `.h5fs/blocks`: the decompressed blocks of an ASDF file. The name of each file is the block's
//! number.

use h5fs_reader::error::{Error, Result, ignore_permanent};
use h5fs_reader::model::NodeId;
use h5fs_reader::model::extras::{AsdfExtras, BlockHeaderFields};
use h5fs_reader::wire::{to_u64, to_usize};
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
use crate::nodes::indexed::{self, PlainEntry};
use crate::nodes::node::{
    BuiltinAttributes, DefectCallback, FsNode, ObjectDescription, TargetInode,
};
use crate::nodes::object::{COMPRESSION, read_all};
use crate::stat::{FileKind, LookupEntry};
use crate::state::inode::{self, Inode, NodeType};
use crate::state::listing::{ListingCallback, ListingState};

/// The directory `.h5fs/blocks`.
pub(crate) struct BlocksDirectory;

/// A block of an ASDF file, as a regular file with the decompressed bytes.
pub(crate) struct BlockFile;

impl FsNode for BlocksDirectory {
    fn kind(&self) -> FileKind {
        FileKind::Directory
    }

    fn lookup(&self, target: &TargetInode<'_>, name: &[u8]) -> Result<LookupEntry> {
        let file = target.file;
        let number = std::str::from_utf8(name).ok();
        let number = number.and_then(|name| name.parse::<usize>().ok());
        let number = number.filter(|number| number.to_string().as_bytes() == name);
        let number = number.ok_or(Error::NotFound)?;
        if number >= asdf_extras(file)?.block_count() {
            return Err(Error::NotFound);
        }
        let inode = Inode {
            node_type: NodeType::Block,
            generation: file.generation,
            tree: inode::BLOCK_FILES,
            node: block_node_id(number),
            parent: target.ino,
            name: name.into(),
        };
        target.add_entry_lookup(block_inode_number(file, number), &inode, &BlockFile)
    }

    fn list(
        &self,
        target: &TargetInode<'_>,
        _: &mut ListingState,
        first: u64,
        visit: &mut ListingCallback<'_>,
    ) -> Result<()> {
        let count = to_u64(asdf_extras(target.file)?.block_count());
        indexed::list_all(target, first, visit, count, |number| {
            Ok(PlainEntry {
                name: number.to_string().into_bytes(),
                ino: block_inode_number(target.file, to_usize(number)?),
                kind: FileKind::File,
            })
        })
    }

    /// Reports an error if the search for blocks ended before the end of the file.
    fn examine(&self, target: &TargetInode<'_>, _: &mut DefectCallback<'_>) -> Result<()> {
        let error = asdf_extras(target.file)?.blocks_error().cloned();
        error.map_or(Ok(()), Err)
    }
}

impl FsNode for BlockFile {
    fn kind(&self) -> FileKind {
        FileKind::File
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        let (extras, number) = (asdf_extras(target.file)?, block_number(target));
        let array = ignore_permanent(extras.block_content(number))?;
        let facts = ignore_permanent(extras.block_header(number))?;
        // Opening the block will report why the block cannot be read.
        let size = array
            .and_then(|array| array.byte_length().ok())
            .unwrap_or(0);
        let stored = facts.map_or(0, |facts| facts.used_size);
        Ok(target
            .empty_entry(FileKind::File)
            .with_size(size, Some(stored)))
    }

    fn open(&self, target: &TargetInode<'_>) -> Result<Box<dyn View>> {
        let (extras, number) = (asdf_extras(target.file)?, block_number(target));
        if target.mount.options.verify {
            let file = target.file;
            extras.verify_block(number, &|array, visit| read_all(file, array, visit))?;
        }
        target.file.open_bytes(extras.block_content(number)?)
    }

    fn describe_for_xattrs(&self, target: &TargetInode<'_>) -> Option<ObjectDescription> {
        let facts =
            asdf_extras(target.file).and_then(|extras| extras.block_header(block_number(target)));
        let facts = ignore_permanent(facts);
        Some(ObjectDescription {
            node: None,
            content_error: self.open(target).err(),
            builtin_attributes: facts.map(|facts| {
                facts.map_or_else(BuiltinAttributes::new, |facts| {
                    block_builtin_attributes(&facts)
                })
            }),
        })
    }
}

fn asdf_extras(file: &FileState) -> Result<&dyn AsdfExtras> {
    file.container.asdf_extras().ok_or(Error::NotFound)
}

fn block_inode_number(file: &FileState, number: usize) -> u64 {
    inode::node_number(file.generation, inode::BLOCK_FILES, block_node_id(number))
}

/// Returns the node ID that stands for the block `number` in inodes. It is not the ID of a node in
/// the file.
fn block_node_id(number: usize) -> NodeId {
    NodeId::from_index(u32::try_from(number).unwrap_or(u32::MAX))
}

fn block_number(target: &TargetInode<'_>) -> usize {
    let node = inode::node_with_number(target.file.generation, target.ino);
    node.map_or(usize::MAX, |node| {
        to_usize(node.index()).unwrap_or(usize::MAX)
    })
}

/// Returns the built-in extended attributes of a block as text.
fn block_builtin_attributes(facts: &BlockHeaderFields) -> BuiltinAttributes {
    let number = |number: u64| number.to_string().into_bytes();
    let mut all = vec![
        (COMPRESSION, facts.compression.clone().into_bytes()),
        ("h5fs.used_size", number(facts.used_size)),
        ("h5fs.data_size", number(facts.data_size)),
    ];
    if let Some(sum) = facts.checksum {
        let hex: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        all.push(("h5fs.checksum", hex.into_bytes()));
    }
    all
}
