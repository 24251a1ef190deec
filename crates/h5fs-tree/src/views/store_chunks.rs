//! The entries of a directory of chunks in a Zarr store, in numerical order.

use h5fs_reader::error::Result;
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::storage::ChunkIndex;
use h5fs_view::zarr::array::ZarrArray;

use crate::state::index_walk::IndexWalk;

/// Maximum number of chunks in a directory for which a listing queries the chunk index for each
/// chunk. A larger directory is listed by walking the chunk index.
const MAX_QUERIED_CHUNKS: u64 = 65_536;

/// The search for the entries of a directory of chunks. The name of each entry is one index of its
/// chunks.
pub(crate) struct ChunkDirectorySearch<'a> {
    array: &'a ZarrArray,
    /// The chunk indices that the path of the directory contains.
    parent_indices: &'a [u64],
    /// Maximum number of entries in the directory.
    width: u64,
    search: ChunkSearchMethod<'a>,
}

/// The method of finding which entries exist.
enum ChunkSearchMethod<'a> {
    /// All entries exist.
    All,
    /// The chunk index is queried for each entry.
    Query,
    /// The chunk index is walked in order.
    Walk(&'a dyn ChunkIndex),
    /// The chunk index is walked, and its chunks are converted, because the store's chunks differ
    /// from the file's.
    WalkConverted(&'a dyn ChunkIndex),
}

impl<'a> ChunkDirectorySearch<'a> {
    pub(crate) fn new(array: &'a ZarrArray, above: &'a [u64]) -> Self {
        let width = if array.has_no_chunks() {
            0
        } else {
            array.chunk_counts().nth(above.len()).unwrap_or(0)
        };
        let mut names = ChunkDirectorySearch {
            array,
            parent_indices: above,
            width,
            search: ChunkSearchMethod::All,
        };
        if names.has_chunk_entries() && !array.has_file_for_every_chunk() {
            names.search = match array.chunk_index() {
                Some(index) if width > MAX_QUERIED_CHUNKS && array.has_stored_chunk_shape() => {
                    ChunkSearchMethod::Walk(index)
                }
                Some(index) if width > MAX_QUERIED_CHUNKS => {
                    ChunkSearchMethod::WalkConverted(index)
                }
                Some(_) => ChunkSearchMethod::Query,
                None if array.has_source_grid() && width <= MAX_QUERIED_CHUNKS => {
                    ChunkSearchMethod::Query
                }
                None => ChunkSearchMethod::All,
            };
        }
        names
    }

    /// Returns whether the entries of the directory are chunks, not further directories.
    pub(crate) fn has_chunk_entries(&self) -> bool {
        self.parent_indices.len() + 1 == self.array.dims.len()
    }

    /// Finds the first entry whose name is `at` or higher. Returns the name, if this step of the
    /// search has found it, and the name at which the next step continues. Returns `None` after the
    /// last entry. Reads of the chunk index count against `budget`.
    ///
    /// # Errors
    /// Fails if the index is damaged.
    pub(crate) fn find(
        &self,
        walk: &mut IndexWalk,
        at: u64,
        budget: &RequestBudget,
    ) -> Result<Option<(Option<u64>, u64)>> {
        let is_there = match self.search {
            _ if at >= self.width => return Ok(None),
            ChunkSearchMethod::All => true,
            ChunkSearchMethod::Query => self
                .array
                .has_chunk_file(&[self.parent_indices, &[at]].concat())?,
            ChunkSearchMethod::Walk(index) => {
                return walk.find(index, (self.parent_indices, self.width), at, budget);
            }
            ChunkSearchMethod::WalkConverted(index) => {
                let around = |place: &[u64]| {
                    let around = self.array.containing_chunk(place);
                    let number = around.strip_prefix(self.parent_indices)?.first().copied();
                    number.filter(|number| *number < self.width)
                };
                return walk.find_converted(index, &around, at, budget);
            }
        };
        Ok(Some((is_there.then_some(at), at + 1)))
    }
}
