//! What an ASDF file holds beside its tree, beneath `.h5fs`: the tree's text, and the blocks, decoded.

use std::sync::Arc;

use crate::array::Reader;
use crate::error::{Error, Result, if_lasting};
use crate::fs::inode::{self, What};
use crate::fs::listing::{DOTS, Listed};
use crate::fs::live::Live;
use crate::fs::{Entry, Filesystem, Ino, kind_of};
use crate::model::array::{Fill, Layout, Storage};
use crate::model::datatype::ByteOrder;
use crate::model::extras::{BlockFacts, Extras};
use crate::model::storage::{Extent, Pipeline};
use crate::model::{Array, Datatype, Node, NodeId, NodeKind, Shape};
use crate::view::View;
use crate::view::raw::Raw;
use crate::view::text::Text;
use crate::wire::{to_u64, to_usize};

/// The name of the tree's text.
const TREE_TEXT: &[u8] = b"tree.yaml";

/// The name of the directory of blocks.
const BLOCKS: &[u8] = b"blocks";

/// The attribute that tells how a block, or that with an ndarray's elements, is compressed.
const COMPRESSION: &str = "h5fs.compression";

/// Built-in attributes.
pub(super) type Facts = Vec<(&'static str, Vec<u8>)>;

/// The least number of a block's node: those below mean something else.
const FIRST: u64 = 2;

impl Filesystem {
    /// Gives what stands beside the trees of views its numbers.
    pub(super) fn pin_extras(&self, generation: u32, root: NodeId) {
        let pin = |ino, what, name: &[u8]| {
            let entry = inode::Entry {
                what,
                generation,
                tree: inode::SOURCE,
                node: root,
                parent: inode::of_generation(generation, inode::VIEWS),
                name: name.into(),
            };
            self.inodes
                .pin(inode::of_generation(generation, ino), &entry);
        };
        pin(inode::TREE_TEXT, What::TreeText, TREE_TEXT);
        pin(inode::BLOCKS, What::Blocks, BLOCKS);
    }

    /// What of it the file has, by name.
    pub(super) fn extras(&self, live: &Live) -> Vec<(&'static [u8], Ino)> {
        let Some(extras) = live.container.extras() else {
            return Vec::new();
        };
        let text = extras.tree_text().map(|_| (TREE_TEXT, inode::TREE_TEXT));
        let all = text.into_iter().chain([(BLOCKS, inode::BLOCKS)]);
        all.map(|(name, ino)| (name, inode::of_generation(live.generation, ino)))
            .collect()
    }

    /// Counts a lookup of the block called `name`.
    pub(super) fn enter_block(&self, live: &Arc<Live>, name: &[u8]) -> Result<Entry> {
        let number = std::str::from_utf8(name)
            .ok()
            .and_then(|name| name.parse::<usize>().ok());
        let number = number.filter(|number| number.to_string().as_bytes() == name);
        let number = number.ok_or(Error::NotFound)?;
        if number >= extras(live)?.block_count() {
            return Err(Error::NotFound);
        }
        let ino = self
            .inodes
            .enter(of_block(live, number), &block_entry(live, number));
        let described = self.getattr(ino);
        described.inspect_err(|_| self.forget(ino, 1))
    }

    /// Whether all blocks were found.
    pub(super) fn examine_blocks(&self, live: &Live) -> Result<()> {
        extras(live)?.blocks_error().cloned().map_or(Ok(()), Err)
    }

    /// Hands the blocks from `first` on to `visit`.
    pub(super) fn list_blocks(
        &self,
        live: &Live,
        first: u64,
        visit: &mut dyn FnMut(&Listed<'_>, u64) -> bool,
    ) -> Result<()> {
        let count = extras(live)?.block_count();
        for number in to_usize(first - DOTS)?..count {
            let name = number.to_string().into_bytes();
            let listed = Listed::Block {
                name,
                ino: of_block(live, number),
            };
            if visit(&listed, to_u64(number) + DOTS + 1) {
                break;
            }
        }
        Ok(())
    }

    /// What `stat` tells of any of it.
    pub(super) fn describe_extra(
        &self,
        live: &Live,
        ino: Ino,
        entry: &inode::Entry,
    ) -> Result<Entry> {
        let stat = self.bare(live, ino, kind_of(entry.what));
        let (size, stored) = match entry.what {
            What::TreeText => {
                let size = extras(live)?.tree_text().map_or(0, |text| text.length);
                (size, Some(size))
            }
            What::Block => {
                let number = number_of(live, ino);
                let array = if_lasting(extras(live)?.block_content(number))?;
                let facts = if_lasting(extras(live)?.block(number))?;
                // What is wrong with it, opening it will tell.
                let size = array.and_then(|array| array.bytes().ok());
                let stored = facts.map_or(0, |facts| facts.used_size);
                (size.unwrap_or(0), Some(stored))
            }
            _ => (0, None),
        };
        let attributes = stat.sized(size, stored);
        Ok(Entry {
            ino,
            generation: live.generation,
            attributes,
            cacheable: live.is_settled(),
        })
    }

    /// Opens the tree's text or a block.
    pub(super) fn open_extra(
        &self,
        live: &Live,
        ino: Ino,
        entry: &inode::Entry,
    ) -> Result<Box<dyn View>> {
        let extras = extras(live)?;
        let array = match entry.what {
            What::TreeText => Arc::new(bytes_of(extras.tree_text().ok_or(Error::NotFound)?)),
            _ => {
                let number = number_of(live, ino);
                if self.options.verify {
                    extras.verify_block(number, &|array, visit| read_all(live, array, visit))?;
                }
                extras.block_content(number)?
            }
        };
        if array.bytes()? == 0 {
            array.storage.as_ref().map_err(Clone::clone)?;
            return Ok(Box::new(Text::new(Vec::new())));
        }
        Ok(Box::new(Raw::new(Arc::new(Reader::new(
            &live.engine,
            array,
        )?))))
    }

    /// With `verify`, compares the block that an object's elements are in with its checksum.
    pub(super) fn verify(&self, live: &Live, object: NodeId) -> Result<()> {
        let Some(extras) = live.container.extras().filter(|_| self.options.verify) else {
            return Ok(());
        };
        extras.verify_array(object, &|array, visit| read_all(live, array, visit))
    }

    /// What is told of an object beside its description: how the block with its elements is compressed.
    ///
    /// # Errors
    /// As that cannot be found out now.
    pub(super) fn object_facts(&self, live: &Live, node: &Node) -> Result<Facts> {
        let extras = live.container.extras();
        let extras = extras.filter(|_| matches!(node.kind, NodeKind::Array(_)));
        let code = extras.map(|extras| if_lasting(extras.compression_of(node.id)));
        let code = code.transpose()?.flatten().flatten();
        let facts = code.map(|code| (COMPRESSION, code.into_bytes()));
        Ok(facts.into_iter().collect())
    }

    /// The built-in attributes of a block.
    ///
    /// # Errors
    /// As they cannot be read now.
    pub(super) fn block_attributes(&self, live: &Live, ino: Ino) -> Result<Facts> {
        let facts = extras(live).and_then(|extras| extras.block(number_of(live, ino)));
        let facts = if_lasting(facts)?;
        Ok(facts.map_or_else(Vec::new, |facts| facts_as_text(&facts)))
    }
}

fn read_all(live: &Live, array: &Arc<Array>, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
    Reader::new(&live.engine, Arc::clone(array))?.read_all(visit)
}

fn extras(live: &Live) -> Result<&dyn Extras> {
    live.container.extras().ok_or(Error::NotFound)
}

fn of_block(live: &Live, number: usize) -> Ino {
    let node = NodeId(to_u64(number) + FIRST);
    inode::of_node(live.generation, inode::BLOCK_FILES, node)
}

fn number_of(live: &Live, ino: Ino) -> usize {
    let node = inode::node_of(live.generation, ino);
    to_usize(node.0.saturating_sub(FIRST)).unwrap_or(usize::MAX)
}

fn block_entry(live: &Live, number: usize) -> inode::Entry {
    inode::Entry {
        what: What::Block,
        generation: live.generation,
        tree: inode::BLOCK_FILES,
        node: NodeId(to_u64(number) + FIRST),
        parent: inode::of_generation(live.generation, inode::BLOCKS),
        name: number.to_string().into_bytes().into(),
    }
}

fn facts_as_text(facts: &BlockFacts) -> Facts {
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

/// A run of bytes as an array of bytes.
fn bytes_of(extent: Extent) -> Array {
    Array {
        datatype: Datatype::integer(1, false, ByteOrder::Little),
        shape: Shape::fixed(vec![extent.length]),
        fill: Fill::Zero,
        layout: Layout::Block,
        chunk_shape: None,
        pipeline: Pipeline::default(),
        storage: Ok(Storage::Extents(vec![extent])),
    }
}
