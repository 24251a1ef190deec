//! How many bytes of memory a description takes, about: a small file can ask for large ones, and many of them.

use crate::memory::{PIECE, piece};
use crate::model::datatype::{Class, Member};
use crate::model::region::Region;
use crate::model::storage::Storage;
use crate::model::{Array, Datatype, Link, LinkTarget};
use crate::wire::to_u64;

/// Bytes of a datatype and of all datatypes in it.
pub fn of_datatype(datatype: &Datatype) -> u64 {
    let own = to_u64(size_of::<Datatype>());
    let parts: u64 = match &datatype.class {
        Class::Compound(members) => members
            .iter()
            .map(|member| {
                let name = piece(size_of::<Member>()).saturating_add(to_u64(member.name.len()));
                name.saturating_add(of_datatype(&member.datatype))
            })
            .sum(),
        Class::Enumeration { base, members } => members
            .iter()
            .map(|member| {
                let pieces = piece(member.0.len()).saturating_add(piece(member.1.len()));
                pieces.saturating_add(to_u64(size_of_val(member)))
            })
            .fold(of_datatype(base), u64::saturating_add),
        Class::VariableLength(base) | Class::Complex(base) => of_datatype(base),
        Class::Array { base, dims } => piece(dims.len()).saturating_add(of_datatype(base)),
        Class::Opaque { tag } => piece(tag.len()),
        _ => 0,
    };
    own.saturating_add(parts)
}

/// Bytes of an array's description.
pub fn of_array(array: &Array) -> u64 {
    let storage = match &array.storage {
        Ok(Storage::Inline(bytes)) => piece(bytes.len()),
        Ok(Storage::Extents(extents)) => {
            let sources = extents.iter().map(|extent| extent.source.weight());
            sources.fold(piece(size_of_val(&**extents)), u64::saturating_add)
        }
        Ok(Storage::Virtual(mappings)) => mappings.weight(),
        _ => 0,
    };
    let filters = array.pipeline.0.iter();
    let filters: u64 = filters
        .map(|filter| piece(size_of_val(&*filter.parameters)))
        .sum();
    let own = to_u64(size_of::<Array>()).saturating_add(to_u64(array.shape.dims().len()) << 5);
    own.saturating_add(of_datatype(&array.datatype))
        .saturating_add(storage)
        .saturating_add(filters)
}

/// Bytes of a region.
pub fn of_region(region: &Region) -> u64 {
    match region {
        Region::Nothing | Region::All => PIECE,
        Region::Regular(axes) => piece(size_of_val(&**axes)),
        Region::Blocks(blocks) => {
            let corner = |corner: &Vec<u64>| piece(size_of_val(&**corner));
            let block = |block: &(Vec<u64>, Vec<u64>)| {
                let corners = corner(&block.0).saturating_add(corner(&block.1));
                corners.saturating_add(to_u64(size_of_val(block)))
            };
            blocks.iter().map(block).sum()
        }
    }
}

/// Bytes of links.
pub fn of_links(links: &[Link]) -> u64 {
    let target = |link: &Link| match &link.target {
        LinkTarget::Soft(path) => piece(path.len()),
        LinkTarget::External { file, path } => piece(file.len()).saturating_add(piece(path.len())),
        _ => 0,
    };
    let link = |link: &Link| {
        let own = to_u64(size_of::<Link>()).saturating_add(piece(link.name.len()));
        own.saturating_add(target(link))
    };
    links.iter().map(link).sum()
}
