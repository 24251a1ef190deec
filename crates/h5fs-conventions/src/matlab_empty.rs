//! Empty MATLAB arrays, in the HDF5 files that MATLAB 7.3 and later write.
//!
//! MATLAB stores an array without elements as a dataset of the array's dimensions: unsigned
//! integers in MATLAB's order. The attribute `MATLAB_empty` marks such a dataset. The views show
//! the empty array instead, with its dimensions reversed, because HDF5 has the dimensions of all
//! MATLAB arrays in reverse order.

use std::sync::Arc;

use h5fs_reader::array::{Engine, Reader};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::array::{Array, Fill, Storage};
use h5fs_reader::model::datatype::{ByteOrder, Class, ReferenceKind};
use h5fs_reader::model::storage::Pipeline;
use h5fs_reader::model::{Container, Datatype, Node, NodeId, Shape, attribute_value};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::limits;

/// Returns a node for the empty array that `node` represents. Such a node stores only the
/// dimensions of an empty MATLAB array. Returns `None` for any other node.
///
/// # Errors
/// `Corrupt` if none of the dimensions is zero. Fails if an attribute or the dimensions cannot be
/// read.
pub fn empty_array_node(
    container: &dyn Container,
    engine: &Arc<Engine>,
    node: &Node,
) -> Result<Option<Arc<Node>>> {
    let Some(array) = node.array().filter(|array| may_be_dimensions(array)) else {
        return Ok(None);
    };
    if !has_matlab_empty_attribute(container, node.id)? {
        return Ok(None);
    }
    let class = attribute_value::attribute_text(container, node.id, b"MATLAB_class")?;
    let datatype = class.and_then(|class| class_datatype(&class));
    let empty = Array {
        datatype: datatype.unwrap_or_else(|| array.datatype.clone()),
        shape: Shape::fixed(read_dimensions(engine, array)?),
        fill: Fill::Zero,
        layout: array.layout,
        chunk_shape: None,
        pipeline: Pipeline::default(),
        storage: Ok(Storage::Empty),
    };
    Ok(Some(Arc::new(node.with_array(Arc::new(empty)))))
}

/// Returns whether the attribute `MATLAB_empty` says that the dataset has only the dimensions of an
/// empty array.
///
/// # Errors
/// Fails if the attribute cannot be read.
pub fn has_matlab_empty_attribute(container: &dyn Container, node: NodeId) -> Result<bool> {
    let empty = attribute_value::attribute_integers(container, node, b"MATLAB_empty")?;
    Ok(empty.is_some_and(|empty| empty.iter().any(|&value| value != 0)))
}

/// Converts the `stored` dimensions, in MATLAB's order, to HDF5's order. Returns `None` if they are
/// not the dimensions of an empty array.
pub fn to_hdf5_order(datatype: &Datatype, stored: &[u8]) -> Option<Vec<u64>> {
    let dims = attribute_value::decode_integers(datatype, stored)?;
    let dims = dims.iter().rev().map(|&dim| u64::try_from(dim).ok());
    let dims: Option<Vec<u64>> = dims.collect();
    dims.filter(|dims| dims.contains(&0))
}

/// Returns whether an array's datatype and shape allow that its elements are the dimensions of an
/// empty array.
fn may_be_dimensions(array: &Array) -> bool {
    let is_unsigned = matches!(array.datatype.class, Class::Integer { signed: false, .. });
    let is_short = matches!(array.shape.dims(), &[rank] if rank <= to_u64(limits::RANK));
    is_unsigned && is_short
}

fn read_dimensions(engine: &Arc<Engine>, array: &Arc<Array>) -> Result<Vec<u64>> {
    let reader = Reader::new(engine, Arc::clone(array))?;
    let stored = reader.read(0, to_usize(array.byte_length()?)?)?;
    to_hdf5_order(&array.datatype, &stored).ok_or_else(|| {
        let what = "MATLAB array: not empty, although its attribute says so";
        Error::corrupt(what, None)
    })
}

/// Returns the datatype in which MATLAB stores elements of the MATLAB class `class`. Returns `None`
/// for classes without a datatype of their own, such as structures.
fn class_datatype(class: &[u8]) -> Option<Datatype> {
    let order = ByteOrder::Little;
    let integer = |size, signed| Some(Datatype::integer(size, signed, order));
    match class {
        b"double" => Some(Datatype::ieee(8, order)),
        b"single" => Some(Datatype::ieee(4, order)),
        b"int8" => integer(1, true),
        b"int16" => integer(2, true),
        b"int32" => integer(4, true),
        b"int64" => integer(8, true),
        b"uint8" | b"logical" => integer(1, false),
        b"uint16" | b"char" => integer(2, false),
        b"uint32" => integer(4, false),
        b"uint64" => integer(8, false),
        b"cell" => Some(Datatype {
            size: 8,
            class: Class::Reference(ReferenceKind::Object),
        }),
        _ => None,
    }
}
