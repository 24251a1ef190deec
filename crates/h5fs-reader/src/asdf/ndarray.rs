//! ndarrays (schema `core/ndarray`): the conversion of a node of the tree to the description of an
//! array.
//!
//! The data may be in the tree (inline), in a block of this file, or in the first block of another
//! file. `offset` and `strides` count bytes of the decoded block.

use std::sync::Arc;

use crate::asdf::content::BlockContents;
use crate::asdf::datatype;
use crate::asdf::external::ExternalFiles;
use crate::asdf::fields::{self, Fields, MeteredDocument};
use crate::asdf::inline;
use crate::asdf::yaml::{NodeIndex, pointer};
use crate::error::{Error, Result};
use crate::limits;
use crate::model::array::{Array, Fill, Layout, Storage, StridedLayout};
use crate::model::datatype::{ByteOrder, Class, Datatype};
use crate::model::storage::Pipeline;
use crate::model::{Shape, shape};
use crate::wire::Count;

/// The description of a node with an ndarray's tag.
#[derive(Debug)]
pub(crate) struct Ndarray {
    /// The array. For an invalid node, an empty array whose storage is the error.
    pub(crate) array: Array,
    /// The block that contains the elements. `None` if the elements are in the tree, or if the
    /// block cannot be found.
    pub(crate) block: Option<DataBlock>,
}

/// The block that contains an ndarray's elements.
#[derive(Debug, Clone)]
pub(crate) enum DataBlock {
    /// A block of this file, by its index in the file's list of blocks.
    Internal(usize),
    /// The first block of another file.
    External(Arc<BlockContents>),
}

/// Returns whether a resolved tag denotes an ndarray, with any version or without a version.
pub(crate) fn is_ndarray_tag(tag: &str) -> bool {
    is_tag_of_schema("core/ndarray", tag)
}

/// Returns whether a resolved tag denotes the schema `name`, with any version or without a version.
pub(crate) fn is_tag_of_schema(name: &str, tag: &str) -> bool {
    let Some((before, version)) = tag.rsplit_once(name) else {
        return false;
    };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_version = match version.strip_prefix('-') {
        Some(version) => version.split('.').count() == 3 && version.split('.').all(is_number),
        None => version.is_empty(),
    };
    is_version && (before.is_empty() || before.ends_with('/'))
}

/// Describes the ndarray at `node`. Damage becomes an error of the array's storage.
pub(crate) fn describe(
    document: MeteredDocument<'_>,
    contents: &BlockContents,
    externals: &ExternalFiles,
    node: NodeIndex,
) -> Ndarray {
    let budget = fields::description_budget(document.budget());
    let document = MeteredDocument::new(&document, &budget);
    let mut block = None;
    let parser = Parser {
        document,
        contents,
        externals,
    };
    let array = parser.array(node, &mut block);
    Ndarray {
        array: array.unwrap_or_else(|error| damaged(Layout::Block, error)),
        block,
    }
}

/// Returns the dimensions of the ndarray at `node`, and whether its elements are in the tree. Does
/// not convert elements in the tree.
///
/// # Errors
/// Fails if the array of [`describe`] would have an error as its storage, except for errors of
/// elements in the tree.
pub(crate) fn extent(
    document: MeteredDocument<'_>,
    contents: &BlockContents,
    externals: &ExternalFiles,
    node: NodeIndex,
) -> Result<(Vec<u64>, bool)> {
    let budget = fields::description_budget(document.budget());
    let document = MeteredDocument::new(&document, &budget);
    let parser = Parser {
        document,
        contents,
        externals,
    };
    match parser.elements(node)? {
        NdarrayElements::Inline(inline) => Ok((parser.inline_dims(&inline)?, true)),
        NdarrayElements::Stored(fields, source) => {
            let array = parser.block_array(&fields, source, &mut None)?;
            array.storage?;
            Ok((array.shape.dims().to_vec(), false))
        }
    }
}

/// Returns the block that contains the elements of the ndarray at `node`. Returns `None` if they
/// are in the tree.
///
/// # Errors
/// Fails if the block does not exist, or if its file cannot be opened.
pub(crate) fn data_block(
    document: MeteredDocument<'_>,
    contents: &BlockContents,
    externals: &ExternalFiles,
    node: NodeIndex,
) -> Result<Option<DataBlock>> {
    if document.items(node).is_some() {
        return Ok(None);
    }
    let parser = Parser {
        document,
        contents,
        externals,
    };
    let source = Fields::new(document, node)?.get("source");
    source.map(|source| parser.data_block(source)).transpose()
}

/// Returns an array of one byte for each element of the inline ndarray at `node`, which `array`
/// describes: 1 if the element is null. Returns `None` if no element is null, or if the elements
/// are not in the tree.
///
/// # Errors
/// Fails if the data is damaged.
pub(crate) fn null_flags(
    document: MeteredDocument<'_>,
    node: NodeIndex,
    array: &Array,
) -> Result<Option<Array>> {
    let budget = fields::description_budget(document.budget());
    let document = MeteredDocument::new(&document, &budget);
    let data = match document.items(node) {
        Some(_) => Some(node),
        None => Fields::new(document, node)?.get("data"),
    };
    let (Some(data), Layout::Inline) = (data, array.layout) else {
        return Ok(None);
    };
    let dims = array.shape.dims();
    let Some(nulls) = inline::null_flags(document, data, dims)? else {
        return Ok(None);
    };
    Ok(Some(Array {
        datatype: Datatype::integer(1, false, ByteOrder::Little),
        shape: Shape::fixed(dims.to_vec()),
        fill: Fill::Zero,
        layout: Layout::Inline,
        chunk_shape: None,
        pipeline: Pipeline::default(),
        storage: Ok(Storage::Inline(nulls.into())),
    }))
}

/// Returns the name of the other file to which an ndarray's `source` refers. Returns `None` if the
/// `source` refers to a block of this file.
fn external_name(document: MeteredDocument<'_>, source: NodeIndex) -> Option<Vec<u8>> {
    let uri = document.text(source).filter(|_| document.is_text(source))?;
    let file = uri.strip_suffix('#').unwrap_or(uri);
    (!file.is_empty()).then(|| pointer::file_name(file))
}

fn damaged(layout: Layout, error: Error) -> Array {
    Array {
        datatype: Datatype {
            size: 1,
            class: Class::Opaque { tag: Vec::new() },
        },
        shape: Shape::fixed(vec![0]),
        fill: Fill::Zero,
        layout,
        chunk_shape: None,
        pipeline: Pipeline::default(),
        storage: Err(error),
    }
}

struct Parser<'a> {
    document: MeteredDocument<'a>,
    contents: &'a BlockContents,
    externals: &'a ExternalFiles,
}

/// The length of a dimension.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DimensionLength {
    Fixed(u64),
    /// `*`: the length follows from the block.
    Open,
}

/// The location of an ndarray's elements.
enum NdarrayElements<'a> {
    Stored(Fields<'a>, NodeIndex),
    Inline(InlineData),
}

/// An ndarray whose elements are in the tree.
struct InlineData {
    data: NodeIndex,
    datatype: Option<Datatype>,
    shape: Option<NodeIndex>,
    order: ByteOrder,
}

impl<'a> Parser<'a> {
    fn array(&self, node: NodeIndex, block: &mut Option<DataBlock>) -> Result<Array> {
        match self.elements(node)? {
            NdarrayElements::Inline(inline) => self.inline_array(inline),
            NdarrayElements::Stored(fields, source) => self.block_array(&fields, source, block),
        }
    }

    fn elements(&self, node: NodeIndex) -> Result<NdarrayElements<'a>> {
        if self.document.items(node).is_some() {
            return Ok(NdarrayElements::Inline(InlineData {
                data: node,
                datatype: None,
                shape: None,
                order: ByteOrder::Little,
            }));
        }
        let fields = Fields::new(self.document, node)?;
        match (fields.get("source"), fields.get("data")) {
            (Some(source), None) => Ok(NdarrayElements::Stored(fields, source)),
            (None, Some(data)) => {
                if self.document.items(data).is_none() {
                    return Err(self.corrupt(data, "inline data is not a list"));
                }
                let order = match fields.get("byteorder") {
                    Some(order) => datatype::byte_order(self.document, order)?,
                    None => ByteOrder::Little,
                };
                let datatype = fields.get("datatype");
                let datatype =
                    datatype.map(|datatype| datatype::parse(self.document, datatype, order));
                Ok(NdarrayElements::Inline(InlineData {
                    data,
                    datatype: datatype.transpose()?,
                    shape: fields.get("shape"),
                    order,
                }))
            }
            (Some(_), Some(_)) => Err(self.corrupt(node, "both source and data")),
            (None, None) => Err(self.corrupt(node, "neither source nor data")),
        }
    }

    fn inline_array(&self, array: InlineData) -> Result<Array> {
        let inline = inline::read(self.document, array.data, array.datatype, array.order)?;
        Ok(Array {
            datatype: inline.datatype,
            shape: Shape::fixed(self.inline_shape(array.shape, inline.dims)?),
            fill: Fill::Zero,
            layout: Layout::Inline,
            chunk_shape: None,
            pipeline: Pipeline::default(),
            storage: Ok(Storage::Inline(inline.bytes.into())),
        })
    }

    fn inline_dims(&self, array: &InlineData) -> Result<Vec<u64>> {
        let dims = inline::extent(self.document, array.data, array.datatype.as_ref())?;
        self.inline_shape(array.shape, dims)
    }

    /// Returns the dimensions of inline data, `dims`, after a comparison with the declared `shape`.
    /// For an empty array, returns the declared dimensions, because empty lists cannot show all
    /// dimensions.
    fn inline_shape(&self, shape: Option<NodeIndex>, dims: Vec<u64>) -> Result<Vec<u64>> {
        let Some(shape) = shape else {
            return Ok(dims);
        };
        let declared = self.shape(shape)?;
        let fits = |(declared, &dim): (&DimensionLength, &u64)| match declared {
            DimensionLength::Fixed(length) => *length == dim,
            DimensionLength::Open => true,
        };
        if declared.len() == dims.len() && declared.iter().zip(&dims).all(fits) {
            return Ok(dims);
        }
        let declared = fixed_lengths(&declared);
        match declared {
            Some(declared) if dims.contains(&0) && declared.contains(&0) => Ok(declared),
            _ => Err(self.corrupt(shape, "inline data has another shape")),
        }
    }

    fn block_array(
        &self,
        fields: &Fields<'_>,
        source: NodeIndex,
        block: &mut Option<DataBlock>,
    ) -> Result<Array> {
        let order = datatype::byte_order(self.document, fields.required("byteorder")?)?;
        let datatype = match fields.get("datatype") {
            Some(datatype) => datatype::parse(self.document, datatype, order)?,
            // NumPy's default, which the reference library uses.
            None => Datatype::ieee(8, order),
        };
        let lengths = self.shape(fields.required("shape")?)?;
        let offset = match fields.get("offset") {
            Some(offset) => self.unsigned(offset, "offset")?,
            None => 0,
        };
        let strides = fields.get("strides");
        let strides = strides.map(|strides| self.strides(strides, lengths.len()));
        let view = BlockView {
            datatype,
            lengths,
            offset,
            strides: strides.transpose()?,
        };
        let layout = match external_name(self.document, source) {
            Some(_) => Layout::External,
            None => Layout::Block,
        };
        let array = self
            .data_block(source)
            .and_then(|found| match block.insert(found) {
                DataBlock::Internal(place) => view.array_over(self.contents, *place, layout),
                DataBlock::External(other) => view.array_over(other, 0, layout),
            });
        Ok(array.unwrap_or_else(|error| view.unreadable(layout, error)))
    }

    /// Returns the block to which an ndarray's `source` refers.
    fn data_block(&self, source: NodeIndex) -> Result<DataBlock> {
        fields::charge_node(self.document, source)?;
        match external_name(self.document, source) {
            Some(file) => {
                let contents = self.externals.open(&file, self.document.budget());
                contents.map(DataBlock::External)
            }
            None => self.block_index(source).map(DataBlock::Internal),
        }
    }

    /// Returns the index in this file's list of blocks for a `source` that is an integer or an
    /// empty URI. An empty URI refers to the first block.
    fn block_index(&self, source: NodeIndex) -> Result<usize> {
        let at = self.document.file_offset(source);
        if self.document.is_text(source) {
            return self.contents.blocks().list_index(0, at);
        }
        let number = fields::integer(self.document, source)?;
        let number = number.ok_or_else(|| self.corrupt(source, "source"))?;
        self.contents.blocks().list_index(number, at)
    }

    fn shape(&self, node: NodeIndex) -> Result<Vec<DimensionLength>> {
        let items = self.document.items(node);
        let items = items.ok_or_else(|| self.corrupt(node, "shape is not a list"))?;
        Error::check_limit(items.len(), limits::RANK, "rank")?;
        let length = |(place, &item): (usize, &NodeIndex)| match self.document.text(item) {
            Some("*") if place == 0 => Ok(DimensionLength::Open),
            _ => self.unsigned(item, "shape").map(DimensionLength::Fixed),
        };
        items.iter().enumerate().map(length).collect()
    }

    fn strides(&self, node: NodeIndex, rank: usize) -> Result<Vec<i64>> {
        let bad = || self.corrupt(node, "strides");
        let items = self.document.items(node).ok_or_else(bad)?;
        if items.len() != rank {
            return Err(bad());
        }
        let stride = |&item: &NodeIndex| {
            let stride = fields::integer(self.document, item)?;
            stride
                .and_then(|stride| i64::try_from(stride).ok())
                .ok_or_else(bad)
        };
        items.iter().map(stride).collect()
    }

    fn unsigned(&self, node: NodeIndex, what: &str) -> Result<u64> {
        let number = fields::integer(self.document, node)?;
        let number = number.and_then(|number| u64::try_from(number).ok());
        number.ok_or_else(|| self.corrupt(node, what))
    }

    fn corrupt(&self, node: NodeIndex, what: &str) -> Error {
        fields::corrupt(self.document, node, what)
    }
}

/// Returns the lengths of the dimensions, or `None` if one of them is open.
fn fixed_lengths(lengths: &[DimensionLength]) -> Option<Vec<u64>> {
    let fixed = |length: &DimensionLength| match length {
        DimensionLength::Fixed(length) => Some(*length),
        DimensionLength::Open => None,
    };
    lengths.iter().map(fixed).collect()
}

/// The fields by which an ndarray selects bytes of a block.
struct BlockView {
    datatype: Datatype,
    lengths: Vec<DimensionLength>,
    offset: u64,
    strides: Option<Vec<i64>>,
}

impl BlockView {
    /// Returns the array whose elements are in the block with the index `place` of `contents`.
    fn array_over(&self, contents: &BlockContents, place: usize, layout: Layout) -> Result<Array> {
        let block = contents.block(place)?;
        let size = block.content_length()?;
        let dims = self.dims(size)?;
        let storage = self.storage(contents, place, &dims);
        Ok(self.array(self.shape(&dims), layout, storage))
    }

    fn storage(&self, contents: &BlockContents, place: usize, dims: &[u64]) -> Result<Storage> {
        let block = contents.block(place)?;
        let bytes = shape::product(dims)?.checked_mul(u64::from(self.datatype.size));
        let bytes = bytes.ok_or_else(too_large)?;
        if bytes == 0 {
            return Ok(Storage::Empty);
        }
        let strides = self.strides_for(dims)?;
        self.check_bounds(dims, &strides, block.content_length()?, block.header_offset)?;
        let run = self.contiguous_bytes(dims, &strides)?;
        if block.is_plain() && run == bytes {
            let extent = contents.extent(&block, self.offset, bytes)?;
            return Ok(Storage::Extents(vec![extent]));
        }
        let base = contents.array(place)?;
        base.storage.as_ref().map_err(Clone::clone)?;
        Ok(Storage::Strided(StridedLayout {
            base,
            offset: self.offset,
            strides,
        }))
    }

    /// Returns the number of bytes that lie without gaps in the block: the product of the element
    /// size and the fastest dimensions with contiguous strides. The stride of a dimension with one
    /// element is ignored.
    fn contiguous_bytes(&self, dims: &[u64], strides: &[i64]) -> Result<u64> {
        let packed = contiguous_strides(dims, self.datatype.size)?;
        let mut run = u64::from(self.datatype.size);
        for ((&dim, stride), packed) in dims.iter().zip(strides).zip(&packed).rev() {
            if dim != 1 && stride != packed {
                break;
            }
            run = run.checked_mul(dim).ok_or_else(too_large)?;
        }
        Ok(run)
    }

    /// Returns the lengths of the dimensions. The length of an open dimension follows from the
    /// block's length, `size` bytes. An incomplete last row is ignored.
    fn dims(&self, size: u64) -> Result<Vec<u64>> {
        let Some((DimensionLength::Open, inner)) = self.lengths.split_first() else {
            return Ok(fixed_lengths(&self.lengths).unwrap_or_default());
        };
        let inner = fixed_lengths(inner).unwrap_or_default();
        let row = match self.strides.as_ref().and_then(|strides| strides.first()) {
            Some(stride) => stride.unsigned_abs(),
            None => shape::product(&inner)?
                .checked_mul(u64::from(self.datatype.size))
                .ok_or_else(too_large)?,
        };
        let mut dims = vec![size.checked_div(row).unwrap_or(0)];
        dims.extend(inner);
        Ok(dims)
    }

    fn shape(&self, dims: &[u64]) -> Shape {
        let max = self
            .lengths
            .iter()
            .zip(dims)
            .map(|(length, &dim)| match length {
                DimensionLength::Fixed(_) => Some(dim),
                DimensionLength::Open => None,
            });
        Shape::Simple {
            dims: dims.to_vec(),
            max: max.collect(),
        }
    }

    /// Returns the strides that the ndarray states, or else the strides of contiguous elements in C
    /// order.
    fn strides_for(&self, dims: &[u64]) -> Result<Vec<i64>> {
        match &self.strides {
            Some(strides) => Ok(strides.clone()),
            None => contiguous_strides(dims, self.datatype.size),
        }
    }

    /// Checks that every element lies within the block's `size` bytes.
    fn check_bounds(&self, dims: &[u64], strides: &[i64], size: u64, at: u64) -> Result<()> {
        let offset = i128::from(self.offset);
        let widen = |(low, high): (i128, i128), (&dim, &stride): (&u64, &i64)| {
            let reach = i128::from(dim.minus_or_zero(1)).checked_mul(i128::from(stride))?;
            Some((
                low.checked_add(reach.min(0))?,
                high.checked_add(reach.max(0))?,
            ))
        };
        let bounds = dims.iter().zip(strides).try_fold((offset, offset), widen);
        let end = bounds
            .filter(|(low, _)| *low >= 0)
            .and_then(|(_, high)| high.checked_add(i128::from(self.datatype.size)));
        if end.is_none_or(|end| end > i128::from(size)) {
            return Err(Error::corrupt("ndarray: it reaches past its block", at));
        }
        Ok(())
    }

    fn array(&self, shape: Shape, layout: Layout, storage: Result<Storage>) -> Array {
        Array {
            datatype: self.datatype.clone(),
            shape,
            fill: Fill::Zero,
            layout,
            chunk_shape: None,
            pipeline: Pipeline::default(),
            storage,
        }
    }

    /// Returns an array with the properties that are known without its block. `error` replaces the
    /// array's storage.
    fn unreadable(&self, layout: Layout, error: Error) -> Array {
        let dims = self.lengths.iter().map(|length| match length {
            DimensionLength::Fixed(length) => *length,
            DimensionLength::Open => 0,
        });
        let dims: Vec<u64> = dims.collect();
        self.array(self.shape(&dims), layout, Err(error))
    }
}

fn too_large() -> Error {
    Error::limit("size of an array", u64::MAX)
}

/// Returns the strides, in bytes, of contiguous elements of `size` bytes in C order.
fn contiguous_strides(dims: &[u64], size: u32) -> Result<Vec<i64>> {
    let too_large = || Error::limit("size of an array", i64::MAX.unsigned_abs());
    let mut stride = i64::from(size);
    let mut strides = Vec::with_capacity(dims.len());
    for &dim in dims.iter().rev() {
        strides.push(stride);
        let dim = i64::try_from(dim).map_err(|_| too_large())?;
        stride = stride.checked_mul(dim).ok_or_else(too_large)?;
    }
    strides.reverse();
    Ok(strides)
}
