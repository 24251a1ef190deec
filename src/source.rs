//! Where bytes come from: files and memory.
//!
//! Nothing is mapped into memory: a file that is truncated under a mapping kills the process with
//! SIGBUS, a `pread` beyond the end is an error like any other.
//!
//! A sum of two numbers from a file is checked where it is made, see [`Extent`].

#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::disallowed_methods,
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::as_conversions
    )
)]

pub mod attributes;
pub mod concatenation;
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
pub(crate) mod recording;
pub mod remote;

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::memory::buffer::{Buffer, BufferPool};
pub use crate::memory::cancel::IsWanted;
use crate::wire::{Count, Extent, to_usize};

/// Bytes with a length, readable from any thread at any offset; immutable, unless they grow.
pub trait Source: Send + Sync + fmt::Debug {
    /// Length in bytes.
    fn length(&self) -> u64;

    /// Whether a writer is at work, so that the length grows and what is read may be half written,
    /// see [`settled`](growing::settled).
    fn is_growing(&self) -> bool {
        false
    }

    /// Whether the writer wrote a moment ago, so that damage may pass.
    fn is_unsettled(&self) -> bool {
        self.is_growing()
    }

    /// The same bytes as a writer appends to them; `None` where none can.
    fn growing(self: Arc<Self>) -> Option<SharedSource> {
        None
    }

    /// Bytes of memory that its description takes in each array that reads from it; 0 where many
    /// share it.
    fn weight(&self) -> u64 {
        0
    }

    /// Bytes that can be read from `at` on in one piece: to the end, or to where the address space
    /// has a gap.
    fn available(&self, at: u64) -> u64 {
        self.length().left_after(at)
    }

    /// Whether asking for bytes takes long: then it pays to find out what will be read, and to say
    /// so with [`prefetch`](Self::prefetch).
    fn is_far(&self) -> bool {
        false
    }

    /// Whether a sequential reader gets bytes sooner if those that it will come to are told with
    /// [`prefetch`](Self::prefetch).
    fn reads_ahead(&self) -> bool {
        self.is_far()
    }

    /// Says that these ranges, offset and length of each, are about to be read: all of them can be
    /// asked for at once where asking takes long. It returns at once, and may do nothing.
    fn prefetch(&self, _ranges: &[(u64, u64)], _urgency: Urgency) {}

    /// Whether `length` bytes at `at` can be read without asking for them.
    fn has(&self, _at: u64, _length: u64) -> bool {
        true
    }

    /// Says that structures stand together in pages of `length` bytes, not zero, the first of them
    /// at `base`: where one is read, others of its page follow.
    fn set_pages(&self, _base: u64, _length: u64) {}

    /// The same base and length, of a far source that was told of them.
    fn pages(&self) -> Option<(u64, u64)> {
        None
    }

    /// Fills `buffer` from absolute offset `at`. A source that waits for a server checks `is_wanted`
    /// while it waits; a source over others passes it to them.
    ///
    /// # Errors
    /// `Corrupt` where the source ends before the buffer is full: a format points past the end;
    /// [`Error::unwanted`] where no request waits for the bytes any more.
    fn read_wanted(&self, at: u64, buffer: &mut [u8], is_wanted: &IsWanted<'_>) -> Result<()>;

    /// Like [`read_wanted`](Self::read_wanted), for bytes that are wanted in any case.
    ///
    /// # Errors
    /// Fails as `read_wanted` does.
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        self.read_wanted(at, buffer, &|| true)
    }
}

/// How sure it is that bytes will be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// They may be read later: a guess, which is dropped before anything else.
    Expected,
    /// A request waits for them.
    Needed,
}

/// A source that formats, arrays and readers share.
pub type SharedSource = Arc<dyn Source>;

/// Reads `length` bytes at `at`; a length that reaches past the end costs no allocation.
///
/// # Errors
/// `Corrupt` where the source ends first, `what` being the structure that was to be read.
pub fn read_block(source: &dyn Source, at: u64, length: u64, what: &str) -> Result<Vec<u8>> {
    read_wanted_block(source, (at, length), what, &|| true)
}

/// Like [`read_block`], for a request that may go away meanwhile.
///
/// # Errors
/// Fails as `read_block` does; [`Error::unwanted`] where no request waits for it any more.
pub fn read_wanted_block(
    source: &dyn Source,
    (at, length): (u64, u64),
    what: &str,
    is_wanted: &IsWanted<'_>,
) -> Result<Vec<u8>> {
    check_range(source, at, length, what)?;
    let mut block = vec![0; to_usize(length)?];
    source.read_wanted(at, &mut block, is_wanted)?;
    Ok(block)
}

/// Like [`read_wanted_block`], for a block that is kept: it is never in memory twice.
///
/// # Errors
/// Fails as `read_wanted_block` does.
pub fn read_shared_block(
    source: &dyn Source,
    (at, length): (u64, u64),
    what: &str,
    is_wanted: &IsWanted<'_>,
) -> Result<Arc<[u8]>> {
    check_range(source, at, length, what)?;
    let mut block: Arc<[u8]> = std::iter::repeat_n(0, to_usize(length)?).collect();
    source.read_wanted(at, Arc::make_mut(&mut block), is_wanted)?;
    Ok(block)
}

/// Like [`read_block`], into memory of `pool`, for a request that may go away meanwhile.
///
/// # Errors
/// Fails as `read_block` does; `Io` (`ENOMEM`) where there is no memory for it;
/// [`Error::unwanted`] where no request waits for it any more.
pub fn read_buffer(
    source: &dyn Source,
    (at, length): (u64, u64),
    (pool, is_wanted): (&BufferPool, &IsWanted<'_>),
    what: &str,
) -> Result<Buffer> {
    check_range(source, at, length, what)?;
    let mut bytes = pool.rounded_buffer(to_usize(length)?)?;
    source.read_wanted(at, &mut bytes, is_wanted)?;
    Ok(bytes)
}

/// `length` bytes at `at`, which are inside the source.
///
/// # Errors
/// `Corrupt` if they are not.
pub fn check_range(source: &dyn Source, at: u64, length: u64, what: &str) -> Result<Extent> {
    let range = Extent::checked(at, length).filter(|range| range.is_within(source.length()));
    range.ok_or_else(|| Error::corrupt(format!("{what}: reaches past the end of the file"), at))
}
