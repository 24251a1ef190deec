//! The trait that the content of every file of a mount implements.

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::{Error, Result};

/// The content of one open file.
pub trait View: Send + Sync {
    /// Returns the length of the whole content, in bytes.
    fn length(&self) -> u64;

    /// Returns the bytes of memory that this view alone holds. Each read may change the number.
    fn own_bytes(&self) -> u64 {
        0
    }

    /// Returns the cost of locating and decoding all chunks of the content. The cost of its
    /// elements is not included. The unit is the cost of formatting one value.
    fn chunk_values(&self) -> u64 {
        0
    }

    /// Returns whether all bytes are known to come from a local file or from memory.
    fn is_near(&self) -> bool {
        false
    }

    /// Returns whether each open generates a new text, such as the current status.
    fn changes_at_each_open(&self) -> bool {
        false
    }

    /// Returns whether the kernel must not cache the content. This is the case if each open
    /// generates a new text, or if the content can only be read from front to back.
    fn is_uncached(&self) -> bool {
        self.changes_at_each_open()
    }

    /// Returns the error of every read, if the view knows it without reading.
    fn failure(&self) -> Option<&Error> {
        None
    }

    /// Drops cached state of earlier reads that a later read can rebuild.
    fn forget(&self) {}

    /// Returns at most `length` bytes from `offset` on; fewer only at the end of the content. Long
    /// work checks `cancel`, and passes it to every nested read.
    ///
    /// # Errors
    /// Fails if a part within the range cannot be read. Returns
    /// [`Error::cancelled`](h5fs_reader::error::Error::cancelled) once the request is cancelled.
    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes>;

    /// Like [`read_for`](Self::read_for), for work that is not part of a request.
    ///
    /// # Errors
    /// Fails as `read_for` does.
    fn read_at(&self, offset: u64, length: usize) -> Result<Bytes> {
        self.read_for(offset, length, &CancelToken::default())
    }

    /// Returns the same bytes as `read_for` if they are available at once, and `None` if reading
    /// them may take long.
    ///
    /// # Errors
    /// Fails as `read_for` does.
    fn read_now(&self, _offset: u64, _length: usize) -> Result<Option<Bytes>> {
        Ok(None)
    }

    /// Returns whether a read stops when its request is cancelled.
    fn stops_on_cancel(&self) -> bool {
        false
    }

    /// Returns the first offset at or after `offset` that is not in a hole; `None` if only a hole
    /// follows.
    ///
    /// # Errors
    /// Fails if the allocation of the array cannot be read.
    fn data_at(&self, offset: u64) -> Result<Option<u64>> {
        Ok((offset < self.length()).then_some(offset))
    }

    /// Returns the first offset at or after `offset` where a hole begins; the length if no hole
    /// follows.
    ///
    /// # Errors
    /// Fails if the allocation of the array cannot be read.
    fn hole_at(&self, _offset: u64) -> Result<u64> {
        Ok(self.length())
    }
}
