//! The decoded elements of a variable, as bytes.

use crate::error::Result;
use crate::model::Datatype;
use crate::model::datatype::Class;
use crate::model::shape::product;
use crate::view::View;
use crate::view::cf::decoding::Decoding;
use crate::view::cf::variable::Variable;
use crate::view::converted::{Conversion, Converted};
use crate::view::elements::Elements;
use crate::view::framed::Framed;
use crate::view::npy;

/// The NumPy file of `variable`, or of a selection from it, the elements of which are `stored`;
/// `None` where NumPy has no such type.
///
/// # Errors
/// `Limit` where it has more bytes than a file can.
pub(crate) fn npy(variable: Variable, stored: Elements) -> Result<Option<Framed>> {
    let decoding = variable.decoding;
    let stored = decoding.joined(stored)?;
    let Some((descr, size)) = decoding.numpy_type(&stored.datatype) else {
        return Ok(None);
    };
    let Some(dims) = stored.dims else {
        return Ok(None);
    };
    let content: Box<dyn View> = match decoding.is_plain() {
        true => stored.content,
        false => Box::new(Converted {
            count: product(&dims)?,
            stored_size: stored.datatype.size.into(),
            size: size.into(),
            content: stored.content,
            conversion: decoding,
        }),
    };
    let class = Class::Opaque { tag: Vec::new() };
    let elements = Elements {
        datatype: Datatype { size, class },
        dims: Some(dims),
        content,
    };
    npy::of_type(&descr, elements)
}

/// Bytes of that file of the whole variable, without a look at its elements; `None` where there is
/// none.
///
/// # Errors
/// As [`npy`].
pub(crate) fn npy_length(variable: &Variable) -> Result<Option<u64>> {
    let dims = variable.array.shape.dims();
    let joined = variable
        .decoding
        .joined_type(&variable.array.datatype, dims)?;
    match variable.decoding.numpy_type(&joined) {
        Some((descr, size)) => npy::length_of_type(&descr, size, &variable.dims()),
        None => Ok(None),
    }
}

impl Conversion for Decoding {
    fn convert(&self, element: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.decode(element, out)
    }
}
