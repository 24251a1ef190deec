//! The content of the files of the mount: a length and a `read_for`.
//!
//! A view is made for each open file, so it may hold what belongs to one reader: a prefetch stream,
//! the place in a text that is produced from front to back.

mod calendar;
pub(crate) mod cf;
pub(crate) mod csv;
pub(crate) mod elements;
pub(crate) mod parquet;
pub(crate) mod pictures;
pub(crate) mod table;
pub(crate) mod texts;
pub(crate) mod zarr;

use crate::array::{Bytes, CancelToken};
use crate::error::{Error, Result};

/// The content of one open file.
pub(crate) trait View: Send + Sync {
    /// Bytes of the whole content.
    fn length(&self) -> u64;

    /// Bytes of memory that it holds for itself alone; each read may change that.
    fn own_bytes(&self) -> u64 {
        0
    }

    /// What it costs to come by all of it, beside the elements themselves, in values that are looked
    /// at.
    fn chunk_values(&self) -> u64 {
        0
    }

    /// Whether it is known that none of its bytes come from far away.
    fn is_near(&self) -> bool {
        false
    }

    /// Whether the next open has another text.
    fn is_of_the_moment(&self) -> bool {
        false
    }

    /// Whether the kernel is to keep nothing of it: the next open has another text, or it can only be
    /// read from front to back.
    fn is_uncached(&self) -> bool {
        self.is_of_the_moment()
    }

    /// Returns the error with which every read fails, where that is known without a read.
    fn failure(&self) -> Option<&Error> {
        None
    }

    /// Lets go of what reads have left, which can be made again.
    fn forget(&self) {}

    /// Returns the bytes from `offset` on, at most `length`; fewer at the end only. Work that takes
    /// long checks `cancel`, and passes it to every read below.
    ///
    /// # Errors
    /// Fails if a part that the range touches cannot be read;
    /// [`Error::unwanted`](crate::error::Error::unwanted) once the request is cancelled.
    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes>;

    /// Like [`read_for`](Self::read_for), for work that no request waits for.
    ///
    /// # Errors
    /// Fails as `read_for` does.
    fn read_at(&self, offset: u64, length: usize) -> Result<Bytes> {
        self.read_for(offset, length, &CancelToken::default())
    }

    /// The same bytes, if they are to be had at once; `None` where that may take long.
    ///
    /// # Errors
    /// Fails as `read_for` does.
    fn read_now(&self, _offset: u64, _length: usize) -> Result<Option<Bytes>> {
        Ok(None)
    }

    /// Whether cancelled work is given up.
    fn is_given_up(&self) -> bool {
        false
    }

    /// The first byte at or after `offset` that is no hole; `None` where there is none.
    ///
    /// # Errors
    /// Fails if what tells holes from data cannot be read.
    fn data_at(&self, offset: u64) -> Result<Option<u64>> {
        Ok((offset < self.length()).then_some(offset))
    }

    /// The first byte at or after `offset` that begins a hole; the length where there is none.
    ///
    /// # Errors
    /// Fails if what tells holes from data cannot be read.
    fn hole_at(&self, _offset: u64) -> Result<u64> {
        Ok(self.length())
    }
}
