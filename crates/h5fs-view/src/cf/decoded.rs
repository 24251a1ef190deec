//! Views with the decoded elements of a variable: bytes, and NumPy files.

use h5fs_conventions::dimensions::PathFinder;
use h5fs_conventions::packing::Packing;
use h5fs_conventions::time::TimeUnits;
use h5fs_reader::error::Result;
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::shape::product;
use h5fs_reader::model::{Container, Datatype, Node};

use crate::cf::decoding::Decoding;
use crate::cf::variable::Variable;
use crate::elements::Elements;
use crate::elements::converted::{Conversion, ConvertedElements};
use crate::elements::normal::normalize;
use crate::framed::FramedFile;
use crate::npy;
use crate::view::View;

/// Decodes the `stored` elements of an array to numbers. Numbers are scaled, and missing numbers
/// are NaN. Elements without CF attributes are unchanged.
///
/// # Errors
/// Fails if an attribute cannot be used or read.
pub(crate) fn decode_numbers(
    container: &dyn Container,
    node: &Node,
    path: &PathFinder<'_>,
    stored: Elements,
) -> Result<Elements> {
    let variable = Variable::from_node(container, node, path)?;
    match variable.map(|variable| variable.decoding) {
        Some(Decoding::Numbers(packing)) => unpack_elements(packing, stored),
        _ => Ok(stored),
    }
}

/// Like [`decode_numbers`], for elements that may be times. Times are returned as numbers (scaled,
/// but not converted to dates), together with their units.
///
/// # Errors
/// Fails as [`decode_numbers`] does.
pub(crate) fn decode_numbers_or_times(
    container: &dyn Container,
    node: &Node,
    path: &PathFinder<'_>,
    stored: Elements,
) -> Result<(Elements, Option<TimeUnits>)> {
    let variable = Variable::from_node(container, node, path)?;
    match variable.map(|variable| variable.decoding) {
        Some(Decoding::Numbers(packing)) => Ok((unpack_elements(packing, stored)?, None)),
        Some(Decoding::Times(packing, units)) => {
            Ok((unpack_elements(packing, stored)?, Some(units)))
        }
        _ => Ok((stored, None)),
    }
}

/// Returns the rule that decodes the numbers of the array `node` by the CF conventions. Returns
/// `None` if the decoded numbers are the stored ones.
///
/// # Errors
/// Fails if an attribute cannot be used or read.
pub(crate) fn number_decoding(
    container: &dyn Container,
    node: &Node,
    path: &PathFinder<'_>,
) -> Result<Option<Decoding>> {
    let variable = Variable::from_node(container, node, path)?;
    let decoding = variable.map(|variable| variable.decoding);
    Ok(decoding.filter(|decoding| !decoding.is_identity()))
}

fn unpack_elements(packing: Packing, stored: Elements) -> Result<Elements> {
    if packing.is_identity() {
        return Ok(stored);
    }
    let datatype = packing.datatype();
    Ok(Elements {
        dims: stored.dims.clone(),
        content: decoded_view(Decoding::Numbers(packing), stored, datatype.size)?,
        datatype,
    })
}

/// Creates the NumPy file of `variable`, or of a selection from it. `stored` are the selected
/// elements. Returns `None` if NumPy does not have the datatype.
///
/// # Errors
/// `Limit` if the file is longer than any file can be.
pub fn npy_file(variable: Variable, stored: Elements) -> Result<Option<FramedFile>> {
    let decoding = variable.decoding;
    let stored = normalize(decoding.join_characters(stored)?)?;
    let Some((descr, size)) = decoding.numpy_type(&stored.datatype) else {
        return Ok(None);
    };
    let Some(dims) = stored.dims.clone() else {
        return Ok(None);
    };
    let content: Box<dyn View> = if decoding.is_identity() {
        stored.content
    } else {
        decoded_view(decoding, stored, size)?
    };
    let class = Class::Opaque { tag: Vec::new() };
    let elements = Elements {
        datatype: Datatype { size, class },
        dims: Some(dims),
        content,
    };
    npy::file_of_type(&descr, elements)
}

/// Returns a view of the decoded elements. Each has `size` bytes.
fn decoded_view(decoding: Decoding, stored: Elements, size: u32) -> Result<Box<dyn View>> {
    Ok(Box::new(ConvertedElements {
        count: product(stored.dims.as_deref().unwrap_or_default())?,
        stored_size: stored.datatype.size.into(),
        size: size.into(),
        content: stored.content,
        conversion: decoding,
    }))
}

/// Returns the length in bytes of the NumPy file of the whole variable, without reading its
/// elements; `None` if the variable does not have a NumPy file.
///
/// # Errors
/// Fails as [`npy_file`] does.
pub fn npy_length(variable: &Variable) -> Result<Option<u64>> {
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
