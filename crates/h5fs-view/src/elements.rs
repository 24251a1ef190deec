//! The elements of an array as the views use them: a datatype, dimensions and bytes.

pub mod converted;
pub(crate) mod long_elements;
pub mod missing;
pub(crate) mod normal;
pub mod part;
pub mod raw;
pub mod references;
mod selected;
pub mod strings;
pub mod variable_length;

use std::sync::Arc;

use h5fs_reader::array::{Bytes, CancelToken, Reader};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::{Class, Member};
use h5fs_reader::model::selection::Selection;
use h5fs_reader::model::{Datatype, Shape};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::elements::raw::RawElements;
use crate::limits;
use crate::view::View;

/// The elements of an array, or of a selection from an array, arranged as in NumPy. If an element
/// is itself an array, its dimensions follow the dimensions of the outer array.
pub struct Elements {
    /// The datatype of one element; never an array.
    pub datatype: Datatype,
    /// The dimensions, slowest first; `None` for a null dataspace.
    pub dims: Option<Vec<u64>>,
    /// The bytes of the elements in C order.
    pub content: Box<dyn View>,
}

impl Elements {
    /// Returns all elements of the array of `reader`.
    ///
    /// # Errors
    /// `Limit` for an array that is longer than any file can be.
    pub fn from_reader(reader: Arc<Reader>) -> Result<Self> {
        let array = reader.array();
        let (datatype, dims) = element_type(&array.datatype, &array.shape)?;
        Ok(Elements {
            datatype,
            dims,
            content: Box::new(RawElements::new(reader)),
        })
    }

    /// Reads exactly `count` elements, starting at element `first`, and returns their bytes.
    ///
    /// # Errors
    /// Fails if the elements cannot be read. [`Error::cancelled`] once the request is cancelled.
    pub(super) fn read(&self, first: u64, count: u64, cancel: &CancelToken) -> Result<Bytes> {
        let size = u64::from(self.datatype.size);
        let length = to_usize(count.saturating_mul(size))?;
        // A loop may read many small parts from memory, where no read checks the token.
        cancel.check_cancelled()?;
        let start = first.saturating_mul(size);
        let bytes = self.content.read_for(start, length, cancel)?;
        if bytes.len() == length {
            Ok(bytes)
        } else {
            Err(Error::corrupt("array: fewer elements than its shape", None))
        }
    }

    /// Returns the memory in bytes of the datatype, plus an estimate for `tables` lists with one
    /// entry for each part of the datatype.
    pub(super) fn estimate_memory(&self, tables: u64) -> u64 {
        let datatype = self.datatype.weight();
        datatype.saturating_mul(tables.saturating_add(1))
    }

    /// Returns the number of elements to read at a time: as many as fit in 64 KiB, but at least
    /// one.
    pub(super) fn batch_elements(&self) -> u64 {
        const BUFFER: u64 = 64 << 10;
        (BUFFER / u64::from(self.datatype.size.max(1))).max(1)
    }
}

/// Splits a datatype into the datatype of one element, which is not an array, and the dimensions.
/// The dimensions of array elements follow the dimensions of `shape`. They are `None` for a null
/// dataspace.
///
/// # Errors
/// `Limit` for an array that is longer than any file can be.
pub fn element_type(datatype: &Datatype, shape: &Shape) -> Result<(Datatype, Option<Vec<u64>>)> {
    let all = Selection::all_elements(datatype, shape.dims())?;
    let dims = (*shape != Shape::Null).then(|| all.dims());
    Ok((all.datatype, dims))
}

/// Returns the cost of formatting an element of this datatype, in values. A pointer counts as
/// `POINTER` values, because following it takes longer.
pub fn formatting_cost(datatype: &Datatype) -> u64 {
    const POINTER: u64 = 8;
    match &datatype.class {
        Class::Compound(members) => {
            let values = members
                .iter()
                .map(|member| formatting_cost(&member.datatype));
            values.fold(0, u64::saturating_add)
        }
        Class::Array { base, dims } => {
            let dims = dims.iter().map(|&dim| u64::from(dim));
            dims.fold(formatting_cost(base), u64::saturating_mul)
        }
        Class::Complex(_) => 2,
        Class::VariableLength(_) | Class::VariableString { .. } | Class::Reference(_) => POINTER,
        _ => 1,
    }
}

/// Returns the cost of reading an element of `bytes` bytes, without formatting it. The unit is the
/// cost of formatting one value.
pub(crate) fn reading_cost(bytes: u64) -> u64 {
    bytes / limits::VALUE_BYTES
}

/// Returns the datatype with NumPy's boolean and complex types. In HDF5, h5py stores these as an
/// enumeration, and as a compound of two numbers.
pub(crate) fn numpy_datatype(datatype: &Datatype) -> Datatype {
    let class = match &datatype.class {
        _ if datatype.is_boolean() => Class::Bool,
        Class::Compound(members) => match datatype.complex_part() {
            // NumPy has complex numbers of single precision and more, but not of half precision.
            Some(part) if part.size > 2 => Class::Complex(Box::new(part.clone())),
            _ => Class::Compound(members.iter().map(numpy_member).collect()),
        },
        Class::Array { base, dims } => Class::Array {
            base: Box::new(numpy_datatype(base)),
            dims: dims.clone(),
        },
        class => class.clone(),
    };
    let size = datatype.size;
    Datatype { size, class }
}

fn numpy_member(member: &Member) -> Member {
    Member {
        datatype: numpy_datatype(&member.datatype),
        ..member.clone()
    }
}

/// Returns the range of bytes of `text` that lies within `range`. Both `start`, the offset of the
/// text, and `range` are offsets in the same content.
pub(super) fn overlapping_bytes(
    text: &[u8],
    start: u64,
    range: &std::ops::Range<u64>,
) -> std::ops::Range<usize> {
    let place = |at: u64| {
        let inside = at.saturating_sub(start).min(to_u64(text.len()));
        usize::try_from(inside).unwrap_or(text.len())
    };
    place(range.start)..place(range.end)
}

/// Returns the datatype of the innermost elements if `datatype` is an array of arrays; otherwise
/// `datatype` itself.
pub(crate) fn innermost_type(mut datatype: &Datatype) -> &Datatype {
    while let Class::Array { base, .. } = &datatype.class {
        datatype = base;
    }
    datatype
}
