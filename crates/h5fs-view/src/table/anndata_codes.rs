//! Categories of AnnData before version 0.6. `obs` and `var` are datasets of records, and
//! `uns/FIELD_categories` has the names of the codes in an integer field.
//!
//! As in anndata, a field with a code that has no name is left as numbers. The code -1 is a missing
//! value.

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::{ByteOrder, Class, Member};
use h5fs_reader::model::{Datatype, Node, NodeKind};
use h5fs_reader::wire::to_usize;

use crate::elements::Elements;
use crate::table::column::RowField;
use crate::table::group::{Group, node_field};

/// Returns `elements` with category names in place of codes, if `node` is the dataset `obs` or
/// `var` of the group `root`. Elements of any other dataset, and elements that are not complete
/// records, are returned unchanged.
///
/// # Errors
/// Fails if the names cannot be read.
pub fn replace_codes(root: &Group<'_>, node: &Node, elements: Elements) -> Result<Elements> {
    let Class::Compound(members) = &elements.datatype.class else {
        return Ok(elements);
    };
    let array = node.array();
    if !array.is_some_and(|array| array.datatype == elements.datatype) {
        return Ok(elements);
    }
    let (Some(names), Some(records)) = (find_names_group(root, node)?, RowField::from_node(node)?)
    else {
        return Ok(elements);
    };
    let mut members = members.clone();
    for member in &mut members {
        if let Some(datatype) = category_type(&names, &records, member)? {
            member.datatype = datatype;
        }
    }
    let datatype = Datatype {
        size: elements.datatype.size,
        class: Class::Compound(members),
    };
    Ok(Elements {
        datatype,
        ..elements
    })
}

/// Returns the group that contains the category names (`uns`); `None` if `node` is neither `obs`
/// nor `var`.
fn find_names_group<'a>(root: &Group<'a>, node: &Node) -> Result<Option<Group<'a>>> {
    let Some(uns) = root.find_member(b"uns")? else {
        return Ok(None);
    };
    for axis in [&b"obs"[..], b"var"] {
        let is_node = root
            .find_member(axis)?
            .is_some_and(|axis| axis.id == node.id);
        if is_node && matches!(uns.kind, NodeKind::Group) {
            return Ok(Some(root.group_at(uns.id)));
        }
    }
    Ok(None)
}

/// Returns the enumeration type for a field of codes that all have names; `None` for any other
/// field.
fn category_type(
    names: &Group<'_>,
    records: &RowField,
    member: &Member,
) -> Result<Option<Datatype>> {
    let &Class::Integer { order, .. } = &member.datatype.class else {
        return Ok(None);
    };
    let key = [&member.name, &b"_categories"[..]].concat();
    let Some(node) = names.find_member(&key)? else {
        return Ok(None);
    };
    let texts = names.read_names(&node_field(&node, &key)?)?;
    let codes = records.subfield(member.offset.into(), member.datatype.clone());
    let is_named = |code: &i128| usize::try_from(*code).is_ok_and(|code| code < texts.len());
    match names.read_integers(&codes) {
        Ok(Some(codes)) if !codes.iter().all(|code| *code == -1 || is_named(code)) => Ok(None),
        // Codes above the limit are not checked. A code without a name is then shown as a number.
        Ok(Some(_)) | Err(Error::Limit { .. }) => {
            Ok(enumeration_type(texts, &member.datatype, order))
        }
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns an enumeration type with the names `texts` for the values from 0 on, and an empty name
/// for -1. Returns `None` if the integer type is too small for the number of names.
fn enumeration_type(texts: Vec<Vec<u8>>, base: &Datatype, order: ByteOrder) -> Option<Datatype> {
    let size = to_usize(base.size.into()).ok()?;
    let value = |number: i64| {
        let mut bytes = number.to_le_bytes().get(..size)?.to_vec();
        if order == ByteOrder::Big {
            bytes.reverse();
        }
        Some(bytes)
    };
    let room = 1_u64.checked_shl(base.size.checked_mul(8)?.checked_sub(1)?)?;
    if u64::try_from(texts.len()).ok()? > room {
        return None;
    }
    let named = texts.into_iter().zip(0..);
    let named = named.map(|(text, number)| Some((text, value(number)?)));
    let members: Option<Vec<_>> = named.chain([Some((Vec::new(), value(-1)?))]).collect();
    Some(Datatype {
        size: base.size,
        class: Class::Enumeration {
            base: Box::new(base.clone()),
            members: members?,
        },
    })
}
