//! Local heaps: the names of an old-style group (HDF5 3.0, III.D).

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::Address;
use crate::limits;
use crate::wire::{Count, Cursor, to_u64, to_usize};

/// Number of bytes that are read at a time, so that reading one name of a heap of many megabytes
/// costs little.
const PAGE_BYTES: u64 = 4096;

/// Maximum number of bytes of a name that is read.
const MAX_TEXT_BYTES: usize = limits::LINK_TEXT;

/// A local heap: NUL-terminated texts, found by their offset in the heap's data segment.
#[derive(Debug)]
pub(crate) struct LocalHeap {
    metadata: Arc<Metadata>,
    data: Address,
    size: u64,
}

impl LocalHeap {
    /// Reads the heap's header at absolute offset `at`.
    ///
    /// # Errors
    /// `Corrupt` if the data overlaps the header, or if its end overflows.
    pub(crate) fn open(metadata: &Arc<Metadata>, at: Address) -> Result<Self> {
        const WHAT: &str = "local heap";
        let length = to_u64(metadata.structure_size(1, 2, 4 + 4));
        let header = metadata.unverified_block(at, length, WHAT)?;
        let mut cursor = Cursor::new(&header, at, WHAT);
        cursor.expect_signature(b"HEAP")?;
        cursor.read_version(0..=0)?;
        cursor.skip(3)?;
        let size = metadata.read_length(&mut cursor)?;
        metadata.read_length(&mut cursor)?; // the free list, which only writers use
        let data = metadata.read_defined_address(&mut cursor)?;
        let end = data.after(size);
        let end =
            end.ok_or_else(|| cursor.corrupt("its data reaches past the end of all files"))?;
        let is_apart = data.offset() >= cursor.offset() || end.offset() <= at.offset();
        if !is_apart {
            return Err(cursor.corrupt("its data overlaps its header"));
        }
        Ok(LocalHeap {
            metadata: Arc::clone(metadata),
            data,
            size,
        })
    }

    /// Returns the text at `offset` in the heap's data segment, without its NUL.
    ///
    /// # Errors
    /// `Corrupt` if the text begins or continues after the end of the data segment. `Limit` for a
    /// text that is too long.
    pub(crate) fn read_text(&self, offset: u64) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        let mut offset = offset;
        loop {
            let page = self.read_page(offset)?;
            let within = to_usize(offset.checked_rem(PAGE_BYTES).unwrap_or(0))?;
            let part = page.get(within..).unwrap_or_default();
            if let Some(end) = part.iter().position(|&byte| byte == 0) {
                text.extend_from_slice(part.get(..end).unwrap_or_default());
                return Ok(text);
            }
            text.extend_from_slice(part);
            Error::check_limit(text.len(), MAX_TEXT_BYTES, "name in a local heap")?;
            offset = offset.plus(to_u64(part.len()));
        }
    }

    /// Returns whether the text at `offset` in the heap's data segment is `wanted`. Reads only the
    /// bytes that the comparison needs.
    ///
    /// # Errors
    /// Fails as [`LocalHeap::read_text`] does.
    pub(crate) fn text_equals(&self, offset: u64, wanted: &[u8]) -> Result<bool> {
        let (mut offset, mut wanted) = (offset, wanted);
        loop {
            let page = self.read_page(offset)?;
            let within = to_usize(offset.checked_rem(PAGE_BYTES).unwrap_or(0))?;
            let part = page.get(within..).unwrap_or_default();
            if let Some((text, [after, ..])) = part.split_at_checked(wanted.len()) {
                return Ok(text == wanted && *after == 0);
            }
            let Some(rest) = wanted.strip_prefix(part) else {
                return Ok(false);
            };
            wanted = rest;
            offset = offset.plus(to_u64(part.len()));
        }
    }

    /// Returns the page of the heap's data segment that contains the byte at `offset`.
    fn read_page(&self, offset: u64) -> Result<Arc<[u8]>> {
        let start = offset.minus_or_zero(offset.checked_rem(PAGE_BYTES).unwrap_or(0));
        let at = self.data.after(start);
        let at = at.filter(|_| offset < self.size).ok_or_else(|| {
            Error::corrupt("local heap: a name is not within the heap", self.data)
        })?;
        let length = PAGE_BYTES.min(self.size.minus_or_zero(start));
        let rest = self.size.minus_or_zero(start).min(limits::HINTED_METADATA);
        self.metadata
            .prefetch_with_siblings(at, length, || [(at, rest)]);
        self.metadata.unverified_block(at, length, "local heap")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdf5::testing::{at, file, words};

    #[test]
    fn texts_are_compared_across_pages() {
        let long = [b'n'; 5000];
        let mut data = vec![0; 100];
        data.extend(long);
        data.extend(b"\0name\0end");
        data.resize(2 * 4096, b'x');
        let size = data.len() as u64;
        let header = [b"HEAP\0\0\0\0".to_vec(), words(&[size, 0, 64])].concat();
        let heap = LocalHeap::open(&file([(0, header), (64, data)]), at(0)).unwrap();
        assert_eq!(heap.read_text(100).unwrap(), long);
        assert_eq!(heap.text_equals(100, &long), Ok(true));
        for other in [&long[..4999], &[b'n'; 5001], &long[..3996], b""] {
            assert_eq!(heap.text_equals(100, other), Ok(false));
        }
        assert_eq!(heap.text_equals(5101, b"name"), Ok(true));
        assert_eq!(heap.text_equals(5100, b""), Ok(true));
        // One text fills its first page, and another one exceeds the heap.
        assert_eq!(heap.text_equals(1104, &long[..3996]), Ok(true));
        heap.read_text(5106).unwrap_err();
        heap.text_equals(5106, &[b"end", &[b'x'; 4096][..]].concat())
            .unwrap_err();
    }

    #[test]
    fn a_heap_past_64_bits_is_rejected() {
        let open = |size: u64| {
            let header = [b"HEAP\0\0\0\0".to_vec(), words(&[size, 0, 64])].concat();
            LocalHeap::open(&file([(0, header), (64, vec![0; 8])]), at(0))
        };
        assert_eq!(open(8).unwrap().read_text(0).unwrap(), b"");
        open(u64::MAX - 64).unwrap();
        let error = open(u64::MAX - 63).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("reaches past the end of all files"),
            "{error}"
        );
    }
}
