//! The attributes that define the meaning of a variable's elements.

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::attribute_value::{attribute_content, attribute_text, with_attribute_name};
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::{Container, NodeId};
use h5fs_reader::wire::to_usize;

use crate::limits;
use crate::packing::{Factor, PackingAttributes};
use crate::stored_type::{ExactNumber, StoredType};
use crate::time::TimeUnits;

/// Reads the attributes that define how the numbers of the variable `node` are packed, such as
/// `scale_factor` and `_FillValue`.
///
/// # Errors
/// `Unsupported` for a scale or an offset that is not one number, and for other attributes that are
/// neither numbers nor texts; `Limit` for an attribute with more than `limits::MISSING_VALUES`
/// numbers. Fails if an attribute cannot be read.
pub fn read_packing(container: &dyn Container, node: NodeId) -> Result<PackingAttributes> {
    let numbers = |name: &[u8]| read_numbers(container, node, name);
    let one = |name: &[u8]| {
        Ok(numbers(name)?
            .filter(|found| found.len() == 1)
            .map(|found| found[0]))
    };
    let (mut valid_min, mut valid_max) = (one(b"valid_min")?, one(b"valid_max")?);
    if let Some([low, high]) = numbers(b"valid_range")?.as_deref() {
        (valid_min, valid_max) = (Some(*low), Some(*high));
    }
    let mut missing = numbers(b"_FillValue")?.unwrap_or_default();
    missing.extend(numbers(b"missing_value")?.unwrap_or_default());
    let unsigned = attribute_text(container, node, b"_Unsigned")?;
    Ok(PackingAttributes {
        scale_factor: read_factor(container, node, b"scale_factor")?,
        add_offset: read_factor(container, node, b"add_offset")?,
        missing,
        valid_min,
        valid_max,
        unsigned: match unsigned.as_deref() {
            Some(b"true" | b"True") => Some(true),
            Some(b"false" | b"False") => Some(false),
            _ => None,
        },
    })
}

/// Reads the attributes `units` and `calendar` of the variable `node`. Returns `None` if they do
/// not describe times.
///
/// # Errors
/// Fails if an attribute cannot be read.
pub fn read_time_units(container: &dyn Container, node: NodeId) -> Result<Option<TimeUnits>> {
    let Some(units) = attribute_text(container, node, b"units")? else {
        return Ok(None);
    };
    let calendar = attribute_text(container, node, b"calendar")?;
    Ok(TimeUnits::parse(&units, calendar.as_deref()))
}

/// Reads `scale_factor` or `add_offset`, as `name` says. Returns `None` if the attribute is absent.
fn read_factor(container: &dyn Container, node: NodeId, name: &[u8]) -> Result<Option<Factor>> {
    let Some(content) = attribute_content(container, node, name)? else {
        return Ok(None);
    };
    let stored = StoredType::new(&content.datatype);
    let (Some(stored), Ok(1)) = (stored, content.shape.elements()) else {
        let name = String::from_utf8_lossy(name);
        return Err(Error::unsupported(
            format!("cf: a {name} that is not a single number"),
            None,
        ));
    };
    Ok(Some(Factor {
        number: stored.read_number(&content.elements),
        stored,
    }))
}

/// Reads the numbers of an attribute. Returns `None` if the attribute is absent, or is a text.
/// Readers ignore a text in place of a number.
fn read_numbers(
    container: &dyn Container,
    node: NodeId,
    name: &[u8],
) -> Result<Option<Vec<ExactNumber>>> {
    let Some(content) = attribute_content(container, node, name)? else {
        return Ok(None);
    };
    let stored = match (StoredType::new(&content.datatype), &content.datatype.class) {
        (Some(stored), _) => stored,
        (None, Class::String { .. } | Class::VariableString { .. }) => return Ok(None),
        _ => {
            let what = Error::unsupported("a type without arithmetic", None);
            return Err(with_attribute_name(what, name));
        }
    };
    let size = to_usize(stored.size().into())?;
    let elements = content.elements.chunks_exact(size.max(1));
    Error::check_limit(
        elements.len(),
        limits::MISSING_VALUES,
        "cf: values that stand for missing ones",
    )?;
    Ok(Some(
        elements
            .map(|element| stored.read_number(element))
            .collect(),
    ))
}
