//! The chunks of one array: finding one, and decoding it. The pieces of an encoded block are chunks
//! of a row of bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::array::grid::Grid;
use crate::error::{Error, Result};
use crate::filter;
use crate::limits;
use crate::model::Array;
use crate::model::storage::{ChunkIndex, Chunked, Pieces, Pipeline, StoredChunk};
use crate::source::{SharedSource, check_range, read_block};

const EIO: i32 = 5;

/// One chunked array.
#[derive(Debug)]
pub(super) struct Chunks {
    /// The array's number, unique in its engine.
    pub(super) array: u64,
    pub(super) grid: Grid,
    pub(super) origin: Origin,
}

/// Where the chunks come from.
#[derive(Debug)]
pub(super) enum Origin {
    /// Each is stored for itself.
    Stored(Stored),
    /// Whoever has them decodes them.
    Pieces(Arc<dyn Pieces>),
}

/// Chunks that are stored each for itself.
#[derive(Debug)]
pub(super) struct Stored {
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
            origin: Origin::Stored(Stored {
                source: Arc::clone(&chunked.source),
                index: Arc::clone(&chunked.index),
                pipeline: chunked.pipeline.clone(),
                partial_unfiltered: chunked.partial_unfiltered,
            }),
        })
    }

    /// The pieces of an encoded block of `array`, which must not be empty.
    ///
    /// # Errors
    /// `Corrupt` where the array and its pieces differ in length, `Limit` for pieces over the limit.
    pub(super) fn of_pieces(number: u64, array: &Array, pieces: &Arc<dyn Pieces>) -> Result<Self> {
        let element = u64::from(array.datatype.size);
        let grid = Grid::new(array.shape.dims(), &[pieces.piece_bytes()], element)?;
        if element != 1 || array.shape.dims() != [pieces.bytes()] {
            return Err(Error::corrupt("encoded block: not a row of its bytes", 0));
        }
        limit_chunk(grid.chunk_bytes())?;
        Ok(Chunks {
            array: number,
            grid,
            origin: Origin::Pieces(Arc::clone(pieces)),
        })
    }

    /// Whether decoding is ever needed.
    pub(super) fn is_filtered(&self) -> bool {
        match &self.origin {
            Origin::Stored(stored) => !stored.pipeline.0.is_empty(),
            Origin::Pieces(_) => true,
        }
    }

    /// Whether decoding ahead in several threads gains nothing.
    pub(super) fn is_sequential(&self) -> bool {
        match &self.origin {
            Origin::Stored(_) => false,
            Origin::Pieces(pieces) => pieces.is_sequential(),
        }
    }

    /// Where chunk `number` is.
    ///
    /// # Errors
    /// `Corrupt` where the index is damaged or points outside the source, `Limit` for a chunk over the limit.
    pub(super) fn locate(&self, number: u64) -> Result<Located> {
        let origin = match &self.origin {
            Origin::Stored(origin) => origin,
            Origin::Pieces(pieces) => {
                // How much of the block a piece is made of only its decoder knows.
                return Ok(Located::Filtered(StoredChunk {
                    offset: 0,
                    length: pieces.stored_bytes().min(pieces.piece_bytes()),
                    filter_mask: 0,
                }));
            }
        };
        let place = self.grid.place(number);
        let Some(stored) = origin.index.find(&place)? else {
            return Ok(Located::Absent);
        };
        let raw = origin.passes_all(stored.filter_mask)
            || origin.partial_unfiltered && self.grid.sticks_out(&place);
        if !raw {
            limit_chunk(stored.length)?;
            check_range(
                &*origin.source,
                stored.offset,
                stored.length,
                "stored chunk",
            )?;
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
        check_range(&*origin.source, stored.offset, bytes, "stored chunk")?;
        Ok(Located::Raw(stored.offset))
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
        // A panic in somebody else's codec is an error of this chunk, not the end of a thread.
        let decoded = match &self.origin {
            Origin::Stored(origin) => {
                let source = &*origin.source;
                let block = read_block(source, stored.offset, stored.length, "stored chunk")?;
                catch_unwind(AssertUnwindSafe(|| {
                    filter::decode(&origin.pipeline, stored.filter_mask, block, bytes)
                }))
            }
            Origin::Pieces(pieces) => {
                return catch_unwind(AssertUnwindSafe(|| pieces.decode(number)))
                    .unwrap_or_else(|_| Err(broken_off()))
                    .and_then(|piece| self.padded(piece, pieces.bytes(), number));
            }
        };
        let mut decoded = decoded
            .unwrap_or_else(|_| Err(broken_off()))
            .map_err(|error| self.in_chunk(number, stored, error))?;
        if decoded.len() < bytes {
            let what = format!("decodes to {} bytes, {bytes} needed", decoded.len());
            return Err(self.in_chunk(number, stored, Error::corrupt(what, 0)));
        }
        decoded.truncate(bytes);
        Ok(decoded)
    }

    /// A piece as long as a chunk: the last one may be shorter, but only where the array ends.
    fn padded(&self, mut piece: Vec<u8>, total: u64, number: u64) -> Result<Vec<u8>> {
        let bytes = self.grid.chunk_bytes();
        let left = total.saturating_sub(number.saturating_mul(bytes));
        if piece.len() as u64 != left.min(bytes) {
            let what = format!("piece {number} of an encoded block: {} bytes", piece.len());
            return Err(Error::corrupt(what, 0));
        }
        piece.resize(bytes as usize, 0);
        Ok(piece)
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

impl Stored {
    /// Whether `filter_mask` leaves out every filter.
    fn passes_all(&self, filter_mask: u32) -> bool {
        (0..self.pipeline.0.len()).all(|i| i < 32 && filter_mask >> i & 1 == 1)
    }
}

fn broken_off() -> Error {
    Error::Io {
        errno: EIO,
        what: "a filter broke off".into(),
    }
}

fn limit_chunk(bytes: u64) -> Result<()> {
    if bytes > limits::CHUNK_BYTES {
        let what = format!("a chunk of {bytes} bytes");
        return Err(Error::limit(what, limits::CHUNK_BYTES));
    }
    Ok(())
}
