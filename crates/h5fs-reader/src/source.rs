//! The bytes of files, objects and memory.
//!
//! No file is mapped into memory. If a mapped file is truncated, SIGBUS kills the process; a
//! `pread` past the end returns an ordinary error.
//!
//! The sum of two numbers from a file is checked for overflow where it is computed, see [`Extent`].

pub mod attributes;
pub(crate) mod concatenation;
pub mod directory;
pub mod growing;
pub mod identity;
pub mod local;
pub mod location;
pub mod memory;
pub mod mounts;
pub mod neighbours;
pub mod open;
pub mod overlay;
pub mod packets;
#[cfg(any(test, feature = "testing"))]
pub mod recording;
pub mod remote;

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::memory::buffer::{Buffer, BufferPool};
pub use crate::memory::cancel::WantedCheck;
use crate::wire::{Count, Extent, to_usize};

/// Bytes with a length, readable from any thread at any offset. The bytes are immutable, except in
/// a growing source.
pub trait Source: Send + Sync + fmt::Debug {
    /// Returns the length in bytes.
    fn length(&self) -> u64;

    /// Returns whether a writer is active. If so, the length grows and a read may return
    /// half-written bytes, see `growing::retry_while_growing`.
    fn is_growing(&self) -> bool {
        false
    }

    /// Returns whether the last write is so recent that a structure that looks damaged may be half
    /// written and become valid.
    fn is_recently_written(&self) -> bool {
        self.is_growing()
    }

    /// Returns a view of the same bytes that grows as a writer appends. Returns `None` if the
    /// source cannot grow.
    fn growing_view(self: Arc<Self>) -> Option<SharedSource> {
        None
    }

    /// Returns whether an offset in the source is not an offset in the opened file, because the
    /// source consists of several files, of rearranged bytes, or of another file.
    fn is_composite(&self) -> bool {
        false
    }

    /// Returns the approximate memory in bytes of the source's own data structures, such as a file
    /// name. The memory is counted for each array with elements in the source. Returns 0 if many
    /// arrays share the source.
    fn weight(&self) -> u64 {
        0
    }

    /// Returns how many contiguous bytes can be read from offset `at`: up to the end, or up to a
    /// gap in the address space.
    fn contiguous_bytes(&self, at: u64) -> u64 {
        self.length().minus_or_zero(at)
    }

    /// Returns whether a read takes long, as over a network. Callers should then announce reads
    /// with [`prefetch`](Self::prefetch).
    fn is_remote(&self) -> bool {
        false
    }

    /// Returns whether a sequential reader gets its bytes sooner if [`prefetch`](Self::prefetch)
    /// announces the next ones.
    fn benefits_from_prefetch(&self) -> bool {
        self.is_remote()
    }

    /// Announces that these ranges, each an offset and a length, will be read soon. A remote source
    /// can request all of them at once. The call does not block, and may have no effect.
    fn prefetch(&self, _ranges: &[(u64, u64)], _urgency: Urgency) {}

    /// Returns whether `length` bytes at `at` can be read without a request to a server.
    fn is_available(&self, _at: u64, _length: u64) -> bool {
        true
    }

    /// Announces that the metadata of the file is grouped in pages of `length` bytes, which is not
    /// zero. The first page starts at `base`. After a read within a page, further reads of the page
    /// are likely.
    fn set_metadata_pages(&self, _base: u64, _length: u64) {}

    /// Returns the base and length given to [`set_metadata_pages`](Self::set_metadata_pages).
    /// Returns `None` if the source is local or no pages were announced.
    fn metadata_pages(&self) -> Option<(u64, u64)> {
        None
    }

    /// Fills `buffer` from absolute offset `at`. A source that waits for a server checks
    /// `is_wanted` while it waits. A source made of other sources passes `is_wanted` on.
    ///
    /// # Errors
    /// - `Corrupt` if the source ends before the buffer is full: a format points past the end.
    /// - [`Error::cancelled`] if no request waits for the bytes.
    fn read_cancellable(
        &self,
        at: u64,
        buffer: &mut [u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<()>;

    /// Reads like [`read_cancellable`](Self::read_cancellable), without cancellation.
    ///
    /// # Errors
    /// Fails as [`read_cancellable`](Self::read_cancellable) does.
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        self.read_cancellable(at, buffer, &|| true)
    }
}

/// The probability that announced bytes will be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// The bytes may be read later. Such requests are guesses and are dropped first.
    Expected,
    /// A request waits for the bytes.
    Needed,
}

/// A source with shared ownership: formats and arrays keep it open.
pub type SharedSource = Arc<dyn Source>;

/// Reads `length` bytes at `at`. A range past the end fails before any allocation.
///
/// # Errors
/// `Corrupt` if the source ends first; `what` names the structure in the message.
pub fn read_block(source: &dyn Source, at: u64, length: u64, what: &str) -> Result<Vec<u8>> {
    read_block_cancellable(source, (at, length), what, &|| true)
}

/// Reads like [`read_block`], for a request that may be cancelled.
///
/// # Errors
/// Fails as `read_block` does, and with [`Error::cancelled`] if no request waits for the block.
pub(crate) fn read_block_cancellable(
    source: &dyn Source,
    (at, length): (u64, u64),
    what: &str,
    is_wanted: &WantedCheck<'_>,
) -> Result<Vec<u8>> {
    check_range(source, at, length, what)?;
    let mut block = vec![0; to_usize(length)?];
    source.read_cancellable(at, &mut block, is_wanted)?;
    Ok(block)
}

/// Reads like [`read_block_cancellable`], directly into shared memory: the block is never in memory
/// twice.
///
/// # Errors
/// Fails as [`read_block_cancellable`] does.
pub(crate) fn read_shared_block(
    source: &dyn Source,
    (at, length): (u64, u64),
    what: &str,
    is_wanted: &WantedCheck<'_>,
) -> Result<Arc<[u8]>> {
    check_range(source, at, length, what)?;
    let mut block: Arc<[u8]> = std::iter::repeat_n(0, to_usize(length)?).collect();
    source.read_cancellable(at, Arc::make_mut(&mut block), is_wanted)?;
    Ok(block)
}

/// Reads like [`read_block`] into memory of `pool`, for a request that may be cancelled.
///
/// # Errors
/// Fails as `read_block` does, with `Io` (`ENOMEM`) if memory is exhausted, and with
/// [`Error::cancelled`] if no request waits for the bytes.
pub(crate) fn read_buffer(
    source: &dyn Source,
    (at, length): (u64, u64),
    (pool, is_wanted): (&BufferPool, &WantedCheck<'_>),
    what: &str,
) -> Result<Buffer> {
    check_range(source, at, length, what)?;
    let mut bytes = pool.rounded_buffer(to_usize(length)?)?;
    source.read_cancellable(at, &mut bytes, is_wanted)?;
    Ok(bytes)
}

/// Checks that `length` bytes at `at` are inside the source, and returns their range.
///
/// # Errors
/// `Corrupt` if the range reaches past the end.
pub fn check_range(source: &dyn Source, at: u64, length: u64, what: &str) -> Result<Extent> {
    let range = Extent::checked(at, length).filter(|range| range.is_within(source.length()));
    range.ok_or_else(|| Error::corrupt(format!("{what}: reaches past the end of the file"), at))
}
