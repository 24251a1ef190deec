//! The chunk index of an array as text, with one line for each stored chunk, in the order of the
//! index.
//!
//! A line has four columns, separated by tabs. The first is the index of the chunk's first element
//! in each dimension (`0,100,0`). The second and third are the chunk's offset in the file and its
//! stored length, in bytes. The fourth is the filter mask, where bit n means that filter n was not
//! applied.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::Result;
use h5fs_reader::memory;
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::Array;
use h5fs_reader::model::array::Storage;
use h5fs_reader::model::storage::{ChunkGrid, IndexCursor, StoredChunk};

use crate::text_files::streamed::ResumableText;

/// The text of an array's chunk index.
pub struct ChunkLines(Arc<Array>);

impl ChunkLines {
    /// Creates the text of the chunk index of `array`; `None` if the array is not chunked.
    ///
    /// # Errors
    /// Fails if the storage of the array is not readable.
    pub fn new(array: Arc<Array>) -> Result<Option<Self>> {
        if array.chunk_shape.is_none() {
            return Ok(None);
        }
        array.storage.as_ref().map_err(Clone::clone)?;
        Ok(Some(ChunkLines(array)))
    }
}

impl ResumableText for ChunkLines {
    type ResumePoint = IndexCursor;

    fn begin(&self) -> IndexCursor {
        IndexCursor::default()
    }

    fn write_from(
        &self,
        place: &mut IndexCursor,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let Ok(Storage::Chunked(chunked)) = &self.0.storage else {
            // No chunk is stored.
            return Ok(false);
        };
        let mut line = String::new();
        let mut is_full = false;
        let (budget, _granted) = RequestBudget::unlimited_until_cancelled(cancel);
        chunked
            .index
            .walk_from(place, &budget, &mut |chunk_place, chunk| {
                line.clear();
                write_line(chunked, chunk_place, chunk, &mut line);
                out.extend_from_slice(line.as_bytes());
                is_full = out.len() >= enough;
                if is_full {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })?;
        Ok(is_full)
    }

    fn progress_bytes(&self, place: &IndexCursor) -> u64 {
        memory::allocation_size(size_of_val(&*place.0))
    }
}

fn write_line(chunked: &ChunkGrid, place: &[u64], chunk: StoredChunk, line: &mut String) {
    for (axis, (place, extent)) in place.iter().zip(&chunked.chunk_shape).enumerate() {
        let comma = if axis > 0 { "," } else { "" };
        append(
            line,
            format_args!("{comma}{}", place.saturating_mul(*extent)),
        );
    }
    let StoredChunk {
        offset,
        length,
        filter_mask,
    } = chunk;
    append(line, format_args!("\t{offset}\t{length}\t{filter_mask}\n"));
}

/// Appends formatted text to `line`. Appending to a string never fails.
fn append(line: &mut String, text: std::fmt::Arguments<'_>) {
    let _infallible: std::fmt::Result = line.write_fmt(text);
}
