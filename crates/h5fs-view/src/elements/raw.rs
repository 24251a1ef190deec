//! The file of an array's elements: C order, stored datatype, with all filters reversed.

use std::sync::Arc;

use h5fs_reader::array::{Bytes, CancelToken, ReadStream, Reader};
use h5fs_reader::error::Result;
use h5fs_reader::model::Array;

use crate::limits;
use crate::view::View;

/// The file with the elements of one array.
pub struct RawElements {
    reader: Arc<Reader>,
    stream: ReadStream,
}

impl RawElements {
    /// Creates the file with the elements that `reader` reads.
    pub fn new(reader: Arc<Reader>) -> Self {
        RawElements {
            reader,
            stream: ReadStream::new(),
        }
    }
}

/// Returns the cost of locating all chunks of an array and reversing their filters. The unit is the
/// cost of formatting one value.
pub(crate) fn chunk_values(array: &Array) -> u64 {
    let Some(chunk) = &array.chunk_shape else {
        return 0;
    };
    let along = array.shape.dims().iter().zip(chunk.iter());
    let chunks = along.map(|(dim, chunk)| dim.div_ceil((*chunk).max(1)));
    let chunks = chunks.fold(1, u64::saturating_mul);
    chunks.saturating_mul(if array.pipeline.0.is_empty() {
        limits::CHUNK_VALUES
    } else {
        limits::FILTERED_CHUNK_VALUES
    })
}

impl View for RawElements {
    fn length(&self) -> u64 {
        self.reader.length()
    }

    fn chunk_values(&self) -> u64 {
        chunk_values(self.reader.array())
    }

    fn is_near(&self) -> bool {
        !self.reader.is_remote()
    }

    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        let stream = Some(&self.stream);
        self.reader.read_in_stream(stream, offset, length, cancel)
    }

    fn read_now(&self, offset: u64, length: usize) -> Result<Option<Bytes>> {
        self.reader.try_read(&self.stream, offset, length)
    }

    fn stops_on_cancel(&self) -> bool {
        self.reader.is_slow_to_read()
    }

    fn data_at(&self, offset: u64) -> Result<Option<u64>> {
        Ok(self.reader.allocation()?.next_data(offset))
    }

    fn hole_at(&self, offset: u64) -> Result<u64> {
        Ok(self.reader.allocation()?.next_hole(offset))
    }
}
