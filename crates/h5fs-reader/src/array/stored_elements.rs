//! The traits by which readers of one kind of array read the elements of another array.

use std::fmt;
use std::sync::Arc;

use crate::array::bytes::Bytes;
use crate::array::geometry::allocation::Allocation;
use crate::array::read_ahead::prefetch::ReadStream;
use crate::error::Result;
use crate::memory::cancel::CancelToken;
use crate::model::Array;

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

/// A reader of an array from which another array takes elements: a source of a virtual array, or
/// the array of a selection.
pub trait SourceReader: fmt::Debug + Send + Sync {
    /// Returns the description of the array.
    fn array(&self) -> &Arc<Array>;

    /// Returns whether the array's bytes are in a remote source.
    fn is_remote(&self) -> bool;

    /// Reads at most `length` bytes of the array from `offset` on. Fewer bytes are returned only at
    /// the end. For reads that belong to `stream`, the chunks that a sequential reader needs next
    /// are decoded ahead.
    ///
    /// # Errors
    /// Fails if a part of the bytes cannot be read or decoded.
    /// [`Error::cancelled`](crate::error::Error::cancelled) once the request is cancelled.
    fn read_source(
        &self,
        stream: Option<&ReadStream>,
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes>;
}
