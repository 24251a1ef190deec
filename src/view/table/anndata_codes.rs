//! Categories of AnnData before version 0.6: `obs` and `var` are datasets of records, and a field of
//! integers has the names that its numbers stand for in `uns/FIELD_categories`.
//!
//! As anndata does, a field of which a number has no name stays one of numbers; -1 is missing.

use crate::error::{Error, Result};
use crate::model::datatype::{ByteOrder, Class, Member};
use crate::model::{Datatype, Node, NodeKind};
use crate::view::elements::Elements;
use crate::view::table::column::Part;
use crate::view::table::group::{Group, part_of};
use crate::wire::to_usize;

/// The elements of `node` with named categories, where it is such a dataset of the file with this
/// root, and they are its records as they are stored.
///
/// # Errors
/// Fails if the names cannot be read.
pub(crate) fn named(root: &Group<'_>, node: &Node, elements: Elements) -> Result<Elements> {
    let Class::Compound(members) = &elements.datatype.class else {
        return Ok(elements);
    };
    let array = node.array();
    if !array.is_some_and(|array| array.datatype == elements.datatype) {
        return Ok(elements);
    }
    let (Some(names), Some(records)) = (names(root, node)?, Part::of(node)?) else {
        return Ok(elements);
    };
    let mut members = members.clone();
    for member in &mut members {
        if let Some(datatype) = categories(&names, &records, member)? {
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

/// The group that has the names; `None` where `node` is neither `obs` nor `var`.
fn names<'a>(root: &Group<'a>, node: &Node) -> Result<Option<Group<'a>>> {
    let Some(uns) = root.find(b"uns")? else {
        return Ok(None);
    };
    for axis in [&b"obs"[..], b"var"] {
        let is_node = root.find(axis)?.is_some_and(|axis| axis.id == node.id);
        if is_node && matches!(uns.kind, NodeKind::Group) {
            return Ok(Some(root.at(uns.id)));
        }
    }
    Ok(None)
}

/// The type of a field whose numbers stand for names.
fn categories(names: &Group<'_>, records: &Part, member: &Member) -> Result<Option<Datatype>> {
    let &Class::Integer { order, .. } = &member.datatype.class else {
        return Ok(None);
    };
    let key = [&member.name, &b"_categories"[..]].concat();
    let Some(node) = names.find(&key)? else {
        return Ok(None);
    };
    let texts = names.names(&part_of(&node, &key)?)?;
    let codes = records.at(member.offset.into(), member.datatype.clone());
    let is_named = |code: &i128| usize::try_from(*code).is_ok_and(|code| code < texts.len());
    match names.numbers(&codes) {
        Ok(Some(codes)) if !codes.iter().all(|code| *code == -1 || is_named(code)) => Ok(None),
        // Of more records than are looked at here, a number without a name stays one.
        Ok(Some(_)) | Err(Error::Limit { .. }) => Ok(enumeration(texts, &member.datatype, order)),
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The enumeration of these names, counted from 0, and of an empty one for -1; `None` where the
/// integer has no room for so many.
fn enumeration(texts: Vec<Vec<u8>>, base: &Datatype, order: ByteOrder) -> Option<Datatype> {
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
