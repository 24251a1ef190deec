//! The chunks of a joined array in the files of its members, if they form one grid.

use std::ops::ControlFlow;
use std::sync::Arc;

use h5fs_reader::error::Result;
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::Array;
use h5fs_reader::model::array::{Mapping, MemberSource, Storage};
use h5fs_reader::model::region::{Region, RegionAxis};
use h5fs_reader::wire::{Extent, to_u64};

use crate::zarr::array::{StoreNode, ZarrArray};
use crate::zarr::chunk_locations::{
    ChunkLocation, ChunkLocations, ChunkPosition, LocationKind, MemberChunk, has_uniform_fill,
};
use crate::zarr::codecs;
use crate::zarr::grid::ChunkGridKind;

/// Number of bytes that the location of a chunk takes in memory.
pub(super) const MEMBER_CHUNK_BYTES: u64 = size_of::<MemberChunk>() as u64;

/// Returns the number of a member's file in the document of references, or `None` if references
/// cannot name the file.
pub type FileNumbers<'a> = dyn FnMut(&[u8]) -> Result<Option<usize>> + 'a;

/// Finds the chunks of the virtual array `array` in the files of the members of a joined directory.
/// Returns the array of the store and the locations of its chunks. Returns `None` if the members do
/// not store their parts as chunks of one grid with the same filters, or if there are more than
/// `max_chunks`.
///
/// # Errors
/// Fails if a member cannot be opened, or if its chunk index cannot be read.
pub fn find(
    array: &Arc<Array>,
    files: &mut FileNumbers<'_>,
    max_chunks: u64,
    budget: &RequestBudget,
) -> Result<Option<(ZarrArray, ChunkLocations)>> {
    let Ok(Storage::Virtual(mappings)) = &array.storage else {
        return Ok(None);
    };
    let cancel = budget.cancel_token();
    let mut grid = JoinedGrid {
        array,
        first: None,
        chunks: Vec::new(),
        max_chunks,
    };
    for mapping in mappings.iter() {
        cancel.check_cancelled()?;
        let Some(member) = mapping.source.open_in_member(&cancel)? else {
            return Ok(None);
        };
        let Some(file) = files(&member.path)? else {
            return Ok(None);
        };
        if !grid.add(&mapping, &member, file, budget)? {
            return Ok(None);
        }
    }
    Ok(grid.finish())
}

/// The grid of a joined array, to which the parts of the members are added.
struct JoinedGrid<'a> {
    array: &'a Arc<Array>,
    /// The array of the store, with the chunk shape and the filters of the first member.
    first: Option<ZarrArray>,
    chunks: Vec<MemberChunk>,
    max_chunks: u64,
}

impl JoinedGrid<'_> {
    /// Adds the chunks of a member. Returns false if they do not fit into the grid.
    fn add(
        &mut self,
        mapping: &Mapping,
        member: &MemberSource,
        file: usize,
        budget: &RequestBudget,
    ) -> Result<bool> {
        let grid = ChunkGridKind::Referenced;
        if member.array.datatype != self.array.datatype || mapping.source_region != Region::All {
            return Ok(false);
        }
        let Some(StoreNode::Array(part)) = StoreNode::from_array(&member.array, grid) else {
            return Ok(false);
        };
        let is_own = |source: &_| member.container.is_own_source(source);
        let remaining = self.max_chunks.saturating_sub(to_u64(self.chunks.len()));
        let found = ChunkLocations::find(&part, &is_own, remaining, budget)?;
        let (Some(found), Some(block)) = (found, region_block(&mapping.region)) else {
            return Ok(false);
        };
        let joined = match &self.first {
            Some(first) => first,
            None => match joined_array(self.array, &part) {
                Some(joined) => self.first.insert(joined),
                None => return Ok(false),
            },
        };
        let Some(first_chunk) = first_chunk(joined, &part, &block) else {
            return Ok(false);
        };
        if !found.is_complete(&part) && member.array.fill != self.array.fill {
            return Ok(false);
        }
        let counts = chunk_counts(joined);
        let new_rank = block.len() - member.array.shape.dims().len();
        found.visit_from(
            &mut ChunkPosition::default(),
            &budget.cancel_token(),
            &mut |indices, location| {
                let inside = std::iter::repeat_n(&0, new_rank).chain(indices);
                let indices = first_chunk
                    .iter()
                    .zip(inside)
                    .map(|(first, own)| first + own);
                self.chunks.push(MemberChunk {
                    number: chunk_number(indices, &counts),
                    location: ChunkLocation { file, ..location },
                });
                ControlFlow::Continue(())
            },
        )?;
        Ok(true)
    }

    /// Returns the array of the store and the locations of its chunks. Returns `None` if two
    /// members have the same chunk, or if a chunk is missing that readers would not fill as the
    /// joined array does.
    fn finish(mut self) -> Option<(ZarrArray, ChunkLocations)> {
        let joined = self.first?;
        self.chunks.sort_unstable_by_key(|chunk| chunk.number);
        let mut pairs = self.chunks.windows(2);
        if pairs.any(|pair| pair[0].number == pair[1].number) {
            return None;
        }
        let locations = ChunkLocations {
            inner_rank: joined.dims.len() - self.array.shape.dims().len(),
            kind: LocationKind::InMembers {
                counts: chunk_counts(&joined),
                chunks: self.chunks,
            },
        };
        let is_filled = locations.is_complete(&joined) || has_uniform_fill(&joined);
        is_filled.then_some((joined, locations))
    }
}

/// Returns the array of the store for the joined array, with the chunk shape and the filters of the
/// member's array `part`. New first dimensions have chunks of one index.
fn joined_array(joined: &Array, part: &ZarrArray) -> Option<ZarrArray> {
    let own = part.array.shape.dims().len();
    let new = joined.shape.dims().len().checked_sub(own)?;
    let chunk_shape = std::iter::repeat_n(1, new).chain(part.chunk_shape.iter().take(own).copied());
    let chunk_shape: Vec<u64> = chunk_shape.collect();
    let storage = match &part.array.storage {
        Ok(Storage::Chunked(stored)) => {
            let mut stored = stored.clone();
            stored.chunk_shape.clone_from(&chunk_shape);
            Storage::Chunked(stored)
        }
        _ => Storage::Fill,
    };
    let array = Array {
        datatype: joined.datatype.clone(),
        shape: joined.shape.clone(),
        fill: joined.fill.clone(),
        layout: part.array.layout,
        chunk_shape: Some(chunk_shape),
        pipeline: part.array.pipeline.clone(),
        storage: Ok(storage),
    };
    match StoreNode::from_array(&Arc::new(array), ChunkGridKind::Referenced)? {
        StoreNode::Array(array) => codecs::referenced_filters(&array).map(|_| array),
        StoreNode::Fields(_) => None,
    }
}

/// Returns the grid indices of the first chunk of the member's array `part`, which is at `block` in
/// the joined array. Returns `None` if its chunks are no chunks of the joined array.
fn first_chunk(joined: &ZarrArray, part: &ZarrArray, block: &[Extent]) -> Option<Vec<u64>> {
    let dims = joined.array.shape.dims();
    let new = dims.len().checked_sub(part.array.shape.dims().len())?;
    let chunk_shape = joined.chunk_shape.get(new..)?;
    let is_same = chunk_shape == part.chunk_shape
        && codecs::referenced_filters(joined) == codecs::referenced_filters(part);
    if !is_same || block.len() != dims.len() {
        return None;
    }
    let axes = block.iter().zip(&joined.chunk_shape).zip(dims);
    let aligned = axes.map(|((block, &chunk), &dim)| {
        let ends_chunk = block.end() == dim || block.end().is_multiple_of(chunk);
        let is_aligned = block.start().is_multiple_of(chunk) && ends_chunk;
        is_aligned.then(|| block.start() / chunk)
    });
    aligned.collect()
}

/// Returns the range of indices of a region in each dimension, or `None` if the region is no block.
fn region_block(region: &Region) -> Option<Vec<Extent>> {
    let Region::Regular(axes) = region else {
        return None;
    };
    let range = |axis: &RegionAxis| {
        let length = axis.length?;
        let is_one_block = length <= axis.block || axis.stride == axis.block;
        is_one_block.then(|| Extent::saturating(axis.start, length))
    };
    axes.iter().map(range).collect()
}

/// Returns the number of chunks along each dimension of the file's array.
fn chunk_counts(array: &ZarrArray) -> Vec<u64> {
    array
        .chunk_counts()
        .take(array.array.shape.dims().len())
        .collect()
}

/// Returns the number of the chunk with these grid indices, in C order.
fn chunk_number(indices: impl Iterator<Item = u64>, counts: &[u64]) -> u64 {
    let axes = indices.zip(counts);
    axes.fold(0, |number, (index, count)| {
        number.saturating_mul(*count).saturating_add(index)
    })
}
