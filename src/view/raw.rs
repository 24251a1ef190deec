//! An array's elements as the file stores them: C order, stored type, filters undone.

use std::sync::Arc;

use crate::array::{Bytes, Reader, Stream};
use crate::error::Result;
use crate::view::View;

/// The elements of one array.
pub struct Raw {
    reader: Arc<Reader>,
    stream: Stream,
}

impl Raw {
    /// The elements that `reader` reads.
    pub fn new(reader: Arc<Reader>) -> Self {
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
        self.stream.advise(&self.reader, offset, length);
        self.reader.read(offset, length)
    }

    fn data_at(&self, offset: u64) -> Result<Option<u64>> {
        Ok(self.reader.allocation()?.data_at(offset))
    }

    fn hole_at(&self, offset: u64) -> Result<u64> {
        Ok(self.reader.allocation()?.hole_at(offset))
    }
}
