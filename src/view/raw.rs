//! An array's elements as the file stores them: C order, stored type, filters undone.

use std::sync::Arc;

use crate::array::{Bytes, CancelToken, Reader, Stream};
use crate::error::Result;
use crate::view::View;

/// The elements of one array.
pub(crate) struct Raw {
    reader: Arc<Reader>,
    stream: Stream,
}

impl Raw {
    /// The elements that `reader` reads.
    pub(crate) fn new(reader: Arc<Reader>) -> Self {
        Raw {
            reader,
            stream: Stream::new(),
        }
    }
}

impl View for Raw {
    fn length(&self) -> Option<u64> {
        Some(self.reader.length())
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Bytes> {
        self.read_for(offset, length, &CancelToken::default())
    }

    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        let stream = Some(&self.stream);
        self.reader.read_in(stream, offset, length, cancel)
    }

    fn read_now(&self, offset: u64, length: usize) -> Result<Option<Bytes>> {
        self.reader.read_now(&self.stream, offset, length)
    }

    fn is_given_up(&self) -> bool {
        self.reader.is_encoded()
    }

    fn data_at(&self, offset: u64) -> Result<Option<u64>> {
        Ok(self.reader.allocation()?.data_at(offset))
    }

    fn hole_at(&self, offset: u64) -> Result<u64> {
        Ok(self.reader.allocation()?.hole_at(offset))
    }
}
