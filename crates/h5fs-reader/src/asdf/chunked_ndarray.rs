//! Chunked ndarrays: one array that consists of several ndarrays of the tree, each at its own
//! position in the array.
//!
//! asdf-cxx and ASDF.jl write this extension, which is not in the standard.
//! `core/chunked-ndarray-1.x` is `{shape, datatype, chunks}`, and each chunk is a
//! `core/ndarray-chunk-1.x`, `{start, ndarray}`. If chunks overlap, the last one is used. Elements
//! without a chunk are zero.

use std::sync::Arc;

use crate::asdf::content::BlockContents;
use crate::asdf::datatype;
use crate::asdf::external::ExternalFiles;
use crate::asdf::fields::{self, Fields, MeteredDocument};
use crate::asdf::ndarray::{self, DataBlock};
use crate::asdf::tree::Tree;
use crate::asdf::yaml::NodeIndex;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::cancel::CancelToken;
use crate::memory::request_budget::RequestBudget;
use crate::model::array::{
    Array, Fill, Layout, Mapping, OpenVirtualSource, Storage, VirtualSource,
};
use crate::model::datatype::{ByteOrder, Datatype};
use crate::model::region::{Region, RegionAxis};
use crate::model::storage::Pipeline;
use crate::model::{Shape, shape};
use crate::wire::{Count, to_u64};

/// The tree, and the blocks that may contain the elements of its ndarrays.
#[derive(Debug, Clone)]
pub(crate) struct NdarrayContext {
    /// The tree that contains the ndarrays.
    pub(crate) tree: Arc<Tree>,
    /// The blocks of this file.
    pub(crate) contents: Arc<BlockContents>,
    /// The blocks of other files.
    pub(crate) externals: Arc<ExternalFiles>,
}

/// Returns whether a resolved tag denotes a chunked ndarray, with any version or without a version.
pub(crate) fn is_chunked_ndarray_tag(tag: &str) -> bool {
    ndarray::is_tag_of_schema("core/chunked-ndarray", tag)
}

/// Describes the chunked ndarray at `node`. Does not read the elements of any chunk.
///
/// # Errors
/// `Corrupt` if the node is not a chunked ndarray or a chunk lies outside of it. `Limit` if there
/// are too many chunks, or describing them takes too much work.
pub(crate) fn describe(
    context: &NdarrayContext,
    budget: &RequestBudget,
    node: NodeIndex,
) -> Result<Array> {
    let budget = fields::description_budget(budget);
    let mut parser = Parser::new(context, &budget);
    let fields = Fields::new(parser.document, node)?;
    let (dims, chunks) = parser.extent_and_chunks(&fields)?;
    let datatype = parser.datatype(&fields, chunks.first())?;
    parser.check_inline_bytes(datatype.size)?;
    let mappings = chunks.into_iter().map(|chunk| chunk.mapping(context));
    let storage = match shape::product(&dims)? {
        0 => Storage::Empty,
        _ => Storage::Virtual(mappings.collect()),
    };
    Ok(Array {
        datatype,
        shape: Shape::fixed(dims),
        fill: Fill::Zero,
        layout: Layout::Chunked,
        chunk_shape: None,
        pipeline: Pipeline::default(),
        storage: Ok(storage),
    })
}

/// Returns the blocks with the elements of the chunked ndarray at `node`, except the blocks of
/// damaged chunks.
///
/// # Errors
/// Fails as [`describe`] does.
pub(crate) fn data_blocks(
    context: &NdarrayContext,
    budget: &RequestBudget,
    node: NodeIndex,
) -> Result<Vec<DataBlock>> {
    let budget = fields::description_budget(budget);
    let mut parser = Parser::new(context, &budget);
    let fields = Fields::new(parser.document, node)?;
    let (_, chunks) = parser.extent_and_chunks(&fields)?;
    let held = chunks.iter().map(|chunk| {
        let (contents, externals) = (&context.contents, &context.externals);
        ndarray::data_block(parser.document, contents, externals, chunk.ndarray)
    });
    // No element of a damaged chunk is ever served.
    let held = held.filter(|held| !matches!(held, Err(Error::Corrupt { .. })));
    held.filter_map(Result::transpose).collect()
}

impl NdarrayContext {
    fn ndarray(&self, node: NodeIndex, budget: &RequestBudget) -> ndarray::Ndarray {
        let document = MeteredDocument::new(self.tree.document(), budget);
        ndarray::describe(document, &self.contents, &self.externals, node)
    }
}

/// One chunk: an ndarray, and its position in the chunked ndarray.
struct ChunkNdarray {
    start: Vec<u64>,
    dims: Vec<u64>,
    ndarray: NodeIndex,
}

impl ChunkNdarray {
    fn mapping(self, context: &NdarrayContext) -> Mapping {
        let axis = |(&start, &length): (&u64, &u64)| RegionAxis {
            start,
            ..RegionAxis::all_indices(length)
        };
        let axes = self.start.iter().zip(&self.dims).map(axis);
        Mapping {
            region: Region::Regular(axes.collect()),
            source_region: Region::All,
            source: Arc::new(ChunkSource {
                context: context.clone(),
                ndarray: self.ndarray,
            }),
        }
    }
}

/// The ndarray of a chunk. It may be in another file, so it is described only when its elements are
/// read.
#[derive(Debug)]
struct ChunkSource {
    context: NdarrayContext,
    ndarray: NodeIndex,
}

impl VirtualSource for ChunkSource {
    fn open(&self, cancel: &CancelToken) -> Result<Option<OpenVirtualSource>> {
        let (budget, _granted) = RequestBudget::unlimited_until_cancelled(cancel);
        let array = self.context.ndarray(self.ndarray, &budget).array;
        match &array.storage {
            Err(error) => Err(error.clone()),
            Ok(_) => Ok(Some(OpenVirtualSource {
                array: Arc::new(array),
                file: None,
                recode: None,
            })),
        }
    }

    fn name(&self) -> String {
        format!("chunk at node {}", self.ndarray.number())
    }

    fn is_in_other_file(&self) -> bool {
        false
    }

    fn weight(&self) -> u64 {
        to_u64(size_of::<Self>())
    }
}

struct Parser<'a> {
    context: &'a NdarrayContext,
    document: MeteredDocument<'a>,
    /// Number of mapping entries and of bytes of references that may still be read to describe the
    /// chunks. Aliases may repeat one long entry many times.
    entries_left: usize,
    /// Number of chunks without a shape that may still be described.
    shapeless_left: usize,
    /// Number of inline elements that the chunks may still have. An inline array that is referenced
    /// twice counts twice, because it is converted for each reference.
    elements_left: u64,
}

impl<'a> Parser<'a> {
    fn new(context: &'a NdarrayContext, budget: &'a RequestBudget) -> Self {
        Parser {
            context,
            document: MeteredDocument::new(context.tree.document(), budget),
            entries_left: limits::CHUNK_ENTRIES,
            shapeless_left: limits::SHAPELESS_CHUNKS,
            elements_left: limits::CHUNK_ELEMENTS,
        }
    }

    fn extent_and_chunks(&mut self, fields: &Fields<'_>) -> Result<(Vec<u64>, Vec<ChunkNdarray>)> {
        let dims = self.parse_lengths(fields.required("shape")?)?;
        let chunks = self.chunks(fields.required("chunks")?, &dims)?;
        Ok((dims, chunks))
    }

    /// Parses the list of chunks at `node`, for a chunked ndarray with the dimensions `dims`.
    fn chunks(&mut self, node: NodeIndex, dims: &[u64]) -> Result<Vec<ChunkNdarray>> {
        let nodes = self.document.document().items(node);
        let nodes = nodes.ok_or_else(|| self.corrupt(node, "chunks is not a list"))?;
        Error::check_limit(
            nodes.len(),
            limits::VIRTUAL_MAPPINGS,
            "chunks of a chunked ndarray",
        )?;
        Error::check_limit(
            nodes.len().times(dims.len()),
            limits::CHUNK_AXES,
            "total number of dimensions of all chunks",
        )?;
        nodes.iter().map(|&node| self.chunk(node, dims)).collect()
    }

    fn chunk(&mut self, node: NodeIndex, outer: &[u64]) -> Result<ChunkNdarray> {
        let start = self.value(node, "start")?;
        let start = start.ok_or_else(|| self.corrupt(node, "a chunk without a start"))?;
        let start = self.parse_lengths(start)?;
        let ndarray = self.value(node, "ndarray")?;
        let ndarray = match ndarray {
            Some(ndarray) => self.resolve_reference(ndarray)?,
            None => None,
        };
        let ndarray = ndarray.ok_or_else(|| self.corrupt(node, "a chunk without an ndarray"))?;
        let dims = self.dims(ndarray)?;
        let fits = |((&start, &length), &extent): ((&u64, &u64), &u64)| {
            start.checked_add(length).is_some_and(|end| end <= extent)
        };
        let is_of_rank = start.len() == outer.len() && dims.len() == outer.len();
        if is_of_rank && start.iter().zip(&dims).zip(outer).all(fits) {
            Ok(ChunkNdarray {
                start,
                dims,
                ndarray,
            })
        } else {
            Err(self.corrupt(node, "a chunk is not inside its array"))
        }
    }

    /// Returns the dimensions of a chunk's ndarray from its `shape`, or else from its elements.
    fn dims(&mut self, ndarray: NodeIndex) -> Result<Vec<u64>> {
        let is_stored = self.value(ndarray, "source")?.is_some();
        let is_inline = !is_stored && self.value(ndarray, "data")?.is_some();
        let shape = self.value(ndarray, "shape")?;
        let told = shape.and_then(|shape| self.parse_lengths(shape).ok());
        let (dims, is_inline) = match told {
            Some(dims) if is_stored || is_inline => (dims, is_inline),
            _ => self.describe_extent(ndarray)?,
        };
        if is_inline {
            self.charge_inline_elements(&dims)?;
        }
        Ok(dims)
    }

    fn describe_extent(&mut self, ndarray: NodeIndex) -> Result<(Vec<u64>, bool)> {
        let most = to_u64(limits::SHAPELESS_CHUNKS);
        self.shapeless_left = (self.shapeless_left.checked_sub(1))
            .ok_or_else(|| Error::limit("chunks without a shape", most))?;
        let (contents, externals) = (&self.context.contents, &self.context.externals);
        ndarray::extent(self.document, contents, externals, ndarray)
    }

    fn charge_inline_elements(&mut self, dims: &[u64]) -> Result<()> {
        // An empty list costs the same as a list of one element.
        let steps = dims.iter().map(|&dim| dim.max(1));
        let elements = steps.fold(1, Count::times);
        let most = limits::CHUNK_ELEMENTS;
        self.elements_left = (self.elements_left.checked_sub(elements))
            .ok_or_else(|| Error::limit("elements of chunks in the tree", most))?;
        Ok(())
    }

    /// Checks that all inline elements of the chunks, of `size` bytes each, together do not exceed
    /// [`limits::INLINE_BYTES`].
    fn check_inline_bytes(&self, size: u32) -> Result<()> {
        let elements = limits::CHUNK_ELEMENTS.minus_or_zero(self.elements_left);
        match elements.times(u64::from(size)) {
            0..=limits::INLINE_BYTES => Ok(()),
            _ => Err(Error::limit(
                "bytes of chunks in the tree",
                limits::INLINE_BYTES,
            )),
        }
    }

    /// Returns `node`, or its target if it is a `$ref` to a node of this tree. Returns `None` for
    /// any other `$ref`. Fails once `entries_left` is used up.
    fn resolve_reference(&mut self, node: NodeIndex) -> Result<Option<NodeIndex>> {
        let meant = self
            .context
            .tree
            .resolve_reference(node, &mut self.entries_left);
        match (meant, self.entries_left) {
            (None, 0) => Err(too_many_entries()),
            _ => Ok(meant),
        }
    }

    /// Parses the datatype of the chunked ndarray. If the chunked ndarray does not state a byte
    /// order, the byte order of the first chunk is used.
    fn datatype(&mut self, fields: &Fields<'_>, first: Option<&ChunkNdarray>) -> Result<Datatype> {
        let of_first = match first {
            Some(chunk) => self.value(chunk.ndarray, "byteorder")?,
            None => None,
        };
        let order = match fields.get("byteorder").or(of_first) {
            Some(order) => datatype::byte_order(self.document, order)?,
            None => ByteOrder::Little,
        };
        datatype::parse(self.document, fields.required("datatype")?, order)
    }

    /// Returns the value of the key `name` of a mapping, or `None` if the mapping lacks that key.
    /// Ignores entries from merge keys.
    fn value(&mut self, mapping: NodeIndex, name: &str) -> Result<Option<NodeIndex>> {
        let entries = self.document.pairs(mapping).map_or(1, <[_]>::len);
        self.entries_left =
            (self.entries_left.checked_sub(entries)).ok_or_else(too_many_entries)?;
        Ok(self.document.value(mapping, name))
    }

    fn parse_lengths(&self, node: NodeIndex) -> Result<Vec<u64>> {
        let bad = || self.corrupt(node, "shape or start is not a list of numbers");
        let items = self.document.items(node).ok_or_else(bad)?;
        Error::check_limit(items.len(), limits::RANK, "rank")?;
        let length = |&item: &NodeIndex| {
            let length = fields::integer(self.document, item)?;
            length
                .and_then(|length| u64::try_from(length).ok())
                .ok_or_else(bad)
        };
        items.iter().map(length).collect()
    }

    fn corrupt(&self, node: NodeIndex, what: &str) -> Error {
        fields::corrupt(self.document, node, what)
    }
}

fn too_many_entries() -> Error {
    let most = to_u64(limits::CHUNK_ENTRIES);
    Error::limit("entries of an array's chunks", most)
}
