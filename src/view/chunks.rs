//! The chunk index of an array as text: a line for each stored chunk, in the order of the index.
//!
//! Four columns, with tabs between them: the chunk's first element, an index for each dimension
//! (`0,100,0`); the offset in the file and the stored length, both in bytes; the filter mask, in
//! which bit n says that filter n was not applied.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::Result;
use crate::model::Array;
use crate::model::storage::{Chunked, Storage, StoredChunk};
use crate::view::piped::{Piped, Sink};

/// The text of the index of `array`; `None` where it has no chunks.
///
/// # Errors
/// Why the storage is not readable.
pub fn view(array: Arc<Array>) -> Result<Option<Piped>> {
    if array.chunk_shape.is_none() {
        return Ok(None);
    }
    array.storage.as_ref().map_err(Clone::clone)?;
    let write = move |sink: &mut dyn Sink| match &array.storage {
        Ok(Storage::Chunked(chunked)) => write(chunked, sink),
        // No chunk is stored.
        _ => Ok(()),
    };
    Ok(Some(Piped::new(write)))
}

fn write(chunked: &Chunked, sink: &mut dyn Sink) -> Result<()> {
    let mut line = String::new();
    let mut put = Ok(());
    chunked.index.walk(&mut |place, chunk| {
        line.clear();
        write_line(chunked, place, chunk, &mut line);
        put = sink.put(line.as_bytes());
        match put {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    put
}

fn write_line(chunked: &Chunked, place: &[u64], chunk: StoredChunk, line: &mut String) {
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

/// Appends formatted text; memory does not refuse a write.
fn append(line: &mut String, text: std::fmt::Arguments<'_>) {
    let _infallible: std::fmt::Result = line.write_fmt(text);
}
