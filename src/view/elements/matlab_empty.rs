//! MATLAB's arrays without elements, in the files that MATLAB 7.3 and later write.
//!
//! HDF5 files of MATLAB have no dataset without elements: such an array is stored as its dimensions,
//! unsigned integers in MATLAB's order, and the attribute `MATLAB_empty` says so. The views show the
//! array: no elements, and the dimensions in reverse, as those of all MATLAB's arrays are in HDF5.

use std::sync::Arc;

use crate::array::{Engine, Reader};
use crate::error::{Error, Result};
use crate::limits;
use crate::model::array::{Array, Fill, Storage};
use crate::model::datatype::{ByteOrder, Class, ReferenceKind};
use crate::model::storage::Pipeline;
use crate::model::{Container, Datatype, Node, NodeId, Shape, attribute_value};
use crate::wire::{to_u64, to_usize};

/// The node with the array that MATLAB means, where `node` holds the dimensions of one without
/// elements; `None` of any other.
///
/// # Errors
/// `Corrupt` for dimensions without a zero; fails if that cannot be found out now.
pub(crate) fn meant(
    container: &dyn Container,
    engine: &Arc<Engine>,
    node: &Node,
) -> Result<Option<Arc<Node>>> {
    let Some(array) = node.array().filter(|array| may_be_dimensions(array)) else {
        return Ok(None);
    };
    if !is_empty(container, node.id)? {
        return Ok(None);
    }
    let class = attribute_value::text(container, node.id, b"MATLAB_class")?;
    let datatype = class.and_then(|class| datatype(&class));
    let empty = Array {
        datatype: datatype.unwrap_or_else(|| array.datatype.clone()),
        shape: Shape::fixed(dimensions(engine, array)?),
        fill: Fill::Zero,
        layout: array.layout,
        chunk_shape: None,
        pipeline: Pipeline::default(),
        storage: Ok(Storage::Empty),
    };
    Ok(Some(Arc::new(node.with_array(Arc::new(empty)))))
}

/// Whether MATLAB says that an array has no elements, and is stored as its dimensions.
///
/// # Errors
/// Fails if that cannot be found out now.
pub(super) fn is_empty(container: &dyn Container, node: NodeId) -> Result<bool> {
    let empty = attribute_value::integers(container, node, b"MATLAB_empty")?;
    Ok(empty.is_some_and(|empty| empty.iter().any(|&value| value != 0)))
}

/// The dimensions, as HDF5 has those of MATLAB's arrays, of which MATLAB's are `stored`; `None` where
/// they are no dimensions of an array without elements.
pub(super) fn reversed(datatype: &Datatype, stored: &[u8]) -> Option<Vec<u64>> {
    let dims = attribute_value::numbers(datatype, stored)?;
    let dims = dims.iter().rev().map(|&dim| u64::try_from(dim).ok());
    let dims: Option<Vec<u64>> = dims.collect();
    dims.filter(|dims| dims.contains(&0))
}

/// Whether an array may hold dimensions, as far as its type tells.
fn may_be_dimensions(array: &Array) -> bool {
    let is_unsigned = matches!(array.datatype.class, Class::Integer { signed: false, .. });
    let is_short = matches!(array.shape.dims(), &[rank] if rank <= to_u64(limits::RANK));
    is_unsigned && is_short
}

fn dimensions(engine: &Arc<Engine>, array: &Arc<Array>) -> Result<Vec<u64>> {
    let reader = Reader::new(engine, Arc::clone(array))?;
    let stored = reader.read(0, to_usize(array.bytes()?)?)?;
    reversed(&array.datatype, &stored).ok_or_else(|| {
        let what = "array of MATLAB's: not empty, as its attribute says";
        Error::corrupt(what, None)
    })
}

/// The type in which MATLAB stores the elements of a class; `None` of a class whose elements have no
/// type of their own, as those of structures.
fn datatype(class: &[u8]) -> Option<Datatype> {
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
