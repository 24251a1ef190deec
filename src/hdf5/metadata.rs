//! The way to all metadata of one file: fetches each structure as one bounded block, has it
//! verified once, and keeps it within a byte limit.
//!
//! Addresses in the file are relative to the superblock's base address (HDF5 3.0, II.A); here they become
//! absolute file offsets as soon as they are read, so that nothing above has to know the base.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::limits;
use crate::model::kept::Kept;
use crate::source::{SharedSource, read_shared_block};
use crate::wire::checksum::lookup3;
use crate::wire::{Cursor, to_u64};

/// Blocks by place and length.
type Blocks = Kept<(u64, u64), Arc<[u8]>>;

/// One file's metadata: where it is, and how wide its numbers are.
#[derive(Debug)]
pub struct Metadata {
    source: SharedSource,
    base: u64,
    size_of_offsets: usize,
    size_of_lengths: usize,
    cache: Mutex<Blocks>,
}

impl Metadata {
    /// `base` is the absolute offset of address 0; the sizes are the superblock's, in bytes.
    pub fn new(
        source: SharedSource,
        base: u64,
        size_of_offsets: usize,
        size_of_lengths: usize,
    ) -> Self {
        let cache = Mutex::new(Kept::new(limits::METADATA_CACHE));
        Metadata {
            source,
            base,
            size_of_offsets,
            size_of_lengths,
            cache,
        }
    }

    /// The file.
    pub fn source(&self) -> &SharedSource {
        &self.source
    }

    /// Absolute offset of address 0.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Bytes of an address.
    pub fn size_of_offsets(&self) -> usize {
        self.size_of_offsets
    }

    /// Bytes of a length.
    pub fn size_of_lengths(&self) -> usize {
        self.size_of_lengths
    }

    /// The next address as an absolute file offset; `None` for the undefined address (all bits one).
    pub fn address(&self, cursor: &mut Cursor<'_>) -> Result<Option<u64>> {
        let mut ahead = cursor.clone();
        if ahead
            .take(self.size_of_offsets)?
            .iter()
            .all(|&byte| byte == 0xff)
        {
            *cursor = ahead;
            return Ok(None);
        }
        let relative = cursor.uint(self.size_of_offsets)?;
        let absolute = relative.checked_add(self.base);
        absolute
            .map(Some)
            .ok_or_else(|| cursor.corrupt("an address is past all files"))
    }

    /// The next address, which must be defined.
    pub fn defined_address(&self, cursor: &mut Cursor<'_>) -> Result<u64> {
        self.address(cursor)?
            .ok_or_else(|| cursor.corrupt("an address is undefined"))
    }

    /// The next length in bytes.
    pub fn length(&self, cursor: &mut Cursor<'_>) -> Result<u64> {
        cursor.uint(self.size_of_lengths)
    }

    /// The `length` bytes at absolute offset `at`, from the cache or from the file, where `verify` has to
    /// accept them before they are kept.
    ///
    /// # Errors
    /// `Limit` over `limits::METADATA_BLOCK`, `Corrupt` past the end of the file, or as `verify` says.
    pub fn block(
        &self,
        at: u64,
        length: u64,
        what: &'static str,
        verify: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<Arc<[u8]>> {
        if length > limits::METADATA_BLOCK {
            return Err(Error::limit(what, limits::METADATA_BLOCK));
        }
        self.made_block(at, length, || {
            let block = read_shared_block(&*self.source, at, length, what)?;
            verify(&block)?;
            Ok(block)
        })
    }

    /// What `make` makes of the `length` bytes at absolute offset `at`, or made of them before: the block
    /// itself, or what is behind its filters.
    ///
    /// # Errors
    /// As `make` says.
    pub fn made_block<B: Into<Arc<[u8]>>>(
        &self,
        at: u64,
        length: u64,
        make: impl FnOnce() -> Result<B>,
    ) -> Result<Arc<[u8]>> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(block) = cache.get(&(at, length)) {
            return Ok(Arc::clone(block));
        }
        drop(cache);
        let block: Arc<[u8]> = make()?.into();
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.put((at, length), Arc::clone(&block), to_u64(block.len()));
        Ok(block)
    }

    /// As [`block`](Self::block), for a structure without a checksum.
    pub fn plain_block(&self, at: u64, length: u64, what: &'static str) -> Result<Arc<[u8]>> {
        self.block(at, length, what, |_| Ok(()))
    }
}

/// Requires the last four bytes of `block` to be the lookup3 checksum of all before them.
///
/// # Errors
/// `Corrupt`, naming `what` at absolute offset `at`.
pub fn verify_checksum(block: &[u8], at: u64, what: &str) -> Result<()> {
    let stored = block.split_last_chunk::<4>();
    match stored {
        Some((body, sum)) if lookup3(body) == u32::from_le_bytes(*sum) => Ok(()),
        _ => Err(Error::corrupt(format!("{what}: wrong checksum"), at)),
    }
}
