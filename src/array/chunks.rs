//! The chunks of one array: finding one, and decoding it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::array::grid::Grid;
use crate::error::{Error, Result};
use crate::filter;
use crate::limits;
use crate::model::Array;
use crate::model::storage::{ChunkIndex, Chunked, Pipeline, StoredChunk};
use crate::source::{SharedSource, check_range, read_block};

const EIO: i32 = 5;

/// One chunked array.
#[derive(Debug)]
pub(super) struct Chunks {
    /// The array's number, unique in its engine.
    pub(super) array: u64,
    pub(super) grid: Grid,
    pub(super) source: SharedSource,
    pub(super) index: Arc<dyn ChunkIndex>,
    pipeline: Pipeline,
    partial_unfiltered: bool,
}

/// A chunk as the file has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Located {
    /// Nowhere: all of it is the fill value.
    Absent,
    /// As it is, from this offset of the source.
    Raw(u64),
    /// Behind filters.
    Filtered(StoredChunk),
}

impl Chunks {
    /// The chunks of `array`, which must not be empty.
    ///
    /// # Errors
    /// `Corrupt` for a chunk shape that cannot be, `Unsupported` for a filter that cannot be undone, `Limit`
    /// for filtered chunks over the limit.
    pub(super) fn new(number: u64, array: &Array, chunked: &Chunked) -> Result<Self> {
        let element = u64::from(array.datatype.size);
        let grid = Grid::new(array.shape.dims(), &chunked.chunk_shape, element)?;
        if !chunked.pipeline.0.is_empty() {
            filter::check(&chunked.pipeline)?;
            limit_chunk(grid.chunk_bytes())?;
        }
        Ok(Chunks {
            array: number,
            grid,
            source: Arc::clone(&chunked.source),
            index: Arc::clone(&chunked.index),
            pipeline: chunked.pipeline.clone(),
            partial_unfiltered: chunked.partial_unfiltered,
        })
    }

    /// Whether decoding is ever needed.
    pub(super) fn is_filtered(&self) -> bool {
        !self.pipeline.0.is_empty()
    }

    /// Where chunk `number` is.
    ///
    /// # Errors
    /// `Corrupt` where the index is damaged or points outside the source, `Limit` for a chunk over the limit.
    pub(super) fn locate(&self, number: u64) -> Result<Located> {
        let place = self.grid.place(number);
        let Some(stored) = self.index.find(&place)? else {
            return Ok(Located::Absent);
        };
        let raw = self.passes_all(stored.filter_mask)
            || self.partial_unfiltered && self.grid.sticks_out(&place);
        if !raw {
            limit_chunk(stored.length)?;
            check_range(&*self.source, stored.offset, stored.length, "stored chunk")?;
            return Ok(Located::Filtered(stored));
        }
        let bytes = self.grid.chunk_bytes();
        if stored.length < bytes {
            let what = format!(
                "chunk {place:?}: {} bytes are stored, {bytes} needed",
                stored.length
            );
            return Err(Error::corrupt(what, stored.offset));
        }
        check_range(&*self.source, stored.offset, bytes, "stored chunk")?;
        Ok(Located::Raw(stored.offset))
    }

    /// Whether `filter_mask` leaves out every filter.
    fn passes_all(&self, filter_mask: u32) -> bool {
        (0..self.pipeline.0.len()).all(|i| i < 32 && filter_mask >> i & 1 == 1)
    }

    /// Bytes that decoding `stored` may take: as stored, and twice as decoded (from one filter to the next).
    pub(super) fn decode_bytes(&self, stored: u64) -> u64 {
        stored.saturating_add(self.grid.chunk_bytes().saturating_mul(2))
    }

    /// Reads and decodes chunk `number`.
    ///
    /// # Errors
    /// `Corrupt` where filters refuse it or make less of it than a chunk; the chunk is named.
    pub(super) fn decode(&self, number: u64, stored: StoredChunk) -> Result<Vec<u8>> {
        let bytes = self.grid.chunk_bytes() as usize;
        let block = read_block(&*self.source, stored.offset, stored.length, "stored chunk")?;
        // A panic in somebody else's codec is an error of this chunk, not the end of a thread.
        let decoded = catch_unwind(AssertUnwindSafe(|| {
            filter::decode(&self.pipeline, stored.filter_mask, block, bytes)
        }));
        let broken = |_| {
            Err(Error::Io {
                errno: EIO,
                what: "a filter broke off".into(),
            })
        };
        let mut decoded = decoded
            .unwrap_or_else(broken)
            .map_err(|error| self.in_chunk(number, stored, error))?;
        if decoded.len() < bytes {
            let what = format!("decodes to {} bytes, {bytes} needed", decoded.len());
            return Err(self.in_chunk(number, stored, Error::corrupt(what, 0)));
        }
        decoded.truncate(bytes);
        Ok(decoded)
    }

    /// The error with the chunk's place and file offset.
    fn in_chunk(&self, number: u64, stored: StoredChunk, error: Error) -> Error {
        let name = |what| format!("chunk {:?}: {what}", self.grid.place(number)).into();
        let at = stored.offset;
        match error {
            Error::Corrupt { what, .. } => Error::Corrupt {
                what: name(what),
                at,
            },
            Error::Unsupported { what, .. } => Error::Unsupported {
                what: name(what),
                at,
            },
            Error::Limit { what, max } => Error::Limit {
                what: name(what),
                max,
            },
            Error::Io { errno, what } => Error::Io {
                errno,
                what: format!("{}, at byte {at}", name(what)).into(),
            },
            other => other,
        }
    }
}

fn limit_chunk(bytes: u64) -> Result<()> {
    if bytes > limits::CHUNK_BYTES {
        let what = format!("a chunk of {bytes} bytes");
        return Err(Error::limit(what, limits::CHUNK_BYTES));
    }
    Ok(())
}
