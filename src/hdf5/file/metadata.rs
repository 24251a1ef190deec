//! Access to all metadata of one file: fetches each structure as one bounded block, has it
//! verified once, and keeps it within a byte limit.
//!
//! Addresses in the file are relative to the superblock's base address (HDF5 3.0, II.A); here they
//! become absolute file offsets as soon as they are read, so that nothing above has to know the
//! base.

use std::sync::Arc;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::hdf5::file::number_form::{Address, NumberForm, Width};
use crate::limits;
use crate::memory::effort::Effort;
use crate::memory::shared_lru::FileLru;
use crate::source::growing::settled;
use crate::source::{SharedSource, Urgency, read_block, read_shared_block, read_wanted_block};
use crate::wire::checksum::lookup3;
use crate::wire::{Count, Cursor, Extent, to_u64};

/// A block's address and length in its file, or those of what it was made of.
pub(crate) type BlockRange = (Address, u64);

/// A verified block, and the time at which its reading began.
pub(crate) type TimedBlock = (Arc<[u8]>, Instant);

/// The blocks of one file.
pub(crate) type BlockCache = FileLru<BlockRange, TimedBlock>;

/// One file's metadata: where it is, and how wide its numbers are.
#[derive(Debug)]
pub(crate) struct Metadata {
    source: SharedSource,
    form: NumberForm,
    cache: Arc<BlockCache>,
    /// Blocks that were read before this are not taken from the cache.
    since: Option<Instant>,
    /// The bytes that are read are charged to it.
    effort: Effort,
}

impl Metadata {
    /// Addresses and lengths are in the superblock's `form`. Blocks are kept in `cache`.
    pub(crate) fn new(source: SharedSource, form: NumberForm, cache: BlockCache) -> Self {
        Metadata {
            source,
            form,
            cache: Arc::new(cache),
            since: None,
            effort: Effort::default(),
        }
    }

    /// Empties the cache.
    pub(crate) fn forget(&self) {
        self.cache.clear();
    }

    /// The metadata as the file holds it from now on, for a structure that outlives the request. A
    /// writer stores a structure before the one that leads to it: below a structure that was just
    /// read, no older block may be used.
    pub(crate) fn refreshed(&self) -> Arc<Self> {
        let since = self.source.is_growing().then(Instant::now);
        self.copy(since, Effort::default())
    }

    /// The same metadata for a request, whose effort pays for what is read.
    pub(crate) fn within(&self, effort: &Effort) -> Arc<Self> {
        self.copy(self.since, effort.clone())
    }

    fn copy(&self, since: Option<Instant>, effort: Effort) -> Arc<Self> {
        Arc::new(Metadata {
            source: Arc::clone(&self.source),
            form: self.form,
            cache: Arc::clone(&self.cache),
            since,
            effort,
        })
    }

    /// The effort that pays for what is read.
    pub(crate) fn effort(&self) -> &Effort {
        &self.effort
    }

    /// The file.
    pub(crate) fn source(&self) -> &SharedSource {
        &self.source
    }

    /// Absolute offset of address 0.
    pub(crate) fn base(&self) -> u64 {
        self.form.base
    }

    /// Absolute offset of the first byte that can belong to an element: no superblock is shorter
    /// than one of version 2, which has 16 bytes and four addresses (HDF5 3.0, II.A).
    pub(crate) fn begin_of_data(&self) -> u64 {
        let superblock = to_u64(self.structure_size(4, 0, 16));
        Extent::cut(self.base(), superblock).end()
    }

    /// Bytes of an address.
    pub(crate) fn size_of_offsets(&self) -> Width {
        self.form.size_of_offsets
    }

    /// Bytes of a structure of so many addresses, so many lengths and so many other bytes.
    pub(crate) fn structure_size(&self, addresses: usize, lengths: usize, others: usize) -> usize {
        self.form.structure_size(addresses, lengths, others)
    }

    /// The next address as an absolute file offset; `None` for the undefined address (all bits
    /// one).
    pub(crate) fn address(&self, cursor: &mut Cursor<'_>) -> Result<Option<Address>> {
        self.form.address(cursor)
    }

    /// The next address, which must be defined.
    pub(crate) fn defined_address(&self, cursor: &mut Cursor<'_>) -> Result<Address> {
        self.address(cursor)?
            .ok_or_else(|| cursor.corrupt("an address is undefined"))
    }

    /// The next length in bytes.
    pub(crate) fn length(&self, cursor: &mut Cursor<'_>) -> Result<u64> {
        cursor.uint(self.form.size_of_lengths.bytes())
    }

    /// The next length; `None` where all bits are one.
    pub(crate) fn optional_length(&self, cursor: &mut Cursor<'_>) -> Result<Option<u64>> {
        cursor.optional_uint(self.form.size_of_lengths.bytes())
    }

    /// The `length` bytes at absolute offset `at`, from the cache or from the file, where `verify`
    /// has to accept them before they are kept.
    ///
    /// # Errors
    /// `Limit` over `limits::METADATA_BLOCK`, `Effort` over what a request may look at, `Corrupt`
    /// past the end of the file, or as `verify` says.
    pub(crate) fn block(
        &self,
        at: Address,
        length: u64,
        what: &'static str,
        verify: impl Fn(&[u8]) -> Result<()>,
    ) -> Result<Arc<[u8]>> {
        self.made_block(at, length, || {
            self.effort.spend(length)?;
            let block = self.fetch(at, length, what)?;
            verify(&block)?;
            Ok(block)
        })
    }

    /// The result of `make` for the `length` bytes at absolute offset `at`, now or before: the
    /// block itself, or the block with its filters undone.
    ///
    /// # Errors
    /// Fails as `make` does.
    pub(crate) fn made_block<B: Into<Arc<[u8]>>>(
        &self,
        at: Address,
        length: u64,
        mut make: impl FnMut() -> Result<B>,
    ) -> Result<Arc<[u8]>> {
        if let Some((block, read)) = self.cache.get((at, length))
            && self.since.is_none_or(|since| read >= since)
        {
            return Ok(block);
        }
        let (block, read): (Arc<[u8]>, _) = settled(&*self.source, || {
            let read = Instant::now();
            Ok((make()?.into(), read))
        })?;
        let weight = to_u64(block.len());
        self.cache
            .put((at, length), (Arc::clone(&block), read), weight);
        Ok(block)
    }

    /// Like [`block`](Self::block), for a structure without a checksum.
    pub(crate) fn plain_block(
        &self,
        at: Address,
        length: u64,
        what: &'static str,
    ) -> Result<Arc<[u8]>> {
        self.made_block(at, length, || self.fetch(at, length, what))
    }

    fn fetch(&self, at: Address, length: u64, what: &'static str) -> Result<Arc<[u8]>> {
        if length > limits::METADATA_BLOCK {
            return Err(Error::limit(what, limits::METADATA_BLOCK));
        }
        self.come_by(at.offset(), length)?;
        let place = (at.offset(), length);
        read_shared_block(&*self.source, place, what, &self.is_wanted())
    }

    /// The `length` bytes at absolute offset `at`, which are not kept.
    ///
    /// # Errors
    /// Fails as [`read_block`] does; `Effort` where a glance would have to wait for them.
    pub(crate) fn bytes(&self, at: u64, length: u64, what: &str) -> Result<Vec<u8>> {
        self.come_by(at, length)?;
        read_wanted_block(&*self.source, (at, length), what, &self.is_wanted())
    }

    /// Whether a request still waits for what is read.
    fn is_wanted(&self) -> impl Fn() -> bool + Sync + '_ {
        || !self.effort.cancel().is_unwanted()
    }

    /// Asks for bytes that a glance is about to read, and would have to wait for.
    ///
    /// # Errors
    /// `Effort` where that is so.
    pub(crate) fn come_by(&self, at: u64, length: u64) -> Result<()> {
        let block = Extent::checked(at, length);
        let is_inside = block.is_some_and(|block| block.is_within(self.source.length()));
        if !self.effort.is_glance() || !is_inside || self.source.has(at, length) {
            return Ok(());
        }
        self.source.prefetch(&[(at, length)], Urgency::Expected);
        let source = Arc::clone(&self.source);
        Err(self.effort.put_off(Box::new(move || {
            // Who needs it will meet the error again.
            let _ = read_block(&*source, at, length, "metadata");
        })))
    }

    /// Whether reading it may take long.
    pub(crate) fn is_far(&self) -> bool {
        self.source.is_far()
    }

    /// Whether the structure at `at`, of about `length` bytes, can be read without waiting.
    pub(crate) fn is_here(&self, at: Address, length: u64) -> bool {
        let there = self.source.length().left_after(at.offset());
        self.source.has(at.offset(), length.min(there))
    }

    /// Asks for structures that are about to be read, each its place and its length, about.
    pub(crate) fn expect(&self, structures: impl IntoIterator<Item = (Address, u64)>) {
        let structures = structures.into_iter();
        self.expect_at(structures.map(|(at, length)| (at.offset(), length)));
    }

    /// Like [`expect`](Self::expect), by absolute offsets.
    pub(crate) fn expect_at(&self, structures: impl Iterator<Item = (u64, u64)>) {
        if !self.is_far() {
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
            left = left.left_after(length);
            (length > 0).then_some((at, length))
        });
        let ranges: Vec<_> = ranges.collect();
        if !ranges.is_empty() {
            self.source.prefetch(&ranges, Urgency::Expected);
        }
    }

    /// Where the structure at `at`, of about `length` bytes, would have to be waited for, asks for
    /// `siblings` as well: the structures at the same depth that are read next.
    pub(crate) fn expect_with<I: IntoIterator<Item = (Address, u64)>>(
        &self,
        at: Address,
        length: u64,
        siblings: impl FnOnce() -> I,
    ) {
        if self.is_far() && !self.is_here(at, length) {
            let there = self.source.length().left_after(at.offset());
            let needed = (at.offset(), length.min(there));
            let urgency = if self.effort.is_glance() {
                Urgency::Expected
            } else {
                Urgency::Needed
            };
            self.source.prefetch(&[needed], urgency);
            self.expect(siblings());
        }
    }
}

/// Requires the last four bytes of `block` to be the lookup3 checksum of all before them.
///
/// # Errors
/// `Corrupt`, naming `what` at absolute offset `at`.
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
    use crate::source::{IsWanted, Source};

    /// A file of one byte, which is another one at each read.
    #[derive(Debug)]
    struct Rewritten(Mutex<u8>, bool);

    impl Source for Rewritten {
        fn length(&self) -> u64 {
            1
        }

        fn is_growing(&self) -> bool {
            self.1
        }

        fn read_wanted(&self, _: u64, buffer: &mut [u8], _: &IsWanted<'_>) -> Result<()> {
            let mut next = self.0.lock().unwrap();
            buffer.fill(*next);
            *next += 1;
            Ok(())
        }
    }

    fn metadata(is_growing: bool) -> Arc<Metadata> {
        let source = Arc::new(Rewritten(Mutex::new(0), is_growing));
        Arc::new(Metadata::new(source, form(8), Caches::default().blocks()))
    }

    fn byte(metadata: &Metadata) -> u8 {
        metadata.plain_block(at(0), 1, "byte").unwrap()[0]
    }

    #[test]
    fn what_hangs_on_what_was_just_read_is_not_from_before() {
        let all = metadata(true);
        assert_eq!((byte(&all), byte(&all)), (0, 0));
        let later = all.refreshed();
        assert_eq!((byte(&later), byte(&later), byte(&all)), (1, 1, 1));
        let fixed = metadata(false);
        assert_eq!((byte(&fixed), byte(&fixed.refreshed())), (0, 0));
    }

    #[test]
    fn what_is_half_written_is_read_again() {
        let whole = |bytes: &[u8]| match bytes {
            [first] if *first >= 3 => Ok(()),
            _ => Err(Error::corrupt("byte: wrong checksum", None)),
        };
        let read = |metadata: &Metadata| metadata.block(at(0), 1, "byte", whole);
        assert_eq!(*read(&metadata(true)).unwrap(), [3]);
        assert!(read(&metadata(false)).is_err());
    }
}
