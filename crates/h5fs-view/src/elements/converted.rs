//! Elements that are converted when they are read.

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::view::View;

/// Amount of stored data to read and convert at a time, in bytes.
const BATCH: u64 = 256 << 10;

/// A conversion of stored elements of one size to elements of another size.
pub trait Conversion: Send + Sync {
    /// Converts the stored `element`, and appends the result to `out`.
    ///
    /// # Errors
    /// Fails if the element cannot be converted.
    fn convert(&self, element: &[u8], out: &mut Vec<u8>) -> Result<()>;

    /// Converts stored elements of `size` bytes each, and appends the results to `out`. A conversion
    /// that is faster for many elements at a time replaces this method.
    ///
    /// # Errors
    /// Fails as [`convert`](Self::convert) does.
    fn convert_all(&self, elements: &[u8], size: usize, out: &mut Vec<u8>) -> Result<()> {
        let mut elements = elements.chunks_exact(size);
        elements.try_for_each(|element| self.convert(element, out))
    }
}

impl<F: Fn(&[u8], &mut Vec<u8>) + Send + Sync> Conversion for F {
    fn convert(&self, element: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self(element, out);
        Ok(())
    }
}

/// A view of elements that are converted on each read.
pub struct ConvertedElements<C> {
    /// The elements before the conversion.
    pub content: Box<dyn View>,
    /// The conversion of a single element.
    pub conversion: C,
    /// The number of elements.
    pub count: u64,
    /// Size of a stored element in bytes; not 0.
    pub stored_size: u64,
    /// Size of a converted element in bytes; not 0.
    pub size: u64,
}

impl<C: Conversion> View for ConvertedElements<C> {
    fn length(&self) -> u64 {
        self.count.saturating_mul(self.size)
    }

    fn chunk_values(&self) -> u64 {
        self.content.chunk_values()
    }

    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        let all = self.count.saturating_mul(self.size);
        let end = offset.saturating_add(to_u64(length)).min(all);
        if offset >= end {
            return Ok(Bytes::from(Vec::new()));
        }
        let batch = (BATCH / self.stored_size.max(1)).max(1);
        let (mut first, last) = (offset / self.size, end.div_ceil(self.size));
        let before = to_usize(offset - first * self.size)?;
        let mut out = Vec::with_capacity(to_usize((last - first) * self.size)?);
        while first < last {
            let count = batch.min(last - first);
            let stored = to_usize(count * self.stored_size)?;
            let place = first * self.stored_size;
            let bytes = self.content.read_for(place, stored, cancel)?;
            if bytes.len() != stored {
                return Err(Error::corrupt("array: fewer elements than its shape", None));
            }
            let size = to_usize(self.stored_size)?;
            self.conversion.convert_all(&bytes, size, &mut out)?;
            first = cancel.next_batch(first, first + count)?;
        }
        out.truncate(before + to_usize(end - offset)?);
        out.drain(..before);
        Ok(out.into())
    }

    fn stops_on_cancel(&self) -> bool {
        self.content.stops_on_cancel()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An array of four elements whose chunks are costly to read.
    struct CostlyChunks;

    impl View for CostlyChunks {
        fn length(&self) -> u64 {
            4
        }

        fn chunk_values(&self) -> u64 {
            96
        }

        fn read_for(&self, _: u64, length: usize, _: &CancelToken) -> Result<Bytes> {
            Ok(vec![0; length].into())
        }
    }

    #[test]
    fn converted_elements_cost_as_much_as_their_chunks() {
        let converted = ConvertedElements {
            content: Box::new(CostlyChunks),
            conversion: |element: &[u8], out: &mut Vec<u8>| out.extend_from_slice(element),
            count: 4,
            stored_size: 1,
            size: 1,
        };
        assert_eq!(converted.chunk_values(), 96);
    }
}
