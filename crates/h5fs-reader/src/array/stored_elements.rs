//! The stored elements of an array or of a part of one, however they are read.

use crate::array::bytes::Bytes;
use crate::array::geometry::allocation::Allocation;
use crate::error::Result;
use crate::memory::cancel::CancelToken;

/// The stored elements of an array or of a part of one.
pub trait StoredElements: Send + Sync {
    /// Reads at most `length` bytes of the stored elements from `offset` on. Fewer bytes are
    /// returned only at the end.
    ///
    /// # Errors
    /// Fails if the bytes cannot be read. [`Error::cancelled`](crate::error::Error::cancelled) once
    /// the request is cancelled.
    fn read_stored(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes>;

    /// Returns which bytes of the stored elements are in the file, or `None` if that is not known.
    fn known_allocation(&self) -> Option<Allocation> {
        None
    }
}
