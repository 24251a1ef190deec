//! Where the chunks of an array are in the files of a source, for readers that fetch the bytes
//! themselves.

use std::ops::ControlFlow;
use std::sync::Arc;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::Result;
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::Array;
use h5fs_reader::model::array::{Layout, Storage};
use h5fs_reader::model::storage::{IndexCursor, StoredChunk};
use h5fs_reader::source::SharedSource;
use h5fs_reader::wire::{Extent, to_u64, to_usize};

use crate::zarr::array::ZarrArray;
use crate::zarr::codecs;

/// Where the chunks of an array are in the source.
pub struct ChunkLocations {
    pub(super) kind: LocationKind,
    /// Number of dimensions that the store's array has after the dimensions of the file's array.
    pub(super) inner_rank: usize,
}

pub(super) enum LocationKind {
    /// Chunks of equal length, one after another.
    Contiguous {
        start: u64,
        chunk_bytes: u64,
        /// Number of chunks along each dimension of the file's array.
        counts: Vec<u64>,
    },
    /// The stored chunks of a chunked array, and their number.
    Stored(Arc<Array>, u64),
    /// Chunks in the files of a joined directory.
    InMembers {
        chunks: Vec<MemberChunk>,
        /// Number of chunks along each dimension of the joined array.
        counts: Vec<u64>,
    },
}

/// The location of a chunk of a joined array.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemberChunk {
    /// Number of the chunk in the grid of the joined array, in C order.
    pub(super) number: u64,
    pub(super) location: ChunkLocation,
}

/// The location of one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkLocation {
    /// Number of the file in the document of references.
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// A position among the locations of an array.
#[derive(Default)]
pub(super) struct ChunkPosition {
    /// Number of the next chunk, if the chunks are numbered.
    number: u64,
    cursor: IndexCursor,
}

impl ChunkPosition {
    /// Returns the memory in bytes that the position takes.
    pub(super) fn weight(&self) -> u64 {
        to_u64(size_of_val(&*self.cursor.0))
    }
}

impl ChunkLocations {
    /// Finds the chunks of `array`, which has the grid
    /// [`Referenced`](crate::zarr::grid::ChunkGridKind::Referenced). Returns `None` if references
    /// cannot locate them: Zarr readers do not have a codec for them, they are not in the source
    /// that is `own`, or there are more than `max_chunks`.
    ///
    /// # Errors
    /// Fails if the chunk index cannot be read.
    pub fn find(
        array: &ZarrArray,
        own: &dyn Fn(&SharedSource) -> bool,
        max_chunks: u64,
        budget: &RequestBudget,
    ) -> Result<Option<Self>> {
        if codecs::referenced_filters(array).is_none() {
            return Ok(None);
        }
        let kind = match &array.array.storage {
            Ok(Storage::Chunked(_)) => stored_chunks(array, own, max_chunks, budget)?,
            _ => contiguous_chunks(array, own),
        };
        let rank = array.array.shape.dims().len();
        let chunks = kind.map(|kind| ChunkLocations {
            kind,
            inner_rank: array.dims.len() - rank,
        });
        Ok(chunks.filter(|chunks| chunks.chunk_count() <= max_chunks))
    }

    pub(super) fn chunk_count(&self) -> u64 {
        match &self.kind {
            LocationKind::Contiguous { counts, .. } => counts
                .iter()
                .fold(1, |all, count| all.saturating_mul(*count)),
            LocationKind::Stored(_, count) => *count,
            LocationKind::InMembers { chunks, .. } => to_u64(chunks.len()),
        }
    }

    /// Returns whether every chunk of `array` is located.
    pub fn is_complete(&self, array: &ZarrArray) -> bool {
        self.chunk_count() == array.chunk_counts().fold(1, u64::saturating_mul)
    }

    /// Returns the number of chunks whose locations are in memory, because they are in the files of
    /// a joined directory.
    pub(super) fn member_chunk_count(&self) -> u64 {
        match &self.kind {
            LocationKind::InMembers { chunks, .. } => to_u64(chunks.len()),
            _ => 0,
        }
    }

    /// Calls `visit` with the grid indices and the location of each chunk from `position` on, until
    /// `visit` breaks. Returns whether there may be more chunks.
    ///
    /// # Errors
    /// Fails if the chunk index cannot be read.
    pub(super) fn visit_from(
        &self,
        position: &mut ChunkPosition,
        cancel: &CancelToken,
        visit: &mut dyn FnMut(&[u64], ChunkLocation) -> ControlFlow<()>,
    ) -> Result<bool> {
        if let LocationKind::Stored(array, _) = &self.kind {
            return visit_stored(array, &mut position.cursor, cancel, visit);
        }
        let count = self.chunk_count();
        while position.number < count {
            let number = position.number;
            position.number += 1;
            if let Some((indices, location)) = self.numbered_chunk(number)
                && visit(&indices, location).is_break()
            {
                return Ok(position.number < count);
            }
        }
        Ok(false)
    }

    /// Returns the grid indices and the location of chunk number `number`, or `None` if the chunks
    /// are not numbered.
    fn numbered_chunk(&self, number: u64) -> Option<(Vec<u64>, ChunkLocation)> {
        match &self.kind {
            LocationKind::Contiguous {
                start,
                chunk_bytes,
                counts,
            } => {
                let location = ChunkLocation {
                    file: 0,
                    offset: start + number * chunk_bytes,
                    length: *chunk_bytes,
                };
                Some((grid_indices(number, counts), location))
            }
            LocationKind::Stored(..) => None,
            LocationKind::InMembers { chunks, counts } => {
                let chunk = chunks.get(to_usize(number).ok()?)?;
                Some((grid_indices(chunk.number, counts), chunk.location))
            }
        }
    }
}

/// Calls `visit` with the stored chunks of a chunked array, as
/// [`visit_from`](ChunkLocations::visit_from) does.
fn visit_stored(
    array: &Array,
    cursor: &mut IndexCursor,
    cancel: &CancelToken,
    visit: &mut dyn FnMut(&[u64], ChunkLocation) -> ControlFlow<()>,
) -> Result<bool> {
    let Ok(Storage::Chunked(chunked)) = &array.storage else {
        return Ok(false);
    };
    let mut is_stopped = false;
    let (budget, _granted) = RequestBudget::unlimited_until_cancelled(cancel);
    chunked
        .index
        .walk_from(cursor, &budget, &mut |indices, chunk: StoredChunk| {
            let location = ChunkLocation {
                file: 0,
                offset: chunk.offset,
                length: chunk.length,
            };
            let flow = visit(indices, location);
            is_stopped = flow.is_break();
            flow
        })?;
    Ok(is_stopped)
}

/// Returns the stored chunks of a chunked array. Each must have passed all filters.
fn stored_chunks(
    array: &ZarrArray,
    own: &dyn Fn(&SharedSource) -> bool,
    max_chunks: u64,
    budget: &RequestBudget,
) -> Result<Option<LocationKind>> {
    let Some(chunked) = array.stored_grid().filter(|chunked| own(&chunked.source)) else {
        return Ok(None);
    };
    let counts: Vec<u64> = array.chunk_counts().collect();
    let (mut count, mut can_refer) = (0, true);
    chunked.index.walk(budget, &mut |indices, chunk| {
        count += 1;
        let is_in_grid = indices
            .iter()
            .zip(&counts)
            .all(|(index, count)| index < count);
        let end = Extent::checked(chunk.offset, chunk.length);
        let is_within = end.is_some_and(|extent| extent.is_within(chunked.source.length()));
        can_refer = is_in_grid
            && chunk.filter_mask == 0
            && chunk.offset >= chunked.min_offset
            && is_within
            && count <= max_chunks;
        if can_refer {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    let grid_chunks = counts.into_iter().fold(1, u64::saturating_mul);
    can_refer &= count == grid_chunks || has_uniform_fill(array);
    Ok(can_refer.then(|| LocationKind::Stored(Arc::clone(&array.array), count)))
}

/// Returns whether the fill value of the store, which is that of one store element, fills a whole
/// element of the file. An element of an array type may have different fill values inside.
pub(super) fn has_uniform_fill(array: &ZarrArray) -> bool {
    let element = array.element_fill_value();
    let uniform = |own: Vec<u8>| element.chunks(own.len().max(1)).all(|part| part == own);
    array.stored_fill_value().is_ok_and(uniform)
}

/// Returns the parts of an array whose elements are one range of the source, in C order.
fn contiguous_chunks(
    array: &ZarrArray,
    own: &dyn Fn(&SharedSource) -> bool,
) -> Option<LocationKind> {
    let (extents, offset) = match &array.array.storage {
        Ok(Storage::Extents(extents)) if array.array.layout != Layout::External => (extents, 0),
        Ok(Storage::Strided(strided)) if is_c_order(&array.array, &strided.strides) => {
            match &strided.base.storage {
                Ok(Storage::Extents(extents)) => (extents, strided.offset),
                _ => return None,
            }
        }
        _ => return None,
    };
    let [stored] = &**extents else {
        return None;
    };
    let length = array.array.byte_length().ok()?;
    let start = stored.extent.start().checked_add(offset)?;
    let extent = Extent::checked(start, length)?;
    let is_there = extent.end() <= stored.extent.end() && extent.is_within(stored.source.length());
    if !is_there || !own(&stored.source) {
        return None;
    }
    let rank = array.array.shape.dims().len();
    Some(LocationKind::Contiguous {
        start,
        chunk_bytes: array.chunk_bytes()?,
        counts: array.chunk_counts().take(rank).collect(),
    })
}

/// Returns whether these strides are those of an array in C order without gaps.
fn is_c_order(array: &Array, strides: &[i64]) -> bool {
    let mut dense = i64::from(array.datatype.size);
    let mut axes = array.shape.dims().iter().zip(strides).rev();
    axes.all(|(&dim, &stride)| {
        let is_next = stride == dense || dim <= 1;
        dense = dense.saturating_mul(i64::try_from(dim).unwrap_or(i64::MAX));
        is_next
    })
}

/// Returns the grid indices of chunk number `number` in C order. `counts` is the number of chunks
/// along each dimension.
fn grid_indices(number: u64, counts: &[u64]) -> Vec<u64> {
    let mut rest = number;
    let mut indices = vec![0; counts.len()];
    for (index, &count) in indices.iter_mut().zip(counts).rev() {
        *index = rest % count.max(1);
        rest /= count.max(1);
    }
    indices
}
