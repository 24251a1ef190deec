//! Access to all metadata of one file. Each structure is read as one bounded block, verified once,
//! and cached within a byte limit.
//!
//! Addresses in the file are relative to the superblock's base address (HDF5 3.0, II.A). They are
//! converted to absolute file offsets when they are read, so that other modules do not need the
//! base.

use std::sync::Arc;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::hdf5::file::number_form::{Address, AddressEncoding, Width};
use crate::limits;
use crate::memory::request_budget::RequestBudget;
use crate::memory::shared_lru::FileLru;
use crate::source::growing::retry_while_growing;
use crate::source::{SharedSource, Urgency, read_block, read_block_cancellable, read_shared_block};
use crate::wire::checksum::lookup3;
use crate::wire::{Count, Cursor, Extent, to_u64};

/// A block's address and length in its file. For a decoded block, the address and length of its
/// stored form.
pub(crate) type BlockRange = (Address, u64);

/// A verified block, and the time at which reading it began.
pub(crate) type TimedBlock = (Arc<[u8]>, Instant);

/// The cache of blocks of one file.
pub(crate) type BlockCache = FileLru<BlockRange, TimedBlock>;

/// The metadata of one file: its source, and the widths of its numbers.
#[derive(Debug)]
pub(crate) struct Metadata {
    source: SharedSource,
    address_encoding: AddressEncoding,
    cache: Arc<BlockCache>,
    /// Cached blocks that were read before this time are not used.
    oldest_usable_read: Option<Instant>,
    /// The budget of the request that reads are charged to.
    budget: RequestBudget,
}

impl Metadata {
    /// Creates the metadata of a file whose addresses and lengths have the superblock's `form`.
    /// Blocks are cached in `cache`.
    pub(crate) fn new(source: SharedSource, form: AddressEncoding, cache: BlockCache) -> Self {
        Metadata {
            source,
            address_encoding: form,
            cache: Arc::new(cache),
            oldest_usable_read: None,
            budget: RequestBudget::default(),
        }
    }

    /// Drops all blocks of this file from the cache.
    pub(crate) fn clear_cache(&self) {
        self.cache.clear();
    }

    /// Returns a view of the same metadata for a structure that outlives the request. Its reads are
    /// charged to no request. If the file is growing, blocks that were cached before this call are
    /// not used. A writer writes a structure before its parent, so a block below a new structure
    /// must not be older than that structure.
    pub(crate) fn fresh_view(&self) -> Arc<Self> {
        let since = self.source.is_growing().then(Instant::now);
        self.copy(since, RequestBudget::default())
    }

    /// Returns a view of the same metadata for one request, whose reads are charged to `budget`.
    pub(crate) fn with_budget(&self, budget: &RequestBudget) -> Arc<Self> {
        self.copy(self.oldest_usable_read, budget.clone())
    }

    fn copy(&self, since: Option<Instant>, budget: RequestBudget) -> Arc<Self> {
        Arc::new(Metadata {
            source: Arc::clone(&self.source),
            address_encoding: self.address_encoding,
            cache: Arc::clone(&self.cache),
            oldest_usable_read: since,
            budget,
        })
    }

    /// Returns the budget that reads are charged to.
    pub(crate) fn budget(&self) -> &RequestBudget {
        &self.budget
    }

    /// Returns the source of the file's bytes.
    pub(crate) fn source(&self) -> &SharedSource {
        &self.source
    }

    /// Returns the absolute offset of address 0.
    pub(crate) fn base(&self) -> u64 {
        self.address_encoding.base
    }

    /// Returns the absolute offset of the first byte that can belong to an element. The shortest
    /// superblock has version 2, with 16 bytes and four addresses (HDF5 3.0, II.A).
    pub(crate) fn min_data_offset(&self) -> u64 {
        let superblock = to_u64(self.structure_size(4, 0, 16));
        Extent::saturating(self.base(), superblock).end()
    }

    /// Returns the number of bytes of an address.
    pub(crate) fn size_of_offsets(&self) -> Width {
        self.address_encoding.size_of_offsets
    }

    /// Returns the number of bytes of a structure of `addresses` addresses, `lengths` lengths and
    /// `others` other bytes.
    pub(crate) fn structure_size(&self, addresses: usize, lengths: usize, others: usize) -> usize {
        self.address_encoding
            .structure_size(addresses, lengths, others)
    }

    /// Reads the next address as an absolute file offset. Returns `None` for the undefined address
    /// (all bits one).
    pub(crate) fn read_address(&self, cursor: &mut Cursor<'_>) -> Result<Option<Address>> {
        self.address_encoding.read_address(cursor)
    }

    /// Reads the next address as an absolute file offset. Fails with `Corrupt` for the undefined
    /// address.
    pub(crate) fn read_defined_address(&self, cursor: &mut Cursor<'_>) -> Result<Address> {
        self.read_address(cursor)?
            .ok_or_else(|| cursor.corrupt("an address is undefined"))
    }

    /// Reads the next length field, in the superblock's size of lengths.
    pub(crate) fn read_length(&self, cursor: &mut Cursor<'_>) -> Result<u64> {
        cursor.uint(self.address_encoding.size_of_lengths.bytes())
    }

    /// Reads the next length field, in the superblock's size of lengths. Returns `None` if all bits
    /// are one, which means an undefined or unlimited value.
    pub(crate) fn read_optional_length(&self, cursor: &mut Cursor<'_>) -> Result<Option<u64>> {
        cursor.optional_uint(self.address_encoding.size_of_lengths.bytes())
    }

    /// Returns the `length` bytes at absolute offset `at`, from the cache or from the file.
    /// `verify` must accept bytes from the file before they are cached.
    ///
    /// # Errors
    /// `Limit` for more than [`limits::METADATA_BLOCK`] bytes, `BudgetExceeded` if the request's
    /// budget is exhausted, `Corrupt` if the block extends past the end of the file, or the error
    /// of `verify`.
    pub(crate) fn verified_block(
        &self,
        at: Address,
        length: u64,
        what: &'static str,
        verify: impl Fn(&[u8]) -> Result<()>,
    ) -> Result<Arc<[u8]>> {
        self.cached_block(at, length, || {
            self.budget.spend(length)?;
            let block = self.fetch(at, length, what)?;
            verify(&block)?;
            Ok(block)
        })
    }

    /// Returns the block for the `length` bytes at absolute offset `at`, from the cache or from a
    /// call of `make`. The block is these bytes themselves or their decoded form.
    ///
    /// # Errors
    /// Fails as `make` does.
    pub(crate) fn cached_block<B: Into<Arc<[u8]>>>(
        &self,
        at: Address,
        length: u64,
        mut make: impl FnMut() -> Result<B>,
    ) -> Result<Arc<[u8]>> {
        if let Some((block, read)) = self.cache.get((at, length))
            && self.oldest_usable_read.is_none_or(|since| read >= since)
        {
            return Ok(block);
        }
        let (block, read): (Arc<[u8]>, _) = retry_while_growing(&*self.source, || {
            let read = Instant::now();
            Ok((make()?.into(), read))
        })?;
        let weight = to_u64(block.len());
        self.cache
            .put((at, length), (Arc::clone(&block), read), weight);
        Ok(block)
    }

    /// Returns a block like [`verified_block`](Self::verified_block), for a structure without a
    /// checksum. The request's budget is not charged.
    pub(crate) fn unverified_block(
        &self,
        at: Address,
        length: u64,
        what: &'static str,
    ) -> Result<Arc<[u8]>> {
        self.cached_block(at, length, || self.fetch(at, length, what))
    }

    fn fetch(&self, at: Address, length: u64, what: &'static str) -> Result<Arc<[u8]>> {
        Error::check_limit(length, limits::METADATA_BLOCK, what)?;
        self.check_available(at.offset(), length)?;
        let place = (at.offset(), length);
        read_shared_block(&*self.source, place, what, &self.is_wanted())
    }

    /// Reads the `length` bytes at absolute offset `at` without caching them.
    ///
    /// # Errors
    /// Fails as [`read_block_cancellable`] does. `BudgetExceeded` if the request must not wait and
    /// the bytes are not available yet.
    pub(crate) fn read_uncached(&self, at: u64, length: u64, what: &str) -> Result<Vec<u8>> {
        self.check_available(at, length)?;
        read_block_cancellable(&*self.source, (at, length), what, &self.is_wanted())
    }

    /// Returns a function that checks whether a request still waits for the bytes.
    fn is_wanted(&self) -> impl Fn() -> bool + Sync + '_ {
        || !self.budget.cancel_token().is_abandoned()
    }

    /// Checks that the request can read the `length` bytes at absolute offset `at` now, or may wait
    /// for them. Otherwise, requests the bytes from the source.
    ///
    /// # Errors
    /// `BudgetExceeded` if the request must not wait and the bytes are not available yet.
    pub(crate) fn check_available(&self, at: u64, length: u64) -> Result<()> {
        let block = Extent::checked(at, length);
        let is_inside = block.is_some_and(|block| block.is_within(self.source.length()));
        if !self.budget.is_non_blocking() || !is_inside || self.source.is_available(at, length) {
            return Ok(());
        }
        self.source.prefetch(&[(at, length)], Urgency::Expected);
        let source = Arc::clone(&self.source);
        Err(self.budget.fail_with_wait(Box::new(move || {
            // The next reader of these bytes reports the error.
            let _ = read_block(&*source, at, length, "metadata");
        })))
    }

    /// Returns whether reading may have to wait for a remote source.
    pub(crate) fn is_remote(&self) -> bool {
        self.source.is_remote()
    }

    /// Returns whether the structure at `at`, of about `length` bytes, can be read without waiting.
    pub(crate) fn is_available(&self, at: Address, length: u64) -> bool {
        let there = self.source.length().minus_or_zero(at.offset());
        self.source.is_available(at.offset(), length.min(there))
    }

    /// Asks a remote source for structures that will be read soon, each given by its address and
    /// approximate length.
    pub(crate) fn prefetch(&self, structures: impl IntoIterator<Item = (Address, u64)>) {
        let structures = structures.into_iter();
        self.prefetch_at(structures.map(|(at, length)| (at.offset(), length)));
    }

    /// Asks a remote source for structures like [`prefetch`](Self::prefetch). They are given by
    /// absolute offset and approximate length.
    pub(crate) fn prefetch_at(&self, structures: impl Iterator<Item = (u64, u64)>) {
        if !self.is_remote() {
            return;
        }
        let end = self.source.length();
        let mut left = limits::HINTED_METADATA;
        let ranges = structures.take(limits::RANGES_AT_ONCE);
        let ranges = ranges.filter_map(|(at, length)| {
            let there = end.checked_sub(at)?;
            Some((at, length.min(there)))
        });
        let ranges = ranges.map_while(|(at, length)| {
            let length = length.min(left);
            left = left.minus_or_zero(length);
            (length > 0).then_some((at, length))
        });
        let ranges: Vec<_> = ranges.collect();
        if !ranges.is_empty() {
            self.source.prefetch(&ranges, Urgency::Expected);
        }
    }

    /// Asks a remote source for the structure at `at`, of about `length` bytes, if reading it would
    /// have to wait. Then also asks for `siblings`, the structures at the same depth that are read
    /// next.
    pub(crate) fn prefetch_with_siblings<I: IntoIterator<Item = (Address, u64)>>(
        &self,
        at: Address,
        length: u64,
        siblings: impl FnOnce() -> I,
    ) {
        if self.is_remote() && !self.is_available(at, length) {
            let there = self.source.length().minus_or_zero(at.offset());
            let needed = (at.offset(), length.min(there));
            let urgency = if self.budget.is_non_blocking() {
                Urgency::Expected
            } else {
                Urgency::Needed
            };
            self.source.prefetch(&[needed], urgency);
            self.prefetch(siblings());
        }
    }
}

/// Checks that the last four bytes of `block` are the lookup3 checksum of the bytes before them.
///
/// # Errors
/// `Corrupt` if the checksum is wrong. The error names the structure `what` at absolute offset
/// `at`.
pub(crate) fn verify_checksum(block: &[u8], at: Address, what: &str) -> Result<()> {
    let stored = block.split_last_chunk::<4>();
    match stored {
        Some((body, sum)) if lookup3(body) == u32::from_le_bytes(*sum) => Ok(()),
        _ => Err(Error::corrupt(format!("{what}: wrong checksum"), at)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::hdf5::file::caches::Caches;
    use crate::hdf5::testing::{at, form};
    use crate::source::{Source, WantedCheck};

    /// A file of one byte, whose content changes at each read.
    #[derive(Debug)]
    struct ChangingSource(Mutex<u8>, bool);

    impl Source for ChangingSource {
        fn length(&self) -> u64 {
            1
        }

        fn is_growing(&self) -> bool {
            self.1
        }

        fn read_cancellable(&self, _: u64, buffer: &mut [u8], _: &WantedCheck<'_>) -> Result<()> {
            let mut next = self.0.lock().unwrap();
            buffer.fill(*next);
            *next += 1;
            Ok(())
        }
    }

    fn metadata(is_growing: bool) -> Arc<Metadata> {
        let source = Arc::new(ChangingSource(Mutex::new(0), is_growing));
        Arc::new(Metadata::new(
            source,
            form(8),
            Caches::default().new_block_cache(),
        ))
    }

    fn byte(metadata: &Metadata) -> u8 {
        metadata.unverified_block(at(0), 1, "byte").unwrap()[0]
    }

    #[test]
    fn a_fresh_view_ignores_older_cached_blocks() {
        let all = metadata(true);
        assert_eq!((byte(&all), byte(&all)), (0, 0));
        let later = all.fresh_view();
        assert_eq!((byte(&later), byte(&later), byte(&all)), (1, 1, 1));
        let fixed = metadata(false);
        assert_eq!((byte(&fixed), byte(&fixed.fresh_view())), (0, 0));
    }

    #[test]
    fn half_written_blocks_are_read_again() {
        let whole = |bytes: &[u8]| match bytes {
            [first] if *first >= 3 => Ok(()),
            _ => Err(Error::corrupt("byte: wrong checksum", None)),
        };
        let read = |metadata: &Metadata| metadata.verified_block(at(0), 1, "byte", whole);
        assert_eq!(*read(&metadata(true)).unwrap(), [3]);
        assert!(read(&metadata(false)).is_err());
    }
}
