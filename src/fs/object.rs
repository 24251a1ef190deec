//! An object of the file as a regular file: its size, what of it is stored, its content.

use std::sync::Arc;

use crate::array::vlen::VariableLength;
use crate::error::{Error, Result, if_lasting};
use crate::fs::live::Live;
use crate::limits;
use crate::model::array::Storage;
use crate::model::storage::Chunked;
use crate::model::{Array, Node, NodeKind};
use crate::view::View;
use crate::view::attributes::committed_text;
use crate::view::raw::Raw;
use crate::view::text::Text;
use crate::view::variable_length::Content;

/// How much of a file's content is stored, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    /// That much; `None` where every byte is known to be zero.
    Known(Option<u64>),
    /// Not known: a large index would have to be walked, or something cannot be read.
    Unknown,
}

/// Bytes of the object's content; 0 where it has none that can be served, or where finding it is costly.
fn size(node: &Node) -> u64 {
    match &node.kind {
        NodeKind::Group => 0,
        NodeKind::Array(array) if VariableLength::is_made_of(array) => 0,
        NodeKind::Array(array) => array.bytes().unwrap_or(0),
        NodeKind::CommittedDatatype(datatype) => length(&committed_text(datatype)),
        NodeKind::Text(text) => length(text),
    }
}

/// Bytes of the object's content, and what of it is stored: at any cost, or only where it is cheap.
///
/// # Errors
/// As how many bytes they are cannot be found out now.
pub(super) fn measure(live: &Live, node: &Node, at_any_cost: bool) -> Result<(u64, Stored)> {
    Ok(match &node.kind {
        NodeKind::Array(array) if VariableLength::is_made_of(array) => match at_any_cost {
            true => {
                let content = live.variable_length(node.id, array);
                // What is wrong with it, opening it will tell.
                match if_lasting(content.and_then(|content| content.length()))? {
                    Some(size) => (size, Stored::Known(Some(size))),
                    None => (0, Stored::Unknown),
                }
            }
            false => (0, Stored::Unknown),
        },
        NodeKind::Array(array) => (size(node), stored(live, node, array, at_any_cost)),
        _ => (size(node), Stored::Known(Some(size(node)))),
    })
}

fn stored(live: &Live, node: &Node, array: &Arc<Array>, at_any_cost: bool) -> Stored {
    let size = size(node);
    match &array.storage {
        Ok(Storage::Empty) => Stored::Known(None),
        Ok(Storage::Fill) if array.fill.is_zero() => Stored::Known(None),
        Ok(Storage::Fill) => Stored::Known(Some(0)),
        // While a file grows, what a walk finds would be true for a moment.
        Ok(Storage::Chunked(chunked))
            if at_any_cost && !live.is_growing() || is_small(chunked, array) =>
        {
            stored_chunks(live, node, array)
        }
        Ok(Storage::Chunked(_)) => Stored::Unknown,
        Ok(Storage::Encoded(pieces)) => Stored::Known(Some(pieces.stored_bytes())),
        Ok(Storage::Strided(strided)) => Stored::Known(Some(match &strided.base.storage {
            Ok(Storage::Encoded(pieces)) => pieces.stored_bytes().min(size),
            _ => size,
        })),
        _ => Stored::Known(Some(size)),
    }
}

fn is_small(chunked: &Chunked, array: &Array) -> bool {
    let along = array.shape.dims().iter().zip(&chunked.chunk_shape);
    let chunks = along.map(|(&extent, &chunk)| extent.div_ceil(chunk.max(1)));
    let chunks = chunks.fold(1_u64, u64::saturating_mul);
    chunks <= limits::LISTED_CHUNKS
}

fn stored_chunks(live: &Live, node: &Node, array: &Arc<Array>) -> Stored {
    let allocation = live
        .reader(node.id, array)
        .and_then(|reader| reader.allocation());
    match allocation {
        Ok(allocation) if allocation.is_hole() => Stored::Known(None),
        Ok(allocation) => Stored::Known(Some(allocation.stored_bytes)),
        // Not known to be zeros: what it is, opening it will tell.
        Err(_) => Stored::Unknown,
    }
}

/// The object's content, opened.
///
/// # Errors
/// As it is known before reading that it cannot be served.
pub(super) fn open(live: &Live, node: &Node) -> Result<Box<dyn View>> {
    if let NodeKind::Array(array) = &node.kind
        && let Err(error) = &array.storage
    {
        // It may have no known size either, and must not pass for empty.
        return Err(error.clone());
    }
    match &node.kind {
        NodeKind::Group => Err(Error::NotFound),
        NodeKind::Array(array) if array.bytes()? == 0 => Ok(Box::new(Text::new(Vec::new()))),
        NodeKind::Array(array) if VariableLength::is_made_of(array) => Ok(Box::new(Content::new(
            live.variable_length(node.id, array)?,
        )?)),
        NodeKind::Array(array) => Ok(Box::new(Raw::new(live.reader(node.id, array)?))),
        NodeKind::CommittedDatatype(datatype) => Ok(Box::new(Text::new(committed_text(datatype)))),
        NodeKind::Text(text) => Ok(Box::new(Text::new(text.clone()))),
    }
}

/// Why the object's content cannot be served, as far as is known before reading.
pub(super) fn fault(live: &Live, node: &Node) -> Option<Error> {
    match &node.kind {
        NodeKind::Array(_) => open(live, node).err(),
        _ => node.error.clone(),
    }
}

fn length(text: &[u8]) -> u64 {
    crate::wire::to_u64(text.len())
}
