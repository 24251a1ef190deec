//! The NeXus axis of an array: the array with its coordinates. The NeXus manual defines it in
//! "Associating plottable data using attributes applied to the NXdata group". Two older conventions
//! name the axis in an attribute of the array, or number the axes.

use h5fs_conventions::dimensions::ancestor_groups;
use h5fs_reader::error::Result;
use h5fs_reader::model::attribute_value::{attribute_integers, attribute_text, attribute_texts};
use h5fs_reader::model::{LinkTarget, NodeId};

use crate::documents::html::object::PageObject;
use crate::limits;

/// Finds the array with the coordinates of the object's array, which has one dimension. Returns
/// `None` if the file does not name such an array.
///
/// # Errors
/// Fails if the attributes or links cannot be read.
pub(super) fn find_axis(object: &PageObject<'_>) -> Result<Option<NodeId>> {
    let container = &**object.container;
    let Some(group) = containing_group(object)? else {
        return Ok(None);
    };
    if attribute_text(container, group, b"signal")?.is_some() {
        let axes = attribute_texts(container, group, b"axes")?.unwrap_or_default();
        return match &*axes {
            [axis] => find_member(object, group, axis),
            _ => Ok(None),
        };
    }
    if let Some(axes) = attribute_text(container, object.node.id, b"axes")? {
        // Several names would be separated by colons or commas; such a text does not name a member.
        let axis = axes.strip_prefix(b"[").unwrap_or(&axes);
        let axis = axis.strip_suffix(b"]").unwrap_or(axis);
        return find_member(object, group, axis.trim_ascii());
    }
    let is_signal = integer_attribute(object, object.node.id, b"signal")?.is_some();
    if is_signal {
        find_first_axis(object, group)
    } else {
        Ok(None)
    }
}

/// Returns the group that contains the object's array.
fn containing_group(object: &PageObject<'_>) -> Result<Option<NodeId>> {
    if object.group.is_some() || object.container.asdf_extras().is_some() {
        return Ok(object.group);
    }
    let groups = ancestor_groups(&**object.container, object.path)?;
    Ok(match &*groups {
        [.., group, node] if *node == object.node.id => Some(*group),
        _ => None,
    })
}

/// Returns the node of the member `name` of a group; `None` if it does not exist, or is the
/// object's array itself.
fn find_member(object: &PageObject<'_>, group: NodeId, name: &[u8]) -> Result<Option<NodeId>> {
    if name == b"." || name.is_empty() {
        return Ok(None);
    }
    let link = object.container.link(group, name)?;
    let Some(link) = link else {
        return Ok(None);
    };
    let place = object.site.link_target(group, &link)?;
    let node = place.map(|place| place.node);
    Ok(node.filter(|node| *node != object.node.id))
}

/// Finds the member of a group whose attribute `axis` is 1. If several members have this attribute,
/// a member whose attribute `primary` is 1 is preferred.
fn find_first_axis(object: &PageObject<'_>, group: NodeId) -> Result<Option<NodeId>> {
    let mut links = object.container.links(group)?;
    let mut found = None;
    for _ in 0..limits::NDL_SCALES {
        let Some(link) = links.next()? else {
            break;
        };
        let LinkTarget::Hard(node) = link.target else {
            continue;
        };
        if node == object.node.id || integer_attribute(object, node, b"axis")? != Some(1) {
            continue;
        }
        if integer_attribute(object, node, b"primary")? == Some(1) {
            return Ok(Some(node));
        }
        found = found.or(Some(node));
    }
    Ok(found)
}

/// Returns an attribute as an integer, which may be stored as text; `None` if it is not an integer.
fn integer_attribute(object: &PageObject<'_>, node: NodeId, name: &[u8]) -> Result<Option<i128>> {
    let container = &**object.container;
    if let Some(numbers) = attribute_integers(container, node, name)? {
        return Ok(numbers.first().copied());
    }
    let text = attribute_text(container, node, name)?;
    let text = text.as_deref().and_then(|text| str::from_utf8(text).ok());
    Ok(text.and_then(|text| text.trim().parse().ok()))
}
