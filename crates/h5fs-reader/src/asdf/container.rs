//! An open ASDF file as a container of the model.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::asdf::chunked_ndarray::{self, NdarrayContext};
use crate::asdf::content::BlockContents;
use crate::asdf::external::ExternalFiles;
use crate::asdf::fields::{Fields, MeteredDocument};
use crate::asdf::header::{self, Header};
use crate::asdf::ndarray::{self, DataBlock, Ndarray};
use crate::asdf::nodes::{Caches, DescribedNode, NodeCache};
use crate::asdf::number::{self, Number};
use crate::asdf::tree::{AsdfNodeKind, EntryTarget, Tree};
use crate::asdf::yaml::compose::compose;
use crate::asdf::yaml::resolve::{self, CoreTag};
use crate::asdf::yaml::{Document, NodeIndex};
use crate::asdf::{chain, scan};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::request_budget::RequestBudget;
use crate::model::attribute::{Attribute, Reference};
use crate::model::datatype::ReferenceKind;
use crate::model::extras::{ArrayBytesReader, AsdfExtras, BlockHeaderFields, Mask};
use crate::model::link::{Link, LinkStream, LinkTarget};
use crate::model::storage::StoredExtent;
use crate::model::{Array, Container, Node, NodeId, NodeKind, Scalar, ScalarValue};
use crate::source::SharedSource;
use crate::source::neighbours::Neighbours;
use crate::wire::{Count, to_u64, to_usize};

/// Approximate number of bytes of memory that an open file takes for each of its blocks.
const BLOCK_WEIGHT: u64 = 160;

/// An open ASDF file.
#[derive(Debug, Clone)]
pub struct File {
    source: SharedSource,
    header: Arc<Header>,
    /// The error that explains why the root group lacks the tree or a part of it.
    error: Option<Error>,
    tree: Arc<Tree>,
    contents: Arc<BlockContents>,
    externals: Arc<ExternalFiles>,
    nodes: Arc<NodeCache>,
    /// The budget that is charged when a node is converted to the model.
    budget: RequestBudget,
}

impl File {
    /// Opens a file: reads its header and tree, and walks its blocks. Other files with elements of
    /// ndarrays are looked up in `neighbours` when they are needed. All files of a mount share the
    /// `caches`.
    ///
    /// If the tree cannot be read, the file has an empty root with the error, and its blocks.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported` if the file does not start with the header line of ASDF version 0
    /// or 1. `Io` if the source cannot be read.
    pub fn open(
        source: SharedSource,
        neighbours: Arc<Neighbours>,
        caches: &Caches,
    ) -> Result<Self> {
        let header = header::read(&*source)?;
        let length = header
            .tree
            .as_ref()
            .map_or(0, |tree| tree.end.minus_or_zero(tree.start));
        let _turn = (length > limits::TREE_TURN).then(|| caches.compose_lock.await_turn());
        let document = match (&header.tree, &header.error) {
            (_, Some(error)) => Err(error.clone()),
            (None, None) => Ok(Document::empty()),
            (Some(tree), None) => {
                read_range(&source, tree).and_then(|text| compose(&text, tree.start))
            }
        };
        let (document, mut error) = match document {
            Ok(document) => {
                let rest = document.end_error().cloned();
                (document, rest)
            }
            Err(error @ Error::Io { .. }) => return Err(error),
            Err(error) => (Document::empty(), Some(error)),
        };
        if document
            .text(NodeIndex::ROOT)
            .is_some_and(|text| !is_empty_tree(text))
        {
            let at = document.file_offset(NodeIndex::ROOT);
            error = Some(Error::corrupt("tree: its root is a scalar", at));
        }
        let blocks = chain::walk_blocks(&*source, header.end)?;
        Ok(File {
            contents: Arc::new(BlockContents::new(
                Arc::clone(&source),
                blocks,
                &caches.tables,
            )),
            externals: Arc::new(ExternalFiles::new(neighbours, caches.tables.clone())),
            source,
            header: Arc::new(header),
            error,
            tree: Arc::new(Tree::new(document)),
            nodes: Arc::new(NodeCache::new(caches)),
            budget: RequestBudget::default(),
        })
    }

    fn index(&self, id: NodeId) -> Result<NodeIndex> {
        let index = u32::try_from(id.index()).ok().map(NodeIndex::new);
        index
            .filter(|&index| self.tree.document().contains(index))
            .ok_or(Error::NotFound)
    }

    fn describe_cached(&self, id: NodeId) -> Result<DescribedNode> {
        if let Some(known) = self.nodes.get(id) {
            return Ok(known);
        }
        let known = self.describe(id)?;
        if !known.node.has_transient_error() && !self.budget.is_exhausted() {
            self.nodes.put(id, known.clone());
        }
        Ok(known)
    }

    fn describe(&self, id: NodeId) -> Result<DescribedNode> {
        let index = self.index(id)?;
        let document = self.tree.document();
        let mut block = None;
        let (kind, mut error) = match self.tree.kind(index) {
            _ if index == NodeIndex::ROOT => (NodeKind::Group, self.error.clone()),
            AsdfNodeKind::Group | AsdfNodeKind::Reference => (NodeKind::Group, None),
            AsdfNodeKind::Text => (NodeKind::Scalar(scalar(document, index)), None),
            AsdfNodeKind::Ndarray => {
                let Ndarray { array, block: of } = ndarray::describe(
                    self.metered_document(),
                    &self.contents,
                    &self.externals,
                    index,
                );
                block = of;
                let error = array.storage.as_ref().err().cloned();
                (NodeKind::Array(Arc::new(array)), error)
            }
        };
        let assembled = self.chunked_array_of(index);
        let unassembled = assembled.as_ref().and_then(|array| array.as_ref().err());
        error = error
            .or_else(|| self.tree.error(index).cloned())
            .or_else(|| unassembled.cloned());
        let node = Arc::new(Node {
            id,
            kind,
            assembled_array: assembled.and_then(Result::ok).map(Arc::new),
            link_count: 1,
            modified: None,
            comment: None,
            tag: document.tag(index).cloned(),
            error,
        });
        Ok(DescribedNode { node, block })
    }

    /// Returns the array that the members of a group form, if the group is a chunked ndarray.
    fn chunked_array_of(&self, index: NodeIndex) -> Option<Result<Array>> {
        let tag = self.tree.document().tag(index)?;
        let is_chunked = self.tree.kind(index) == AsdfNodeKind::Group
            && chunked_ndarray::is_chunked_ndarray_tag(tag);
        is_chunked.then(|| chunked_ndarray::describe(&self.context(), &self.budget, index))
    }

    fn metered_document(&self) -> MeteredDocument<'_> {
        MeteredDocument::new(self.tree.document(), &self.budget)
    }

    fn context(&self) -> NdarrayContext {
        NdarrayContext {
            tree: Arc::clone(&self.tree),
            contents: Arc::clone(&self.contents),
            externals: Arc::clone(&self.externals),
        }
    }

    fn verify(&self, held: &DataBlock, read_all: &ArrayBytesReader<'_>) -> Result<()> {
        match held {
            DataBlock::Internal(place) => self.contents.verify(*place, read_all),
            DataBlock::External(other) => other.verify(0, read_all),
        }
    }
}

impl File {
    /// Returns the mask of the nulls of an inline ndarray, or `None` if no element is null.
    fn null_mask(&self, node: NodeId, index: NodeIndex) -> Result<Option<Mask>> {
        let known = self.describe_cached(node)?;
        let NodeKind::Array(array) = &known.node.kind else {
            return Ok(None);
        };
        if array.storage.is_err() {
            return Ok(None);
        }
        let nulls = ndarray::null_flags(self.metered_document(), index, array)?;
        Ok(nulls.map(|nulls| Mask::Array(Arc::new(nulls))))
    }
}

/// Returns whether a root that is a scalar with this text stands for an empty tree, because the
/// text is a YAML null. The scalar's tag does not matter.
fn is_empty_tree(text: &str) -> bool {
    resolve::plain_scalar_tag(text) == CoreTag::Null
}

fn read_range(source: &SharedSource, range: &Range<u64>) -> Result<Vec<u8>> {
    scan::read_truncated(&**source, range.clone())
}

fn id(index: NodeIndex) -> NodeId {
    NodeId::from_index(index.number())
}

/// Returns the scalar at `index`. Its type follows from its tag, or without a tag from its text. A
/// scalar whose text is not valid for its type is a string.
fn scalar(document: &Document, index: NodeIndex) -> Scalar {
    let text = document.text(index).unwrap_or_default();
    let value = match document.core_tag(index) {
        Some(CoreTag::Null) => Some(ScalarValue::Null),
        Some(CoreTag::Bool) => resolve::boolean(text).map(ScalarValue::Bool),
        Some(CoreTag::Int) => resolve::integer_as_decimal(text).map(ScalarValue::Int),
        Some(CoreTag::Float) => resolve::float(text).map(ScalarValue::Float),
        Some(CoreTag::Timestamp) => Some(ScalarValue::Timestamp),
        Some(CoreTag::Binary) => Some(ScalarValue::Binary),
        Some(CoreTag::Merge | CoreTag::Value | CoreTag::Str) => None,
        None => match number::scalar_number(document, index) {
            Some(Number::Complex(real, imaginary)) => Some(ScalarValue::Complex(real, imaginary)),
            _ => None,
        },
    };
    Scalar {
        text: text.to_owned(),
        value: value.unwrap_or(ScalarValue::String),
    }
}

/// Returns the error of an alias to `node`, which has no path or a path that is too long.
fn missing_path_error(tree: &Tree, node: NodeIndex) -> Error {
    let what = "alias: its node has no path, or the path is too long";
    Error::corrupt(what, tree.document().file_offset(node))
}

/// Returns the link for the entry with the index `slot` of a group, or `None` after the last one.
fn link(tree: &Tree, group: NodeIndex, slot: usize) -> Option<Link> {
    let (name, target) = tree.entry(group, slot)?;
    let target = match target {
        EntryTarget::Canonical(node) => LinkTarget::Hard(id(node)),
        EntryTarget::Alias(node) => LinkTarget::Alias(id(node)),
        EntryTarget::Reference { node, file } => {
            let node = id(node);
            LinkTarget::Reference { file, node }
        }
        EntryTarget::Unreachable(node) => LinkTarget::Damaged(missing_path_error(tree, node)),
        EntryTarget::TooLong => {
            let most = to_u64(limits::TREE_PATH);
            LinkTarget::Damaged(Error::limit("text of a reference", most))
        }
    };
    let order = Some(to_u64(slot));
    Some(Link {
        name,
        target,
        order,
        is_to_group: false,
    })
}

impl Container for File {
    fn for_request(self: Arc<Self>, budget: &RequestBudget) -> Arc<dyn Container> {
        let budget = budget.clone();
        Arc::new(File {
            budget,
            ..File::clone(&self)
        })
    }

    fn root(&self) -> NodeId {
        id(NodeIndex::ROOT)
    }

    fn node(&self, id: NodeId) -> Result<Arc<Node>> {
        self.describe_cached(id).map(|known| known.node)
    }

    fn link(&self, group: NodeId, name: &[u8]) -> Result<Option<Link>> {
        let group = self.index(group)?;
        let slot = self.tree.slot(group, name);
        Ok(slot.and_then(|slot| link(&self.tree, group, slot)))
    }

    fn links(&self, group: NodeId) -> Result<Box<dyn LinkStream>> {
        Ok(Box::new(GroupLinkStream {
            tree: Arc::clone(&self.tree),
            group: self.index(group)?,
            slot: 0,
        }))
    }

    fn weight(&self) -> u64 {
        let blocks = to_u64(self.contents.blocks().list.len());
        let blocks = blocks.times(BLOCK_WEIGHT);
        let text = self.tree_text().map_or(0, |text| text.extent.length());
        let tree = self.tree.weight().plus(text);
        tree.plus(blocks)
    }

    fn alias_path(&self, target: &LinkTarget) -> Result<Vec<Vec<u8>>> {
        let (node, path): (_, fn(&Tree, NodeIndex) -> _) = match target {
            LinkTarget::Alias(node) => (self.index(*node)?, Tree::path),
            LinkTarget::Reference { node, .. } => (self.index(*node)?, Tree::reference_names),
            _ => return Ok(Vec::new()),
        };
        path(&self.tree, node).ok_or_else(|| missing_path_error(&self.tree, node))
    }

    fn attributes(
        &self,
        _id: NodeId,
        _visit: &mut dyn FnMut(Attribute) -> ControlFlow<()>,
    ) -> Result<()> {
        Ok(())
    }

    fn attribute(&self, _id: NodeId, _name: &[u8]) -> Result<Option<Attribute>> {
        Ok(None)
    }

    fn variable_length_bytes(&self, _element: &[u8], _base_size: u64) -> Result<Option<u64>> {
        Err(Error::unsupported("variable-length elements in ASDF", None))
    }

    fn read_variable_length(
        &self,
        _element: &[u8],
        _base_size: u64,
        _part: Range<u64>,
    ) -> Result<Option<Vec<u8>>> {
        Err(Error::unsupported("variable-length elements in ASDF", None))
    }

    fn text_length(&self, _element: &[u8]) -> Result<u64> {
        Err(Error::unsupported("variable-length elements in ASDF", None))
    }

    fn reference(&self, _kind: ReferenceKind, _element: &[u8]) -> Result<Reference> {
        Err(Error::unsupported("reference elements in ASDF", None))
    }

    fn asdf_extras(&self) -> Option<&dyn AsdfExtras> {
        Some(self)
    }
}

/// A stream of the links of one group. The tree is in memory, so finding entries is free.
struct GroupLinkStream {
    tree: Arc<Tree>,
    group: NodeIndex,
    slot: usize,
}

impl LinkStream for GroupLinkStream {
    fn position(&self) -> u64 {
        to_u64(self.slot)
    }

    fn is_in_order(&self) -> bool {
        true
    }

    fn seek(&mut self, position: u64) -> Result<()> {
        self.slot = to_usize(position)?.min(self.tree.count(self.group));
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Link>> {
        let link = link(&self.tree, self.group, self.slot);
        if link.is_some() {
            self.slot = self.slot.plus_one();
        }
        Ok(link)
    }
}

impl AsdfExtras for File {
    fn tree_text(&self) -> Option<StoredExtent> {
        let range = self.header.tree.clone()?;
        Some(StoredExtent {
            source: Arc::clone(&self.source),
            extent: range.into(),
        })
    }

    fn is_sequence(&self, group: NodeId) -> bool {
        let index = self.index(group);
        index.is_ok_and(|index| self.tree.is_sequence(index))
    }

    fn block_count(&self) -> usize {
        self.contents.blocks().list.len()
    }

    fn blocks_error(&self) -> Option<&Error> {
        self.contents.blocks().chain_error.as_ref()
    }

    fn block_header(&self, number: usize) -> Result<BlockHeaderFields> {
        let block = self.contents.block(number)?;
        Ok(BlockHeaderFields {
            compression: block.compression_name(),
            streamed: block.streamed,
            allocated_size: block.allocated_size,
            used_size: block.used_size,
            data_size: block.data_size,
            checksum: block.has_checksum().then_some(block.checksum),
        })
    }

    fn block_content(&self, number: usize) -> Result<Arc<Array>> {
        self.contents.array(number)
    }

    fn compression_of(&self, id: NodeId) -> Result<Option<String>> {
        let block = match self.describe_cached(id)?.block {
            None => return Ok(None),
            Some(DataBlock::Internal(place)) => self.contents.block(place)?.compression_name(),
            Some(DataBlock::External(other)) => other.block(0)?.compression_name(),
        };
        Ok(Some(block))
    }

    fn verify_array(&self, id: NodeId, read_all: &ArrayBytesReader<'_>) -> Result<()> {
        let DescribedNode { node, block } = self.describe_cached(id)?;
        if node.assembled_array.is_some() {
            let blocks =
                chunked_ndarray::data_blocks(&self.context(), &self.budget, self.index(id)?)?;
            let mut blocks = blocks.iter();
            return blocks.try_for_each(|block| self.verify(block, read_all));
        }
        let mut block = block.iter();
        block.try_for_each(|block| self.verify(block, read_all))
    }

    fn verify_block(&self, number: usize, read_all: &ArrayBytesReader<'_>) -> Result<()> {
        self.contents.verify(number, read_all)
    }

    fn mask(&self, node: NodeId) -> Result<Option<Mask>> {
        let index = self.index(node)?;
        let document = self.tree.document();
        if self.tree.kind(index) != AsdfNodeKind::Ndarray {
            return Ok(None);
        }
        let mask = match document.pairs(index) {
            Some(_) => Fields::new(self.metered_document(), index)?.get("mask"),
            None => None,
        };
        let mask = mask.filter(|&mask| document.core_tag(mask) != Some(CoreTag::Null));
        let Some(mask) = mask else {
            return self.null_mask(node, index);
        };
        if document.text(mask).is_some() {
            return Ok(Some(Mask::Number(scalar(document, mask).file_text())));
        }
        let at = document.file_offset(mask);
        let missing = || Error::unsupported("ndarray: a mask in another file", at);
        self.tree
            .resolve_reference(mask, &mut { limits::TREE_NODES })
            .map(|target| Some(Mask::Node(id(target))))
            .ok_or_else(missing)
    }
}
